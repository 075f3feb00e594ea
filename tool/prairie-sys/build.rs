//! Compiles prairie's one file. Nothing but a C compiler is needed: gcc 12 or clang 14, or later ones.
// SPDX-License-Identifier: MIT

use std::env;

/// Our own code must not become a call to the functions that it implements.
const NO_BUILTIN: [&str; 14] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "pvalloc",
    "cfree",
    "reallocarray",
    "malloc_usable_size",
    "free_sized",
    "free_aligned_sized",
];

fn has(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some()
}

fn main() {
    println!("cargo:rerun-if-changed=crate.c");
    println!("cargo:rerun-if-changed=names.h");
    println!("cargo:rerun-if-changed=prairie/src");
    println!("cargo:rerun-if-changed=prairie/include");

    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let environment = env::var("CARGO_CFG_TARGET_ENV").unwrap_or_default();
    if environment == "msvc" {
        panic!("prairie is compiled by gcc or clang: use the target x86_64-pc-windows-gnu");
    }
    if system == "macos" && has("override") {
        panic!("on macOS prairie takes malloc's place as a preloaded zone: see docs/macos.md");
    }

    let mut build = cc::Build::new();
    build
        .file("crate.c")
        .include("prairie/include")
        .warnings(false)
        .opt_level(2)
        .flag("-std=gnu17")
        .flag("-fno-stack-protector")
        .flag_if_supported("-fno-lto")
        .flag_if_supported("-fcf-protection=none")
        .flag_if_supported("-fno-semantic-interposition")
        .flag("-fomit-frame-pointer")
        .flag("-funwind-tables");
    for name in NO_BUILTIN {
        build.flag(format!("-fno-builtin-{name}"));
    }
    if system != "windows" {
        build.flag("-fvisibility=hidden").flag("-ftls-model=initial-exec");
    }
    if system == "linux" && environment == "musl" {
        // Debian's musl-gcc leaves the kernel's headers out.
        let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
        for folder in ["/usr/include".to_string(), format!("/usr/include/{machine}-linux-gnu")] {
            build.flag(format!("-idirafter{folder}"));
        }
    }
    if !has("override") {
        build.define("PRAIRIE_OWN_NAMES", if has("control") { "2" } else { "1" });
    }
    build.define("PRAIRIE_HARDENED", if has("hardened") { "1" } else { "0" });
    build.define("PRAIRIE_CHECK", if has("checks") { "1" } else { "0" });
    build.compile("prairie");

    let here = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:include={here}/prairie/include");
}
