//! The names of malloc and its kin, and of the libraries that they come from.
// SPDX-License-Identifier: MIT

/// Those that give out blocks.
const TAKES: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
];
/// The rest. `malloc_size` is what some allocators call malloc_usable_size, too.
const OTHERS: &[&str] = &["free", "cfree", "malloc_usable_size", "malloc_size"];

/// Beginnings of the names of libraries that answer malloc, and who that is.
const LIBRARIES: &[(&str, &str)] = &[
    ("libprairie", "prairie"),
    ("libjemalloc", "jemalloc"),
    ("libmimalloc", "mimalloc"),
    ("libtcmalloc", "tcmalloc"),
    ("libsnmalloc", "snmalloc"),
    ("librpmalloc", "rpmalloc"),
    ("libscudo", "scudo"),
    ("libhoard", "hoard"),
    ("libhardened_malloc", "hardened_malloc"),
];
/// The C library itself, under its names of now and before.
const C_LIBRARIES: &[&str] = &["libc.so", "libc-", "libc.musl"];

/// Of a file's name, without folders.
pub fn allocator_in(file: &str) -> Option<&'static str> {
    allocator_among(std::iter::once(file))
}

/// Of several: prairie, where it is one of them.
pub fn allocator_among<'a>(files: impl Iterator<Item = &'a str> + Clone) -> Option<&'static str> {
    let is_there = |start: &str| files.clone().any(|file| file.starts_with(start));
    LIBRARIES.iter().find(|(start, _)| is_there(start)).map(|(_, name)| *name)
}

pub fn is_c_library(file: &str) -> bool {
    C_LIBRARIES.iter().any(|start| file.starts_with(start))
}

pub fn takes(name: &str) -> bool {
    TAKES.contains(&name)
}

pub fn has(name: &str) -> bool {
    takes(name) || OTHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_the_beginnings_of_their_names() {
        assert_eq!(allocator_in("libprairie_hardened.so"), Some("prairie"));
        assert_eq!(allocator_in("libtcmalloc_minimal.so.4"), Some("tcmalloc"));
        assert_eq!(allocator_in("libc.so.6"), None);
        let both = ["libjemalloc.so.2", "libprairie.so.0"];
        assert_eq!(allocator_among(both.into_iter()), Some("prairie"));
        assert!(
            ["libc.so.6", "libc-2.31.so", "libc.musl-x86_64.so.1"].into_iter().all(is_c_library)
        );
        assert!(!is_c_library("libcrypt.so.1") && !is_c_library("libprairie.so"));
    }
}
