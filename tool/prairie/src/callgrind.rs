//! Counts instructions exactly, by running programs under valgrind's callgrind.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::family;
use crate::program;
use crate::trouble::{Result, Trouble};

const FILE: &str = "callgrind.out";

/// Programs take about this much longer.
pub const SLOWDOWN: f64 = 100.0;

pub fn find() -> Result<PathBuf> {
    program::in_path(OsStr::new("valgrind")).ok_or_else(|| {
        Trouble::new("--instructions needs valgrind").hint("apt-get install valgrind")
    })
}

/// The words that stand before the program's own.
pub fn arguments(folder: &Path) -> Vec<String> {
    vec![
        "valgrind".into(),
        "--quiet".into(),
        "--tool=callgrind".into(),
        "--trace-children=yes".into(),
        format!("--callgrind-out-file={}/{FILE}.%p", folder.display()),
    ]
}

/// What the allocator spent, with all that it called, in answer to calls from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct InAllocator {
    pub instructions: u64,
    pub calls: u64,
}

/// What the processes of a run left behind, together.
pub struct Counts {
    /// None: nothing was left, or a process left no total.
    pub instructions: Option<u64>,
    pub in_allocator: Option<InAllocator>,
    /// Whether code of the library ran.
    pub ran_library: bool,
}

pub fn read(folder: &Path, library: Option<&Path>) -> Counts {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with(FILE));
    let mut counts =
        Counts { instructions: None, in_allocator: None, ran_library: library.is_none() };
    let mut totals = Vec::new();
    for file in files {
        // Names of files and functions may be anything.
        let bytes = fs::read(file.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        totals.push(total_in(&text));
        let mut reader = Reader::new(library);
        text.lines().for_each(|line| reader.line(line));
        let sum = counts.in_allocator.get_or_insert_default();
        sum.instructions += reader.inside.instructions;
        sum.calls += reader.inside.calls;
        counts.ran_library |= reader.saw_library;
    }
    if !totals.is_empty() {
        counts.instructions = totals.into_iter().sum();
    }
    counts
}

/// In the C library's file the allocator is malloc's family and these, and what they call, and so it is
/// in code of no known file.
const OPERATORS: &[&str] = &["operator new", "operator delete"];

/// What callgrind writes for an object that it cannot tell.
const UNNAMED: &str = "???";

/// Walks over the lines of a file and adds up the calls that lead into the allocator.
///
/// `ob=` and `fn=` say whose costs follow, `cob=` and `cfn=` whom the next `calls=` calls; the line
/// after that ends with what the call cost, all that it called included. A name is written once,
/// behind its number, and is a number afterwards.
struct Reader<'a> {
    library: Option<&'a Path>,
    objects: HashMap<String, Place>,
    functions: HashMap<String, bool>,
    at: (Place, bool),
    called: (Option<Place>, bool),
    /// The line that follows tells the cost of so many calls.
    pending: Option<u64>,
    inside: InAllocator,
    saw_library: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Library,
    LibC,
    /// Code of no file that callgrind knows: a section of its own name, as tcmalloc's malloc is, or
    /// what a JIT compiler wrote. Functions tell which.
    Unnamed,
    Elsewhere,
}

impl<'a> Reader<'a> {
    fn new(library: Option<&'a Path>) -> Reader<'a> {
        Reader {
            library,
            objects: HashMap::new(),
            functions: HashMap::new(),
            at: (Place::Elsewhere, false),
            called: (None, false),
            pending: None,
            inside: InAllocator::default(),
            saw_library: false,
        }
    }

    fn line(&mut self, line: &str) {
        if let Some(calls) = self.pending.take() {
            self.call(calls, line);
            return;
        }
        let Some((key, value)) = line.split_once('=') else { return };
        match key {
            "ob" => self.at.0 = self.object(value),
            "fn" => self.at.1 = self.function(value),
            "cob" => self.called.0 = Some(self.object(value)),
            "cfn" => self.called.1 = self.function(value),
            "calls" => {
                self.pending = value.split_ascii_whitespace().next().and_then(|n| n.parse().ok());
            }
            _ => {}
        }
    }

    fn call(&mut self, calls: u64, line: &str) {
        let cost = line.split_ascii_whitespace().last().and_then(|cost| cost.parse().ok());
        let callee = (self.called.0.unwrap_or(self.at.0), self.called.1);
        self.called = (None, false);
        if self.is_allocator(callee) && !self.is_inside(callee) {
            self.inside.calls += calls;
            self.inside.instructions += cost.unwrap_or(0u64);
        }
    }

    fn is_allocator(&self, (place, is_family): (Place, bool)) -> bool {
        match self.library {
            Some(_) => place == Place::Library || place == Place::Unnamed && is_family,
            None => place == Place::LibC && is_family,
        }
    }

    /// Whether who calls it belongs to the allocator. Unnamed code that calls more of the library than
    /// the family is a part of it.
    fn is_inside(&self, callee: (Place, bool)) -> bool {
        self.is_allocator(self.at) || self.at.0 == Place::Unnamed && !callee.1
    }

    fn object(&mut self, value: &str) -> Place {
        let (number, path) = numbered(value);
        if let Some(path) = path {
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            let place = if self.library.is_some_and(|library| library == Path::new(path)) {
                self.saw_library = true;
                Place::Library
            } else if path == UNNAMED {
                Place::Unnamed
            } else if family::is_c_library(&file) {
                Place::LibC
            } else {
                Place::Elsewhere
            };
            self.objects.insert(number.to_owned(), place);
        }
        self.objects.get(number).copied().unwrap_or(Place::Elsewhere)
    }

    fn function(&mut self, value: &str) -> bool {
        let (number, name) = numbered(value);
        if let Some(name) = name {
            // A function that calls itself is written with the depth behind it.
            let name = name.split('\'').next().unwrap_or(name);
            let is_operator = OPERATORS.iter().any(|operator| name.starts_with(operator));
            self.functions.insert(number.to_owned(), is_operator || family::has(name));
        }
        self.functions.get(number).copied().unwrap_or(false)
    }
}

/// `(7) name` or `(7)`.
fn numbered(value: &str) -> (&str, Option<&str>) {
    match value.split_once(") ") {
        Some((number, name)) => (number.trim_start_matches('('), Some(name)),
        None => (value.trim_matches(['(', ')']), None),
    }
}

fn total_in(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_all_processes_are_added() {
        let folder = tempfile::tempdir().unwrap();
        let library = Some(Path::new("/lib/my malloc.so"));
        assert_eq!(read(folder.path(), None).instructions, None);
        fs::write(folder.path().join("callgrind.out.7"), "ob=(1) /lib/libc.so\ntotals: 40\n")
            .unwrap();
        fs::write(folder.path().join("other"), "ob=(1) /lib/my malloc.so\ntotals: 1\n").unwrap();
        assert!(!read(folder.path(), library).ran_library);
        fs::write(folder.path().join("callgrind.out.8"), "cob=(1) /lib/my malloc.so\ntotals: 2\n")
            .unwrap();
        let counts = read(folder.path(), library);
        assert_eq!(counts.instructions, Some(42));
        assert!(counts.ran_library);
    }

    #[test]
    fn names_that_are_no_text_are_counted_and_a_missing_total_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |pid: u32, text: &[u8]| {
            fs::write(folder.path().join(format!("callgrind.out.{pid}")), text).unwrap();
        };
        write(7, b"totals: 40\n");
        write(8, b"fl=(1) /src/caf\xe9.c\nfn=(1) main\ntotals: 2\n");
        assert_eq!(read(folder.path(), None).instructions, Some(42));
        write(9, b"");
        assert_eq!(read(folder.path(), None).instructions, None);
    }

    /// The program calls malloc, and strdup, which calls it; both allocators use memset.
    const PROGRAM: &str = "ob=(1) /bin/program\nfn=(1) main\n0 100\n\
        cob=(2) LIBRARY\ncfn=(2) malloc\ncalls=3 0\n0 60\n\
        cob=(3) /lib/libc.so.6\ncfn=(3) strdup\ncalls=1 0\n0 50\n\
        ob=(3)\nfn=(3)\n0 30\ncob=(2)\ncfn=(2)\ncalls=1 0\n0 20\n\
        ob=(2)\nfn=(2)\n0 40\ncfn=(4) realloc'2\ncalls=1 0\n0 8\n\
        cob=(3)\ncfn=(5) memset\ncalls=1 0\n0 40\ntotals: 250\n";

    fn inside(library: &str) -> InAllocator {
        let folder = tempfile::tempdir().unwrap();
        let text = PROGRAM.replace("LIBRARY", library);
        fs::write(folder.path().join("callgrind.out.7"), text).unwrap();
        let preloaded = (!library.contains("libc.so")).then_some(Path::new(library));
        read(folder.path(), preloaded).in_allocator.unwrap()
    }

    #[test]
    fn the_allocators_part_is_what_calls_from_outside_cost() {
        assert_eq!(inside("/lib/mine.so"), InAllocator { instructions: 80, calls: 4 });
    }

    #[test]
    fn what_a_jit_wrote_is_not_the_allocator() {
        // JIT code (0x40) runs long and calls malloc twice, which has a section of its own, and once
        // the library's realloc; malloc's slow path is unnamed, too, and refills in the library.
        let text = "ob=(1) /bin/jsc\nfn=(1) main\n0 5\n\
            cob=(2) ???\ncfn=(2) 0x40\ncalls=1 0\n0 900\n\
            ob=(2)\nfn=(2)\n0 800\ncfn=(3) malloc\ncalls=2 0\n0 30\n\
            cob=(3) /lib/mine.so\ncfn=(4) realloc\ncalls=1 0\n0 70\n\
            fn=(3)\n0 10\ncfn=(5) slow\ncalls=1 0\n0 20\n\
            fn=(5)\n0 5\ncob=(3)\ncfn=(6) refill\ncalls=1 0\n0 15\n";
        let mut reader = Reader::new(Some(Path::new("/lib/mine.so")));
        text.lines().for_each(|line| reader.line(line));
        assert_eq!(reader.inside, InAllocator { instructions: 100, calls: 3 });
    }

    #[test]
    fn functions_of_the_family_in_no_known_file_are_the_preloaded_librarys() {
        let text = "ob=(1) /bin/program\nfn=(1) main\n0 5\n\
            cob=(2) ???\ncfn=(2) malloc\ncalls=2 0\n0 30\n\
            ob=(2)\nfn=(2)\n0 10\ncob=(3) /lib/mine.so\ncfn=(3) refill\ncalls=1 0\n0 20\n";
        let count = |library: Option<&Path>| {
            let mut reader = Reader::new(library);
            text.lines().for_each(|line| reader.line(line));
            reader.inside
        };
        let mine = count(Some(Path::new("/lib/mine.so")));
        assert_eq!(mine, InAllocator { instructions: 30, calls: 2 });
        assert_eq!(count(None), InAllocator::default());
    }

    #[test]
    fn in_the_c_library_functions_tell_the_allocator() {
        assert_eq!(inside("/lib/libc.so.6"), InAllocator { instructions: 80, calls: 4 });
    }
}
