//! The allocators that can be compared: which there are, which were asked for, and the proof that
//! each one serves a program.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::family;
use crate::owner;
use crate::peers;
use crate::places;
use crate::suite::{NamedAllocator, Workload};
use crate::trouble::{About, Result, Trouble};
use crate::units;

pub const C_LIBRARY: &str = "glibc";
pub const PRAIRIE: &str = "prairie";
const PEERS: &str = "build/peers/peers.json";

/// An allocator that serves programs: this was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Allocator {
    pub name: String,
    pub label: String,
    pub version: Option<String>,
    /// The library's own path, from the project's root if it lies below; None: the C library.
    pub path: Option<String>,
    pub sha256: Option<String>,
    pub env: BTreeMap<String, String>,
    /// It takes part in these only, by name or group; empty: in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<String>,
    /// It stands for a heap of the program's own, which need not call malloc.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_heap: bool,
    /// A program that calls malloc more often is not on the heap that this stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_at_most: Option<u64>,
    /// The copy that is preloaded: a build in the meantime must not change what is measured.
    #[serde(skip)]
    pub library: Option<PathBuf>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Absent {
    pub name: String,
    pub reason: String,
}

impl Allocator {
    pub fn takes_part_in(&self, workload: &Workload) -> bool {
        self.workloads.is_empty() || workload.is_one_of(&self.workloads)
    }
}

/// What the command line says about allocators.
#[derive(Debug, Default)]
pub struct Wish {
    /// Empty: all that there are.
    pub names: Vec<String>,
    pub extra: Vec<(String, PathBuf)>,
    pub prairie: Option<PathBuf>,
}

struct Candidate {
    name: String,
    label: Option<String>,
    version: Option<String>,
    library: Option<PathBuf>,
    env: BTreeMap<String, String>,
    workloads: Vec<String>,
    own_heap: bool,
    calls_at_most: Option<u64>,
}

#[derive(Deserialize)]
struct Peer {
    name: String,
    label: Option<String>,
    version: Option<String>,
    path: PathBuf,
    /// Without these it is not what its label says.
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// All allocators to compare, proved, and those that cannot be. Copies go to `folder`.
pub fn gather(
    wish: &Wish,
    named: &[NamedAllocator],
    root: Option<&Path>,
    folder: &Path,
) -> Result<(Vec<Allocator>, Vec<Absent>)> {
    let (candidates, mut absent) = candidates(wish, named, root)?;
    let mut allocators: Vec<Allocator> = Vec::new();
    for candidate in candidates {
        let name = candidate.name.clone();
        match prove(candidate, root, folder) {
            Ok(allocator) => allocators.push(allocator),
            Err(error) if wish.extra.iter().any(|(extra, _)| *extra == name) => {
                return Err(Trouble::new(format!("--with {name}: {error}")));
            }
            Err(error) => absent.push(Absent { name, reason: error.to_string() }),
        }
    }
    if allocators.is_empty() {
        let reasons = absent.iter().map(|absent| format!("{}: {}", absent.name, absent.reason));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        return Err(Trouble::new(format!("no allocator can be measured ({reasons})")));
    }
    Ok((allocators, absent))
}

fn candidates(
    wish: &Wish,
    named: &[NamedAllocator],
    root: Option<&Path>,
) -> Result<(Vec<Candidate>, Vec<Absent>)> {
    let mut absent = Vec::new();
    let mut found = vec![Candidate::plain(C_LIBRARY, None)];
    match places::library(wish.prairie.as_deref()) {
        Ok(path) => found.push(Candidate::plain(PRAIRIE, Some(path))),
        Err(error) if wish.prairie.is_some() => return Err(error),
        Err(error) => absent.push(Absent { name: PRAIRIE.into(), reason: error.to_string() }),
    }
    found.extend(gathered(root)?);
    for entry in named {
        add_named(&mut found, entry);
    }
    for (name, path) in &wish.extra {
        let missing = |_| Trouble::new(format!("--with {name}={}: no such file", path.display()));
        let path = path.canonicalize().map_err(missing)?;
        found.retain(|known| known.name != *name);
        found.push(Candidate::plain(name, Some(path)));
    }
    for name in &wish.names {
        let is_known = found.iter().any(|known| known.name == *name)
            || absent.iter().any(|known| known.name == *name);
        if !is_known {
            let names: Vec<&str> = found.iter().map(|known| known.name.as_str()).collect();
            return Err(Trouble::new(format!("no allocator is called '{name}'"))
                .hint(format!("there are {}; --with NAME=FILE adds one", names.join(", "))));
        }
    }
    if !wish.names.is_empty() {
        let is_extra = |name: &str| wish.extra.iter().any(|(extra, _)| extra == name);
        let wanted = |name: &str| wish.names.iter().any(|wish| wish == name) || is_extra(name);
        found.retain(|known| wanted(&known.name));
        absent.retain(|known| wanted(&known.name));
    }
    Ok((found, absent))
}

impl Candidate {
    fn plain(name: &str, library: Option<PathBuf>) -> Candidate {
        Candidate {
            name: name.into(),
            label: None,
            version: None,
            library,
            env: BTreeMap::new(),
            workloads: Vec::new(),
            own_heap: false,
            calls_at_most: None,
        }
    }
}

/// A suite may add an allocator, or say more about a known one.
fn add_named(found: &mut Vec<Candidate>, entry: &NamedAllocator) {
    if let Some(known) = found.iter_mut().find(|known| known.name == entry.name) {
        known.label = entry.label.clone().or(known.label.take());
        known.library = entry.path.clone().or(known.library.take());
        known.env.extend(entry.env.clone());
        known.workloads.extend(entry.workloads.clone());
        known.own_heap |= entry.own_heap;
        known.calls_at_most = entry.calls_at_most.or(known.calls_at_most);
        return;
    }
    found.push(Candidate {
        label: entry.label.clone(),
        env: entry.env.clone(),
        workloads: entry.workloads.clone(),
        own_heap: entry.own_heap,
        calls_at_most: entry.calls_at_most,
        ..Candidate::plain(&entry.name, entry.path.clone())
    });
}

/// Those that the project has built, or else those that packages brought.
fn gathered(root: Option<&Path>) -> Result<Vec<Candidate>> {
    if let Some(root) = root
        && let Ok(text) = fs::read_to_string(root.join(PEERS))
    {
        let peers: Vec<Peer> = serde_json::from_str(&text).about(PEERS)?;
        return Ok(peers
            .into_iter()
            .map(|peer| Candidate {
                label: peer.label,
                version: peer.version,
                env: peer.env,
                ..Candidate::plain(&peer.name, Some(root.join(peer.path)))
            })
            .collect());
    }
    let candidate = |package: &peers::Package| {
        let library = package.library()?;
        Some(Candidate {
            label: Some(package.label.to_owned()),
            ..Candidate::plain(package.name, Some(library))
        })
    };
    Ok(peers::known().iter().filter_map(candidate).collect())
}

/// Copies the library and lets the loader say that it answers malloc.
fn prove(candidate: Candidate, root: Option<&Path>, folder: &Path) -> Result<Allocator> {
    let mut sha256 = None;
    let mut library = None;
    if let Some(original) = &candidate.library {
        let bytes = fs::read(original).about(original.display())?;
        sha256 = Some(units::hexadecimal(&Sha256::digest(&bytes)));
        let place = folder.join(&candidate.name);
        fs::create_dir_all(&place).about(place.display())?;
        let name = original.file_name().unwrap_or_default().to_string_lossy();
        let copy = place.join(name.replace(places::SPLITS_A_PRELOAD, "_"));
        fs::write(&copy, bytes).about(copy.display())?;
        library = Some(copy.canonicalize().about(copy.display())?);
    }
    let environment: Vec<_> = candidate.env.clone().into_iter().collect();
    let owners = owner::ask(library.as_deref(), &environment)?;
    match &library {
        Some(library) => owners.require(library)?,
        None => require_c_library(&owners)?,
    }
    // The C library's version says nothing about a heap of the program's own.
    let is_c_library = library.is_none() && !candidate.own_heap;
    let version = candidate.version.or(owners.version);
    let version = version.or_else(|| is_c_library.then(c_library_version).flatten());
    let label = candidate.label.clone().unwrap_or_else(|| candidate.name.clone());
    let label = match &version {
        Some(version) if !label.contains(version.as_str()) => format!("{label} {version}"),
        _ => label,
    };
    let path = candidate.library.as_deref().map(|path| places::shown(path, root));
    Ok(Allocator {
        name: candidate.name,
        label,
        version,
        path,
        sha256,
        env: candidate.env,
        workloads: candidate.workloads,
        own_heap: candidate.own_heap,
        calls_at_most: candidate.calls_at_most,
        library,
    })
}

fn require_c_library(owners: &owner::Owners) -> Result<()> {
    let answerer = owners.files.get("malloc").map_or("nobody", String::as_str);
    let name = Path::new(answerer).file_name().unwrap_or_default().to_string_lossy();
    if family::is_c_library(&name) {
        return Ok(());
    }
    Err(Trouble::new(format!("malloc is answered by {answerer} without any preload"))
        .hint("see /etc/ld.so.preload"))
}

fn c_library_version() -> Option<String> {
    // SAFETY: the function takes nothing and returns a constant string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(version.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[Candidate]) -> Vec<&str> {
        found.iter().map(|candidate| candidate.name.as_str()).collect()
    }

    fn project_with_peers(peers: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("build/peers")).unwrap();
        fs::write(folder.path().join(PEERS), peers).unwrap();
        folder
    }

    #[test]
    fn peers_come_from_the_project() {
        let folder = project_with_peers(
            r#"[{"name":"one","label":"one 1.0","version":"1.0","path":"build/one.so",
                 "sha256":"00","from":"crate","env":{"A":"1"}},
                {"name":"two","path":"/usr/lib/two.so"}]"#,
        );
        let found = gathered(Some(folder.path())).unwrap();
        assert_eq!(names(&found), ["one", "two"]);
        assert_eq!(found[0].library, Some(folder.path().join("build/one.so")));
        assert_eq!(found[1].library, Some(PathBuf::from("/usr/lib/two.so")));
        assert_eq!(found[0].env, BTreeMap::from([("A".to_owned(), "1".to_owned())]));
        assert!(found[1].env.is_empty());
    }

    #[test]
    fn broken_peers_are_told() {
        let folder = project_with_peers("[{}]");
        let refused = gathered(Some(folder.path())).err().unwrap();
        assert!(refused.to_string().contains("missing field `name`"), "{refused}");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let folder = project_with_peers("[]");
        let wish = Wish { names: vec!["nomalloc".into()], ..Wish::default() };
        let refused = candidates(&wish, &[], Some(folder.path())).err().unwrap();
        assert_eq!(refused.to_string(), "no allocator is called 'nomalloc'");
    }

    #[test]
    fn a_suite_adds_allocators_and_settings() {
        let folder = project_with_peers("[]");
        let entry = |name: &str, path: Option<&str>| NamedAllocator {
            name: name.into(),
            label: None,
            path: path.map(PathBuf::from),
            env: BTreeMap::from([("A".to_owned(), "1".to_owned())]),
            workloads: Vec::new(),
            own_heap: false,
            calls_at_most: None,
        };
        let named = [entry("glibc", None), entry("glibc-a", None), entry("mine", Some("/m.so"))];
        let wish = Wish { names: vec!["glibc".into(), "mine".into()], ..Wish::default() };
        let (found, _) = candidates(&wish, &named, Some(folder.path())).unwrap();
        assert_eq!(names(&found), ["glibc", "mine"]);
        assert_eq!(found[0].env["A"], "1");
        assert_eq!(found[1].library, Some(PathBuf::from("/m.so")));
    }
}
