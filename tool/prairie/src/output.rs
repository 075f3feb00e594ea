//! Where data goes: to standard output, or into a file that is not overwritten by mistake.
// SPDX-License-Identifier: MIT

use std::ffi::{CString, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::sys::Pid;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

/// The option that names the file in most verbs.
const OPTION: &str = "-o";

/// Writes a file. What is there already is replaced only if `force` says so.
pub fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    create_file(path, force)?.write_all(bytes).about(path.display())
}

/// Asked before anything is run: whoever waited for the end must not lose what comes out.
pub fn require_writable(path: &Path, force: bool) -> Result<()> {
    if path.exists() && !force {
        return Err(is_there(path, OPTION));
    }
    require_folder(path)?;
    require_access(path, folder_of(path))
}

/// As above, for what is written into its folder again and again.
pub fn require_folder(path: &Path) -> Result<()> {
    match folder_of(path) {
        folder if folder.is_dir() => Ok(()),
        folder => Err(Trouble::new(format!("{}: no such folder", folder.display()))),
    }
}

/// As above, for what replaces a file and makes the folders that are missing above it.
pub fn require_replaceable(path: &Path) -> Result<()> {
    let mut folders = folder_of(path).ancestors().map(or_current);
    let nearest = folders.find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match nearest.is_dir() {
        true => require_access(path, nearest),
        false => Err(Trouble::new(format!("{}: not a folder", nearest.display()))),
    }
}

fn folder_of(path: &Path) -> &Path {
    or_current(path.parent().unwrap_or(path))
}

fn or_current(folder: &Path) -> &Path {
    if folder == Path::new("") { Path::new(".") } else { folder }
}

/// Whether the kernel would let us write the file, or make something in this folder.
fn require_access(path: &Path, folder: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Trouble::new(format!("{}: it is a folder", path.display())));
    }
    let asked = if path.exists() { path } else { folder };
    let name = CString::new(asked.as_os_str().as_bytes()).about(path.display())?;
    // SAFETY: a string that ends with zero.
    match unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::W_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()).about(path.display()),
    }
}

/// The name of a file of one run: `%e` is the program, `%p` its process, `%h` this machine, `%t` the
/// time in seconds since 1970, and `%%` a per cent sign.
pub fn name_of_run(path: &Path, program: &str, pid: Pid) -> PathBuf {
    expanded(path, |letter| match letter {
        'p' => Some(pid.to_string()),
        't' => Some(seconds_now().to_string()),
        letter => known_before(letter, program),
    })
}

/// As above, before there is a process: what is not known yet makes a name that nobody has taken.
pub fn require_writable_by_run(path: &Path, program: &str, force: bool) -> Result<()> {
    let mut is_known = true;
    let name = expanded(path, |letter| {
        is_known &= !['p', 't'].contains(&letter);
        known_before(letter, program)
    });
    require_writable(&name, force || !is_known)
}

fn known_before(letter: char, program: &str) -> Option<String> {
    match letter {
        'e' => Some(program.replace('/', "_")),
        'h' => Some(host()),
        '%' => Some("%".to_owned()),
        _ => None,
    }
}

/// With what `value` has for the letters behind per cent signs; others stay.
fn expanded(path: &Path, mut value: impl FnMut(char) -> Option<String>) -> PathBuf {
    let mut name = Vec::new();
    // A path need not be text.
    let mut bytes = path.as_os_str().as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, (byte == b'%').then(|| bytes.next()).flatten()) {
            (b'%', Some(next)) => match value(char::from(next)) {
                Some(value) => name.extend(value.bytes()),
                None => name.extend([b'%', next]),
            },
            (byte, _) => name.push(byte),
        }
    }
    PathBuf::from(OsString::from_vec(name))
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().replace('/', "_")
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn is_there(path: &Path, option: &str) -> Trouble {
    Trouble::new(format!("{}: the file is there already", path.display()))
        .hint(format!("--force replaces it, {option} FILE names another"))
}

/// An empty file, to be written bit by bit.
pub fn create_file(path: &Path, force: bool) -> Result<File> {
    create_file_of(OPTION, path, force)
}

/// As above, of a file that this option named.
pub fn create_file_of(option: &str, path: &Path, force: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(is_there(path, option)),
        opened => opened.about(path.display()),
    }
}

/// Standard output. Whoever reads it may have seen enough: a closed pipe is no failure.
pub fn write_out(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    terminal::was_shown(out.write_all(bytes).and_then(|()| out.flush()))
}

/// To the file if one is named, else to standard output.
pub fn write(path: Option<&Path>, bytes: &[u8], force: bool) -> Result<()> {
    match path {
        Some(path) if path != Path::new("-") => write_file(path, bytes, force),
        _ => write_out(bytes),
    }
}

/// As above, for text that may have colours and drawings: both as `terminal` has them.
pub fn write_text(path: Option<&Path>, text: &str, force: bool) -> Result<()> {
    match path {
        Some(path) if path != Path::new("-") => {
            terminal::show_in(create_file(path, force)?, text).about(path.display())
        }
        _ => terminal::show(text),
    }
}

/// As `write`, for what nobody reads on a terminal: there it goes to `default`. Returns that file.
pub fn write_document(
    path: Option<&Path>,
    default: &Path,
    bytes: &[u8],
    force: bool,
) -> Result<Option<PathBuf>> {
    if path.is_some() || !io::stdout().is_terminal() {
        write(path, bytes, force)?;
        return Ok(path.filter(|path| *path != Path::new("-")).map(Path::to_owned));
    }
    write_file(default, bytes, force)?;
    Ok(Some(default.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_tell_the_run() {
        let name = |text: &str| name_of_run(Path::new(text), "sort", 7).display().to_string();
        assert_eq!(name("out/%e.%p.json"), "out/sort.7.json");
        assert_eq!(name("100%%.%x%"), "100%.%x%");
        assert_eq!(name("%é%p"), "%é7");
        let odd = OsString::from_vec(b"\xff.%p".to_vec());
        let odd = name_of_run(Path::new(&odd), "sort", 7).into_os_string().into_vec();
        assert_eq!(odd, b"\xff.7");
        let (host, time) = (name("%h"), name("%t").parse::<u64>().unwrap());
        assert!(!host.is_empty() && !host.contains(['%', '/', '\n']), "{host}");
        assert!(time > 1_700_000_000);
    }

    #[test]
    fn a_name_is_looked_at_before_the_run_as_far_as_it_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str| require_writable_by_run(&folder.path().join(name), "sort", false);
        std::fs::write(folder.path().join("sort.json"), "").unwrap();
        std::fs::write(folder.path().join("%p.json"), "").unwrap();
        for taken in ["%e.json", "sort.json", "%%p.json"] {
            let refused = check(taken).unwrap_err().to_string();
            assert!(refused.ends_with("json: the file is there already"), "{refused}");
        }
        for free in ["%e", "%p.json", "%e.%t.json", "%h.json"] {
            check(free).unwrap();
        }
        let refused = check("%e/file").unwrap_err().to_string();
        assert!(refused.ends_with("sort: no such folder"), "{refused}");
    }

    #[test]
    fn folders_may_be_made_below_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "").unwrap();
        for fine in ["file", "new", "a/b/new"] {
            require_replaceable(&path(fine)).unwrap();
        }
        require_replaceable(Path::new("new/new")).unwrap();
        let refused = require_replaceable(&path("file/a/new")).unwrap_err().to_string();
        assert!(refused.ends_with("file: not a folder"), "{refused}");
        let refused = require_replaceable(folder.path()).unwrap_err().to_string();
        assert!(refused.ends_with(": it is a folder"), "{refused}");
    }

    #[test]
    fn a_folder_that_may_not_be_written_to_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let refused = require_writable(folder.path(), true).unwrap_err().to_string();
        assert!(refused.ends_with(": it is a folder"), "{refused}");
        // Root may write everywhere.
        if crate::embedded::us() != 0 {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
            let refused = require_writable(&folder.path().join("x"), false).unwrap_err();
            assert!(refused.to_string().ends_with("x: Permission denied"), "{refused}");
        }
    }

    #[test]
    fn a_file_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_file(&path, b"one", false).unwrap();
        let refused = write_file(&path, b"two", false).unwrap_err();
        assert!(refused.to_string().ends_with("file: the file is there already"), "{refused}");
        let refused = require_writable(&path, false).unwrap_err();
        assert!(refused.to_string().ends_with("file: the file is there already"), "{refused}");
        assert!(require_writable(&path, true).is_ok());
        let refused = require_writable(&folder.path().join("no/file"), true).unwrap_err();
        assert!(refused.to_string().ends_with("no: no such folder"), "{refused}");
        assert!(require_writable(Path::new("no-such-file"), false).is_ok());
        write_file(&path, b"3", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"3");
    }
}
