//! A sample as people read it.
// SPDX-License-Identifier: MIT

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::figures::{Arena, Class, Figures};
use super::sample::Sample;
use crate::units;

pub fn bytes(value: u64) -> String {
    units::bytes(value as f64)
}

pub fn count(value: u64) -> String {
    units::count(value as f64)
}

/// A part of a whole, in per cent; nothing of nothing is all of it.
pub fn share(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
    format!("{} %", units::digits(100.0 * share))
}

pub fn uptime(seconds: u64) -> String {
    let parts = [(seconds / 86400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min")];
    let shown = parts.iter().skip_while(|(number, _)| *number == 0).take(2);
    let text: Vec<String> = shown.map(|(number, unit)| format!("{number} {unit}")).collect();
    if text.is_empty() { format!("{seconds} s") } else { text.join(" ") }
}

/// Who it is, in one line.
pub fn title(sample: &Sample) -> String {
    let who = format!("{} (process {})", sample.name, sample.pid);
    printable(&match &sample.figures {
        Some(figures) => format!(
            "{who} on prairie {}{}, up {}, {}",
            figures.release,
            if figures.hardened { ", hardened" } else { "" },
            uptime(figures.uptime_seconds),
            several(figures.threads, "thread"),
        ),
        None => format!("{who} on {}", sample.allocator),
    })
}

pub fn several(number: u64, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

/// The lines of `prairie stats`.
pub fn sample(sample: &Sample, class_rows: usize) -> String {
    let mut text = format!("{}\n\n", title(sample));
    let Some(figures) = &sample.figures else {
        for (label, value) in kernel_lines(sample) {
            text += &line(label, &value.0, &value.1);
        }
        return text;
    };
    for (label, value, note) in lines(sample, figures) {
        text += &line(label, &value, &note);
    }
    text.push('\n');
    text += &classes(figures, class_rows);
    text.push('\n');
    text += &arenas(figures);
    text
}

fn line(label: &str, value: &str, note: &str) -> String {
    format!("  {label:<16}{value:>10}   {note}\n")
}

fn kernel_lines(sample: &Sample) -> Vec<(&'static str, (String, String))> {
    let said = |text: &str| text.to_owned();
    vec![
        ("resident", (bytes(sample.resident), said("of the whole process, says the kernel"))),
        ("swapped", (bytes(sample.swapped), said("the same"))),
        ("threads", (sample.threads.to_string(), said("the same"))),
    ]
}

fn lines(sample: &Sample, figures: &Figures) -> Vec<(&'static str, String, String)> {
    let said = |text: &str| text.to_owned();
    let mut lines = vec![
        (
            "allocated",
            bytes(figures.allocated),
            format!(
                "blocks that the program holds; {} of them in {}",
                bytes(figures.large_allocated),
                several(figures.large_blocks, "large block")
            ),
        ),
        (
            "active",
            bytes(figures.active),
            format!(
                "pages with such blocks in them: {} is allocated",
                share(figures.allocated, figures.active)
            ),
        ),
        ("cached", bytes(figures.cached), said("free blocks that threads and depots hold ready")),
        ("dirty", bytes(figures.dirty), said("free pages that the kernel has not got back")),
        ("metadata", bytes(figures.metadata), said("the allocator's own records")),
        (
            "resident",
            bytes(figures.resident),
            format!(
                "active, dirty and metadata; the kernel has {} for the whole process",
                bytes(sample.resident)
            ),
        ),
        ("retained", bytes(figures.retained), said("free pages that cost nothing")),
        (
            "purged",
            bytes(figures.purged),
            format!("given back to the kernel so far, in {} calls", count(figures.purges)),
        ),
        (
            "locks",
            count(figures.lock_arenas.taken),
            format!(
                "of arenas taken; {} found held, {} slept for",
                count(figures.lock_arenas.contended),
                count(figures.lock_arenas.waits)
            ),
        ),
    ];
    for (label, limit) in [("hard limit", figures.limit_hard), ("soft limit", figures.limit_soft)] {
        if limit != 0 {
            let used = format!("{} of it is used", share(figures.resident, limit));
            lines.push((label, bytes(limit), used));
        }
    }
    if let Some(strip) = &sample.strip {
        let how = if strip.exact { "" } else { ", as far as samples tell" };
        let note = format!(
            "of {} opened are resident, {} swapped{how}",
            bytes(strip.bytes),
            bytes(strip.swapped)
        );
        lines.push(("pages", bytes(strip.resident), note));
    }
    if figures.moving != 0 {
        let note = said("structs changed at each look: their figures are of several moments");
        lines.push(("moving", figures.moving.to_string(), note));
    }
    lines
}

/// Bytes of a class's slabs that are neither held nor ready.
pub fn unused(class: &Class) -> u64 {
    class.slab_bytes.saturating_sub(class.allocated).saturating_sub(class.cached)
}

/// Those with most pages first.
fn classes(figures: &Figures, rows: usize) -> String {
    let mut classes = figures.classes.clone();
    classes.sort_by_key(|class| std::cmp::Reverse((class.slab_bytes, class.size)));
    let heads = ["class", "blocks", "allocated", "cached", "unused", "in slabs", "in use"];
    let row = |class: &Class| {
        vec![
            class.size.to_string(),
            count(class.blocks),
            bytes(class.allocated),
            bytes(class.cached),
            bytes(unused(class)),
            bytes(class.slab_bytes),
            share(class.allocated, class.slab_bytes),
        ]
    };
    let rest = classes.len().saturating_sub(rows);
    let more = if rest == 0 { String::new() } else { format!("  and {rest} more classes\n") };
    table(&heads, classes.iter().take(rows).map(row)) + &more
}

fn arenas(figures: &Figures) -> String {
    let heads =
        ["arena", "threads", "active", "out of slabs", "in depots", "in stocks", "locks", "held"];
    let row = |arena: &Arena| {
        let name = match (arena.name.is_empty(), arena.manual) {
            (true, false) => arena.number.to_string(),
            (true, true) => format!("{} (manual)", arena.number),
            (false, _) => format!("{} {}", arena.number, printable(&arena.name)),
        };
        vec![
            name,
            arena.threads.to_string(),
            bytes(arena.active),
            bytes(arena.out_of_slabs),
            bytes(arena.depots),
            bytes(arena.stocks),
            count(arena.lock.taken),
            share(arena.lock.contended, arena.lock.taken.max(1)),
        ]
    };
    table(&heads, figures.arenas.iter().map(row))
}

/// What somebody else wrote must not speak to the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// All columns but the first are of figures.
fn table<T: AsRef<str>>(heads: &[&str], rows: impl IntoIterator<Item = Vec<T>>) -> String {
    let aligned = |column: usize, text: &str| {
        let side = if column == 0 { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(side)
    };
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none()));
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().enumerate().map(|(column, text)| aligned(column, text)));
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(column, text)| aligned(column, text.as_ref())));
    }
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

/// One line for each process.
pub fn host(samples: &[Sample]) -> String {
    let heads = [
        "process",
        "allocated",
        "active",
        "in use",
        "cached",
        "dirty",
        "resident",
        "RSS",
        "threads",
    ];
    let row = |sample: &Sample| {
        let figure =
            |of: fn(&Figures) -> String| sample.figures.as_ref().map_or_else(|| "-".to_owned(), of);
        vec![
            format!("{} {}", sample.pid, printable(&sample.name)),
            figure(|f| bytes(f.allocated)),
            figure(|f| bytes(f.active)),
            figure(|f| share(f.allocated, f.active)),
            figure(|f| bytes(f.cached)),
            figure(|f| bytes(f.dirty)),
            figure(|f| bytes(f.resident)),
            bytes(sample.resident),
            figure(|f| f.threads.to_string()),
        ]
    };
    table(&heads, samples.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{foreign, made};
    use super::*;

    #[test]
    fn a_process_and_a_host_in_words() {
        insta::assert_snapshot!("text-sample", sample(&made(7), 10));
        insta::assert_snapshot!("text-foreign", sample(&foreign(8), 10));
        insta::assert_snapshot!("text-host", host(&[made(7), foreign(8)]));
    }

    #[test]
    fn times_have_two_units() {
        assert_eq!(uptime(59), "59 s");
        assert_eq!(uptime(61), "1 min");
        assert_eq!(uptime(3723), "1 h 2 min");
        assert_eq!(uptime(2 * 86400 + 5), "2 d 0 h");
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a?[2Jb?");
        let odd = |of: Sample| Sample { name: "a\x1b[2Jb".to_owned(), ..of };
        for text in [sample(&odd(made(7)), 10), sample(&odd(foreign(8)), 10)] {
            assert!(text.starts_with("a?[2Jb (process ") && !text.contains('\x1b'), "{text:?}");
        }
    }
}
