//! Stacks of named functions with a figure from each profile: what all views are made of.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;

use super::profile::{Frame, Profile};
use crate::cli::By;
use crate::family;
use crate::live::text::printable;

/// The allocator within a program that is linked with it: the beginning of its own names, and those
/// beyond malloc's family.
const OWN_START: &str = "prairie_";
const OWN_NAMES: &[&str] = &["mallocx", "rallocx"];

pub struct Stacks {
    /// One for each function, or line, or file of code.
    pub names: Vec<Name>,
    pub rows: Vec<Row>,
    pub is_bytes: bool,
    /// How many profiles there are: as many figures has each row.
    pub count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    pub function: String,
    /// File and line, as far as they are known.
    pub place: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Indices of names, the outermost first.
    pub path: Vec<usize>,
    pub figures: Vec<f64>,
}

impl Row {
    /// The figure, or what it has become more from the first profile to the last.
    pub fn shown(&self) -> f64 {
        match &self.figures[..] {
            [only] => *only,
            [first, .., last] => last - first,
            [] => 0.0,
        }
    }
}

impl Stacks {
    pub fn of(profiles: &[Profile], of_types: &[usize], by: By) -> Stacks {
        let mut making = Making { known: HashMap::new(), names: Vec::new() };
        let mut rows: HashMap<Vec<usize>, Vec<f64>> = HashMap::new();
        for (index, profile) in profiles.iter().enumerate() {
            let of_location: Vec<Vec<usize>> = (0..profile.locations.len())
                .map(|location| making.location(profile, location, by))
                .collect();
            for sample in &profile.samples {
                let mut path = path(profile, &sample.stack, &of_location, by);
                if path.is_empty() {
                    path.push(making.number(unknown_code()));
                }
                let figures = rows.entry(path).or_insert_with(|| vec![0.0; profiles.len()]);
                figures[index] += sample.values[of_types[index]];
            }
        }
        let is_some = |figures: &Vec<f64>| figures.iter().any(|figure| *figure != 0.0);
        let rows = rows.into_iter().filter(|(_, figures)| is_some(figures));
        let mut rows: Vec<Row> = rows.map(|(path, figures)| Row { path, figures }).collect();
        rows.sort_by(|a, b| {
            b.shown().abs().total_cmp(&a.shown().abs()).then_with(|| a.path.cmp(&b.path))
        });
        let is_bytes = profiles.first().is_some_and(|first| first.types[of_types[0]].is_bytes());
        Stacks { names: making.names, rows, is_bytes, count: profiles.len() }
    }

    /// Keeps the stacks in which a function or file has this text in its name.
    pub fn focus(&mut self, text: &str) {
        let fits = |name: &Name| name.function.contains(text) || name.place.contains(text);
        let wanted: Vec<bool> = self.names.iter().map(fits).collect();
        self.rows.retain(|row| row.path.iter().any(|name| wanted[*name]));
    }

    /// One figure for each stack, as if all profiles were one.
    pub fn add_up(&mut self) {
        for row in &mut self.rows {
            row.figures = vec![row.figures.iter().sum()];
        }
        self.count = 1;
        self.rows.sort_by(|a, b| b.shown().total_cmp(&a.shown()).then_with(|| a.path.cmp(&b.path)));
    }

    pub fn is_difference(&self) -> bool {
        self.count > 1
    }

    /// What is shown, over all stacks.
    pub fn total(&self) -> f64 {
        added(self.rows.iter().map(Row::shown))
    }

    /// All of one profile.
    pub fn total_of(&self, profile: usize) -> f64 {
        added(self.rows.iter().map(|row| row.figures[profile]))
    }

    /// What shares are told of: all that there is, or in a difference all that was before it.
    pub fn whole(&self) -> f64 {
        (0..self.count).map(|profile| self.total_of(profile)).fold(0.0, f64::max)
    }
}

/// The sum of nothing is 0; of the standard library it is -0, which JSON shows.
fn added(figures: impl Iterator<Item = f64>) -> f64 {
    figures.fold(0.0, |sum, figure| sum + figure)
}

struct Making {
    known: HashMap<Name, usize>,
    names: Vec<Name>,
}

impl Making {
    /// The names of a location, the outermost first.
    fn location(&mut self, profile: &Profile, location: usize, by: By) -> Vec<usize> {
        let found = &profile.locations[location];
        let mapping = found.mapping.map(|index| profile.mappings[index].file_name());
        found.frames.iter().rev().map(|frame| self.number(name_of(frame, mapping, by))).collect()
    }

    /// Names come from files that others wrote, and are printed.
    fn number(&mut self, name: Name) -> usize {
        let name = Name { function: printable(&name.function), place: printable(&name.place) };
        *self.known.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() - 1
        })
    }
}

fn name_of(frame: &Frame, mapping: Option<&str>, by: By) -> Name {
    let place = match (&frame.file, mapping) {
        (Some(file), _) if by == By::Line && frame.line > 0 => {
            format!("{}:{}", short_file(file), frame.line)
        }
        (Some(file), _) => short_file(file).to_owned(),
        // Who has no name is called after the file already.
        (None, Some(file)) if frame.function.starts_with(file) => String::new(),
        (None, mapping) => mapping.unwrap_or_default().to_owned(),
    };
    match by {
        By::Function | By::Line => Name { function: frame.function.clone(), place },
        By::Library => match mapping {
            Some(file) => Name { function: file.to_owned(), place: String::new() },
            None => unknown_code(),
        },
    }
}

/// Whose callers lie in no file, as those that were compiled while the program ran, has no stack.
fn unknown_code() -> Name {
    Name { function: "unknown code".to_owned(), place: String::new() }
}

/// The last two parts of a path tell a file from others of its name.
fn short_file(path: &str) -> &str {
    path.rmatch_indices('/').nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

/// The outermost first, without the allocator's own frames at the other end.
fn path(profile: &Profile, stack: &[usize], of_location: &[Vec<usize>], by: By) -> Vec<usize> {
    let own = stack.iter().take_while(|location| is_allocator(profile, **location)).count();
    // A stack of nothing but allocator is better than none.
    let kept = if own < stack.len() { &stack[own..] } else { stack };
    let mut path: Vec<usize> =
        kept.iter().rev().flat_map(|location| of_location[*location].iter().copied()).collect();
    if by == By::Library {
        path.dedup();
    }
    path
}

fn is_allocator(profile: &Profile, location: usize) -> bool {
    let location = &profile.locations[location];
    let mapping = location.mapping.map_or("", |index| profile.mappings[index].file_name());
    // Frames within a library that answers malloc say nothing.
    family::allocator_in(mapping).is_some()
        || (!location.frames.is_empty() && location.frames.iter().all(is_own))
}

fn is_own(frame: &Frame) -> bool {
    // Other tools write a version, or plt, behind it.
    let name = frame.function.split('@').next().unwrap_or_default();
    name.starts_with(OWN_START) || OWN_NAMES.contains(&name) || family::takes(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prof::fixture;

    fn stacks(profiles: &[Profile]) -> Stacks {
        Stacks::of(profiles, &vec![3; profiles.len()], By::Function)
    }

    fn names(stacks: &Stacks, row: usize) -> Vec<&str> {
        stacks.rows[row].path.iter().map(|name| stacks.names[*name].function.as_str()).collect()
    }

    #[test]
    fn equal_stacks_are_added_the_largest_first() {
        let profile =
            fixture::profile(&[("main;read", 10.0), ("main;parse", 30.0), ("main;read", 25.0)]);
        let stacks = stacks(&[profile]);
        assert_eq!(stacks.rows.len(), 2);
        assert_eq!((names(&stacks, 0), stacks.rows[0].shown()), (vec!["main", "read"], 35.0));
        assert_eq!((stacks.total(), stacks.whole()), (65.0, 65.0));
    }

    #[test]
    fn who_has_no_stack_is_shown() {
        let mut profile = fixture::profile(&[("main", 10.0), ("main", 5.0)]);
        profile.samples[1].stack.clear();
        let stacks = stacks(&[profile]);
        assert_eq!((names(&stacks, 0), names(&stacks, 1)), (vec!["main"], vec!["unknown code"]));
    }

    #[test]
    fn the_sum_of_nothing_has_no_sign() {
        let stacks = stacks(&[fixture::profile(&[])]);
        assert!(stacks.total().is_sign_positive() && stacks.total_of(0).is_sign_positive());
    }

    #[test]
    fn two_profiles_are_a_difference_whatever_their_addresses() {
        let before = fixture::profile(&[("main;read", 10.0), ("main;gone", 5.0)]);
        let mut after = fixture::profile(&[("main;read", 40.0)]);
        after.locations.iter_mut().for_each(|location| location.address += 4096);
        let stacks = stacks(&[before, after]);
        assert_eq!(stacks.rows[0].figures, [10.0, 40.0]);
        assert_eq!(stacks.rows[0].shown(), 30.0);
        assert_eq!((names(&stacks, 1), stacks.rows[1].shown()), (vec!["main", "gone"], -5.0));
        assert_eq!((stacks.total(), stacks.whole()), (25.0, 40.0));
    }

    #[test]
    fn the_allocators_own_frames_are_left_out() {
        let mut profile = fixture::profile(&[("main;read;malloc", 10.0), ("malloc", 1.0)]);
        let stacks = stacks(&[profile.clone()]);
        assert_eq!(names(&stacks, 0), ["main", "read"]);
        assert_eq!(names(&stacks, 1), ["malloc"]);
        profile.mappings[0].path = "/usr/lib/libprairie.so.0".into();
        assert_eq!(names(&self::stacks(&[profile]), 0), ["main", "read", "malloc"]);
    }

    #[test]
    fn functions_whose_names_only_begin_as_the_allocators_stay() {
        for name in ["realloc_buffer", "malloc_or_die", "calloc_matrix(int)", "malloc_pool::get"] {
            let profile = fixture::profile(&[(&format!("main;{name};malloc"), 1.0)]);
            assert_eq!(names(&stacks(&[profile]), 0), ["main", name]);
        }
        for name in ["prairie_malloc", "posix_memalign", "malloc@plt", "calloc@@GLIBC_2.2.5"] {
            let profile = fixture::profile(&[(&format!("main;read;{name}"), 1.0)]);
            assert_eq!(names(&stacks(&[profile]), 0), ["main", "read"]);
        }
    }

    #[test]
    fn names_do_not_speak_to_the_terminal() {
        let mut profile = fixture::profile(&[("a\x1b[2Jb;malloc", 1.0)]);
        assert_eq!(names(&stacks(&[profile.clone()]), 0), ["a?[2Jb"]);
        profile.mappings[0].path = "/lib/c\x1b[2J.so".into();
        let stacks = Stacks::of(&[profile], &[3], By::Library);
        assert_eq!(names(&stacks, 0), ["c?[2J.so"]);
    }

    #[test]
    fn a_focus_keeps_what_passes_through() {
        let mut stacks =
            stacks(&[fixture::profile(&[("main;read;copy", 1.0), ("main;parse", 2.0)])]);
        stacks.focus("read");
        assert_eq!((stacks.rows.len(), stacks.total()), (1, 1.0));
    }

    #[test]
    fn paths_are_shortened_to_two_parts() {
        assert_eq!(short_file("/a/b/c.rs"), "b/c.rs");
        assert_eq!(short_file("c.rs"), "c.rs");
        assert_eq!(short_file("b/c.rs"), "b/c.rs");
    }
}
