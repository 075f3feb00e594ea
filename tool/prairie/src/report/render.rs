//! Blocks as Markdown, and as text for a terminal.
// SPDX-License-Identifier: MIT

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, TableStyle};

use super::{Block, Table};
use crate::terminal::columns;

pub fn markdown(blocks: &[Block]) -> String {
    let mut text = String::new();
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match block {
            Block::Heading(heading) => {
                let level = if index == 0 { "#" } else { "##" };
                text += &format!("{level} {}\n", escaped(heading));
            }
            Block::Text(paragraph) => text += &format!("{}\n", escaped(paragraph)),
            Block::List(lines) => {
                lines.iter().for_each(|line| text += &format!("- {}\n", escaped(line)));
            }
            Block::Table(table) => text += &markdown_table(table),
        }
    }
    text
}

fn markdown_table(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = (0..table.columns.len())
        .map(|column| if column < table.text_columns { "---" } else { "---:" })
        .collect::<Vec<_>>();
    let mut text = line(&table.columns) + &format!("|{}|\n", rule.join("|"));
    table.rows.iter().for_each(|row| text += &line(row));
    text
}

/// Keeps what a program or a path is called from being read as Markdown.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if "|*_<>`[]\\".contains(letter) {
            safe.push('\\');
        }
        safe.push(if letter == '\n' { ' ' } else { letter });
    }
    safe
}

/// Text is folded at the terminal's width; tables are never cut.
pub fn terminal(blocks: &[Block]) -> String {
    let columns = columns();
    let mut text = String::new();
    for block in blocks {
        match block {
            Block::Heading(heading) => {
                let rule = "─".repeat(heading.chars().count().min(columns));
                text += &format!("{heading}\n{rule}\n");
            }
            Block::Text(paragraph) => text += &format!("{}\n", folded(paragraph, columns)),
            Block::List(lines) => {
                let line = |line: &String| folded(line, columns - 2).replace('\n', "\n  ");
                lines.iter().for_each(|told| text += &format!("· {}\n", line(told)));
            }
            Block::Table(table) => text += &format!("{}\n", terminal_table(table)),
        }
        text.push('\n');
    }
    text
}

fn terminal_table(table: &Table) -> String {
    let mut drawn = comfy_table::Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    drawn.load_style(TableStyle::new().header_separator(rule));
    drawn.set_content_arrangement(ContentArrangement::Disabled);
    let aligned = |row: &[String]| {
        let cells = row.iter().enumerate().map(|(column, text)| {
            let left = column < table.text_columns;
            let side = if left { CellAlignment::Left } else { CellAlignment::Right };
            Cell::new(text).set_alignment(side)
        });
        cells.collect::<Vec<_>>()
    };
    drawn.set_header(aligned(&table.columns));
    table.rows.iter().for_each(|row| {
        drawn.add_row(aligned(row));
    });
    drawn.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Lines of at most so many letters.
fn folded(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let starts = line.is_empty();
        if !starts && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if !starts {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        vec![
            Block::Heading("Title".into()),
            Block::Text("A_b".into()),
            Block::List(vec!["one".into(), "two".into()]),
            Block::Table(Table {
                columns: vec!["name".into(), "time".into()],
                rows: vec![vec!["a|b".into(), "1.00 s".into()], vec!["c".into(), "12 ms".into()]],
                text_columns: 1,
            }),
        ]
    }

    #[test]
    fn markdown_is_well_formed() {
        insta::assert_snapshot!(markdown(&blocks()), @r"
        # Title

        A\_b

        - one
        - two

        | name | time |
        |---|---:|
        | a\|b | 1.00 s |
        | c | 12 ms |
        ");
    }

    #[test]
    fn a_terminal_gets_aligned_columns() {
        let expected = [
            "Title",
            "─────",
            "",
            "A_b",
            "",
            "· one",
            "· two",
            "",
            " name     time",
            "───────────────",
            " a|b    1.00 s",
            " c       12 ms",
            "",
            "",
        ];
        assert_eq!(terminal(&blocks()), expected.join("\n"));
    }

    #[test]
    fn long_lines_are_folded() {
        let text = folded(&"word ".repeat(50), 99);
        assert!(text.lines().all(|line| line.chars().count() <= 99));
        assert_eq!((text.lines().count(), text.split_whitespace().count()), (3, 50));
        let list = terminal(&[Block::List(vec!["word ".repeat(50)])]);
        let columns = columns();
        assert!(list.lines().all(|line| line.chars().count() <= columns), "{list}");
        assert!(list.lines().nth(1).unwrap().starts_with("  word"), "{list}");
    }
}
