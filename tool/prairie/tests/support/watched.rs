//! A program on prairie that waits, for tests that look at it from outside.
// SPDX-License-Identifier: MIT
#![allow(dead_code)] // Each test program uses a part of it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::support::{built_library, compiled, is_refusal, prairie};

/// Threads with blocks of all sizes; then it answers each line of its input with what the library
/// itself says, until a line says to end. On another one its first thread ends, and a new one answers.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool prairie_stats_metrics(void (*write)(void *, const char *), void *);

enum { THREADS = 3, BLOCKS = 3000 };
static pthread_barrier_t ready;

static void *hold(void *of)
{
    static __thread void *blocks[BLOCKS];
    unsigned random = (unsigned)(size_t)of;

    for (unsigned step = 0; step < 20 * BLOCKS; step++) {
        unsigned at = (random = random * 1103515245 + 12345) / 65536 % BLOCKS;
        size_t bytes = (random = random * 1103515245 + 12345) / 65536 % (step % 40 == 0 ? 60000 : 3000);

        free(blocks[at]);
        blocks[at] = step % 3 == 0 ? NULL : memset(malloc(bytes + 1), 1, bytes + 1);
    }
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready);
    return NULL;
}

static void print(void *context, const char *text)
{
    (void)context;
    fputs(text, stdout);
}

static void *answer(void *unused)
{
    pthread_t next;
    char line[80];

    while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
        if (strcmp(line, "metrics\n") == 0) prairie_stats_metrics(print, NULL);
        if (strcmp(line, "grow\n") == 0) memset(malloc(8 << 20), 1, 8 << 20);
        puts(". answered");
        fflush(stdout);
        if (strcmp(line, "leave\n") == 0) {
            pthread_create(&next, NULL, answer, NULL);
            pthread_exit(NULL);
        }
    }
    exit(0);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];

    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    pthread_barrier_init(&ready, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, hold, (void *)(i + 1));
    pthread_barrier_wait(&ready);
    answer(NULL);
}
"#;

/// Nothing goes back to the kernel between two looks, and no block is between guards.
pub const AT_REST: &str = "background_thread:false,guard_sample:0";

pub struct Watched {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Watched {
    /// None where prairie has not been built, or there is no compiler, or processes may not be
    /// read; the reason is printed.
    pub fn start(options: &str) -> Option<Watched> {
        let library = built_library()?;
        let folder = tempfile::tempdir().unwrap();
        let there = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
        let flags = ["-O1", "-fno-builtin", "-pthread", library.to_str().unwrap(), &there];
        let program = compiled(folder.path().join("watched"), PROGRAM, &flags)?;
        let mut child = Command::new(&program)
            .env("PRAIRIE_CONF", options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut watched = Watched { child, input, output, _folder: folder };
        watched.ask("begin");
        if !may_be_read(watched.pid()) {
            eprintln!("skipped: processes may not be read here");
            return None;
        }
        Some(watched)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it answers to a line.
    pub fn ask(&mut self, line: &str) -> Vec<String> {
        writeln!(self.input, "{line}").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut text = String::new();
            assert!(self.output.read_line(&mut text).unwrap() > 0, "it has ended");
            match text.trim_end() {
                ". answered" => return lines,
                text => lines.push(text.to_owned()),
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn may_be_read(pid: u32) -> bool {
    let output = prairie().args(["stats", &pid.to_string()]).output().unwrap();
    output.status.success() || {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(is_refusal(&text), "{text}");
        false
    }
}
