//! Answers requests over HTTP, each from a thread of its own: a client that does not read what it
//! asked for keeps nobody else waiting, nor the end of the tool.
// SPDX-License-Identifier: MIT

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tiny_http::{Request, Response, Server};

use crate::trouble::{About, Result};

pub type Answer = Response<Cursor<Vec<u8>>>;

/// Between two looks whether somebody wants us to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// So many answers may be on their way at once. Who asks then waits until one has been read.
const ANSWERS_MAX: usize = 64;

/// Until `stop`. Answers are made one after another, by this thread.
pub fn serve(
    server: &Server,
    stop: &AtomicBool,
    mut answer: impl FnMut(&Request) -> Answer,
) -> Result<()> {
    // Each that is on its way holds one.
    let on_their_way = Arc::new(());
    while !stop.load(Ordering::Relaxed) {
        if Arc::strong_count(&on_their_way) > ANSWERS_MAX {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        let Some(request) = server.recv_timeout(LOOK_EVERY).about("network")? else { continue };
        let answer = answer(&request);
        let held = Arc::clone(&on_their_way);
        let send = move || {
            // Who asked and went away is no failure of ours.
            let _ = request.respond(answer);
            drop(held);
        };
        // Where no thread is to be had, the request is dropped, which refuses it.
        let _ = std::thread::Builder::new().spawn(send);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    /// More than the kernel keeps of an answer that nobody reads.
    const BYTES: usize = 64 << 20;

    fn asked(address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET / HTTP/1.0\r\n\r\n").unwrap();
        stream
    }

    #[test]
    fn who_does_not_read_keeps_nobody_waiting() {
        let server = Server::http("127.0.0.1:0").unwrap();
        let address = server.server_addr().to_ip().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let serving = std::thread::spawn(move || {
            serve(&server, &seen, |_| Response::from_data(vec![b'x'; BYTES])).unwrap();
        });
        // One that has begun to get its answer, and reads no more of it.
        let mut idle = asked(address);
        idle.read_exact(&mut [0]).unwrap();
        let mut read = Vec::new();
        asked(address).read_to_end(&mut read).unwrap();
        assert!(read.len() > BYTES);
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
    }
}
