//! All processes, a line for each.
// SPDX-License-Identifier: MIT

use std::fmt::Display;

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::{Order, View, signed, strong};
use crate::live::figures::Figures;
use crate::live::sample::Sample;
use crate::live::text::{bytes, printable, share};
use crate::top::scene::Scene;
use crate::units;

/// Behind the process and its name.
struct Column {
    head: &'static str,
    width: usize,
    /// Where there is no room for all, the highest goes first.
    dispensable: u8,
    /// None: it is not known.
    cell: fn(&Scene, &Sample) -> Option<String>,
}

/// The mark, the process and the name, which always stand there.
const NAME_WIDTH: usize = 2 + 8 + 1 + 16;
const COLUMNS: &[Column] = &[
    column("allocated", 11, 0, |_, s| Some(bytes(s.figures.as_ref()?.allocated))),
    column("in use", 8, 2, |_, s| s.figures.as_ref().map(|f| share(f.allocated, f.active))),
    column("cached", 11, 6, |_, s| Some(bytes(s.figures.as_ref()?.cached))),
    column("dirty", 11, 5, |_, s| Some(bytes(s.figures.as_ref()?.dirty))),
    column("resident", 11, 1, |_, s| Some(bytes(s.figures.as_ref()?.resident))),
    column("threads", 8, 4, |_, s| Some(s.figures.as_ref()?.threads.to_string())),
    column("growth/s", 11, 3, |scene, s| Some(signed(scene.rates(s.pid)?.growth, units::bytes))),
];

const fn column(
    head: &'static str,
    width: usize,
    dispensable: u8,
    cell: fn(&Scene, &Sample) -> Option<String>,
) -> Column {
    Column { head, width, dispensable, cell }
}

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
    let columns = fitting(usize::from(area.width));
    let head = format!("  {:>8} {:<16}{}", "process", "name", row(&columns, |column| column.head));
    let rows = usize::from(area.height).saturating_sub(1).max(1);
    let first = (view.selected + 1).saturating_sub(rows);
    let mut lines = vec![Line::styled(head, strong(view))];
    for (at, sample) in samples.iter().enumerate().skip(first).take(rows) {
        let is_selected = at == view.selected;
        let text = host_row(scene, sample, &columns, if is_selected { '>' } else { ' ' });
        let style = match is_selected && view.looks.color {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        lines.push(Line::styled(text, style));
    }
    lines
}

fn host_row(scene: &Scene, sample: &Sample, columns: &[&Column], mark: char) -> String {
    let name: String = printable(&sample.name).chars().take(15).collect();
    let cell = |column: &Column| (column.cell)(scene, sample).unwrap_or_else(|| "-".to_owned());
    format!("{mark} {:>8} {name:<16}{}", sample.pid, row(columns, cell))
}

fn row<T: Display>(columns: &[&Column], cell: impl Fn(&Column) -> T) -> String {
    let padded = |column: &&Column| format!("{:>width$}", cell(column), width = column.width);
    columns.iter().map(padded).collect()
}

/// Those that fit into so many letters: half a figure is a wrong one.
fn fitting(width: usize) -> Vec<&'static Column> {
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    let total = |columns: &[&Column]| columns.iter().map(|column| column.width).sum::<usize>();
    while NAME_WIDTH + total(&columns) > width
        && let Some(most) = columns.iter().map(|column| column.dispensable).max()
    {
        columns.retain(|column| column.dispensable != most);
    }
    columns
}
