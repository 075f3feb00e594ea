//! One process: bars, rates, its past, its pages, and a table.
// SPDX-License-Identifier: MIT

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Order, Table, View, signed, strong};
use crate::live::figures::{Class, Figures};
use crate::live::sample::Sample;
use crate::live::text::{bytes, count, printable, share, unused};
use crate::sys::Pid;
use crate::top::scene::{Rates, Scene};
use crate::units;

const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const LEVELS_ASCII: [&str; 9] = [" ", "_", ".", ",", "-", "=", "+", "*", "#"];
const SHADES: [&str; 5] = ["·", "░", "▒", "▓", "█"];
const SHADES_ASCII: [&str; 5] = [".", "-", "=", "+", "#"];

pub fn lines<'a>(scene: &Scene, view: &View, sample: &Sample, area: Rect) -> Vec<Line<'a>> {
    let width = usize::from(area.width);
    let mut lines = Vec::new();
    let Some(figures) = &sample.figures else {
        lines.extend(without_figures(scene, view, sample, width));
        return lines;
    };
    lines.extend(bars(sample, figures, view, width));
    lines.push(Line::raw(rate_line(scene.rates(sample.pid))));
    lines.push(trail_line(scene, view, sample.pid, width));
    lines.extend(strip_line(sample, view, width));
    if figures.moving != 0 {
        lines.push(Line::raw(" some structs changed at each look: figures are of several moments"));
    }
    lines.push(Line::raw(""));
    let (head, rows) = match view.table {
        Table::Classes => class_rows(figures, view.order),
        Table::Arenas => arena_rows(figures),
    };
    lines.push(Line::styled(head, strong(view)));
    lines.extend(rows.into_iter().skip(view.scroll).map(Line::raw));
    lines.truncate(usize::from(area.height));
    lines
}

fn without_figures<'a>(scene: &Scene, view: &View, sample: &Sample, width: usize) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    if let Some(why) = &sample.why {
        lines.push(Line::raw(format!(" {}", printable(&why.text))));
        lines.extend(why.hint.as_ref().map(|hint| Line::raw(format!("   {}", printable(hint)))));
        lines.push(Line::raw(""));
    }
    lines.push(Line::raw(" the kernel says of the whole process:"));
    lines.push(Line::raw(format!(
        "   resident {}   swapped {}   threads {}",
        bytes(sample.resident),
        bytes(sample.swapped),
        sample.threads
    )));
    lines.push(trail_line(scene, view, sample.pid, width));
    lines
}

/// A bar for each kind of memory, all on one scale.
fn bars<'a>(sample: &Sample, figures: &Figures, view: &View, width: usize) -> Vec<Line<'a>> {
    let scale = figures.resident.max(figures.active).max(1);
    let of_active = share(figures.allocated, figures.active);
    [
        ("allocated", figures.allocated, format!("{of_active} of active")),
        ("active", figures.active, format!("large {}", bytes(figures.large_allocated))),
        ("cached", figures.cached, "ready in threads and depots".to_owned()),
        ("dirty", figures.dirty, "free, not given back".to_owned()),
        ("metadata", figures.metadata, "records".to_owned()),
        ("resident", figures.resident, format!("RSS {}", bytes(sample.resident))),
        ("retained", figures.retained, "free, costs nothing".to_owned()),
    ]
    .into_iter()
    .map(|(label, value, note)| {
        let room = width.saturating_sub(54).clamp(4, 60);
        // What costs nothing may be more than all that costs something.
        let full = (value.min(scale) as f64 / scale as f64 * room as f64).round() as usize;
        let (on, off) = if view.looks.ascii { ("#", ".") } else { ("█", "░") };
        Line::from(vec![
            Span::raw(format!(" {label:<10}{:>10}  ", bytes(value))),
            Span::styled(on.repeat(full), bar_style(view, label)),
            Span::raw(off.repeat(room - full)),
            Span::raw(format!("  {note}")),
        ])
    })
    .collect()
}

fn bar_style(view: &View, label: &str) -> Style {
    use ratatui::style::Color;
    if !view.looks.color {
        return Style::new();
    }
    Style::new().fg(match label {
        "allocated" => Color::Green,
        "active" | "resident" => Color::Cyan,
        "dirty" | "cached" => Color::Yellow,
        _ => Color::Blue,
    })
}

fn rate_line(rates: Option<Rates>) -> String {
    let text = rates.map_or_else(
        || "at the next look".to_owned(),
        |rates| {
            format!(
                "{}, taken {}, refills {}, runs {}, purged {}, found held {}",
                signed(rates.growth, units::bytes),
                units::count(rates.taken),
                units::count(rates.refills),
                units::count(rates.leases),
                units::bytes(rates.purged),
                units::count(rates.contended),
            )
        },
    );
    format!(" {:<10} {text}", "per second")
}

/// From 0 to the most that was seen.
fn trail_line<'a>(scene: &Scene, view: &View, pid: Pid, width: usize) -> Line<'a> {
    let room = width.saturating_sub(24).max(8);
    let trail = scene.trail(pid, room);
    let most = trail.iter().copied().max().unwrap_or(0).max(1);
    let levels = if view.looks.ascii { LEVELS_ASCII } else { LEVELS };
    let text: String = trail
        .iter()
        .map(|value| levels[(u128::from(*value) * 8).div_ceil(u128::from(most)) as usize])
        .collect();
    Line::raw(format!(" {:<10}{text:<room$} {:>10}", "over time", bytes(most)))
}

fn strip_line<'a>(sample: &Sample, view: &View, width: usize) -> Option<Line<'a>> {
    let strip = sample.strip.as_ref()?;
    let shades = if view.looks.ascii { SHADES_ASCII } else { SHADES };
    let room = width.saturating_sub(24).max(8).min(strip.cells.len());
    let cell = |at: usize| {
        let (first, end) = (at * strip.cells.len() / room, (at + 1) * strip.cells.len() / room);
        let cells = &strip.cells[first..end];
        let sum: usize = cells.iter().map(|cell| usize::from(*cell)).sum();
        shades[(sum / cells.len()).min(100).div_ceil(25)]
    };
    let text: String = (0..room).map(cell).collect();
    let about = if strip.exact { "" } else { "~" };
    let resident = format!("{about}{}", share(strip.resident, strip.bytes));
    let width = width.saturating_sub(24).max(8);
    Some(Line::raw(format!(" {:<10}{text:<width$} {resident:>10}", "pages")))
}

fn class_rows(figures: &Figures, order: Order) -> (String, Vec<String>) {
    let mut classes: Vec<&Class> = figures.classes.iter().collect();
    classes.sort_by_key(|class| match order {
        Order::Pages => (std::cmp::Reverse(class.slab_bytes), class.size),
        Order::Waste => (std::cmp::Reverse(unused(class)), class.size),
        Order::Name => (std::cmp::Reverse(0), class.size),
    });
    let head = format!(
        " {:>7}{:>10}{:>12}{:>12}{:>12}{:>12}{:>9}",
        "class", "blocks", "allocated", "cached", "unused", "in slabs", "in use"
    );
    let row = |class: &Class| {
        format!(
            " {:>7}{:>10}{:>12}{:>12}{:>12}{:>12}{:>9}",
            class.size,
            count(class.blocks),
            bytes(class.allocated),
            bytes(class.cached),
            bytes(unused(class)),
            bytes(class.slab_bytes),
            share(class.allocated, class.slab_bytes)
        )
    };
    (head, classes.into_iter().map(row).collect())
}

fn arena_rows(figures: &Figures) -> (String, Vec<String>) {
    let head = format!(
        " {:<16}{:>8}{:>12}{:>14}{:>12}{:>12}{:>10}{:>8}",
        "arena", "threads", "active", "out of slabs", "in depots", "in stocks", "locks", "held"
    );
    let rows = figures.arenas.iter().map(|arena| {
        let kind = if arena.manual { " (manual)" } else { "" };
        let name = match arena.name.is_empty() {
            true => format!("{}{kind}", arena.number),
            false => format!("{} {}", arena.number, printable(&arena.name)),
        };
        let name: String = name.chars().take(15).collect();
        format!(
            " {name:<16}{:>8}{:>12}{:>14}{:>12}{:>12}{:>10}{:>8}",
            arena.threads,
            bytes(arena.active),
            bytes(arena.out_of_slabs),
            bytes(arena.depots),
            bytes(arena.stocks),
            count(arena.lock.taken),
            share(arena.lock.contended, arena.lock.taken.max(1))
        )
    });
    (head, rows.collect())
}
