//! The names of malloc and its kin.
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

pub fn takes(name: &str) -> bool {
    TAKES.contains(&name)
}

pub fn has(name: &str) -> bool {
    takes(name) || OTHERS.contains(&name)
}
