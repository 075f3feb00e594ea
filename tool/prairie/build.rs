//! Puts the built libprairie.so into the command, so that one file is all that users need.
// SPDX-License-Identifier: MIT

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Which library; empty: none. Without it, the one that the project has built, if it has.
const VARIABLE: &str = "PRAIRIE_EMBED";

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = folder.ancestors().nth(2).map(Path::to_owned).unwrap_or_default();
    let built = root.join("build/libprairie.so");
    let library = env::var_os(VARIABLE).map_or(built, PathBuf::from);
    let target =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("libprairie.so");
    let page = root.join("docs/man/prairie.conf.5");
    println!(
        "cargo::rustc-env=PRAIRIE_MANUAL_DATE={}",
        day_of(&fs::read_to_string(&page).unwrap_or_default())
    );
    println!("cargo::rerun-if-changed={}", page.display());
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    // A file that is not there would count as changed each time.
    let watched = library.ancestors().find(|place| place.exists()).unwrap_or(&root);
    println!("cargo::rerun-if-changed={}", watched.display());
    let is_for_us = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let bytes = fs::read(&library).ok().filter(|_| is_for_us).unwrap_or_default();
    // What has not changed need not be compiled again.
    if fs::read(&target).ok().as_ref() != Some(&bytes) {
        fs::write(&target, bytes).expect("OUT_DIR is there to be written");
    }
}

/// The day that a manual page states, `.Dd November 23, 2026`, as those of the command have it.
fn day_of(page: &str) -> &str {
    page.lines().find_map(|line| line.strip_prefix(".Dd ")).unwrap_or_default()
}
