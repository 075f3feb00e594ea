//! What the tests of the command line share: how to start it, and suites made on the spot.
// SPDX-License-Identifier: MIT
#![allow(dead_code, unused_imports)] // Each test program uses a part of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

mod compiled;
pub use compiled::{compiled, compiled_by};

/// What the command keeps for its user goes into the folder of what was built.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

pub fn tool() -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_prairie"));
    command.env("XDG_CACHE_HOME", CACHE);
    command
}

pub fn prairie() -> Command {
    let mut command = Command::from_std(tool());
    for name in ["LD_PRELOAD", "PRAIRIE_LIBRARY", "PRAIRIE_CONF"] {
        command.env_remove(name);
    }
    // Far from the project, so that its suites and peers take no part.
    command.current_dir("/");
    command
}

/// Written by a process of its own: while a process that another test starts has not yet let go of
/// what this one has open for writing, it cannot be run.
pub fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-p").arg(from.as_ref()).arg(to).status().unwrap().success());
}

/// A program of these bytes.
pub fn make_program(path: &Path, contents: impl AsRef<[u8]>) {
    let mut draft = tempfile::NamedTempFile::new().unwrap();
    draft.write_all(contents.as_ref()).unwrap();
    draft.as_file().set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    copy_program(draft.path(), path);
}

/// The library of this project, where it has been built.
pub fn built_library() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let library = root.join("build/libprairie.so").canonicalize().ok();
    if library.is_none() {
        eprintln!("skipped: build/libprairie.so has not been built");
    }
    library
}

/// Of this project's own scripts.
pub fn script(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join(name)
}

/// Two allocators that are the C library's malloc twice, told apart by the variable VARIANT.
pub const VARIANTS: &str = r#"
[[allocator]]
name = "glibc"
env = { VARIANT = "one" }
[[allocator]]
name = "again"
env = { VARIANT = "two" }
"#;

pub struct Suite {
    pub folder: TempDir,
}

impl Suite {
    pub fn new(workloads: &str) -> Suite {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[suite]\nname = 'test'\nrounds = 2\n{VARIANTS}\n{workloads}\n");
        fs::write(folder.path().join("suite.toml"), text).unwrap();
        Suite { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `prairie compare` on this suite under both variants, with all files written.
    pub fn compare(&self) -> Command {
        let mut command = prairie();
        command.arg("compare").arg("--suite").arg(self.path("suite.toml"));
        command.args(["--allocators", "glibc,again", "--subject", "glibc", "--warmup", "0"]);
        command.arg("--out").arg(self.folder.path());
        command
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("compare.json")).unwrap()).unwrap()
    }

    pub fn runs(&self) -> Vec<Value> {
        self.json()["runs"].as_array().unwrap().clone()
    }

    /// The outcomes of all runs under one allocator.
    pub fn outcomes(&self, allocator: &str) -> Vec<String> {
        let runs = self.runs().into_iter().filter(|run| run["allocator"] == allocator);
        runs.map(|run| run["outcome"].as_str().unwrap().to_owned()).collect()
    }
}

/// Whether the kernel said no to a look into a process, as it may where tests run.
pub fn is_refusal(said: &str) -> bool {
    let words = ["may not", "ptrace_scope", "no way to read", "is traced by"];
    words.iter().any(|word| said.contains(word))
}

/// This system call fails in what is started, as where a container has a filter.
pub fn refuse(command: &mut std::process::Command, call: libc::c_long, error: i32) {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let set_filter = move || {
        let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: numbers, and a filter that is there; between fork and exec.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
                    == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: it makes system calls only.
    unsafe { command.pre_exec(set_filter) };
}

/// The tool in a PID namespace of its own, with the /proc of another one; None where that is not to be had.
pub fn unshared() -> Option<std::process::Command> {
    let unshare = |program: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--map-root-user", "--pid", "--fork", "--", program]).current_dir("/");
        command
    };
    if !unshare("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no namespaces of users");
        return None;
    }
    let mut command = unshare(env!("CARGO_BIN_EXE_prairie"));
    command.env("XDG_CACHE_HOME", CACHE);
    Some(command)
}

/// Waits until the first thread of a process has ended; others go on.
pub fn wait_for_end_of_first_thread(pid: u32) {
    let status = format!("/proc/{pid}/status");
    assert!(becomes(|| fs::read_to_string(&status).is_ok_and(|text| text.contains("State:\tZ"))));
}

/// Whether it becomes so within half a minute.
pub fn becomes(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > Duration::from_secs(30) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// A time to sleep, as a word that only processes of this test program have.
pub fn own_seconds(whole: u32) -> String {
    format!("{whole}.{}", std::process::id())
}

/// Whether a process with this word among its arguments runs.
pub fn is_running(word: &str) -> bool {
    let is_it = |folder: fs::DirEntry| {
        let command = fs::read(folder.path().join("cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().any(is_it)
}
