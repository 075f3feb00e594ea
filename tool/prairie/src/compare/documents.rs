//! The files that a comparison is written to.
// SPDX-License-Identifier: MIT

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::Compare;
use crate::output;
use crate::record::Run;
use crate::report::{self, html, json, picture, render};
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

const TO_STANDARD_OUTPUT: &str = "-";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Json,
    Markdown,
    Svg,
}

/// A file that was asked for.
pub struct Document {
    kind: Kind,
    path: PathBuf,
    /// Where there is nothing to draw, nothing is missed.
    is_optional: bool,
}

const ENDINGS: &[(&str, Kind)] =
    &[("html", Kind::Html), ("json", Kind::Json), ("md", Kind::Markdown), ("svg", Kind::Svg)];

/// By its ending.
fn kind_of(path: &Path) -> Option<Kind> {
    let ending = path.extension()?.to_str()?;
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// Asked before anything is measured: whoever waited for the rounds must not lose them.
pub fn require_writable(options: &Compare) -> Result<()> {
    if let Some(path) = &options.output {
        if kind_of(path).is_none() {
            let text = format!("{}: what kind of file is it to be?", path.display());
            return Err(Trouble::new(text).hint("its name ends in .html, .json, .md or .svg"));
        }
        output::require_writable(path, options.force)?;
    }
    let documents = asked_for(options);
    let mut files = documents.iter().filter(|document| !document.is_standard_output());
    files.try_for_each(|document| output::require_replaceable(&document.path))
}

/// Writes them all. One that cannot be written does not cost the others: the first failure is told
/// when they are done.
pub fn write(
    documents: &[Document],
    options: &Compare,
    result: &report::Result,
    runs: &[Run],
) -> Result<()> {
    let mut all = Ok(());
    for document in documents {
        let written = document.write(options, result, runs);
        all = all.and(written);
    }
    all
}

pub fn asked_for(options: &Compare) -> Vec<Document> {
    let named = [
        (Kind::Html, &options.html),
        (Kind::Json, &options.json),
        (Kind::Markdown, &options.markdown),
        (Kind::Svg, &options.svg),
    ];
    let mut documents = Vec::new();
    for (kind, path) in named {
        if let Some(path) = path {
            documents.push(Document { kind, path: path.clone(), is_optional: false });
        } else if let Some(folder) = &options.out {
            let (ending, _) = ENDINGS.iter().find(|known| known.1 == kind).expect("all have one");
            let path = folder.join(format!("compare.{ending}"));
            documents.push(Document { kind, path, is_optional: kind == Kind::Svg });
        }
    }
    if let Some(path) = &options.output
        && let Some(kind) = kind_of(path)
    {
        documents.push(Document { kind, path: path.clone(), is_optional: false });
    }
    documents
}

impl Document {
    pub fn is_standard_output(&self) -> bool {
        self.path == Path::new(TO_STANDARD_OUTPUT)
    }

    fn write(&self, options: &Compare, result: &report::Result, runs: &[Run]) -> Result<()> {
        let text = match self.kind {
            Kind::Html => html::text(result, &super::blocks(result, true), runs),
            Kind::Json => json::text(result, runs),
            Kind::Markdown => render::markdown(&super::blocks(result, true)),
            Kind::Svg => match picture::svg(result) {
                Ok(text) => text,
                Err(_) if self.is_optional => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let path = &self.path;
        if self.is_standard_output() {
            return output::write_out(text.as_bytes());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).about(folder.display())?;
        }
        // Files that are there already were asked for at the start.
        let is_own_name = options.output.as_ref() != Some(path);
        output::write_file(path, text.as_bytes(), options.force || is_own_name)?;
        terminal::say(&format!("wrote {}", path.display()));
        Ok(())
    }
}
