//! Finds the project's root and the prairie library.
// SPDX-License-Identifier: MIT

use std::env;
use std::path::{Path, PathBuf};

use crate::embedded;
use crate::trouble::{Result, Trouble};

pub const LIBRARY: &str = "libprairie.so";
const LIBRARY_VARIABLE: &str = "PRAIRIE_LIBRARY";

/// What the sources of prairie contain, and nothing else does.
const MARK: &str = "src/prairie.c";

/// The nearest folder at or above `start` that holds prairie's sources.
pub fn project_above(start: &Path) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    start.ancestors().find(|folder| folder.join(MARK).is_file()).map(Path::to_owned)
}

/// The project that the current folder, or else this executable, lies in.
pub fn project() -> Option<PathBuf> {
    let starts = [env::current_dir().ok(), env::current_exe().ok()];
    starts.into_iter().flatten().find_map(|start| project_above(&start))
}

/// libprairie.so: as told, beside this executable, built here, within this executable, or installed.
pub fn library(told: Option<&Path>) -> Result<PathBuf> {
    let variable = env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
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
    first(system_folders().iter().map(|folder| folder.join(LIBRARY)).collect()).ok_or_else(|| {
        Trouble::new("no libprairie.so beside this program, in build/, or installed").hint(format!(
            "build it (make), or name it: --library FILE, or {LIBRARY_VARIABLE}=FILE"
        ))
    })
}

fn near() -> Vec<PathBuf> {
    let mut places = Vec::new();
    let executable = env::current_exe().ok();
    if let Some(folder) = executable.as_deref().and_then(Path::parent) {
        places.push(folder.join(LIBRARY));
        places.push(folder.join("../lib").join(LIBRARY));
    }
    for start in [executable, env::current_dir().ok()].into_iter().flatten() {
        places.extend(start.ancestors().map(|folder| folder.join("build").join(LIBRARY)));
    }
    places
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
    fn a_library_that_was_named_must_exist() {
        let refused = library(Some(Path::new("/no/such/file.so"))).unwrap_err();
        assert_eq!(refused.to_string(), "/no/such/file.so: no such library");
    }

    #[test]
    fn paths_are_shown_from_the_root() {
        assert_eq!(shown(Path::new("/a/b/c"), Some(Path::new("/a"))), "b/c");
        assert_eq!(shown(Path::new("/x/c"), Some(Path::new("/a"))), "/x/c");
    }
}
