//! The processes that a program consists of, and the memory they hold together.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;

use crate::proc;
use crate::sys::{self, Pid};

/// Where a tree begins: at all children of a process but one.
#[derive(Clone, Copy)]
pub struct Root {
    parent: Pid,
    except: Pid,
}

impl Root {
    /// What the launcher started for this tool, and orphans that the tool has adopted.
    pub fn of_tool(launcher: Pid) -> Root {
        Root { parent: sys::own_pid(), except: launcher }
    }
}

/// Children of other threads than the leading one are looked for at every so many samples.
const THOROUGH_EVERY: u64 = 10;

/// Two processes have nearly as many pages if they differ by no more than this, or this part.
const NEARLY_PAGES: u64 = 64;
const NEARLY_PART: u64 = 64;

pub struct Tree {
    root: Root,
    page_bytes: u64,
    kernel_lists_children: bool,
    /// Else nothing is seen: numbers in /proc are those of other processes.
    has_our_numbers: bool,
    sample_count: u64,
    pids: Vec<Pid>,
    /// Those of the last thorough look that quick looks cannot see, each with its parent.
    threaded: Vec<(Pid, Pid)>,
}

impl Tree {
    pub fn new(root: Root) -> Tree {
        Tree {
            root,
            page_bytes: sys::page_bytes(),
            kernel_lists_children: proc::lists_children(),
            has_our_numbers: proc::has_our_numbers(),
            sample_count: 0,
            pids: Vec::new(),
            threaded: Vec::new(),
        }
    }

    /// The processes that run now.
    pub fn look(&mut self) -> &[Pid] {
        let thorough = self.sample_count.is_multiple_of(THOROUGH_EVERY);
        self.sample_count += 1;
        if !self.has_our_numbers {
            return &[];
        }
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
    /// count once for each of them; but a process that has been made by vfork has none of its own
    /// before it becomes another program.
    pub fn resident_bytes(&self) -> u64 {
        let pages = |pid: &Pid| Some((proc::resident_pages(*pid)?, *pid));
        let of = self.pids.iter().filter_map(pages).collect();
        pages_together(of, sys::share_memory, proc::resident_pages) * self.page_bytes
    }

    fn follow(&mut self, thorough: bool) {
        let mut pids = Vec::with_capacity(self.pids.len() + 8);
        proc::children_of_leader(self.root.parent, &mut pids);
        pids.retain(|pid| *pid != self.root.except);
        if thorough {
            self.threaded.clear();
        } else {
            // One that is gone has no parent, and an orphan has another.
            self.threaded.retain(|(pid, parent)| proc::parent(*pid) == Some(*parent));
            pids.extend(self.threaded.iter().map(|(pid, _)| *pid));
        }
        let mut at = 0;
        while at < pids.len() {
            let parent = pids[at];
            proc::children_of_leader(parent, &mut pids);
            if thorough {
                let known = pids.len();
                proc::children_of_other_threads(parent, &mut pids);
                self.threaded.extend(pids[known..].iter().map(|pid| (*pid, parent)));
            }
            at += 1;
        }
        pids.sort_unstable();
        pids.dedup();
        self.pids = pids;
    }
}

/// Who runs in the memory of another has as many pages, or nearly so if the other goes on meanwhile:
/// only such pairs are asked for. Of a pair that does not share now, one may have become another
/// program since it was read, so that both are read again.
fn pages_together(
    mut of: Vec<(u64, Pid)>,
    share: impl Fn(Pid, Pid) -> bool,
    again: impl Fn(Pid) -> Option<u64>,
) -> u64 {
    of.sort_unstable();
    let mut counted: Vec<u64> = of.iter().map(|(pages, _)| *pages).collect();
    for index in 1..of.len() {
        let ((fewer, one), (more, other)) = (of[index - 1], of[index]);
        if more - fewer > NEARLY_PAGES.max(more / NEARLY_PART) {
            continue;
        }
        if share(one, other) {
            counted[index - 1] = 0;
        } else {
            for (place, pid) in [(index - 1, one), (index, other)] {
                if counted[place] != 0 {
                    counted[place] = again(pid).unwrap_or(0);
                }
            }
        }
    }
    counted.iter().sum()
}

/// The tree as a whole table of processes tells it.
fn from_table(root: Root, table: &[(Pid, Pid)]) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (child, parent) in table {
        children.entry(*parent).or_default().push(*child);
    }
    let of = |pid: Pid| children.get(&pid).cloned().unwrap_or_default();
    let mut pids = of(root.parent);
    pids.retain(|pid| *pid != root.except);
    let mut at = 0;
    while at < pids.len() {
        pids.extend(of(pids[at]));
        at += 1;
    }
    pids
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdout, Command, Stdio};

    use super::*;

    #[test]
    fn a_table_of_processes_gives_the_descendants_only() {
        let table = [(10, 1), (11, 10), (12, 11), (20, 1), (13, 10)];
        let mut pids = from_table(Root { parent: 10, except: 0 }, &table);
        pids.sort_unstable();
        assert_eq!(pids, [11, 12, 13]);
    }

    #[test]
    fn the_launcher_is_no_part_of_the_tree() {
        let own = sys::own_pid();
        let table = [(own, 1), (501, own), (502, own), (503, 502), (504, 501)];
        let mut pids = from_table(Root::of_tool(501), &table);
        pids.sort_unstable();
        assert_eq!(pids, [502, 503]);
    }

    #[test]
    fn who_runs_in_the_memory_of_another_counts_once() {
        let nobody = |_, _| false;
        let unchanged = |pages: u64| move |_| Some(pages);
        let of = || vec![(50_000, 1), (7, 2), (50_010, 3)];
        assert_eq!(pages_together(of(), |_, _| true, unchanged(0)), 50_010 + 7);
        // Each has a memory of its own, of the same size.
        assert_eq!(pages_together(of(), nobody, unchanged(50_000)), 100_000 + 7);
        // One has become another program between the reading and the question.
        let again = |pid| Some(if pid == 3 { 200 } else { 50_000 });
        assert_eq!(pages_together(of(), nobody, again), 50_200 + 7);
        // Two children at once, as threads may make them.
        let of = vec![(50_000, 1), (50_000, 2), (50_001, 3)];
        assert_eq!(pages_together(of, |_, _| true, unchanged(0)), 50_001);
        assert_eq!(pages_together(vec![(900, 1), (50_000, 2)], nobody, unchanged(0)), 50_900);
    }

    /// A shell with this script, until it says that it is ready.
    fn shell(script: &str) -> (Child, BufReader<ChildStdout>) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut said = BufReader::new(shell.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        (shell, said)
    }

    /// Who is in the tree of that shell at a thorough look and at a quick one, and at a quick one after
    /// a line of its input has ended the last of them.
    fn before_and_after(script: &str) -> [usize; 3] {
        let (mut shell, mut said) = shell(script);
        let mut tree = Tree::new(Root { parent: shell.id() as Pid, except: 0 });
        let (thorough, quick) = (tree.look().len(), tree.look().len());
        assert!(tree.resident_bytes() > 0);
        shell.stdin.as_mut().unwrap().write_all(b"end\n").unwrap();
        said.read_line(&mut String::new()).unwrap();
        let after = tree.look().len();
        assert_eq!(tree.resident_bytes() > 0, after > 0);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        [thorough, quick, after]
    }

    #[test]
    fn a_child_counts_as_long_as_it_lives() {
        let script = "sleep 20 & echo; read line; kill $!; wait; echo; read line";
        if proc::lists_children() {
            assert_eq!(before_and_after(script), [1, 1, 0]);
        }
    }

    /// As of a threaded server.
    #[test]
    fn a_child_of_another_thread_counts_as_long_as_it_lives() {
        let script = "(exec python3 -c '
import subprocess, sys, threading
def work():
    child = subprocess.Popen([\"sleep\", \"20\"])
    print(flush=True)
    sys.stdin.readline()
    child.kill()
    child.wait()
    print(flush=True)
    sys.stdin.readline()
threading.Thread(target=work).start()'); true";
        if proc::lists_children() {
            assert_eq!(before_and_after(script), [2, 2, 1]);
        }
    }
}
