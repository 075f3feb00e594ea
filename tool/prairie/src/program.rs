//! Finds a program, and says before it runs why a library cannot be preloaded into it.
// SPDX-License-Identifier: MIT

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::elf::{self, Loader};
use crate::places::Loadable;
use crate::trouble::{About, NOT_EXECUTABLE, NOT_FOUND, Result, Trouble};

/// A script's interpreter may be a script; the kernel follows as many.
const SCRIPT_DEPTH: usize = 4;

/// The file that the shell would run for `name`, started in `folder`.
pub fn find(name: &OsStr, folder: &Path) -> Result<PathBuf> {
    let shown = Path::new(name).display();
    if name.as_bytes().contains(&b'/') {
        // Without dots that say nothing.
        let path: PathBuf = folder.join(name).components().collect();
        return match fs::metadata(&path) {
            Err(error) => Err(Trouble::new(format!("{shown}: {error}")).code(NOT_FOUND)),
            Ok(about) if is_executable(&about) => Ok(path),
            Ok(_) => {
                Err(Trouble::new(format!("{shown}: not an executable file")).code(NOT_EXECUTABLE))
            }
        };
    }
    in_path(name)
        .ok_or_else(|| Trouble::new(format!("{shown}: no such program in PATH")).code(NOT_FOUND))
}

/// Looks through PATH only.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| fs::metadata(file).is_ok_and(|about| is_executable(&about)))
}

fn is_executable(about: &fs::Metadata) -> bool {
    about.is_file() && about.permissions().mode() & 0o111 != 0
}

/// The file whose code runs: of a script, its interpreter.
pub fn image(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..SCRIPT_DEPTH {
        let Some(interpreter) = interpreter(&path)? else { break };
        path = find(OsStr::new(&interpreter), Path::new("/"))?;
    }
    Ok(path)
}

/// Fails with the reason when the loader would not load `library` into the program `path`.
pub fn require_preloadable(path: &Path, library: &Path) -> Result<()> {
    let path = image(path)?;
    require_same_rights(&path)?;
    let shown = path.display();
    let Some(program) = elf::read(&path).about(path.display())? else { return Ok(()) };
    if let Some(ours) = elf::read(library).about(library.display())?
        && ours.kind != program.kind
    {
        let text = format!("{shown} is made for another machine than {}", library.display());
        return Err(Trouble::new(text).hint("use a library of the program's own architecture"));
    }
    match program.loader {
        Loader::None => Err(Trouble::new(format!(
            "{shown} is a static program: it contains its own malloc, so nothing can be preloaded"
        ))
        .hint("link it with libprairie.a instead")),
        // Only musl's loader says nothing of versions, and ends the program where a name is missing.
        Loader::Named(loader) if loader.contains("ld-musl") => {
            let said = list(&loader, &path, &Loadable::new(library)?).about(&loader)?;
            let said = said.map_or_else(Vec::new, |output| output.stderr);
            match String::from_utf8_lossy(&said).lines().next() {
                Some(refusal) if is_refusal_of_musl(refusal) => {
                    let text = format!("{shown} is made for musl, whose loader says: {refusal}");
                    Err(Trouble::new(text).hint("use a library that needs nothing but a C library"))
                }
                _ => Ok(()),
            }
        }
        Loader::Named(_) | Loader::Unread => Ok(()),
    }
}

/// What a loader says it would load; nothing of the program runs. None: the program names a file that is
/// not root's alone, which could do anything.
pub fn list(loader: &str, path: &Path, library: &Loadable) -> io::Result<Option<Output>> {
    let is_of_root = |about: fs::Metadata| about.uid() == 0 && about.mode() & 0o022 == 0;
    if !Path::new(loader).is_absolute() || !fs::metadata(loader).is_ok_and(is_of_root) {
        return Ok(None);
    }
    let mut command = Command::new(loader);
    command.arg("--list").arg(path).env("LD_PRELOAD", &library.path).env_remove("LD_DEBUG");
    command.stdin(Stdio::null()).output().map(Some)
}

pub fn is_refusal_of_musl(line: &str) -> bool {
    line.starts_with("Error loading") || line.starts_with("Error relocating")
}

/// The interpreter that a script's first line names; with `env`, the one that env would find.
fn interpreter(path: &Path) -> Result<Option<String>> {
    let mut head = Vec::new();
    let file = File::open(path).about(path.display())?;
    file.take(4096).read_to_end(&mut head).about(path.display())?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or(line));
    let mut words = line.split_ascii_whitespace();
    let first = words.next().map(str::to_owned);
    let found = match first {
        Some(word) if word.ends_with("/env") => {
            words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
        }
        other => other,
    };
    let nothing = || Trouble::new(format!("{}: its first line names nothing", path.display()));
    found.map(Some).ok_or_else(|| nothing().code(NOT_EXECUTABLE))
}

/// The loader ignores LD_PRELOAD in a program that gains rights by being started.
fn require_same_rights(path: &Path) -> Result<()> {
    let about = fs::metadata(path).about(path.display())?;
    // SAFETY: calls without arguments that cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let bits = about.permissions().mode();
    let gains = if bits & 0o4000 != 0 && about.uid() != user {
        "is set-uid"
    } else if bits & 0o2000 != 0 && about.gid() != group {
        "is set-gid"
    } else if user != 0 && has_capabilities(path) {
        "has file capabilities"
    } else {
        return Ok(());
    };
    let text = format!("{} {gains}: the loader ignores LD_PRELOAD in it", path.display());
    Err(Trouble::new(text)
        .hint("start it as the user that it becomes, or name the library in /etc/ld.so.preload"))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let name = c"security.capability";
    // SAFETY: two strings that end with zero; no buffer, so only the size is asked for.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::{compiled, compiled_by};

    fn script(first_line: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, format!("{first_line}\nrest\n")).unwrap();
        interpreter(&path).unwrap()
    }

    #[test]
    fn the_interpreter_of_a_script_is_found() {
        assert_eq!(script("#!/bin/sh -e").as_deref(), Some("/bin/sh"));
        assert_eq!(script("#! /usr/bin/env -S A=1 python3 -u").as_deref(), Some("python3"));
        assert_eq!(script("plain text"), None);
    }

    #[test]
    fn what_cannot_be_found_or_run_has_the_code_of_env() {
        let missing = find(OsStr::new("no-such-program-anywhere"), Path::new("/")).unwrap_err();
        assert_eq!(missing.exit_code(), NOT_FOUND);
        let missing = find(OsStr::new("./no-such-file"), Path::new("/")).unwrap_err();
        assert_eq!(missing.exit_code(), NOT_FOUND);
        let folder = find(OsStr::new("/usr"), Path::new("/")).unwrap_err();
        assert_eq!(folder.exit_code(), NOT_EXECUTABLE);
    }

    /// A file with the header of this program, changed.
    fn header(change: impl Fn(&mut [u8])) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("header");
        let mut image = fs::read(std::env::current_exe().unwrap()).unwrap();
        image.truncate(64);
        change(&mut image);
        fs::write(&path, image).unwrap();
        (folder, path)
    }

    #[test]
    fn a_static_program_is_refused() {
        // A header without program headers asks for no loader.
        let (_folder, path) = header(|image| image[56..58].copy_from_slice(&[0, 0]));
        let library = std::env::current_exe().unwrap();
        let refused = require_preloadable(&path, &library).unwrap_err();
        assert!(refused.to_string().contains("static program"), "{refused}");
    }

    #[test]
    fn a_program_of_another_word_size_is_not_called_static() {
        let (_folder, path) = header(|image| image[4] = 1);
        assert!(require_preloadable(&path, &path).is_ok());
        let library = std::env::current_exe().unwrap();
        let refused = require_preloadable(&path, &library).unwrap_err();
        assert!(refused.to_string().contains("another machine"), "{refused}");
    }

    #[test]
    fn dots_that_say_nothing_are_left_out() {
        let found = find(OsStr::new("./usr/../bin/./sh"), Path::new("/")).unwrap();
        assert_eq!(found, Path::new("/usr/../bin/sh"));
    }

    #[test]
    fn what_musl_cannot_load_is_refused_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let main = "int main(void) { return 0; }";
        let Some(main) = compiled_by("musl-gcc", path("main"), main, &[]) else { return };
        let library = |source| compiled(path("lib.so"), source, &["-shared", "-fPIC"]);
        let needs = "void missing(void); void have(void) { missing(); }";
        let Some(needs) = library(needs) else { return };
        let refused = require_preloadable(&main, &needs).unwrap_err().to_string();
        assert!(refused.contains("is made for musl, whose loader says: Error reloc"), "{refused}");
        let needs_none = library("void have(void) { }").unwrap();
        assert!(require_preloadable(&main, &needs_none).is_ok());
    }

    #[test]
    fn a_loader_that_others_may_write_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let loader = folder.path().join("ld-musl.so");
        fs::write(&loader, format!("#!/bin/sh\n: > {}/run\n", folder.path().display())).unwrap();
        let library = Loadable::new(Path::new("/no.so")).unwrap();
        for mode in [0o777, 0o775, 0o757] {
            fs::set_permissions(&loader, fs::Permissions::from_mode(mode)).unwrap();
            let said = list(loader.to_str().unwrap(), Path::new("/bin/true"), &library).unwrap();
            assert!(said.is_none() && !folder.path().join("run").exists());
        }
        assert!(list("ld.so", Path::new("/bin/true"), &library).unwrap().is_none());
    }

    #[test]
    fn the_refusals_of_musl_are_known() {
        let missing = "Error relocating /lib/libx.so: __cxa_throw: symbol not found";
        assert!(is_refusal_of_musl(missing));
        assert!(is_refusal_of_musl("Error loading shared library libstdc++.so.6: No such file"));
        assert!(!is_refusal_of_musl("\tlibc.so => /lib/ld-musl-x86_64.so.1 (0x7f)"));
    }

    #[test]
    fn a_program_of_another_machine_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        let mut image = fs::read(std::env::current_exe().unwrap()).unwrap();
        image[18] ^= 0xff;
        fs::write(&path, image).unwrap();
        let library = std::env::current_exe().unwrap();
        let refused = require_preloadable(&path, &library).unwrap_err();
        assert!(refused.to_string().contains("another machine"), "{refused}");
    }
}
