//! `prairie run`: one program on prairie, and a summary of what it used.
// SPDX-License-Identifier: MIT

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cli;
use crate::environment;
use crate::interrupt::PassOn;
use crate::launcher::{Command, Launcher};
use crate::measure::{self, End, Job, Measured};
use crate::owner;
use crate::places;
use crate::program;
use crate::sys;
use crate::trouble::{About, Result};
use crate::units;

const CONF: &str = "PRAIRIE_CONF";
const STATS: &str = "stats_print:true";

/// Returns the program's exit code.
pub fn run(options: &cli::Run, launcher: &mut Launcher) -> Result<i32> {
    let folder = std::env::current_dir().about("the current folder")?;
    let library = places::library(options.library.as_deref())?;
    let program = program::find(&options.command[0], &folder)?;
    program::require_preloadable(&program, &library)?;
    let loadable = Loadable::new(&library)?;
    let owners = owner::ask(Some(&loadable.path), &[])
        .and_then(|owners| owners.require(&library).map(|()| owners))
        .about(library.display())?;

    let mut variables: environment::Variables = std::env::vars_os().collect();
    environment::set(&mut variables, "LD_PRELOAD", preload_list(&loadable.path));
    if options.stats {
        environment::set(&mut variables, CONF, with_stats(std::env::var_os(CONF)));
    }
    let command = Command {
        program: &program,
        arguments: options.command.iter().map(OsString::as_os_str).collect(),
        environment: variables.iter().map(|(n, v)| (n.as_os_str(), v.as_os_str())).collect(),
        folder: &folder,
        stdin: None,
        stdout: None,
        stderr: None,
        own_session: false,
    };
    sys::outlive_terminal_signals();
    let job = Job { command, library: Some(&library), timeout: None };
    let measured = measure::run(launcher, &job, &mut PassOn::on_signals()?)?;
    if !options.quiet {
        let version = owners.version.as_deref().unwrap_or("of unknown version");
        eprint!("{}", summary(&options.command[0], version, &library, &measured));
    }
    Ok(match measured.end {
        End::Itself(ended) => ended.code(),
        End::TimedOut | End::Interrupted => unreachable!("nothing ends the program but itself"),
    })
}

/// Ours before what the user preloads already.
fn preload_list(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

fn with_stats(conf: Option<OsString>) -> OsString {
    match conf.filter(|conf| !conf.is_empty()) {
        Some(mut conf) => {
            conf.push(",");
            conf.push(STATS);
            conf
        }
        None => STATS.into(),
    }
}

/// The library's path as LD_PRELOAD can hold it: the loader splits it at blanks and colons and
/// replaces dollar signs, so that a path with any of them needs a link without.
struct Loadable {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Loadable {
    fn new(library: &Path) -> Result<Loadable> {
        if !library.as_os_str().as_bytes().iter().any(|byte| b" :;$".contains(byte)) {
            return Ok(Loadable { path: library.to_owned(), _folder: None });
        }
        let folder = tempfile::tempdir().about("a temporary folder")?;
        let path = folder.path().join(places::LIBRARY);
        std::os::unix::fs::symlink(library, &path).about(path.display())?;
        Ok(Loadable { path, _folder: Some(folder) })
    }
}

fn summary(name: &OsStr, version: &str, library: &Path, measured: &Measured) -> String {
    let name = Path::new(name).file_name().unwrap_or_default().display();
    let End::Itself(ended) = measured.end else { return String::new() };
    let usage = &measured.usage;
    let cpu = usage.user_s + usage.system_s;
    let several = match measured.process_count_max {
        0 | 1 => String::new(),
        count => format!("   {count} processes at once"),
    };
    let mut lines = vec![
        format!("prairie: {name}: {}", ended.text()),
        format!(
            "  time     {} wall, {} cpu ({} user, {} system)",
            units::seconds(measured.wall_s),
            units::seconds(cpu),
            units::seconds(usage.user_s),
            units::seconds(usage.system_s)
        ),
        format!(
            "  memory   {} at its peak, {} over time{several}",
            units::bytes(measured.peak_bytes as f64),
            units::byte_seconds(measured.byte_seconds)
        ),
        format!(
            "  kernel   {} page faults ({} major), {} context switches",
            units::count((usage.minor_faults + usage.major_faults) as f64),
            usage.major_faults,
            units::count((usage.voluntary_switches + usage.forced_switches) as f64)
        ),
    ];
    lines.extend(served(version, library, measured));
    lines.join("\n") + "\n"
}

fn served(version: &str, library: &Path, measured: &Measured) -> Vec<String> {
    let seen = &measured.seen;
    let library = library.display();
    let mut lines = Vec::new();
    let count = |number: u32| match number {
        1 => "1 process".to_owned(),
        number => format!("{number} processes"),
    };
    if seen.served > 0 {
        let text = format!("by prairie {version}, seen in {} ({library})", count(seen.served));
        lines.push(format!("  served   {text}"));
    } else if seen.not_served.is_empty() {
        let text = format!("by prairie {version} ({library})");
        lines.push(format!("  served   {text}; it ended too soon to be looked at"));
    }
    if !seen.not_served.is_empty() {
        let names = seen.not_served.join(", ");
        lines.push(format!(
            "  NOT served by prairie: {names} (static, set-uid, or LD_PRELOAD unset)"
        ));
    }
    if !seen.other_allocators.is_empty() {
        let names = seen.other_allocators.join(", ");
        lines.push(format!("  note     {names} is loaded too; prairie comes first"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_added_to_the_options() {
        assert_eq!(with_stats(None), STATS);
        assert_eq!(with_stats(Some("".into())), STATS);
        assert_eq!(with_stats(Some("arenas:1".into())), "arenas:1,stats_print:true");
    }

    #[test]
    fn a_path_that_the_loader_would_split_gets_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a b:c.so");
        std::fs::write(&odd, "x").unwrap();
        let loadable = Loadable::new(&odd).unwrap();
        assert!(!loadable.path.display().to_string().contains([' ', ':']));
        assert_eq!(std::fs::read_to_string(&loadable.path).unwrap(), "x");
        assert_eq!(Loadable::new(Path::new("/a/b.so")).unwrap().path, Path::new("/a/b.so"));
    }
}
