//! `prairie top`: the heaps of processes as they go on, on a terminal; or once, as a table.
// SPDX-License-Identifier: MIT

mod record;
mod scene;
mod screen;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::record::{Look, Recorder};
use self::scene::{Scene, TRAIL_MAX};
use self::screen::{Looks, Order, Table, View};
use crate::cli::Top;
use crate::interrupt;
use crate::live::sample::{Host, Target, now_ms};
use crate::live::{stats, text};
use crate::output;
use crate::refusal;
use crate::sys::{self, Pid};
use crate::terminal;
use crate::trouble::{About, Result, TOOL_FAILED, Trouble};

const CELLS: usize = 200;
const CLASSES_ONCE: usize = 10;
/// As the option has it.
const EVERY_MAX: Duration = Duration::from_secs(86400);
/// Between two looks at whether somebody wants us to end.
const WAIT_MAX: Duration = Duration::from_millis(200);

pub fn run(options: &Top) -> Result<i32> {
    let is_written = options.output.json || options.output.output.is_some();
    let is_once = options.once || is_written || !std::io::stdout().is_terminal();
    let mut source = Source::new(options)?;
    let mut recorder = match &options.record {
        Some(path) => Some(Recorder::create(path, options.output.force)?),
        None => None,
    };
    if is_once {
        return once(options, &mut source, recorder.as_mut());
    }
    let mut app = App::new(options, source);
    // Before the terminal is changed: who is ended by one of them would leave it so.
    let stop = interrupt::flag_of(&sys::ENDING_SIGNALS)?;
    let mut terminal = ratatui::try_init().about("terminal")?;
    let ended = app.watch(&mut terminal, recorder.as_mut(), &stop);
    if !sys::terminal_lasts_for(Duration::ZERO) {
        // There is nothing to restore, and nobody to be told that it failed.
        std::process::exit(i32::from(TOOL_FAILED));
    }
    ratatui::restore();
    ended?;
    match (&options.record, app.view.pid) {
        (Some(path), _) => {
            terminal::next(&format!("prairie top --replay {}", terminal::shell_words(&[path])));
        }
        (None, Some(pid)) if app.view.replay.is_none() && !app.view.ended => {
            terminal::next(&format!("prairie stats {pid} --json"));
        }
        _ => {}
    }
    Ok(0)
}

/// Where looks come from.
enum Source {
    Process(Box<Target>),
    Host(Host),
    Record { looks: Vec<Look>, at: usize },
}

impl Source {
    /// A process that is not there is told at once. One that may not be read is shown with what the
    /// kernel says of it, and why.
    fn new(options: &Top) -> Result<Source> {
        if let Some(path) = &options.replay {
            return Ok(Source::Record { looks: record::read(path)?, at: 0 });
        }
        refusal::require_our_numbers()?;
        let Some(pid) = options.pid else { return Ok(Source::Host(Host::default())) };
        Ok(Source::Process(Box::new(Target::new(pid)?)))
    }

    /// None: the process has ended, or the record has.
    fn next(&mut self) -> Option<Look> {
        let time_ms = now_ms();
        match self {
            Source::Process(target) => {
                target.sample(CELLS).map(|sample| Look { time_ms, samples: vec![sample] })
            }
            Source::Host(host) => Some(Look { time_ms, samples: host.samples(None) }),
            Source::Record { looks, at } => {
                let look = looks.get(*at).cloned()?;
                *at += 1;
                Some(look)
            }
        }
    }
}

/// Of a record, the last look.
fn once(options: &Top, source: &mut Source, recorder: Option<&mut Recorder>) -> Result<i32> {
    let look = match source {
        Source::Record { looks, .. } => looks.pop(),
        _ => source.next(),
    };
    let Some(look) = look else { return Err(Trouble::new("the process has ended")) };
    if let Some(recorder) = recorder {
        recorder.add(&look)?;
    }
    let is_refused = matches!(source, Source::Process(target) if target.is_refused());
    if let Some(why) = look.samples.first().and_then(|s| s.why.as_ref()).filter(|_| is_refused) {
        return Err(stats::trouble(why));
    }
    let text = match look.samples.as_slice() {
        _ if options.output.json => {
            let document = record::Document::of(&look);
            serde_json::to_string_pretty(&document).about("JSON")? + "\n"
        }
        [] => {
            terminal::say("prairie: no process that you may look at is on prairie");
            String::new()
        }
        [sample] if !matches!(source, Source::Host(_)) => text::sample(sample, CLASSES_ONCE),
        samples => text::host(samples),
    };
    output::write(options.output.output.as_deref(), text.as_bytes(), options.output.force)?;
    for why in look.samples.iter().filter_map(|sample| sample.why.as_ref()) {
        terminal::say(&format!("prairie: {}", text::printable(&why.text)));
    }
    Ok(0)
}

struct App {
    source: Source,
    scene: Scene,
    view: View,
    every: Duration,
    next_at: Instant,
    wants_end: bool,
}

impl App {
    fn new(options: &Top, source: Source) -> App {
        let pid = match &source {
            Source::Process(target) => Some(target.pid),
            Source::Host(_) => None,
            Source::Record { looks, .. } => only_process(looks),
        };
        let replay = match &source {
            Source::Record { looks, .. } => Some((0, looks.len())),
            _ => None,
        };
        App {
            source,
            scene: Scene::default(),
            view: View {
                pid,
                has_host: pid.is_none(),
                table: Table::Classes,
                order: Order::Pages,
                selected: 0,
                scroll: 0,
                paused: false,
                ended: false,
                replay,
                looks: Looks { ascii: terminal::is_ascii(), color: terminal::has_colours() },
            },
            every: options.every,
            next_at: Instant::now(),
            wants_end: false,
        }
    }

    fn watch(
        &mut self,
        terminal: &mut ratatui::DefaultTerminal,
        mut recorder: Option<&mut Recorder>,
        stop: &AtomicBool,
    ) -> Result<()> {
        while !self.wants_end && !stop.load(Ordering::Relaxed) {
            if !self.view.paused && Instant::now() >= self.next_at {
                self.look(&mut recorder)?;
                self.next_at = Instant::now() + self.every;
            }
            terminal
                .draw(|frame| screen::draw(frame, &self.scene, &self.view))
                .about("terminal")?;
            // A signal may have cut the wait short, and been the terminal's last one.
            if !sys::terminal_lasts_for(self.wait()) || stop.load(Ordering::Relaxed) {
                break;
            }
            // All of them: those that were read already wake nobody.
            while event::poll(Duration::ZERO).about("terminal")? {
                if let Event::Key(key) = event::read().about("terminal")?
                    && key.kind != KeyEventKind::Release
                {
                    self.press(key);
                }
            }
        }
        Ok(())
    }

    /// Until the next look, if there is to be one.
    fn wait(&self) -> Duration {
        if self.view.paused {
            return WAIT_MAX;
        }
        self.next_at.saturating_duration_since(Instant::now()).min(WAIT_MAX)
    }

    fn look(&mut self, recorder: &mut Option<&mut Recorder>) -> Result<()> {
        let Some(look) = self.source.next() else {
            // The last look stays on the screen.
            self.view.ended = self.view.replay.is_none();
            self.view.paused = true;
            return Ok(());
        };
        if let Some(recorder) = recorder {
            recorder.add(&look)?;
        }
        self.scene.advance(look);
        if let Source::Record { looks, at } = &self.source {
            self.view.replay = Some((at - 1, looks.len()));
        }
        self.keep_selected();
        Ok(())
    }

    /// Of fewer processes than before, the last one.
    fn keep_selected(&mut self) {
        self.view.selected = self.view.selected.min(self.scene.now.samples.len().saturating_sub(1));
    }

    fn press(&mut self, key: KeyEvent) {
        let is_interrupt =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') => self.wants_end = true,
            _ if is_interrupt => self.wants_end = true,
            KeyCode::Char('p' | ' ') => self.view.paused = !self.view.paused || self.view.ended,
            KeyCode::Char('s') => self.view.order = self.view.order.next(),
            KeyCode::Char('a') => {
                self.view.table = match self.view.table {
                    Table::Classes => Table::Arenas,
                    Table::Arenas => Table::Classes,
                };
                self.view.scroll = 0;
            }
            KeyCode::Char('+') => self.every = (self.every / 2).max(Duration::from_millis(50)),
            KeyCode::Char('-') => self.every = (self.every * 2).min(EVERY_MAX),
            KeyCode::Up => self.move_by(-1),
            KeyCode::Down => self.move_by(1),
            KeyCode::Enter => self.open(),
            KeyCode::Esc if self.view.has_host => self.view.pid = None,
            KeyCode::Right => self.step(true),
            KeyCode::Left => self.step(false),
            _ => {}
        }
    }

    fn move_by(&mut self, step: isize) {
        let rows = self.rows();
        let place =
            if self.view.pid.is_none() { &mut self.view.selected } else { &mut self.view.scroll };
        *place = place.saturating_add_signed(step).min(rows.saturating_sub(1));
    }

    /// Of the table that is shown.
    fn rows(&self) -> usize {
        let Some(pid) = self.view.pid else { return self.scene.now.samples.len() };
        let figures = self.scene.sample(pid).and_then(|sample| sample.figures.as_ref());
        figures.map_or(0, |figures| match self.view.table {
            Table::Classes => figures.classes.len(),
            Table::Arenas => figures.arenas.len(),
        })
    }

    fn open(&mut self) {
        if self.view.pid.is_none() {
            let samples = screen::ordered(&self.scene, self.view.order);
            self.view.pid = samples.get(self.view.selected).map(|sample| sample.pid);
            self.view.scroll = 0;
        }
    }

    /// One look on or back in a record, which then waits.
    fn step(&mut self, on: bool) {
        let Source::Record { looks, at } = &mut self.source else { return };
        let wanted = if on { (*at + 1).min(looks.len()) } else { at.saturating_sub(1).max(1) };
        self.scene = Scene::default();
        // Those before are not remembered.
        let first = wanted.saturating_sub(TRAIL_MAX);
        looks[first..wanted].iter().cloned().for_each(|look| self.scene.advance(look));
        *at = wanted;
        self.view.replay = Some((wanted - 1, looks.len()));
        self.view.paused = true;
        self.keep_selected();
    }
}

/// The one that all looks are of.
fn only_process(looks: &[Look]) -> Option<Pid> {
    let mut pids = looks.iter().flat_map(|look| &look.samples).map(|sample| sample.pid);
    let first = pids.next()?;
    pids.all(|pid| pid == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::live::sample::tests::made;

    fn replay(count: u64) -> App {
        let looks = (0..count)
            .map(|step| Look { time_ms: 1000 * step, samples: vec![made(7), made(9)] })
            .collect();
        let options = Top {
            pid: None,
            all: false,
            every: Duration::from_secs(1),
            once: false,
            record: None,
            replay: None,
            output: Output::default(),
        };
        App::new(&options, Source::Record { looks, at: 0 })
    }

    fn press(app: &mut App, codes: &[KeyCode]) {
        codes.iter().for_each(|code| app.press(KeyEvent::from(*code)));
    }

    #[test]
    fn keys_lead_from_all_processes_to_one_and_back() {
        let mut app = replay(3);
        app.look(&mut None).unwrap();
        assert_eq!(app.view.pid, None);
        press(&mut app, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(app.view.pid, Some(9));
        press(&mut app, &[KeyCode::Char('a'), KeyCode::Down]);
        assert_eq!((app.view.table, app.view.scroll), (Table::Arenas, 1));
        press(&mut app, &[KeyCode::Esc, KeyCode::Up, KeyCode::Enter]);
        assert_eq!((app.view.pid, app.view.scroll), (Some(7), 0));
        press(&mut app, &[KeyCode::Char('q')]);
        assert!(app.wants_end);
    }

    #[test]
    fn a_record_goes_on_by_itself_and_by_steps() {
        let mut app = replay(3);
        app.look(&mut None).unwrap();
        assert_eq!(app.view.replay, Some((0, 3)));
        press(&mut app, &[KeyCode::Right, KeyCode::Right, KeyCode::Right]);
        assert_eq!((app.view.replay, app.view.paused), (Some((2, 3)), true));
        assert!(app.scene.rates(7).is_some());
        press(&mut app, &[KeyCode::Left, KeyCode::Left, KeyCode::Left]);
        assert_eq!(app.view.replay, Some((0, 3)));
        press(&mut app, &[KeyCode::Char('p')]);
        for _ in 0..5 {
            app.look(&mut None).unwrap();
        }
        assert_eq!((app.view.replay, app.view.paused, app.view.ended), (Some((2, 3)), true, false));
    }

    #[test]
    fn a_table_scrolls_to_its_last_row() {
        let mut app = replay(1);
        app.look(&mut None).unwrap();
        press(&mut app, &[KeyCode::Enter]);
        let classes = made(7).figures.unwrap().classes.len();
        press(&mut app, &vec![KeyCode::Down; classes + 9]);
        assert_eq!(app.view.scroll, classes - 1);
        press(&mut app, &[KeyCode::Up]);
        assert_eq!(app.view.scroll, classes - 2);
    }

    #[test]
    fn each_of_many_processes_can_be_chosen() {
        let mut app = replay(1);
        app.scene.advance(Look { time_ms: 0, samples: (1..=300).map(made).collect() });
        press(&mut app, &[KeyCode::Down; 310]);
        assert_eq!(app.view.selected, 299);
    }

    #[test]
    fn a_step_keeps_the_choice_among_what_is_shown() {
        let mut app = replay(TRAIL_MAX as u64 + 5);
        let Source::Record { looks, at } = &mut app.source else { panic!() };
        looks[1].samples.truncate(1);
        *at = looks.len();
        app.view.selected = 1;
        press(&mut app, &[KeyCode::Left]);
        assert_eq!((app.scene.trail(7, usize::MAX).len(), app.view.selected), (TRAIL_MAX, 1));
        let Source::Record { at, .. } = &mut app.source else { panic!() };
        *at = 1;
        press(&mut app, &[KeyCode::Right]);
        assert_eq!((app.scene.trail(7, usize::MAX).len(), app.view.selected), (2, 0));
    }

    #[test]
    fn who_wants_less_does_not_get_more() {
        let mut app = replay(1);
        app.every = Duration::from_secs(50_000);
        press(&mut app, &[KeyCode::Char('-')]);
        assert_eq!(app.every, EVERY_MAX);
    }

    #[test]
    fn who_is_paused_waits_for_keys() {
        let mut app = replay(1);
        app.look(&mut None).unwrap();
        app.next_at = Instant::now();
        assert_eq!(app.wait(), Duration::ZERO);
        app.look(&mut None).unwrap();
        assert_eq!((app.view.paused, app.wait()), (true, WAIT_MAX));
        press(&mut app, &[KeyCode::Char('p')]);
        assert_eq!(app.wait(), Duration::ZERO);
    }
}
