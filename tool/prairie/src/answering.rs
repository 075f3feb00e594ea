//! Answers requests over HTTP, each from a thread of its own: a client that does not read what it
//! asked for, or asks for nothing, keeps nobody else waiting for long, nor the end of the tool.
//!
//! What is asked for is small: one request of a connection, without a body. Who keeps a connection
//! longer than it takes to ask and to be answered loses it, so that there is always one for the next.
// SPDX-License-Identifier: MIT

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::trouble::{About, Result, Trouble};

/// Between two looks whether somebody wants us to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// So many connections at once. Who comes then waits until one of them ends.
const CONNECTIONS_MAX: usize = 64;
/// For all of a request to come, and for all of an answer to be read.
const ASK_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
const READ_WITHIN: Duration = Duration::from_secs(60);
/// For a client to close what has been answered.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Without a query.
    pub path: String,
    /// The forms that the client reads.
    pub accept: String,
}

pub struct Answer {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Answer {
    /// A line.
    pub fn text(status: u16, text: &str) -> Answer {
        let body = format!("{text}\n").into_bytes();
        Answer { status, content_type: "text/plain; charset=utf-8", body }
    }
}

impl Request {
    /// Whether only something is to be told, and nothing done.
    pub fn is_to_get(&self) -> bool {
        ["GET", "HEAD"].contains(&self.method.as_str())
    }
}

struct Asked {
    request: Request,
    answer_to: Sender<Answer>,
}

/// Until `stop`. Answers are made one after another, by this thread.
pub fn serve(
    listener: TcpListener,
    stop: &AtomicBool,
    mut answer: impl FnMut(&Request) -> Answer,
) -> Result<()> {
    let (asked, all_asked) = mpsc::channel();
    std::thread::Builder::new().spawn(move || connect(&listener, &asked)).about("network")?;
    while !stop.load(Ordering::Relaxed) {
        match all_asked.recv_timeout(LOOK_EVERY) {
            Ok(Asked { request, answer_to }) => {
                // Who asked and went away is no failure of ours.
                let _ = answer_to.send(answer(&request));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Trouble::new("network: nobody listens any more"));
            }
        }
    }
    Ok(())
}

/// Without end.
fn connect(listener: &TcpListener, asked: &Sender<Asked>) {
    // Each that is open holds one.
    let open = Arc::new(());
    loop {
        if Arc::strong_count(&open) > CONNECTIONS_MAX {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        // Who went away before it was heard, or one more than there are descriptors for, is no reason
        // to hear nobody any more.
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        let (asked, held) = (asked.clone(), Arc::clone(&open));
        let talk = move || {
            let _ = talk(stream, &asked);
            drop(held);
        };
        // Where no thread is to be had, the connection is dropped, which refuses it.
        let _ = std::thread::Builder::new().spawn(talk);
    }
}

fn talk(mut stream: TcpStream, asked: &Sender<Asked>) -> io::Result<()> {
    let (answer, with_body) = match request(&mut stream)? {
        Some(request) => {
            let with_body = request.method != "HEAD";
            let (answer_to, answer) = mpsc::channel();
            asked.send(Asked { request, answer_to }).map_err(io::Error::other)?;
            (answer.recv().map_err(io::Error::other)?, with_body)
        }
        None => (Answer::text(400, "this is no request"), true),
    };
    write(&mut stream, &answer, with_body)?;
    // Closed with something unread, a connection loses what has not been sent yet.
    stream.shutdown(Shutdown::Write)?;
    let limit = Instant::now() + CLOSE_WITHIN;
    while read(&mut stream, &mut [0; 4096], limit)? > 0 {}
    Ok(())
}

/// None: what came is not one.
fn request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let limit = Instant::now() + ASK_WITHIN;
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !is_whole(&head) {
        match read(stream, &mut piece, limit)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&piece[..count]),
        }
        if head.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(parsed(&String::from_utf8_lossy(&head)))
}

/// Up to an empty line.
fn is_whole(head: &[u8]) -> bool {
    let ends = |end: &[u8]| head.windows(end.len()).any(|part| part == end);
    ends(b"\r\n\r\n") || ends(b"\n\n")
}

fn parsed(head: &str) -> Option<Request> {
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if method.is_empty() || !target.starts_with('/') || !version.starts_with("HTTP/1.") {
        return None;
    }
    let headers = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'));
    let accept = headers.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    let accept: Vec<&str> = accept.map(|(_, value)| value.trim()).collect();
    let path = target.split('?').next().unwrap_or(target);
    Some(Request { method: method.into(), path: path.into(), accept: accept.join(",") })
}

fn write(stream: &mut TcpStream, answer: &Answer, with_body: bool) -> io::Result<()> {
    let Answer { status, content_type, body } = answer;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        reason(*status)
    );
    let limit = Instant::now() + READ_WITHIN;
    let body: &[u8] = if with_body { body } else { &[] };
    for mut rest in [head.as_bytes(), body] {
        while !rest.is_empty() {
            stream.set_write_timeout(Some(left(limit)?))?;
            match stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Internal Server Error",
    }
}

fn read(stream: &mut TcpStream, into: &mut [u8], limit: Instant) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(left(limit)?))?;
        match stream.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Fails when nothing is.
fn left(limit: Instant) -> io::Result<Duration> {
    match limit.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// More than the kernel keeps of an answer that nobody reads.
    const BYTES: usize = 64 << 20;

    fn asked(address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET / HTTP/1.0\r\n\r\n").unwrap();
        stream
    }

    /// With a server that answers with so many bytes.
    fn while_served(bytes: usize, ask: impl FnOnce(SocketAddr)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let answer = move |_: &Request| Answer {
            status: 200,
            content_type: "text/plain",
            body: vec![b'x'; bytes],
        };
        let serving = std::thread::spawn(move || serve(listener, &seen, answer).unwrap());
        ask(address);
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
    }

    #[test]
    fn who_does_not_read_keeps_nobody_waiting() {
        while_served(BYTES, |address| {
            // One that has begun to get its answer, and reads no more of it.
            let mut idle = asked(address);
            idle.read_exact(&mut [0]).unwrap();
            let mut read = Vec::new();
            asked(address).read_to_end(&mut read).unwrap();
            assert!(read.len() > BYTES);
        });
    }

    #[test]
    fn who_asks_for_nothing_makes_room_for_others() {
        while_served(7, |address| {
            let connect = |_| TcpStream::connect(address).unwrap();
            let idle: Vec<TcpStream> = (0..CONNECTIONS_MAX + 9).map(connect).collect();
            let mut read = String::new();
            asked(address).read_to_string(&mut read).unwrap();
            assert!(read.starts_with("HTTP/1.1 200 OK\r\n") && read.ends_with("\r\n\r\nxxxxxxx"));
            drop(idle);
        });
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        while_served(7, |address| {
            for text in ["hello\r\n\r\n", "GET /\r\n\r\n", "GET x HTTP/1.1\n\n"] {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
                let mut read = String::new();
                stream.read_to_string(&mut read).unwrap();
                assert!(read.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}: {read}");
            }
        });
    }

    #[test]
    fn a_request_is_read_line_by_line() {
        let text =
            "GET /metrics?a=b HTTP/1.1\r\nHost: x\r\naccept: a/b, c/d\r\nAccept:e/f\r\n\r\nrest";
        let request = |method: &str, path: &str, accept: &str| Request {
            method: method.into(),
            path: path.into(),
            accept: accept.into(),
        };
        assert_eq!(parsed(text), Some(request("GET", "/metrics", "a/b, c/d,e/f")));
        assert_eq!(parsed("DELETE / HTTP/1.0\n\n"), Some(request("DELETE", "/", "")));
        assert!(is_whole(b"GET / HTTP/1.1\r\n\r\n") && !is_whole(b"GET / HTTP/1.1\r\n"));
    }
}
