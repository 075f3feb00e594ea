//! The environment of measured programs: the user's, without what would change an allocator.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;

/// Names, or their beginnings where a star follows.
const FOREIGN: &[&str] = &[
    "LD_PRELOAD",
    "LD_DEBUG*",
    "LD_AUDIT",
    "LD_BIND_NOW",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "_RJEM_MALLOC_CONF",
    "MIMALLOC_*",
    "TCMALLOC_*",
    "SNMALLOC_*",
    // The switch of WebKit: its mere presence sends JavaScriptCore to malloc.
    "Malloc",
    "PRAIRIE_*",
];

pub type Variables = Vec<(OsString, OsString)>;

/// What to pass on, and the names of what was left out.
pub fn neutral() -> (Variables, Vec<String>) {
    let (left_out, kept): (Variables, Variables) =
        std::env::vars_os().partition(|(name, _)| is_foreign(&name.to_string_lossy()));
    let mut names: Vec<String> =
        left_out.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    (kept, names)
}

fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// Sets a variable, replacing one of that name.
pub fn set(variables: &mut Variables, name: &str, value: impl Into<OsString>) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.into(), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_allocators_are_foreign() {
        assert!(is_foreign("LD_PRELOAD"));
        assert!(is_foreign("MALLOC_ARENA_MAX"));
        assert!(is_foreign("PRAIRIE_CONF"));
        assert!(is_foreign("Malloc"));
        assert!(!is_foreign("LD_LIBRARY_PATH"));
        assert!(!is_foreign("PYTHONMALLOC"));
    }

    #[test]
    fn a_variable_is_set_once() {
        let mut variables = vec![("A".into(), "1".into()), ("B".into(), "2".into())];
        set(&mut variables, "A", "3");
        assert_eq!(variables, [("B".into(), "2".into()), ("A".into(), OsString::from("3"))]);
    }
}
