//! The control group of a process, and how much memory it may have.
// SPDX-License-Identifier: MIT

use std::fs;
use std::path::{Path, PathBuf};

use super::check::Check;
use crate::proc;
use crate::sys::Pid;
use crate::units;

const TREE: &str = "/sys/fs/cgroup";

#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    pub limit_bytes: u64,
    pub used_bytes: Option<u64>,
}

/// None: there is no limit, or no group.
///
/// Threads may lie in groups of their own, and one of them tells of all: memory is counted for the process.
/// In the second version groups of threads have no files about memory, and all lie below the group that
/// has, which is found among those above. In the first, the kernel counts for the group of one thread: the
/// first one, or where that has ended one of the others.
pub fn look(pid: Option<Pid>) -> Option<Group> {
    let place = pid.map_or("self".to_owned(), |pid| proc::living(pid).to_string());
    let text = fs::read_to_string(format!("/proc/{place}/cgroup")).ok()?;
    folders(&text).iter().find_map(|(folder, is_second)| limit(Path::new(TREE), folder, *is_second))
}

/// The folder of the group in either version; in a container the tree may begin at the group.
fn folders(text: &str) -> Vec<(PathBuf, bool)> {
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            folders.push((Path::new(TREE).join(path), true));
            folders.push((PathBuf::from(TREE), true));
        } else if controllers.split(',').any(|one| one == "memory") {
            folders.push((Path::new(TREE).join("memory").join(path), false));
            folders.push((Path::new(TREE).join("memory"), false));
        }
    }
    folders
}

/// The lowest limit of the group and of those above it, and what is in use of that one: the group that
/// has the limit may hold others besides.
fn limit(tree: &Path, folder: &Path, is_second: bool) -> Option<Group> {
    let (limits, used): (&[&str], &str) = match is_second {
        true => (&["memory.max", "memory.high"], "memory.current"),
        false => (&["memory.limit_in_bytes"], "memory.usage_in_bytes"),
    };
    let number = |folder: &Path, name: &str| {
        fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok()
    };
    let above = folder.ancestors().take_while(|above| above.starts_with(tree));
    let all = above.flat_map(|above| {
        limits.iter().filter_map(move |name| Some((number(above, name)?, above)))
    });
    // The first version says "no limit" by a number that nobody can reach. Of equal ones the group's
    // own comes first.
    let lowest = all.filter(|(bytes, _)| *bytes < 1 << 62).min_by_key(|(bytes, _)| *bytes);
    let (limit_bytes, limited) = lowest?;
    Some(Group { limit_bytes, used_bytes: number(limited, used) })
}

impl Group {
    pub fn check(&self, about: &'static str) -> Check {
        let limit = units::bytes(self.limit_bytes as f64);
        let used = self
            .used_bytes
            .map(|used| format!(", of which {} are in use", units::bytes(used as f64)));
        let text = format!("the control group may have {limit}{}", used.unwrap_or_default());
        Check::note(about, text + "; near it, free memory goes back at once (limit_group)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_both_versions_are_known() {
        let second = folders("0::/user.slice/a:b\n");
        assert_eq!(second[0], (PathBuf::from("/sys/fs/cgroup/user.slice/a:b"), true));
        let first = folders("4:cpu,cpuacct:/x\n7:memory:/docker/1\n");
        assert_eq!(first[0], (PathBuf::from("/sys/fs/cgroup/memory/docker/1"), false));
        assert_eq!(first.len(), 2);
    }

    #[test]
    fn the_use_is_that_of_the_group_with_the_limit() {
        let tree = tempfile::tempdir().unwrap();
        let leaf = tree.path().join("outer/leaf");
        fs::create_dir_all(&leaf).unwrap();
        let write = |folder: &Path, limit: &str, used: &str| {
            fs::write(folder.join("memory.max"), limit).unwrap();
            fs::write(folder.join("memory.current"), used).unwrap();
        };
        write(leaf.parent().unwrap(), "1000\n", "900\n");
        let found = |limit: &str| {
            write(&leaf, limit, "7\n");
            super::limit(tree.path(), &leaf, true).unwrap()
        };
        let limit_of_outer = Group { limit_bytes: 1000, used_bytes: Some(900) };
        assert_eq!(found("max\n"), limit_of_outer);
        assert_eq!(found("2000\n"), limit_of_outer);
        assert_eq!(found("500\n"), Group { limit_bytes: 500, used_bytes: Some(7) });
    }

    /// A thread's group has `cgroup.threads` and files about processors, none about memory.
    #[test]
    fn a_group_of_threads_has_the_limit_of_the_process() {
        let tree = tempfile::tempdir().unwrap();
        let threads = tree.path().join("service/threads/of-one");
        fs::create_dir_all(&threads).unwrap();
        fs::write(threads.join("cpu.max"), "max 100000\n").unwrap();
        let service = tree.path().join("service");
        fs::write(service.join("memory.max"), "1000\n").unwrap();
        fs::write(service.join("memory.current"), "7\n").unwrap();
        let limit = super::limit(tree.path(), &threads, true).unwrap();
        assert_eq!(limit, Group { limit_bytes: 1000, used_bytes: Some(7) });
    }

    #[test]
    fn a_group_tells_its_limit() {
        let group = Group { limit_bytes: 1 << 30, used_bytes: Some(1 << 20) };
        assert!(group.check("kernel").says.contains("1.00 GiB, of which 1.00 MiB are in use"));
    }
}
