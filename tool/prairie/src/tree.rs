//! The processes that a program consists of, and the memory they hold together.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;

use crate::proc;
use crate::sys::{self, Pid};

/// Where a tree begins.
#[derive(Clone, Copy)]
pub enum Root {
    /// A process and its descendants.
    Process(Pid),
    /// All children of this tool but one, the launcher. Includes orphans that it has adopted.
    ChildrenExcept(Pid),
}

/// Children of other threads than the leading one are looked for at every so many samples.
const THOROUGH_EVERY: u64 = 10;

pub struct Tree {
    root: Root,
    page_bytes: u64,
    kernel_lists_children: bool,
    sample_count: u64,
    pids: Vec<Pid>,
    /// Those of the last thorough look, which quick looks cannot see.
    threaded: Vec<Pid>,
}

impl Tree {
    pub fn new(root: Root) -> Tree {
        Tree {
            root,
            page_bytes: sys::page_bytes(),
            kernel_lists_children: proc::lists_children(),
            sample_count: 0,
            pids: Vec::new(),
            threaded: Vec::new(),
        }
    }

    /// The processes that run now.
    pub fn look(&mut self) -> &[Pid] {
        let thorough = self.sample_count.is_multiple_of(THOROUGH_EVERY);
        self.sample_count += 1;
        if self.kernel_lists_children {
            self.follow(thorough);
        } else if thorough {
            self.pids = from_table(self.root, &proc::all_with_parents());
        }
        &self.pids
    }

    /// The processes of the last look.
    pub fn pids(&self) -> &[Pid] {
        &self.pids
    }

    /// Resident memory of the processes of the last look, together. Pages that processes share
    /// count once for each of them.
    pub fn resident_bytes(&self) -> u64 {
        self.pids.iter().filter_map(|pid| proc::resident_pages(*pid)).sum::<u64>() * self.page_bytes
    }

    fn follow(&mut self, thorough: bool) {
        let mut pids = Vec::with_capacity(self.pids.len() + 8);
        match self.root {
            Root::Process(pid) => pids.push(pid),
            Root::ChildrenExcept(launcher) => {
                proc::children_of_leader(sys::own_pid(), &mut pids);
                pids.retain(|pid| *pid != launcher);
            }
        }
        if !thorough {
            pids.extend(&self.threaded);
        }
        let mut at = 0;
        while at < pids.len() {
            if thorough {
                proc::children(pids[at], &mut pids);
            } else {
                proc::children_of_leader(pids[at], &mut pids);
            }
            at += 1;
        }
        if thorough {
            self.threaded = pids.clone();
        }
        pids.sort_unstable();
        pids.dedup();
        self.pids = pids;
    }
}

/// The tree as a whole table of processes tells it.
fn from_table(root: Root, table: &[(Pid, Pid)]) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (child, parent) in table {
        children.entry(*parent).or_default().push(*child);
    }
    let of = |pid: Pid| children.get(&pid).cloned().unwrap_or_default();
    let mut pids = match root {
        Root::Process(pid) => vec![pid],
        Root::ChildrenExcept(launcher) => {
            of(sys::own_pid()).into_iter().filter(|pid| *pid != launcher).collect()
        }
    };
    let mut at = 0;
    while at < pids.len() {
        pids.extend(of(pids[at]));
        at += 1;
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_processes_gives_the_descendants_only() {
        let table = [(10, 1), (11, 10), (12, 11), (20, 1), (13, 10)];
        let mut pids = from_table(Root::Process(10), &table);
        pids.sort_unstable();
        assert_eq!(pids, [10, 11, 12, 13]);
    }

    #[test]
    fn the_launcher_is_no_part_of_the_tree() {
        let own = sys::own_pid();
        let table = [(own, 1), (501, own), (502, own), (503, 502), (504, 501)];
        let mut pids = from_table(Root::ChildrenExcept(501), &table);
        pids.sort_unstable();
        assert_eq!(pids, [502, 503]);
    }

    #[test]
    fn a_child_counts_as_long_as_it_lives() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let pid = child.id() as Pid;
        let mut tree = Tree::new(Root::Process(pid));
        assert_eq!(tree.look(), [pid]);
        assert!(tree.resident_bytes() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        tree.look();
        assert_eq!(tree.resident_bytes(), 0);
    }
}
