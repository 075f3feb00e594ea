//! `prairie prof`: from profiles to what people and other tools read.
// SPDX-License-Identifier: MIT

pub mod attach;
#[cfg(test)]
mod fixture;
mod flame;
mod growth;
mod handover;
mod inject;
mod jeprof;
mod json;
mod order;
mod pprof;
mod profile;
mod proto;
mod serve;
mod sparse;
mod stacks;
mod symbols;
mod top;
mod tree;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::{By, Prof};
use crate::command_line::Words;
use crate::live::text::printable;
use crate::output;
use crate::regular;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};
use crate::units;

use profile::Profile;
use stacks::Stacks;
use symbols::Symbols;

pub fn run(options: &Prof) -> Result<i32> {
    if let Some(address) = &options.serve {
        serve::run(options, address)?;
        return Ok(0);
    }
    let options = &Prof { files: order::by_numbers(&options.files), ..options.clone() };
    let profiles = take(options)?;
    if options.growth && (profiles.len() < 2 || options.sum) {
        return Err(Trouble::new("--growth: it takes two profiles or more to see what grew"));
    }
    let types = types(options, &profiles)?;
    if options.pprof {
        return write_pprof(options, &profiles);
    }
    let stacks = stacks(options, &profiles, &types);
    if stacks.rows.is_empty() {
        return Err(nothing(options, &profiles[0], types[0]));
    }
    let title = title(options, &profiles);
    let about = about(&profiles, &types, &stacks);
    let path = options.output.output.as_deref();
    let force = options.output.force;
    if options.flame {
        let page = flame::html(&stacks, &title, &about)?;
        let default = default_name(options, "html");
        let written = output::write_document(path, &default, page.as_bytes(), force)?;
        written.iter().for_each(|path| terminal::say(&format!("wrote {}", path.display())));
        return Ok(0);
    }
    let text = if options.output.json {
        json::text(&stacks, &title, &profiles[0].types[types[0]], options.sort)
    } else if options.collapsed {
        flame::collapsed(&stacks)
    } else {
        format!("{}\n{about}\n\n{}", terminal::bold(&title), view(options, &stacks))
    };
    output::write_text(path, &text, force)?;
    if !options.output.json && !options.collapsed {
        terminal::next(&next(options));
    }
    Ok(0)
}

/// What `prairie run` tells of a profile.
pub struct Finding {
    /// The place that took most from start to end, in a sentence.
    pub most: Option<String>,
    /// How many blocks were taken from start to end, as the samples tell.
    pub allocations: Option<f64>,
}

pub fn finding(path: &Path) -> Result<Finding> {
    let mut profile = read(path)?;
    Symbols::new(None).name(&mut profile);
    // What is left at the end says little of a program that has freed everything.
    let of_type = profile.type_called("alloc_space").unwrap_or(profile.default_type);
    let profile = [profile];
    let total = |of_type| Stacks::of(&profile, &[of_type], By::Function).total();
    let allocations = profile[0].type_called("alloc_objects").map(total);
    let most = words::finding(&Stacks::of(&profile, &[of_type], By::Function));
    Ok(Finding { most, allocations })
}

/// Reads a file of any of the formats.
pub fn read(path: &Path) -> Result<Profile> {
    let bytes = regular::read_at_most(path, pprof::BYTES_MAX).about(path.display())?;
    parse(&bytes).map_err(|error| {
        let text = format!("{}: {error}", path.display());
        Trouble::new(text).hint("heap profiles of prairie, jemalloc (heap_v2) and pprof are read")
    })
}

fn parse(bytes: &[u8]) -> Result<Profile> {
    if bytes.starts_with(jeprof::MARK.as_bytes()) {
        return jeprof::read(&String::from_utf8_lossy(bytes));
    }
    pprof::read(bytes)
}

/// The profiles with names in them.
fn take(options: &Prof) -> Result<Vec<Profile>> {
    let mut profiles = match options.pid {
        Some(pid) => vec![attach::take(pid)?],
        None => options.files.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?,
    };
    let mut symbols = Symbols::new(options.root.clone().or(options.pid.map(attach::root)));
    profiles.iter_mut().for_each(|profile| symbols.name(profile));
    for (path, reason) in symbols.troubles() {
        terminal::detail(&format!("no names from {}: {reason}", printable(path)));
    }
    Ok(profiles)
}

/// Which value of each profile is shown.
fn types(options: &Prof, profiles: &[Profile]) -> Result<Vec<usize>> {
    let wanted = match &options.value {
        Some(name) => name.clone(),
        None => profiles[0].types[profiles[0].default_type].name.clone(),
    };
    let find = |profile: &Profile| {
        profile.type_called(&wanted).ok_or_else(|| {
            let names: Vec<&str> = profile.types.iter().map(|known| known.name.as_str()).collect();
            Trouble::new(format!("no value is called '{wanted}'"))
                .hint(format!("there are {}", names.join(", ")))
        })
    };
    profiles.iter().map(find).collect()
}

fn stacks(options: &Prof, profiles: &[Profile], types: &[usize]) -> Stacks {
    let mut stacks = Stacks::of(profiles, types, options.by);
    if options.sum {
        stacks.add_up();
    }
    if let Some(text) = &options.focus {
        stacks.focus(text);
    }
    stacks
}

/// Usual at the end of a program that gives all back; or no stack passes through the focus.
fn nothing(options: &Prof, profile: &Profile, of_type: usize) -> Trouble {
    let name = &profile.types[of_type].name;
    let focus = options.focus.as_ref();
    let which = focus.map(|text| format!(" with '{text}' in a name")).unwrap_or_default();
    let trouble = Trouble::new(format!("no stack{which} has any {name}"));
    match profile.type_called("alloc_space").filter(|known| *known != of_type) {
        Some(_) => trouble.hint("--value alloc_space shows what was ever taken"),
        None => trouble,
    }
}

fn view(options: &Prof, stacks: &Stacks) -> String {
    let columns = if terminal::is_verbose() { usize::MAX } else { terminal::columns() };
    if options.tree {
        tree::text(stacks, options.least / 100.0, columns)
    } else if options.growth || (stacks.count > 2 && !options.top) {
        growth::text(stacks, options.limit, columns)
    } else {
        top::text(stacks, options.sort, options.limit, columns)
    }
}

fn write_pprof(options: &Prof, profiles: &[Profile]) -> Result<i32> {
    let signed: Vec<(&Profile, f64)> = match profiles {
        all if options.sum => all.iter().map(|profile| (profile, 1.0)).collect(),
        [only] => vec![(only, 1.0)],
        [first, .., last] => vec![(last, 1.0), (first, -1.0)],
        [] => Vec::new(),
    };
    let bytes = pprof::write(&signed)?;
    let default = default_name(options, "pb.gz");
    let path = options.output.output.as_deref();
    let written = output::write_document(path, &default, &bytes, options.output.force)?;
    written.iter().for_each(|path| terminal::say(&format!("wrote {}", path.display())));
    Ok(0)
}

/// Beside nothing, in the current folder, after the profile.
fn default_name(options: &Prof, ending: &str) -> PathBuf {
    let stem = match (options.files.last(), options.pid) {
        (Some(path), _) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        (None, pid) => format!("prairie.{}", pid.unwrap_or(0)),
    };
    let short = [".pb.gz", ".pprof", ".heap"].iter().find_map(|end| stem.strip_suffix(end));
    PathBuf::from(format!("{}.named.{ending}", short.unwrap_or(&stem)))
}

fn title(options: &Prof, profiles: &[Profile]) -> String {
    let program = profiles.last().and_then(Profile::program).unwrap_or("a program");
    let program = printable(program);
    let what = match profiles.len() {
        1 => "Heap of",
        count if options.sum => return format!("Heaps of {count} processes of {program}"),
        2 => "Difference between heaps of",
        _ => "Heap over time of",
    };
    match options.pid {
        Some(pid) => format!("{what} {program} ({pid})"),
        None => format!("{what} {program}"),
    }
}

/// How much there is of what, and how well it is known.
fn about(profiles: &[Profile], types: &[usize], stacks: &Stacks) -> String {
    let value = &profiles[0].types[types[0]].name;
    let total = words::figure(stacks, stacks.total());
    let mut text = match stacks.rows.len() {
        1 => format!("{total} {value} in 1 stack"),
        count => format!("{total} {value} in {count} stacks"),
    };
    if stacks.is_difference() {
        let plain = |value: f64| words::figure(stacks, value).trim_start_matches('+').to_owned();
        let (first, last) = (stacks.total_of(0), stacks.total_of(stacks.count - 1));
        text += &format!(", from {} to {}", plain(first), plain(last));
    }
    match profiles[0].period {
        0 | 1 => {}
        period => text += &format!("; estimates, one sample in {}", units::bytes(period as f64)),
    }
    text
}

/// The same as a page: of the same profiles, with the options that say what is in it.
fn next(options: &Prof) -> String {
    let mut words = Words(Vec::new());
    words.put_given("--value", options.value.as_ref());
    words.put_choice("--by", options.by, By::Function);
    words.put_given("--focus", options.focus.as_ref());
    words.put_given("--root", options.root.as_ref());
    words.put_number("--pid", options.pid);
    words.put_flag("--sum", options.sum);
    words.0.extend(options.files.iter().map(OsString::from));
    format!("prairie prof --flame -o heap.html {}", terminal::shell_words(&words.0))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn the_next_command_shows_the_same() {
        let next_of = |words: &str| {
            let all = format!("prairie prof {words}");
            match Cli::parse_from(all.split(' ')).verb {
                Verb::Prof(options) => next(&options),
                _ => unreachable!("it is prof"),
            }
        };
        for (words, again) in [
            ("a.heap", "a.heap"),
            ("--sum a.heap b.heap", "--sum a.heap b.heap"),
            ("--pid 7 --value sparse_space --tree", "--value sparse_space --pid 7"),
            (
                "--by line --focus main() --root /r --sort cum -n 5 a.heap",
                "--by line --focus 'main()' --root /r a.heap",
            ),
        ] {
            assert_eq!(next_of(words), format!("prairie prof --flame -o heap.html {again}"));
        }
    }
}
