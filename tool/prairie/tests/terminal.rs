//! `prairie top` on a terminal: keys go in, and what is on the screen is read.
// SPDX-License-Identifier: MIT

mod support;
#[path = "support/watched.rs"]
mod watched;

use std::process::Command;

use support::becomes;
use watched::{AT_REST, Watched};

/// A terminal of its own, with the screen as text.
struct Screen {
    socket: String,
}

impl Screen {
    /// None where there is no tmux.
    fn start(command: &str) -> Option<Screen> {
        let socket = format!("prairie-{}-{}", std::process::id(), command.len());
        let screen = Screen { socket };
        let size = ["-x", "100", "-y", "30"];
        let begun = screen.tmux(&[&["new-session", "-d"][..], &size, &[command]].concat());
        if begun.is_none() {
            eprintln!("skipped: there is no tmux");
        }
        begun.map(|_| screen)
    }

    fn tmux(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.args(["-f", "/dev/null", "-L", &self.socket, "-u"]).args(arguments);
        let output = command.output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]).unwrap();
    }

    /// The screen, once it shows this.
    fn shows(&self, word: &str) -> String {
        let mut screen = String::new();
        for _ in 0..600 {
            screen = self.tmux(&["capture-pane", "-p"]).unwrap_or_default();
            if screen.contains(word) {
                return screen;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{word} is not on the screen:\n{screen}");
    }

    fn has_ended(&self) -> bool {
        (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            self.tmux(&["has-session"]).is_none()
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_process_on_a_terminal() {
    let Some(mut watched) = Watched::start(AT_REST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("web.rec");
    let tool = env!("CARGO_BIN_EXE_prairie");
    let pid = watched.pid();
    let command = format!("{tool} top {pid} --every 0.2 --record {}", record.display());
    let Some(screen) = Screen::start(&command) else { return };
    // A screen may be read while it is drawn: each word by itself.
    for word in ["prairie top: watched", "4 threads", "allocated", "over time", "pages", "q quit"] {
        screen.shows(word);
    }
    screen.shows(", found held ");
    watched.ask("grow");
    screen.shows("large 1");
    screen.press("a");
    screen.shows("out of slabs");
    screen.press("s");
    screen.shows("s sort: unused");
    screen.press("p");
    screen.shows("PAUSED");
    screen.press("p");
    drop(watched);
    screen.shows("HAS ENDED");
    screen.press("q");
    assert!(screen.has_ended());

    let Some(replay) = Screen::start(&format!("{tool} top --ascii --replay {}", record.display()))
    else {
        return;
    };
    replay.shows("look 1 of");
    replay.press("Right");
    replay.shows("look 2 of");
    replay.press("Left");
    let back = replay.shows("look 1 of");
    assert!(back.is_ascii(), "{back}");
    replay.press("q");
    assert!(replay.has_ended());
}

#[test]
fn a_file_is_written_on_a_terminal_too() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("top.txt");
    let tool = env!("CARGO_BIN_EXE_prairie");
    let command = format!("{tool} top {} -o {}", watched.pid(), path.display());
    let Some(screen) = Screen::start(&command) else { return };
    assert!(screen.has_ended());
    assert!(std::fs::read_to_string(path).unwrap().contains("watched"));
}

#[test]
fn all_processes_on_a_terminal() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    let Some(screen) = Screen::start(&format!("{} top", env!("CARGO_BIN_EXE_prairie"))) else {
        return;
    };
    screen.shows(&format!("{} watched", watched.pid()));
    screen.shows("growth/s");
    screen.shows("enter open");
    screen.press("Enter");
    screen.shows("esc back");
    screen.press("Escape");
    screen.shows("enter open");
    screen.press("C-c");
    assert!(screen.has_ended());
}

#[test]
fn it_ends_with_its_terminal() {
    // Where SIGHUP does not end it, what the terminal says must.
    for trap in ["trap '' HUP", "trap : HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let code = folder.path().join("code");
        let tool = env!("CARGO_BIN_EXE_prairie");
        let command = format!("{trap}; {tool} top --every 0.2; echo $? >{}", code.display());
        let Some(screen) = Screen::start(&command) else { return };
        screen.shows("q quit");
        drop(screen);
        let is_told = becomes(|| std::fs::read_to_string(&code).is_ok_and(|text| text == "125\n"));
        assert!(is_told, "{trap}: {:?}", std::fs::read_to_string(&code));
    }
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    for signal in ["INT", "QUIT", "HUP", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let tool = env!("CARGO_BIN_EXE_prairie");
        let start = format!("sh -c 'echo $$ >{}; exec {tool} top --every 0.2'", pid.display());
        let command =
            format!("{start}; code=$?; stty -a; echo the code is $code; sleep 60 # {signal}");
        let Some(screen) = Screen::start(&command) else { return };
        screen.shows("q quit");
        let pid = std::fs::read_to_string(pid).unwrap();
        assert!(Command::new("kill").args(["-s", signal, pid.trim()]).status().unwrap().success());
        let after = screen.shows("the code is 0");
        assert!(after.contains(" icanon") && after.contains(" echo "), "{signal}: {after}");
    }
}
