//! Finds the project's root and the prairie library.
// SPDX-License-Identifier: MIT

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::embedded;
use crate::trouble::{About, Result, Trouble};

pub const LIBRARY: &str = "libprairie.so";
/// What a package for users installs; the name without a number comes with that for developers.
const LIBRARY_OF_USERS: &str = "libprairie.so.0";
const LIBRARY_VARIABLE: &str = "PRAIRIE_LIBRARY";

/// What the sources of prairie contain, and nothing else does.
const MARK: &str = "src/prairie.c";

/// What may not be in the rights of a folder whose contents we run.
const GROUP_AND_OTHERS: u32 = 0o022;
const OTHERS: u32 = 0o002;

/// The nearest folder at or above `start` that holds prairie's sources. Its programs are run: whoever
/// named `start`, or owns it, is believed.
pub fn project_above(start: &Path) -> Option<PathBuf> {
    let owner = fs::metadata(start).ok()?.uid();
    project_that(start, |folder| is_trusted(folder, Some(owner), OTHERS))
}

/// The project that the current folder, or else this executable, lies in. Nobody chose what lies above
/// the current folder: there it must be the user's own.
pub fn project() -> Option<PathBuf> {
    let current = env::current_dir().ok();
    let own = |folder: &Path| is_trusted(folder, None, GROUP_AND_OTHERS);
    current
        .and_then(|start| project_that(&start, own))
        .or_else(|| project_above(&env::current_exe().ok()?))
}

fn project_that(start: &Path, is_wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    let mut folders = start.ancestors().filter(|folder| folder.join(MARK).is_file());
    folders.find(|folder| is_wanted(folder)).map(Path::to_owned)
}

/// Whether the folder is root's, the user's or this owner's, and those of whom `closed_to` has the bits
/// must not write there.
fn is_trusted(folder: &Path, owner: Option<u32>, closed_to: u32) -> bool {
    let owners = [Some(0), Some(embedded::us()), owner];
    fs::metadata(folder)
        .is_ok_and(|about| owners.contains(&Some(about.uid())) && about.mode() & closed_to == 0)
}

/// libprairie.so: as told, beside this executable, built here, within this executable, or installed.
pub fn library(told: Option<&Path>) -> Result<PathBuf> {
    // As of LD_PRELOAD, an empty one says nothing.
    let variable = env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty());
    let variable = variable.map(PathBuf::from);
    if let Some(path) = told.map(Path::to_owned).or(variable) {
        let missing = |_| Trouble::new(format!("{}: no such library", path.display()));
        return path.canonicalize().map_err(missing);
    }
    let first = |places: Vec<PathBuf>| places.into_iter().find_map(|path| path.canonicalize().ok());
    if let Some(found) = first(near()) {
        return Ok(found);
    }
    if let Some(found) = embedded::library()? {
        return Ok(found);
    }
    first(installed_in(&system_folders())).ok_or_else(|| {
        Trouble::new("no libprairie.so beside this program, in build/, or installed").hint(format!(
            "build it (make), or name it: --library FILE, or {LIBRARY_VARIABLE}=FILE"
        ))
    })
}

fn installed_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let names = [LIBRARY, LIBRARY_OF_USERS];
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect()
}

/// Around this executable: whoever starts it believes its owner and the groups of its folders.
fn near() -> Vec<PathBuf> {
    let Ok(executable) = env::current_exe() else { return Vec::new() };
    let Some(folder) = executable.parent() else { return Vec::new() };
    let owner = fs::metadata(&executable).ok().map(|about| about.uid());
    let beside = [folder.to_owned(), folder.join("../lib")];
    let built = executable.ancestors().map(|above| above.join("build"));
    let folders = beside.into_iter().chain(built);
    let trusted = folders.filter(|folder| is_trusted(folder, owner, OTHERS));
    trusted.map(|folder| folder.join(LIBRARY)).collect()
}

/// What a path in LD_PRELOAD cannot have: the loader splits there, and replaces dollar signs.
pub const SPLITS_A_PRELOAD: [char; 4] = [' ', ':', ';', '$'];

/// The library's path as LD_PRELOAD can hold it: one that it would split needs a link. So does one that
/// is no text, as who answers malloc is told in text.
pub struct Loadable {
    pub path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Loadable {
    pub fn new(library: &Path) -> Result<Loadable> {
        if library.to_str().is_some_and(|path| !path.contains(SPLITS_A_PRELOAD)) {
            return Ok(Loadable { path: library.to_owned(), _folder: None });
        }
        let folder = tempfile::tempdir().about("a temporary folder")?;
        let path = folder.path().join(LIBRARY);
        std::os::unix::fs::symlink(library, &path).about(path.display())?;
        Ok(Loadable { path, _folder: Some(folder) })
    }
}

/// Where installed libraries lie, the administrator's own first.
pub fn system_folders() -> Vec<PathBuf> {
    let triple = format!("{}-linux-gnu", env::consts::ARCH);
    ["/usr/local/lib", "/usr/lib", "/lib"]
        .iter()
        .flat_map(|folder| [Path::new(folder).join(&triple), PathBuf::from(folder)])
        .chain([PathBuf::from("/usr/local/lib64"), PathBuf::from("/usr/lib64")])
        .collect()
}

/// Where `prairie peers fetch` puts allocators.
pub fn fetched() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let data = variable("XDG_DATA_HOME").or(variable("HOME").map(|home| home.join(".local/share")));
    data.map(|folder| folder.join("prairie/peers"))
}

/// A path as briefly as it can be said: within the project, or else as it is.
pub fn shown(path: &Path, root: Option<&Path>) -> String {
    let short = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    short.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_found_from_below() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(root.join("bench/suites")).unwrap();
        assert_eq!(project_above(&root.join("bench/suites")), None);
        std::fs::write(root.join(MARK), "").unwrap();
        assert_eq!(project_above(&root.join("bench/suites")), Some(root));
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let us = embedded::us();
        for (mode, to_others, to_all) in [
            (0o755, true, true),
            (0o775, true, false),
            (0o777, false, false),
            (0o1777, false, false),
        ] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_trusted(path, None, OTHERS), to_others, "{mode:o}");
            assert_eq!(is_trusted(path, None, GROUP_AND_OTHERS), to_all, "{mode:o}");
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        // Only root can give a folder away.
        if us == 0 && std::os::unix::fs::chown(path, Some(65534), None).is_ok() {
            assert!(!is_trusted(path, None, GROUP_AND_OTHERS));
            assert!(is_trusted(path, Some(65534), GROUP_AND_OTHERS));
        }
        assert!(!is_trusted(&path.join("none"), None, OTHERS));
    }

    #[test]
    fn a_library_that_was_named_must_exist() {
        let refused = library(Some(Path::new("/no/such/file.so"))).unwrap_err();
        assert_eq!(refused.to_string(), "/no/such/file.so: no such library");
    }

    #[test]
    fn the_package_for_users_has_the_name_with_a_number_only() {
        let places = installed_in(&[PathBuf::from("/a"), PathBuf::from("/b")]);
        let text: Vec<_> = places.iter().map(|path| path.to_str().unwrap()).collect();
        let expected =
            ["/a/libprairie.so", "/a/libprairie.so.0", "/b/libprairie.so", "/b/libprairie.so.0"];
        assert_eq!(text, expected);
    }

    #[test]
    fn a_path_that_the_loader_would_split_gets_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a b:c.so");
        std::fs::write(&odd, "x").unwrap();
        let loadable = Loadable::new(&odd).unwrap();
        assert!(!loadable.path.display().to_string().contains([' ', ':']));
        assert_eq!(std::fs::read_to_string(&loadable.path).unwrap(), "x");
        assert_eq!(Loadable::new(Path::new("/a/b.so")).unwrap().path, Path::new("/a/b.so"));
    }

    #[test]
    fn paths_are_shown_from_the_root() {
        assert_eq!(shown(Path::new("/a/b/c"), Some(Path::new("/a"))), "b/c");
        assert_eq!(shown(Path::new("/x/c"), Some(Path::new("/a"))), "/x/c");
    }
}
