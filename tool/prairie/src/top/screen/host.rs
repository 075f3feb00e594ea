//! All processes, a line for each.
// SPDX-License-Identifier: MIT

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::{Order, View, signed, strong};
use crate::live::figures::Figures;
use crate::live::sample::Sample;
use crate::live::text::{bytes, printable, share};
use crate::top::scene::Scene;
use crate::units;

/// In the order that they are shown in.
pub fn ordered(scene: &Scene, order: Order) -> Vec<&Sample> {
    let mut samples: Vec<&Sample> = scene.now.samples.iter().collect();
    let of =
        |sample: &Sample, figure: fn(&Figures) -> u64| sample.figures.as_ref().map_or(0, figure);
    match order {
        Order::Pages => samples.sort_by_key(|s| (std::cmp::Reverse(of(s, |f| f.resident)), s.pid)),
        Order::Waste => samples.sort_by_key(|s| {
            (std::cmp::Reverse(of(s, |f| f.resident.saturating_sub(f.allocated))), s.pid)
        }),
        Order::Name => samples.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid))),
    }
    samples
}

pub fn lines<'a>(scene: &Scene, view: &View, area: Rect) -> Vec<Line<'a>> {
    let samples = ordered(scene, view.order);
    if samples.is_empty() {
        return vec![
            Line::raw(" no process that you may look at is on prairie"),
            Line::raw(
                "   prairie run -- PROGRAM starts one; prairie top as root shows everybody's",
            ),
        ];
    }
    let head = format!(
        "  {:>8} {:<16}{:>11}{:>8}{:>11}{:>11}{:>11}{:>8}{:>11}",
        "process",
        "name",
        "allocated",
        "in use",
        "cached",
        "dirty",
        "resident",
        "threads",
        "growth/s"
    );
    let rows = usize::from(area.height).saturating_sub(1).max(1);
    let first = (view.selected + 1).saturating_sub(rows);
    let mut lines = vec![Line::styled(head, strong(view))];
    for (at, sample) in samples.iter().enumerate().skip(first).take(rows) {
        let is_selected = at == view.selected;
        let text = host_row(scene, sample, if is_selected { '>' } else { ' ' });
        let style = match is_selected && view.looks.color {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        lines.push(Line::styled(text, style));
    }
    lines
}

fn host_row(scene: &Scene, sample: &Sample, mark: char) -> String {
    let figure =
        |of: fn(&Figures) -> String| sample.figures.as_ref().map_or_else(|| "-".to_owned(), of);
    let name: String = printable(&sample.name).chars().take(15).collect();
    let growth = scene.rates(sample.pid);
    format!(
        "{mark} {:>8} {name:<16}{:>11}{:>8}{:>11}{:>11}{:>11}{:>8}{:>11}",
        sample.pid,
        figure(|f| bytes(f.allocated)),
        figure(|f| share(f.allocated, f.active)),
        figure(|f| bytes(f.cached)),
        figure(|f| bytes(f.dirty)),
        figure(|f| bytes(f.resident)),
        figure(|f| f.threads.to_string()),
        growth.map_or_else(|| "-".to_owned(), |rates| signed(rates.growth, units::bytes)),
    )
}
