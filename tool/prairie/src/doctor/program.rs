//! A program that is to run: what its file tells before it runs.
// SPDX-License-Identifier: MIT

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use super::check::Check;
use crate::elf::{self, Loader};
use crate::places::Loadable;
use crate::program;
use crate::trouble::Result;
use crate::witness;

const ABOUT: &str = "program";
/// In which a text shows that it is none, if it is not.
const HEAD_BYTES: u64 = 4096;
/// The section of prairie's note, which stays in a program that was stripped.
const NOTE: &str = ".note.prairie";

/// Programs with heaps of their own: the name without its version, what is so, and what to do.
const OWN_HEAPS: &[(&str, &str, &str)] = &[
    (
        "python",
        "Python serves objects of up to 512 bytes from an allocator of its own",
        "set PYTHONMALLOC=malloc to bring all of them to prairie",
    ),
    (
        "node",
        "JavaScript's objects lie in V8's own heap; buffers and native code come to malloc",
        "nothing; what comes to malloc is served",
    ),
    (
        "java",
        "Java's objects lie in the JVM's own heap; the JVM itself and native code come to malloc",
        "nothing; what comes to malloc is served",
    ),
];

pub struct Looked {
    pub checks: Vec<Check>,
    /// It has prairie within, and needs no preload.
    pub is_linked: bool,
}

pub fn look(name: &OsStr, library: Option<&Path>) -> Result<Looked> {
    // It was removed, or lies outside of what can be seen: only a relative path needs its name.
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let path = program::find(name, &folder)?;
    let mut checks = Vec::new();
    let image = program::image(&path)?;
    if image != path {
        let text = format!("{} is a script for {}", path.display(), image.display());
        checks.push(Check::good(ABOUT, text));
    }
    let file = image.file_name().unwrap_or_default().to_string_lossy();
    let name = without_version(&file);
    for (_, says, fix) in OWN_HEAPS.iter().filter(|(known, ..)| *known == name) {
        let is_set = name == "python" && std::env::var_os("PYTHONMALLOC").is_some();
        if !is_set {
            checks.push(Check::note(ABOUT, *says).fix(*fix));
        }
    }
    let Looked { checks: of_contents, is_linked } = of_contents(&image);
    checks.extend(of_contents);
    if let Some(library) = library.filter(|_| !is_linked) {
        match program::require_preloadable(&path, library) {
            Ok(()) => checks.extend(of_loader(&image, &Loadable::new(library)?)),
            Err(trouble) => checks.push(Check::of_trouble(ABOUT, &trouble)),
        }
    }
    Ok(Looked { checks, is_linked })
}

/// `python3.11` is python, and `node_exporter` is not node.
fn without_version(file: &str) -> &str {
    file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// What the names in the file tell.
pub fn of_contents(path: &Path) -> Looked {
    let mut checks = Vec::new();
    // What is no program may be of any length.
    let mut head = Vec::new();
    let is_read =
        File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head)).is_ok();
    let is_program = head.starts_with(b"\x7fELF");
    let bytes = if is_program { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else {
        if is_read && !is_program {
            checks.push(of_no_program(path, !head.contains(&0)));
        }
        return Looked { checks, is_linked: false };
    };
    if file.section_by_name(".go.buildinfo").is_some() {
        checks.push(
            Check::note(
                ABOUT,
                "a Go program: Go's own heap does not come to malloc, C code in it does",
            )
            .fix("nothing to win for pure Go; with cgo the C side is served"),
        );
    }
    let defines = |name: &str| {
        let is_it = |symbol: &object::Symbol| symbol.is_definition() && symbol.name() == Ok(name);
        (file.dynamic_symbols().any(|s| is_it(&s)), file.symbols().any(|s| is_it(&s)))
    };
    // Of a static program more is said below.
    let is_static = file.section_by_name(".interp").is_none();
    let is_linked = file.section_by_name(NOTE).is_some()
        || matches!(defines("prairie_version"), (true, _) | (_, true));
    match defines("malloc") {
        _ if is_linked => checks.push(Check::good(ABOUT, "prairie is linked into it")),
        (true, _) => checks.push(
            Check::bad(
                ABOUT,
                "it exports a malloc of its own, which comes before what is preloaded",
            )
            .fix("build it without that allocator, or link it with libprairie.a"),
        ),
        (false, true) if !is_static => checks.push(
            Check::bad(ABOUT, "it has a malloc of its own inside, which its own code calls")
                .fix("build it without that allocator, or link it with libprairie.a"),
        ),
        _ => {}
    }
    if ["__asan_init", "__tsan_init", "__msan_init"].iter().any(|name| file_mentions(&file, name)) {
        checks.push(
            Check::bad(ABOUT, "built with a sanitizer, which needs to answer malloc itself")
                .fix("use a build without -fsanitize"),
        );
    }
    Looked { checks, is_linked }
}

fn of_no_program(path: &Path, is_text: bool) -> Check {
    if is_text {
        let text = "a text without `#!` and an interpreter in its first line, which the kernel does not start";
        return Check::bad(ABOUT, text).fix(format!("-- sh {}", path.display()));
    }
    let text = "neither a program (ELF) nor a script, which the kernel does not start by itself";
    Check::bad(ABOUT, text).fix(format!("-- INTERPRETER {}", path.display()))
}

fn file_mentions(file: &object::File, name: &str) -> bool {
    file.dynamic_symbols().chain(file.symbols()).any(|symbol| symbol.name() == Ok(name))
}

/// What the loader says when it only lists what it would load; nothing of the program runs.
fn of_loader(path: &Path, library: &Loadable) -> Vec<Check> {
    let loader = elf::read(path).ok().flatten().map(|elf| elf.loader);
    let Some(Loader::Named(loader)) = loader else { return Vec::new() };
    let output = match program::list(&loader, path, library) {
        Ok(Some(output)) => output,
        Ok(None) => {
            let text = format!(
                "its loader, {loader}, is not root's alone, and was not asked what it loads"
            );
            return vec![Check::note(ABOUT, text)];
        }
        Err(error) => return vec![Check::bad(ABOUT, format!("{}: {error}", path.display()))],
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let listed = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = said.lines().chain(listed.lines()).find(|line| is_refusal(line)) {
        return vec![
            Check::bad(ABOUT, format!("the loader says: {}", line.trim()))
                .fix("build prairie on a system as old as the one that the program runs on"),
        ];
    }
    let shown = library.path.display().to_string();
    let first = listed.lines().position(|line| line.trim_start().starts_with(&shown));
    let mut checks = match first {
        Some(_) => vec![Check::good(ABOUT, "the loader takes the library into it")],
        None => vec![
            Check::bad(ABOUT, "the loader leaves the library out of it")
                .fix("see `LD_DEBUG=libs` of the program"),
        ],
    };
    let name = |line: &str| line.trim().rsplit('/').next()?.split(' ').next().map(str::to_owned);
    for name in listed.lines().filter_map(name).filter(|name| witness::is_allocator(name)) {
        if !name.starts_with("libprairie") {
            let text = format!("it is linked with {name}; prairie comes first and answers");
            checks.push(Check::note(ABOUT, text));
        }
    }
    checks
}

/// glibc too old for the library, or the library for another machine.
fn is_refusal(line: &str) -> bool {
    program::is_refusal_of_musl(line)
        || line.contains("cannot be preloaded")
        || (line.contains("version `") && line.contains("not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_refusals_are_known() {
        assert!(is_refusal("prog: /lib/libc.so.6: version `GLIBC_2.38' not found (required by x)"));
        assert!(is_refusal("ERROR: ld.so: object 'x' from LD_PRELOAD cannot be preloaded (y)"));
        assert!(!is_refusal("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)"));
    }

    #[test]
    fn a_name_is_compared_without_its_version() {
        assert_eq!(
            ["python3.11", "node", "node18"].map(without_version),
            ["python", "node", "node"]
        );
        assert_eq!(without_version("node_exporter"), "node_exporter");
    }

    #[test]
    fn a_program_that_is_not_there_is_the_tools_failure() {
        let refused = look(OsStr::new("no-such-program-anywhere"), None).err().unwrap();
        assert_eq!(refused.exit_code(), crate::trouble::NOT_FOUND);
    }
}
