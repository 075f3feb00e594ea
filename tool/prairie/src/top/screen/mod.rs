//! Draws what was seen. All is text of fixed columns, so that it says the same without colours and
//! with letters of ASCII only.
// SPDX-License-Identifier: MIT

mod host;
mod process;

pub use self::host::ordered;

use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::scene::Scene;
use crate::live::sample::Sample;
use crate::live::text::title;
use crate::sys::Pid;

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
    /// Of processes: by resident memory; of classes: by their pages.
    Pages,
    Waste,
    /// Of classes: by size.
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

    fn word(self, pid: Option<Pid>) -> &'static str {
        match (self, pid) {
            (Order::Pages, _) => "pages",
            (Order::Waste, _) => "unused",
            (Order::Name, None) => "name",
            (Order::Name, Some(_)) => "size",
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
        Some(sample) => process::lines(scene, view, sample, inner),
        None if view.pid.is_some() => vec![Line::raw("nothing is known of it at this moment")],
        None => host::lines(scene, view, inner),
    };
    frame.render_widget(Paragraph::new(lines), inner);
}

fn head(scene: &Scene, view: &View, sample: Option<&Sample>) -> String {
    match (sample, view.pid) {
        (Some(sample), _) => title(sample),
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
    keys.push(format!("s sort: {}", view.order.word(view.pid)));
    keys.push(if view.paused { "p go on" } else { "p pause" }.to_owned());
    if view.replay.is_some() {
        keys.push(if view.looks.ascii { "left/right step" } else { "←→ step" }.to_owned());
    } else {
        keys.push("+ - pace".to_owned());
    }
    keys.join("  ")
}

fn strong(view: &View) -> Style {
    if view.looks.color { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() }
}

fn signed(value: f64, of: fn(f64) -> String) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", of(value.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::tests::{foreign, made};
    use crate::top::record::Look;
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
        let by_name = drawn(&View { order: Order::Name, ..view(None) }, 110, 8);
        assert!(by_name.contains("s sort: name"), "{by_name}");
        insta::assert_snapshot!("host-narrow", drawn(&view(None), 80, 5));
        let narrowest = drawn(&view(None), 45, 5);
        assert!(
            narrowest.contains("allocated     ") && narrowest.contains("81.0 MiB"),
            "{narrowest}"
        );
        assert!(!narrowest.contains("resi"), "{narrowest}");
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
