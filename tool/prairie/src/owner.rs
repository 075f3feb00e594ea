//! Who answers malloc in a process: asked inside of a process that the loader has made ready.
//!
//! The tool starts itself with the library preloaded; that copy asks the loader which file answers
//! each name, in the order in which it resolves the calls of any program.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::environment;
use crate::sys;
use crate::trouble::{About, Result, Trouble};

/// The hidden command of the copy, which is no part of the command line that users see.
pub const COMMAND: &str = "own";

/// Without any of these, a library does not serve a program.
const NAMES: &[&CStr] = &[c"malloc", c"calloc", c"realloc", c"free"];
/// Every prairie has it, and no other allocator.
const MARK: &CStr = c"prairie_version";

#[derive(Debug, Serialize, Deserialize)]
pub struct Owners {
    /// Name of the function → file that answers it.
    pub files: BTreeMap<String, String>,
    /// What the library says its version is, if it has a function for that.
    pub version: Option<String>,
}

/// What the copy prints: one line of JSON.
pub fn print() {
    let names = NAMES.iter().chain([&MARK]);
    let files =
        names.filter_map(|name| Some((name.to_str().ok()?.to_owned(), sys::owner_of(name)?)));
    let owners = Owners { files: files.collect(), version: version() };
    println!("{}", serde_json::to_string(&owners).expect("strings are JSON"));
}

/// Asks a copy of this tool, started with `library` preloaded and of settings of allocators with
/// `settings` only: the user's are for the program, and would let the copy write files.
pub fn ask(library: Option<&Path>, settings: &[(String, String)]) -> Result<Owners> {
    let executable = std::env::current_exe().about("this program's own file")?;
    let mut command = Command::new(executable);
    command.arg(COMMAND).env_clear().envs(environment::neutral().0);
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    let output = command.output().about("this program's own file")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let reason = errors.lines().last().unwrap_or("no message").to_owned();
        return Err(Trouble::new(format!("a program that preloads it fails: {reason}")));
    }
    if let Some(line) = errors.lines().find(|line| line.contains("cannot be preloaded")) {
        return Err(Trouble::new(format!("the loader refuses it: {line}")));
    }
    serde_json::from_slice(&output.stdout).about("the answer of this program's copy")
}

/// As above, with `library` preloaded from where the loader finds it: fails unless that answers every
/// name and is prairie.
pub fn ask_prairie(library: &Path, loadable: &Path) -> Result<Owners> {
    let owners = ask(Some(loadable), &[]).about(library.display())?;
    owners.require(library).about(library.display())?;
    owners.require_prairie(library)?;
    Ok(owners)
}

impl Owners {
    /// Fails unless `library` answers every name.
    pub fn require(&self, library: &Path) -> Result<()> {
        for name in NAMES {
            let (name, answerer) = (name.to_string_lossy(), self.answerer(name));
            if !is_same(answerer, library) {
                return Err(Trouble::new(format!("{name} is answered by {answerer}, not by it")));
            }
        }
        Ok(())
    }

    /// Fails where another allocator answers them.
    fn require_prairie(&self, library: &Path) -> Result<()> {
        if is_same(self.answerer(MARK), library) {
            return Ok(());
        }
        let text = format!("{} answers malloc, but is not prairie", library.display());
        Err(Trouble::new(text)
            .hint("name prairie's: --library FILE; others: prairie compare --with NAME=FILE"))
    }

    fn answerer(&self, name: &CStr) -> &str {
        self.files.get(name.to_string_lossy().as_ref()).map_or("nobody", String::as_str)
    }
}

fn is_same(answerer: &str, library: &Path) -> bool {
    Path::new(answerer).canonicalize().ok() == library.canonicalize().ok()
}

/// The functions by which allocators tell their version, as far as this process has them.
fn version() -> Option<String> {
    // SAFETY: each name is defined by one allocator only, with the type that is cast to here.
    unsafe {
        if let Some(found) = sys::symbol(MARK) {
            let function: extern "C" fn() -> *const c_char = std::mem::transmute(found);
            return text(function());
        }
        if let Some(found) = sys::symbol(c"mi_version") {
            let function: extern "C" fn() -> c_int = std::mem::transmute(found);
            return Some(mimalloc_version(function()));
        }
        if let Some(found) = sys::symbol(c"tc_version") {
            type Version =
                extern "C" fn(*mut c_int, *mut c_int, *mut *const c_char) -> *const c_char;
            let function: Version = std::mem::transmute(found);
            let (mut major, mut minor, mut patch) = (0, 0, std::ptr::null());
            function(&mut major, &mut minor, &mut patch);
            return Some(format!("{major}.{minor}"));
        }
        jemalloc_version()
    }
}

/// Three digits up to version 2, then two for each part.
fn mimalloc_version(number: c_int) -> String {
    match number {
        0..1000 => format!("{}.{}.{}", number / 100, number / 10 % 10, number % 10),
        _ => format!("{}.{}.{}", number / 10000, number / 100 % 100, number % 100),
    }
}

unsafe fn jemalloc_version() -> Option<String> {
    type Mallctl =
        extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
    unsafe {
        let function: Mallctl = std::mem::transmute(sys::symbol(c"mallctl")?);
        let mut answer: *const c_char = std::ptr::null();
        let mut size = size_of::<*const c_char>();
        let place = (&raw mut answer).cast();
        let failed = function(c"version".as_ptr(), place, &mut size, std::ptr::null_mut(), 0);
        if failed != 0 {
            return None;
        }
        // The part behind the dash is the hash of the revision.
        Some(text(answer)?.split('-').next()?.to_owned())
    }
}

unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mimalloc_counts_in_two_ways() {
        assert_eq!(mimalloc_version(209), "2.0.9");
        assert_eq!(mimalloc_version(30302), "3.3.2");
    }

    #[test]
    fn one_foreign_answer_is_enough_to_refuse() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib.so");
        std::fs::write(&library, "").unwrap();
        let own = library.display().to_string();
        let mut files: BTreeMap<_, _> =
            NAMES.iter().map(|n| (n.to_string_lossy().into_owned(), own.clone())).collect();
        assert!(Owners { files: files.clone(), version: None }.require(&library).is_ok());
        files.insert("free".to_owned(), "/lib/libc.so.6".to_owned());
        let refused = Owners { files, version: None }.require(&library).unwrap_err();
        assert_eq!(refused.to_string(), "free is answered by /lib/libc.so.6, not by it");
    }

    #[test]
    fn another_allocator_is_not_prairie() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib.so");
        std::fs::write(&library, "").unwrap();
        let own = library.display().to_string();
        let of = |answerer: Option<&str>| Owners {
            files: answerer
                .map(|file| ("prairie_version".to_owned(), file.to_owned()))
                .into_iter()
                .collect(),
            version: Some("5.3.1".to_owned()),
        };
        assert!(of(Some(&own)).require_prairie(&library).is_ok());
        // A prairie that all programs have does not make another library one.
        for answerer in [None, Some("/lib/libprairie.so")] {
            let refused = of(answerer).require_prairie(&library).unwrap_err();
            assert_eq!(refused.to_string(), format!("{own} answers malloc, but is not prairie"));
        }
    }
}
