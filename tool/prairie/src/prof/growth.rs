//! What grew from one profile to the next: a row for each stack, the fastest growing first.
// SPDX-License-Identifier: MIT

use super::stacks::{Row, Stacks};
use super::words;

const BARS: &[char] = &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A curve of at most so many letters.
const CURVE_LETTERS: usize = 24;

pub fn text(stacks: &Stacks, rows: usize, letters: usize) -> String {
    let mut growing: Vec<&Row> = stacks.rows.iter().filter(|row| row.shown() > 0.0).collect();
    growing.sort_by(|a, b| b.shown().total_cmp(&a.shown()));
    let width = stacks.count.clamp(5, CURVE_LETTERS);
    let mut text = format!("{:>10}  {:width$}  {:>10}  grew most\n", "growth", "curve", "last");
    for row in growing.iter().take(rows) {
        let telling = |name: &&usize| !words::is_machinery(&stacks.names[**name].function);
        let Some(at) = row.path.iter().rev().find(telling).or(row.path.last()) else { continue };
        let last = row.figures.last().copied().unwrap_or(0.0);
        let last = words::figure(stacks, last);
        text += &format!(
            "{:>10}  {:width$}  {:>10}  {}\n",
            words::figure(stacks, row.shown()),
            curve(&row.figures),
            last.trim_start_matches('+'),
            words::name(&stacks.names[*at], letters.saturating_sub(28 + width))
        );
    }
    text += &format!(
        "{} of {} stacks grew, {} of them at every step; all together {}\n",
        growing.len(),
        stacks.rows.len(),
        growing.iter().filter(|row| is_steady(row)).count(),
        words::figure(stacks, stacks.total())
    );
    text
}

/// Whether it grew from each profile to the next: the shape of a leak.
fn is_steady(row: &Row) -> bool {
    row.figures.windows(2).all(|pair| pair[1] > pair[0])
}

fn curve(figures: &[f64]) -> String {
    let step = figures.len().div_ceil(CURVE_LETTERS).max(1);
    let points: Vec<f64> =
        figures.chunks(step).map(|part| part.iter().copied().fold(0.0, f64::max)).collect();
    let highest = points.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match highest > 0.0 {
        true => BARS[((value / highest) * (BARS.len() - 1) as f64).round() as usize],
        false => BARS[0],
    };
    points.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::By;
    use crate::prof::fixture;

    #[test]
    fn the_fastest_growing_comes_first_with_its_curve() {
        let profiles = [[10.0, 50.0], [40.0, 50.0], [80.0, 49.0]].map(|[leak, steady]| {
            fixture::profile(&[("main;leak;operator new", leak), ("main;steady", steady)])
        });
        let stacks = Stacks::of(&profiles, &[3; 3], By::Function);
        let text = text(&stacks, 10, 100);
        assert!(text.contains("     +70 B  ▂▅█          80 B  leak"), "{text}");
        assert!(!text.contains("steady"), "{text}");
        assert!(
            text.ends_with("1 of 2 stacks grew, 1 of them at every step; all together +69 B\n"),
            "{text}"
        );
        assert!(is_steady(&stacks.rows[0]) && !is_steady(&stacks.rows[1]));
    }

    #[test]
    fn a_long_curve_keeps_its_peaks() {
        let figures: Vec<f64> = (0..240).map(|at| if at == 100 { 8.0 } else { 0.0 }).collect();
        let curve = curve(&figures);
        assert_eq!(curve.chars().count(), 24);
        assert_eq!(curve.chars().nth(10), Some('█'));
    }
}
