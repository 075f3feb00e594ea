//! Flame graphs: collapsed stacks, and a page that needs no network.
// SPDX-License-Identifier: MIT

use inferno::flamegraph::{self, Options, TextTruncateDirection};

use super::stacks::{Name, Row, Stacks};
use super::words;
use crate::report::page;
use crate::trouble::{About, Result};

/// A line for each stack: `outer;inner FIGURE`; of a difference `outer;inner BEFORE AFTER`.
pub fn collapsed(stacks: &Stacks) -> String {
    let mut lines: Vec<String> =
        stacks.rows.iter().filter_map(|row| line(stacks, row, figures(row))).collect();
    lines.sort();
    lines.concat()
}

fn figures(row: &Row) -> Vec<f64> {
    match &row.figures[..] {
        [first, .., last] => vec![*first, *last],
        all => all.to_vec(),
    }
}

fn line(stacks: &Stacks, row: &Row, figures: Vec<f64>) -> Option<String> {
    let figures: Vec<i64> = figures.iter().map(|figure| figure.round().max(0.0) as i64).collect();
    if figures.iter().all(|figure| *figure == 0) {
        return None;
    }
    let names: Vec<String> = row.path.iter().map(|name| frame(&stacks.names[*name])).collect();
    let figures: Vec<String> = figures.iter().map(i64::to_string).collect();
    Some(format!("{} {}\n", names.join(";"), figures.join(" ")))
}

/// Semicolons stand between frames, and the last blanks before the figures: a number at the end of a name
/// would be taken for one of them.
fn frame(name: &Name) -> String {
    let name = name.function.replace(';', ":").replace(['\n', '\r'], " ");
    match name.rsplit_once(' ') {
        Some((start, end)) if end.parse::<f64>().is_ok() => format!("{start}_{end}"),
        _ => name,
    }
}

/// A page with the graph in it.
pub fn html(stacks: &Stacks, title: &str, subtitle: &str) -> Result<String> {
    let lines = collapsed(stacks);
    let svg = svg(&lines, stacks)?;
    let entries = super::top::entries(stacks, crate::cli::Sort::Flat);
    let rows = entries.iter().take(50).map(|entry| {
        let name = &stacks.names[entry.name];
        let figures = [entry.flat, entry.cum].map(|value| words::figure(stacks, value));
        let [flat, cum] = figures;
        vec![name.function.clone(), name.place.clone(), flat, cum]
    });
    let table = crate::report::Table {
        columns: ["function", "place", "flat", "cum"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        text_columns: 2,
    };
    let colours = match stacks.is_difference() {
        true => ". Red has grown, blue has shrunk.",
        false => ". A click shows a part, Ctrl-F searches.",
    };
    let mut body = format!(
        "<h1>{}</h1>\n<p>{}{colours}</p>\n<div class=\"flame\">{svg}</div>\n",
        page::escaped(title),
        page::escaped(subtitle)
    );
    body += &page::table(&table);
    body += &page::download("collapsed stacks", "stacks.txt", "text/plain", &lines);
    Ok(page::html(title, &body))
}

fn svg(lines: &str, stacks: &Stacks) -> Result<String> {
    let mut options = Options::default();
    options.title = String::new();
    options.count_name = if stacks.is_bytes { "bytes".to_owned() } else { "blocks".to_owned() };
    options.font_type = "monospace".to_owned();
    options.hash = true;
    options.deterministic = true;
    options.min_width = 0.05;
    // The beginning of a function's name tells most.
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut svg).about("the flame graph")?;
    let svg = String::from_utf8_lossy(&svg).into_owned();
    // What stands before the element belongs to a file of its own.
    let start = svg.find("<svg").unwrap_or(0);
    Ok(svg[start..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::By;
    use crate::prof::fixture;

    #[test]
    fn stacks_are_collapsed_in_order() {
        let profile = fixture::profile(&[("main;b", 2.4), ("main;a;x", 1.0), ("main;none", 0.2)]);
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        assert_eq!(collapsed(&stacks), "main;a;x 1\nmain;b 2\n");
    }

    #[test]
    fn a_number_in_a_name_is_no_figure() {
        let profile = fixture::profile(&[("main;part 2", 5.0), ("a 2b", 1.0)]);
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        assert_eq!(collapsed(&stacks), "a 2b 1\nmain;part_2 5\n");
        assert!(html(&stacks, "", "").unwrap().contains("part_2 (5 bytes"));
    }

    #[test]
    fn who_has_no_stack_is_in_the_graph() {
        let mut profile = fixture::profile(&[("main", 2.0), ("main", 1.0)]);
        profile.samples[1].stack.clear();
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        assert_eq!(collapsed(&stacks), "main 2\nunknown code 1\n");
        assert!(html(&stacks, "", "").unwrap().contains("all (3 bytes"));
    }

    #[test]
    fn a_difference_has_two_figures() {
        let profiles = [("main;a", 1.0), ("main;b", 3.0)].map(|stack| fixture::profile(&[stack]));
        let stacks = Stacks::of(&profiles, &[3, 3], By::Function);
        assert_eq!(collapsed(&stacks), "main;a 1 0\nmain;b 0 3\n");
    }

    #[test]
    fn the_page_is_whole_and_needs_no_network() {
        let profile = fixture::profile(&[("main;a<b>", 2.0), ("main", 1.0)]);
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        let page = html(&stacks, "A <title>", "3 bytes").unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("A &lt;title&gt;"));
        assert!(page.contains("<svg") && page.contains("a&lt;b&gt;"));
        // As wide as the window, with names in all frames that have room for one.
        assert!(page.contains("var fluiddrawing = true"));
        assert!(page.contains("var truncate_text_right = true"));
        for word in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
