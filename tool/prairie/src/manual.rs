//! Manual pages, made from the same words as the help.
// SPDX-License-Identifier: MIT

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::{self, Cli};
use crate::output;
use crate::trouble::{About, Result, Trouble};

pub fn run(options: &cli::Man) -> Result<i32> {
    let mut command = as_pages(Cli::command()).mut_subcommands(as_pages);
    command.build();
    if let Some(folder) = &options.out {
        fs::create_dir_all(folder).about(folder.display())?;
        write_all(&command, folder)?;
        return Ok(0);
    }
    let page = match &options.verb {
        None => page(command)?,
        Some(verb) => page(of_verb(&command, verb)?)?,
    };
    output::write_out(&page)?;
    Ok(0)
}

/// Examples stand first in the help and last in a page; and pages about `help` say nothing.
fn as_pages(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    match command.get_before_long_help().or(command.get_before_help()).cloned() {
        Some(examples) => command.after_long_help(examples),
        None => command,
    }
}

fn of_verb(command: &Command, verb: &str) -> Result<Command> {
    let found = command.get_subcommands().find(|known| known.get_name() == verb);
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        Trouble::new(format!("no verb is called '{verb}'"))
            .hint(format!("there are {}", names.join(", ")))
    })
}

/// A page for the command, and one for each verb that users see.
fn write_all(command: &Command, folder: &Path) -> Result<()> {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    for command in verbs.chain([command]) {
        let file = folder.join(manual(command.clone()).get_filename());
        fs::write(&file, page(command.clone())?).about(file.display())?;
    }
    Ok(())
}

fn page(command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let others = if command.get_display_name().is_some_and(|name| name.contains('-')) {
        ".BR prairie (1),\n.BR prairie.conf (5)\n"
    } else {
        ".BR prairie (3),\n.BR prairie.conf (5)\n"
    };
    manual(command).render(&mut page).about("the manual page")?;
    page.extend_from_slice(b".SH \"SEE ALSO\"\n");
    page.extend_from_slice(others.as_bytes());
    Ok(page)
}

/// A verb has no version of its own, and the day is that of the library's pages.
fn manual(command: Command) -> Man {
    Man::new(command)
        .source(concat!("prairie ", env!("CARGO_PKG_VERSION")))
        .date(env!("PRAIRIE_MANUAL_DATE"))
}
