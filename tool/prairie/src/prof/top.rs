//! The functions that hold most: by themselves (flat), and with all that they call (cum).
// SPDX-License-Identifier: MIT

use std::collections::HashMap;

use super::stacks::Stacks;
use super::words;
use crate::cli::Sort;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    pub name: usize,
    pub flat: f64,
    pub cum: f64,
}

/// All functions, those that matter most first.
pub fn entries(stacks: &Stacks, sort: Sort) -> Vec<Entry> {
    let mut sums: HashMap<usize, (f64, f64)> = HashMap::new();
    for row in &stacks.rows {
        let shown = row.shown();
        // A function that calls itself counts once.
        let mut passed = row.path.clone();
        passed.sort_unstable();
        passed.dedup();
        for name in passed {
            sums.entry(name).or_default().1 += shown;
        }
        if let Some(innermost) = row.path.last() {
            sums.entry(*innermost).or_default().0 += shown;
        }
    }
    let mut entries: Vec<Entry> =
        sums.into_iter().map(|(name, (flat, cum))| Entry { name, flat, cum }).collect();
    entries.retain(|entry| entry.flat != 0.0 || entry.cum != 0.0);
    let key = |entry: &Entry| match sort {
        Sort::Flat => (entry.flat.abs(), entry.cum.abs()),
        Sort::Cum => (entry.cum.abs(), entry.flat.abs()),
    };
    entries.sort_by(|a, b| {
        let ((a1, a2), (b1, b2)) = (key(a), key(b));
        b1.total_cmp(&a1).then(b2.total_cmp(&a2)).then(a.name.cmp(&b.name))
    });
    entries
}

pub fn text(stacks: &Stacks, sort: Sort, rows: usize, letters: usize) -> String {
    let entries = entries(stacks, sort);
    if entries.is_empty() {
        return "no function holds more or less than before\n".to_owned();
    }
    let mut text = format!("{:>10} {:>8}  {:>10} {:>8}  function\n", "flat", "", "cum", "");
    for entry in entries.iter().take(rows) {
        text += &format!(
            "{:>10} {:>8}  {:>10} {:>8}  {}\n",
            words::figure(stacks, entry.flat),
            words::share(stacks, entry.flat),
            words::figure(stacks, entry.cum),
            words::share(stacks, entry.cum),
            words::name(&stacks.names[entry.name], letters.saturating_sub(42))
        );
    }
    if entries.len() > rows {
        text += &format!("{} more; --limit shows more of them\n", entries.len() - rows);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::By;
    use crate::prof::fixture;

    fn found(sort: Sort) -> Vec<(String, f64, f64)> {
        let profile = fixture::profile(&[("main;read;read", 30.0), ("main;parse", 50.0)]);
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        let told = |e: &Entry| (stacks.names[e.name].function.clone(), e.flat, e.cum);
        entries(&stacks, sort).iter().map(told).collect()
    }

    #[test]
    fn functions_are_counted_by_themselves_and_with_their_callees() {
        let expected = [("parse", 50.0, 50.0), ("read", 30.0, 30.0), ("main", 0.0, 80.0)];
        assert_eq!(found(Sort::Flat), expected.map(|(n, f, c)| (n.to_owned(), f, c)));
        assert_eq!(found(Sort::Cum)[0], ("main".to_owned(), 0.0, 80.0));
    }

    #[test]
    fn a_difference_of_nothing_is_told() {
        let profile = || fixture::profile(&[("main;read", 30.0)]);
        let stacks = Stacks::of(&[profile(), profile()], &[3, 3], By::Function);
        let text = text(&stacks, Sort::Flat, 30, 100);
        assert_eq!(text, "no function holds more or less than before\n");
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let profile = fixture::profile(&[("main;read", 30.0), ("main;parse", 50.0)]);
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        let text = text(&stacks, Sort::Flat, 2, 100);
        assert_eq!(
            text,
            "      flat                  cum           function\n\
             \u{20}     50 B   62.5 %        50 B   62.5 %  parse  a.c\n\
             \u{20}     30 B   37.5 %        30 B   37.5 %  read  a.c\n\
             1 more; --limit shows more of them\n"
        );
    }
}
