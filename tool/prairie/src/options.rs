//! `prairie options`: the table of options, as the page has it that is made from the library's own.
// SPDX-License-Identifier: MIT

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::json;

use crate::cli::Options;
use crate::output;
use crate::terminal;
use crate::trouble::{Result, Trouble};

const PAGE: &str = include_str!("../../../docs/options.md");
const WITHOUT_EFFECT: &str = "Understood, and without effect";
/// In the order in which the library reads them.
pub const VARIABLES: &[&str] = &["MALLOC_CONF", "PRAIRIE_CONF"];
/// Other names of keys, from the notes of the page.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("arenas", "narenas"),
    ("helper_thread", "background_thread"),
    ("lg_tcache_max", "tcache_max"),
];

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;

#[derive(Debug, Clone, Serialize)]
struct Row {
    section: String,
    key: String,
    value: String,
    default: String,
    what: String,
    /// What a variable sets it to here, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<(String, &'static str)>,
}

impl Row {
    /// The page has words for those that have none.
    fn has_default(&self) -> bool {
        !["none", "unset", ""].contains(&&*self.default)
    }

    /// Whether the library would understand this value, by what the page says of values.
    fn takes(&self, value: &str) -> bool {
        match self.value.as_str() {
            "a text" | "anything" => true,
            "a fraction" => value == "-1" || is_fraction(value),
            "true or false" => ["true", "false"].contains(&value),
            said => match limits(said) {
                Some(limits) => {
                    let is_word = self.key == "narenas" && value == "default";
                    is_word || number(value).is_some_and(|found| limits.contains(&found))
                }
                None => said.split(", ").any(|word| word == value),
            },
        }
    }
}

/// `0 and more`, `1 to 256`; `1 to 16, clipped` takes any number.
fn limits(said: &str) -> Option<RangeInclusive<i128>> {
    if said.ends_with(", clipped") {
        return Some(i128::MIN..=i128::MAX);
    }
    if let Some(least) = said.strip_suffix(" and more") {
        return Some(least.parse().ok()?..=u64::MAX.into());
    }
    let (least, most) = said.split_once(" to ")?;
    Some(least.parse().ok()?..=most.parse().ok()?)
}

/// As C writes numbers: 10, 0x10, 010, behind blanks and a sign.
fn number(text: &str) -> Option<i128> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    // A second sign would be taken.
    let is_plain = digits.chars().all(|letter| letter.is_ascii_alphanumeric());
    let value = u64::from_str_radix(digits, base).ok().filter(|_| is_plain)?;
    Some(sign * i128::from(value))
}

/// `1`, `0.25`, `.5`.
fn is_fraction(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !(whole.is_empty() && part.is_empty()) && are_digits(whole) && are_digits(part)
}

pub fn run(options: &Options) -> Result<i32> {
    let mut rows = rows(PAGE);
    for trouble in set_here(&mut rows) {
        terminal::say(&format!("{} {trouble}", terminal::doubtful("note:")));
    }
    let is_asked = |row: &Row| match &options.words[..] {
        [] => options.all || row.section != WITHOUT_EFFECT,
        words => words.iter().any(|word| row.key.contains(word.as_str())),
    };
    let wanted: Vec<&Row> = rows.iter().filter(|row| is_asked(row)).collect();
    if wanted.is_empty() {
        let text = format!("no option has '{}' in its name", options.words.join("' or '"));
        return Err(Trouble::new(text).hint("`prairie options --all` lists all of them"));
    }
    let text = if options.output.json {
        format!("{:#}\n", json!({ "schema": SCHEMA, "options": wanted }))
    } else {
        text(&wanted)
    };
    output::write_text(options.output.output.as_deref(), &text, options.output.force)?;
    if !options.output.json {
        terminal::next(&format!("{}prairie run -- program", example(&wanted)));
    }
    Ok(0)
}

/// Sets the first of them that has a default which can be written down.
fn example(rows: &[&Row]) -> String {
    let row = rows.iter().find(|row| row.has_default() && row.takes(&row.default));
    row.map(|row| format!("PRAIRIE_CONF={}:{} ", row.key, row.default)).unwrap_or_default()
}

/// The tables of the page whose first column is the key.
fn rows(page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut section = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        }
        let cells: Vec<String> = match line.strip_prefix("| `") {
            Some(_) => cells(line),
            None => continue,
        };
        if let [key, value, default, what] = &cells[..] {
            let [key, value, default, what] = [key, value, default, what].map(|cell| plain(cell));
            // Here the row above may be left out.
            let above = rows.last().map(|row: &Row| row.what.clone());
            let what = above.filter(|_| what == "As above.").unwrap_or(what);
            rows.push(Row { section: section.clone(), key, value, default, what, set: None });
        }
    }
    rows
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
}

/// Without marks of code and with the words of links only.
fn plain(cell: &str) -> String {
    let mut text = String::new();
    let mut rest = cell;
    while let Some((before, link)) = rest.split_once('[') {
        text += before;
        match link.split_once("](").and_then(|(word, end)| Some((word, end.split_once(')')?.1))) {
            Some((word, after)) => {
                text += word;
                rest = after;
            }
            None => {
                text.push('[');
                rest = link;
            }
        }
    }
    (text + rest).replace('`', "")
}

/// Notes what the environment sets, and returns what it sets in vain.
fn set_here(rows: &mut [Row]) -> Vec<String> {
    let mut troubles = Vec::new();
    for variable in VARIABLES {
        let Some(value) = std::env::var_os(variable) else { continue };
        // A byte that is no text costs its own pair only, as in the library.
        troubles.extend(set_by(rows, variable, &value.to_string_lossy()));
    }
    troubles
}

/// What such a variable says in vain: pairs that the library does not understand, each in a sentence,
/// and keys that it takes and that change nothing.
pub fn in_vain(variable: &'static str, text: &str) -> (Vec<String>, Vec<String>) {
    let mut rows = rows(PAGE);
    let troubles = set_by(&mut rows, variable, text);
    let is_idle = |row: &Row| row.section == WITHOUT_EFFECT && row.set.is_some();
    (troubles, rows.into_iter().filter(is_idle).map(|row| row.key).collect())
}

fn set_by(rows: &mut [Row], variable: &'static str, text: &str) -> Vec<String> {
    let mut troubles = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let Some((told, value)) = pair.split_once(':') else {
            troubles.push(format!("{variable}: '{pair}' has no colon and is ignored"));
            continue;
        };
        let other = OTHER_NAMES.iter().find(|(name, _)| *name == told);
        let key = other.map_or(told, |(_, key)| key);
        match rows.iter_mut().find(|row| row.key == key) {
            Some(row) if !row.takes(value) => {
                let text = format!("'{pair}' is not understood: {told} is {}", row.value);
                troubles.push(format!("{variable}: {text}"));
            }
            Some(row) => row.set = Some((value.to_owned(), variable)),
            None => troubles.push(format!("{variable}: no option is called '{told}'")),
        }
    }
    troubles
}

fn text(rows: &[&Row]) -> String {
    let mut text = String::new();
    let mut section = "";
    let columns = terminal::columns();
    for row in rows {
        if row.section != section {
            section = &row.section;
            text += &format!("{}\n\n", terminal::bold(section));
        }
        let default = if row.default.is_empty() { "nothing" } else { &row.default };
        text += &format!("  {} = {default}    {}\n", terminal::bold(&row.key), row.value);
        text += &format!("{}\n", indented(&row.what, columns));
        if let Some((value, variable)) = &row.set {
            text += &format!("      {}\n", terminal::good(&format!("{variable} sets {value}")));
        }
        text.push('\n');
    }
    text
}

fn indented(paragraph: &str, columns: usize) -> String {
    let mut lines = vec![String::from("     ")];
    for word in paragraph.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(format!("      {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_options() {
        let rows = rows(PAGE);
        let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
        assert!(rows.len() > 60, "{}", rows.len());
        assert_eq!(
            (&*row("narenas").default, &*row("narenas").value),
            ("0", "0 and more, clipped")
        );
        assert_eq!(row("prof").section, "Profiling");
        assert_eq!(row("hpa").section, WITHOUT_EFFECT);
        assert!(row("reserve_min").what.starts_with("Bytes of real memory to keep in reserve;"));
        assert!(rows.iter().all(|row| !row.what.contains(['`', '['])));
        assert!(rows.iter().all(|row| row.what != "As above."));
        assert_eq!(row("tcache_nslots_large").what, row("tcache_nslots_small_min").what);
    }

    #[test]
    fn values_are_understood_as_the_library_does() {
        let rows = rows(PAGE);
        let takes =
            |key: &str, value: &str| rows.iter().find(|row| row.key == key).unwrap().takes(value);
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("narenas", &["0", "-1", "0x10", "default"], &["banana", "", "4k", "0x+4"]),
            (
                "narenas",
                &[" +7", "\t-7", "18446744073709551615"],
                &["7 ", "+", "+-7", "- 7", "2e9"],
            ),
            ("dirty_decay_ms", &["-1", "0", "5000", "010"], &["-2", "1.5", "--1", "08"]),
            ("guard_cells", &["1", "256"], &["0", "257", "default"]),
            ("prof", &["true", "false"], &["1", "yes", "True", ""]),
            ("thp", &["default", "always", "never"], &["madvise", ""]),
            ("narenas_ratio", &["1", ".5", "0.25", "-1"], &[".", "1.x", "-2", ""]),
            ("prof_prefix", &["/tmp/x:y", ""], &[]),
            ("bin_shards", &["1-2:3"], &[]),
        ];
        for (key, right, wrong) in cases {
            assert!(right.iter().all(|value| takes(key, value)), "{key}: {right:?}");
            assert!(!wrong.iter().any(|value| takes(key, value)), "{key}: {wrong:?}");
        }
        // All that the page says of values is known: a default is one of them.
        for row in rows.iter().filter(|row| row.has_default()) {
            assert!(row.takes(&row.default), "{row:?}");
        }
    }

    #[test]
    fn an_example_is_understood() {
        let mut rows = rows(PAGE);
        let of = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
        let (without, with) = (of("background_thread"), of("max_background_threads"));
        assert_eq!(example(&[without, with]), "PRAIRIE_CONF=max_background_threads:4 ");
        assert_eq!(example(&[without, of("stats_print_opts"), of("log")]), "");
        let examples: Vec<String> = rows.iter().map(|row| example(&[row])).collect();
        for text in examples.iter().filter(|text| !text.is_empty()) {
            let pair = text.strip_prefix("PRAIRIE_CONF=").unwrap().trim_end();
            assert_eq!(set_by(&mut rows, "PRAIRIE_CONF", pair), [""; 0]);
        }
    }

    #[test]
    fn what_is_said_in_vain_is_told() {
        let (troubles, idle) = in_vain("MALLOC_CONF", "hpa:true,narenas:2,foo:1,muzzy_decay_ms:0");
        assert_eq!(troubles, ["MALLOC_CONF: no option is called 'foo'"]);
        assert_eq!(idle, ["muzzy_decay_ms", "hpa"]);
    }

    #[test]
    fn what_the_environment_sets_is_told() {
        let mut rows = rows(PAGE);
        let troubles = set_by(&mut rows, "MALLOC_CONF", "arenas:4,nothing,colour:red,prof:1");
        let narenas = rows.iter().find(|row| row.key == "narenas").unwrap();
        assert_eq!(narenas.set, Some(("4".into(), "MALLOC_CONF")));
        assert!(rows.iter().all(|row| row.key != "prof" || row.set.is_none()));
        assert_eq!(
            troubles,
            [
                "MALLOC_CONF: 'nothing' has no colon and is ignored",
                "MALLOC_CONF: no option is called 'colour'",
                "MALLOC_CONF: 'prof:1' is not understood: prof is true or false"
            ]
        );
    }
}
