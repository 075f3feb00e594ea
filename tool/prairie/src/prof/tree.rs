//! Who called whom: the stacks as a tree, from the outermost function inwards.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;
use std::rc::Rc;

use super::stacks::Stacks;
use super::words;

#[derive(Default)]
struct Node {
    shown: f64,
    /// The largest of what grew and what shrank below: a difference may add up to nothing.
    weight: f64,
    /// By name, their places among the nodes.
    children: BTreeMap<usize, usize>,
}

/// Branches below `least`, a part of the whole, are left out.
pub fn text(stacks: &Stacks, least: f64, letters: usize) -> String {
    let drawing = Drawing { stacks, nodes: nodes(stacks), least: least * stacks.whole(), letters };
    drawing.text()
}

/// The first one is above all. They stand side by side: a stack may be deeper than our own.
fn nodes(stacks: &Stacks) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    for row in &stacks.rows {
        let mut at = 0;
        nodes[at].add(row.shown());
        for name in &row.path {
            let new = nodes.len();
            at = *nodes[at].children.entry(*name).or_insert(new);
            if at == new {
                nodes.push(Node::default());
            }
            nodes[at].add(row.shown());
        }
    }
    nodes
}

impl Node {
    fn add(&mut self, shown: f64) {
        self.shown += shown;
        self.weight += shown.abs();
    }
}

struct Drawing<'a> {
    stacks: &'a Stacks,
    nodes: Vec<Node>,
    least: f64,
    letters: usize,
}

/// A line to come.
struct Line {
    name: usize,
    node: usize,
    indent: Rc<str>,
    mark: &'static str,
    below: Rc<str>,
}

impl Drawing<'_> {
    fn text(&self) -> String {
        let (mut text, mut hidden) = (String::new(), 0);
        // The next one is the last.
        let mut lines = Vec::new();
        hidden += self.put_children(0, &"".into(), &mut lines);
        while let Some(line) = lines.pop() {
            let node = &self.nodes[line.node];
            let figure = words::figure(self.stacks, node.shown);
            let share = words::share(self.stacks, node.shown);
            let (indent, mark) = (&line.indent, line.mark);
            let room = self.letters.saturating_sub(22 + indent.chars().count() + 3).max(20);
            let name = words::name(&self.stacks.names[line.name], room);
            text += &format!("{figure:>10} {share:>8}  {indent}{mark}{name}\n");
            hidden += self.put_children(line.node, &line.below, &mut lines);
        }
        if hidden > 0 {
            text += &format!("{hidden} smaller branches are left out; --least 0 shows them\n");
        }
        text
    }

    /// Returns how many are too small.
    fn put_children(&self, node: usize, indent: &Rc<str>, lines: &mut Vec<Line>) -> usize {
        let weight = |node: usize| self.nodes[node].weight;
        let all = &self.nodes[node].children;
        let mut children: Vec<(usize, usize)> =
            all.iter().map(|(name, child)| (*name, *child)).collect();
        children.retain(|(_, child)| weight(*child) >= self.least);
        children.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)).then(a.0.cmp(&b.0)));
        let last = children.len().saturating_sub(1);
        let branches = children.len() > 1;
        let hidden = all.len() - children.len();
        for (index, (name, node)) in children.into_iter().enumerate().rev() {
            // A chain of single calls stays in its column, so that deep stacks stay readable.
            let (mark, below) = match (branches, index == last) {
                (false, _) => ("", Rc::clone(indent)),
                (true, false) => ("├─ ", format!("{indent}│  ").into()),
                (true, true) => ("└─ ", format!("{indent}   ").into()),
            };
            lines.push(Line { name, node, indent: Rc::clone(indent), mark, below });
        }
        hidden
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

    #[test]
    fn a_stack_may_be_deeper_than_ours() {
        let deep = vec!["main"; 300_000].join(";");
        let text = tree(&[(&deep, 2.0), ("main", 1.0)], 0.0);
        assert_eq!(text.lines().count(), 300_000);
    }
}
