//! Draws what was seen. All is text of fixed columns, so that it says the same without colours and
//! with letters of ASCII only.
// SPDX-License-Identifier: MIT

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::scene::{Rates, Scene};
use crate::live::count::{Class, Figures};
use crate::live::sample::Sample;
use crate::live::text::{bytes, count, printable, share, title, unused};
use crate::sys::Pid;
use crate::units;

/// How it looks, whatever it shows.
#[derive(Debug, Clone, Copy)]
pub struct Looks {
    pub ascii: bool,
    pub color: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Classes,
    Arenas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The order of the host view: by allocated memory; of classes: by their pages.
    Pages,
    Waste,
    Name,
}

impl Order {
    pub fn next(self) -> Order {
        match self {
            Order::Pages => Order::Waste,
            Order::Waste => Order::Name,
            Order::Name => Order::Pages,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Order::Pages => "pages",
            Order::Waste => "unused",
            Order::Name => "size",
        }
    }
}

/// What the user chose.
pub struct View {
    /// None: all processes.
    pub pid: Option<Pid>,
    /// There is a view of all processes to go back to.
    pub has_host: bool,
    pub table: Table,
    pub order: Order,
    pub selected: usize,
    pub scroll: usize,
    pub paused: bool,
    /// The process is not there any more.
    pub ended: bool,
    /// Where in a record this is: the look's number, and how many there are.
    pub replay: Option<(usize, usize)>,
    pub looks: Looks,
}

const ASCII_BORDER: border::Set = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const LEVELS_ASCII: [&str; 9] = [" ", "_", ".", ",", "-", "=", "+", "*", "#"];
const SHADES: [&str; 5] = ["·", "░", "▒", "▓", "█"];
const SHADES_ASCII: [&str; 5] = [".", "-", "=", "+", "#"];

pub fn draw(frame: &mut Frame, scene: &Scene, view: &View) {
    let area = frame.area();
    let border = if view.looks.ascii { ASCII_BORDER } else { border::PLAIN };
    let sample = view.pid.and_then(|pid| scene.sample(pid));
    let block = Block::bordered()
        .border_set(border)
        .title(format!(" prairie top{}: {} ", moment(view), head(scene, view, sample)))
        .title_bottom(format!(" {} ", keys(view)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let lines = match sample {
        Some(sample) => process_lines(scene, view, sample, inner),
        None if view.pid.is_some() => vec![Line::raw("nothing is known of it at this moment")],
        None => host_lines(scene, view, inner),
    };
    frame.render_widget(Paragraph::new(lines), inner);
}

fn head(scene: &Scene, view: &View, sample: Option<&Sample>) -> String {
    match (sample, view.pid) {
        (Some(sample), _) => printable(&title(sample)),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => match scene.now.samples.len() {
            1 => "1 process on prairie".to_owned(),
            number => format!("{number} processes on prairie"),
        },
    }
}

fn moment(view: &View) -> String {
    let at = view.replay.map_or_else(String::new, |(at, of)| format!(", look {} of {of}", at + 1));
    match (view.ended, view.paused) {
        (true, _) => format!("{at}, HAS ENDED"),
        (_, true) => format!("{at}, PAUSED"),
        _ => at,
    }
}

fn keys(view: &View) -> String {
    let arrows = if view.looks.ascii { "up/down" } else { "↑↓" };
    let mut keys = vec!["q quit".to_owned()];
    match view.pid {
        None => {
            keys.push(format!("{arrows} choose"));
            keys.push("enter open".to_owned());
        }
        Some(_) => {
            if view.has_host {
                keys.push("esc back".to_owned());
            }
            keys.push(format!("{arrows} scroll"));
            let other = if view.table == Table::Classes { "arenas" } else { "classes" };
            keys.push(format!("a {other}"));
        }
    }
    keys.push(format!("s sort: {}", view.order.word()));
    keys.push(if view.paused { "p go on" } else { "p pause" }.to_owned());
    if view.replay.is_some() {
        keys.push(if view.looks.ascii { "left/right step" } else { "←→ step" }.to_owned());
    } else {
        keys.push("+ - pace".to_owned());
    }
    keys.join("  ")
}

// ---- one process ----

fn process_lines<'a>(scene: &Scene, view: &View, sample: &Sample, area: Rect) -> Vec<Line<'a>> {
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

fn strong(view: &View) -> Style {
    if view.looks.color { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() }
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

fn signed(value: f64, of: fn(f64) -> String) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", of(value.abs()))
}

fn rate_line(rates: Option<Rates>) -> String {
    let text = rates.map_or_else(
        || "at the next look".to_owned(),
        |rates| {
            format!(
                "{}, taken {}, refills {}, runs {}, purged {}, waits {}",
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

// ---- all processes ----

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

fn host_lines<'a>(scene: &Scene, view: &View, area: Rect) -> Vec<Line<'a>> {
    let samples = ordered(scene, view.order);
    if samples.is_empty() {
        return vec![
            Line::raw(" no process that you may look at is on prairie"),
            Line::raw("   prairie run -- PROGRAM starts one; sudo prairie top shows everybody's"),
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

#[cfg(test)]
mod tests {
    use super::super::record::Look;
    use super::*;
    use crate::live::sample::tests::{foreign, made};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn view(pid: Option<Pid>) -> View {
        View {
            pid,
            has_host: true,
            table: Table::Classes,
            order: Order::Pages,
            selected: 0,
            scroll: 0,
            paused: false,
            ended: false,
            replay: None,
            looks: Looks { ascii: false, color: false },
        }
    }

    fn scene() -> Scene {
        let mut scene = Scene::default();
        for step in 0..30 {
            let mut sample = made(7);
            let figures = sample.figures.as_mut().unwrap();
            let more = step * (1 << 20) * (step % 4);
            figures.allocated += more;
            figures.active += more;
            figures.resident += more;
            figures.refills += 100 * step;
            let samples = vec![sample, foreign(8)];
            scene.advance(Look { time_ms: 1000 * step, samples });
        }
        scene
    }

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &scene(), view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_process() {
        insta::assert_snapshot!("process", drawn(&view(Some(7)), 100, 20));
        let arenas = View { table: Table::Arenas, paused: true, ..view(Some(7)) };
        insta::assert_snapshot!("process-arenas", drawn(&arenas, 100, 20));
        let ascii = View {
            looks: Looks { ascii: true, color: false },
            has_host: false,
            replay: Some((2, 30)),
            order: Order::Name,
            ..view(Some(7))
        };
        insta::assert_snapshot!("process-ascii", drawn(&ascii, 80, 16));
    }

    #[test]
    fn a_process_that_is_not_on_prairie() {
        insta::assert_snapshot!("process-foreign", drawn(&view(Some(8)), 80, 10));
    }

    #[test]
    fn all_processes() {
        insta::assert_snapshot!("host", drawn(&view(None), 110, 8));
        let mut terminal = Terminal::new(TestBackend::new(80, 5)).unwrap();
        terminal.draw(|frame| draw(frame, &Scene::default(), &view(None))).unwrap();
        insta::assert_snapshot!("host-empty", terminal.backend().to_string());
    }

    #[test]
    fn the_smallest_window_is_drawn() {
        for (width, height) in [(1, 1), (3, 3), (20, 4), (60, 9)] {
            drawn(&view(Some(7)), width, height);
            drawn(&view(None), width, height);
        }
    }
}
