//! Who called whom: the stacks as a tree, from the outermost function inwards.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;

use super::stacks::Stacks;
use super::words;

#[derive(Default)]
struct Node {
    shown: f64,
    /// The largest of what grew and what shrank below: a difference may add up to nothing.
    weight: f64,
    children: BTreeMap<usize, Node>,
}

/// Branches below `least`, a part of the whole, are left out.
pub fn text(stacks: &Stacks, least: f64, letters: usize) -> String {
    let mut root = Node::default();
    for row in &stacks.rows {
        root.add(&row.path, row.shown());
    }
    let mut drawing =
        Drawing { stacks, least: least * stacks.whole(), letters, text: String::new(), hidden: 0 };
    drawing.children(&root, "");
    if drawing.hidden > 0 {
        let hidden = drawing.hidden;
        drawing.text += &format!("{hidden} smaller branches are left out; --least 0 shows them\n");
    }
    drawing.text
}

impl Node {
    fn add(&mut self, path: &[usize], shown: f64) {
        self.shown += shown;
        self.weight += shown.abs();
        if let Some((first, rest)) = path.split_first() {
            self.children.entry(*first).or_default().add(rest, shown);
        }
    }
}

struct Drawing<'a> {
    stacks: &'a Stacks,
    least: f64,
    letters: usize,
    text: String,
    hidden: usize,
}

impl Drawing<'_> {
    fn children(&mut self, node: &Node, indent: &str) {
        let mut children: Vec<(&usize, &Node)> = node.children.iter().collect();
        let all = children.len();
        children.retain(|(_, child)| child.weight >= self.least);
        self.hidden += all - children.len();
        children.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then(a.0.cmp(b.0)));
        let last = children.len().saturating_sub(1);
        let branches = children.len() > 1;
        for (index, (name, child)) in children.into_iter().enumerate() {
            // A chain of single calls stays in its column, so that deep stacks stay readable.
            let (mark, below) = match (branches, index == last) {
                (false, _) => ("", indent.to_owned()),
                (true, false) => ("├─ ", format!("{indent}│  ")),
                (true, true) => ("└─ ", format!("{indent}   ")),
            };
            let figure = words::figure(self.stacks, child.shown);
            let share = words::share(self.stacks, child.shown);
            let room = self.letters.saturating_sub(22 + indent.chars().count() + 3).max(20);
            let name = words::name(&self.stacks.names[*name], room);
            self.text += &format!("{figure:>10} {share:>8}  {indent}{mark}{name}\n");
            self.children(child, &below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::By;
    use crate::prof::fixture;

    fn tree(stacks: &[(&str, f64)], least: f64) -> String {
        text(&Stacks::of(&[fixture::profile(stacks)], &[3], By::Function), least, 100)
    }

    #[test]
    fn branches_are_indented_and_chains_are_not() {
        let text = tree(&[("main;a;b;c", 60.0), ("main;a;d", 30.0), ("main;e", 10.0)], 0.0);
        let expected = [
            "     100 B  100.0 %  main  a.c",
            "      90 B   90.0 %  ├─ a  a.c",
            "      60 B   60.0 %  │  ├─ b  a.c",
            "      60 B   60.0 %  │  │  c  a.c",
            "      30 B   30.0 %  │  └─ d  a.c",
            "      10 B   10.0 %  └─ e  a.c",
            "",
        ];
        assert_eq!(text, expected.join("\n"));
    }

    #[test]
    fn small_branches_are_counted_only() {
        let text = tree(&[("main;a", 99.0), ("main;b", 0.5), ("main;c", 0.5)], 0.01);
        assert!(text.contains("2 smaller branches are left out"), "{text}");
        assert!(!text.contains(" b "), "{text}");
    }
}
