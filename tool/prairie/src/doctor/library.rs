//! The library itself: is it there, does the loader take it, and who comes before it?
// SPDX-License-Identifier: MIT

use std::fs;
use std::path::{Path, PathBuf};

use super::check::Check;
use crate::owner::{self, Owners};
use crate::places::{self, Loadable};
use crate::trouble::{About, Result};
use crate::witness;

const ABOUT: &str = "library";
const ENVIRONMENT: &str = "environment";
/// Of a library that does not serve, where nothing better is known.
const FIX: &str = "build it again (make), or name another: --library FILE";
const SYSTEM_WIDE: &str = "/etc/ld.so.preload";

/// What was found, and the library's path if it serves.
pub fn look(told: Option<&Path>) -> (Vec<Check>, Option<PathBuf>) {
    let mut checks = Vec::new();
    let library = match places::library(told) {
        Ok(path) => path,
        Err(trouble) => return (vec![Check::of_trouble(ABOUT, &trouble)], None),
    };
    let serves = match answerers(&library) {
        Ok(owners) => {
            let version = owners.version.as_deref().unwrap_or("of unknown version");
            checks.push(Check::good(ABOUT, format!("prairie {version}, {}", library.display())));
            checks
                .push(Check::good(ABOUT, "preloaded, it answers malloc, calloc, realloc and free"));
            true
        }
        Err(trouble) => {
            let check = Check::of_trouble(ABOUT, &trouble);
            checks.push(if check.fix.is_some() { check } else { check.fix(FIX) });
            false
        }
    };
    checks.extend(preloads());
    (checks, serves.then_some(library))
}

/// Fails unless the library, preloaded, answers all of them and is prairie.
fn answerers(library: &Path) -> Result<Owners> {
    let loadable = Loadable::new(library).about(library.display())?;
    owner::ask_prairie(library, &loadable.path)
}

/// What else is preloaded into everything that is started here.
fn preloads() -> Vec<Check> {
    let mut checks = Vec::new();
    let variable = std::env::var("LD_PRELOAD").unwrap_or_default();
    let system = fs::read_to_string(SYSTEM_WIDE).unwrap_or_default();
    for (place, text, fix) in [
        ("LD_PRELOAD", variable, "put libprairie.so before it, or leave it out"),
        (SYSTEM_WIDE, system, "take it out of that file, or put libprairie.so before it there"),
    ] {
        for name in others_before(&text) {
            checks.push(
                Check::note(ENVIRONMENT, format!("{place} names {name}, which answers malloc too"))
                    .fix(fix),
            );
        }
    }
    checks
}

/// Allocators in a list of libraries that stand before prairie.
pub fn others_before(list: &str) -> Vec<String> {
    others_before_one(list, |name| name.starts_with("libprairie"))
}

/// The same where prairie may have other names.
pub fn others_before_one(list: &str, is_prairie: impl Fn(&str) -> bool) -> Vec<String> {
    let names = list.split([':', ' ', '\n']).filter(|name| !name.is_empty());
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    names
        .map(name)
        .take_while(|name| !is_prairie(name))
        .filter(|name| witness::is_allocator(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allocators_before_prairie_are_in_the_way() {
        assert_eq!(others_before("/a/libjemalloc.so.2:/b/libx.so"), ["libjemalloc.so.2"]);
        assert!(others_before("/l/libprairie.so:/a/libjemalloc.so.2").is_empty());
        assert!(others_before("").is_empty());
    }

    #[test]
    fn a_library_that_is_not_there_is_bad() {
        let (checks, library) = look(Some(Path::new("/no/lib.so")));
        assert_eq!(library, None);
        assert_eq!(checks[0].says, "/no/lib.so: no such library");
    }
}
