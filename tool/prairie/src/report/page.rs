//! One HTML file with everything in it: style, sorting, pictures and raw data; no network.
// SPDX-License-Identifier: MIT

use super::Table;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub fn html(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"generator\" content=\"prairie {}\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n\
         <button id=\"theme\" type=\"button\">light / dark</button>\n{body}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(title)
    )
}

pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}

/// A table that is sorted by a click.
pub fn table(table: &Table) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells = cells.iter().enumerate().map(|(column, text)| {
            let class = if column < table.text_columns { " class=\"text\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escaped(text))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
    format!(
        "<div class=\"scroll\"><table class=\"sortable\">\n<thead>{}</thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        row(&table.columns, "th")
    )
}

/// Data that lies in the page, and a button that saves it as a file.
pub fn download(label: &str, name: &str, media_type: &str, text: &str) -> String {
    let is_json = media_type == "application/json";
    let held = if is_json { text.to_owned() } else { serde_json::json!(text).to_string() };
    // Within strings, where alone JSON has this letter, an escape means the same.
    let held = held.replace('<', "\\u003c");
    let (held_type, id) = (if is_json { "application/json" } else { "text/json" }, escaped(name));
    format!(
        "<p><button type=\"button\" data-from=\"{id}\" data-name=\"{id}\" data-type=\"{media_type}\">\
         Save {} as {id}</button></p>\n<script type=\"{held_type}\" id=\"{id}\">{held}</script>\n",
        escaped(label)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_are_called_is_no_markup() {
        let found = table(&Table {
            columns: vec!["<b>".into(), "time".into()],
            rows: vec![vec!["a&b".into(), "1 s".into()]],
            text_columns: 1,
        });
        assert!(found.contains("<th class=\"text\">&lt;b&gt;</th><th>time</th>"), "{found}");
        assert!(found.contains("<td class=\"text\">a&amp;b</td><td>1 s</td>"), "{found}");
    }

    #[test]
    fn data_cannot_end_its_script() {
        let json = download("data", "d.json", "application/json", "{\"a\":\"</script>\"}");
        assert_eq!(json.matches("</script>").count(), 1);
        let text = download("text", "t.txt", "text/plain", "</script>\n");
        assert!(text.contains(r#">"\u003c/script>\n"</script>"#), "{text}");
    }
}
