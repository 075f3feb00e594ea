//! Figures and names of profiles as people read them.
// SPDX-License-Identifier: MIT

use super::stacks::{Name, Stacks};
use crate::units;

/// Of a function's name in a sentence.
const FUNCTION_LETTERS: usize = 60;

/// Bytes or a number, with a sign where it is a difference.
pub fn figure(stacks: &Stacks, value: f64) -> String {
    let magnitude = match stacks.is_bytes {
        true => units::bytes(value.abs()),
        false => units::count(value.abs()),
    };
    match (stacks.is_difference(), value) {
        (_, value) if value < 0.0 => format!("-{magnitude}"),
        (true, value) if value > 0.0 => format!("+{magnitude}"),
        _ => magnitude,
    }
}

pub fn share(stacks: &Stacks, value: f64) -> String {
    let whole = stacks.whole();
    if whole <= 0.0 { String::new() } else { format!("{:.1} %", 100.0 * value / whole) }
}

/// A function and where it is, within so many letters.
pub fn name(name: &Name, letters: usize) -> String {
    let function = shortened(&name.function, letters);
    let room = letters.saturating_sub(function.chars().count() + 3);
    if name.place.is_empty() || room < name.place.chars().count() {
        return function;
    }
    format!("{function}  {}", name.place)
}

/// Templates have names of hundreds of letters; the beginning tells most.
pub fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    kept + "…"
}

/// Whether a function only passes on what others ask for: it is in everybody's stacks.
pub fn is_machinery(function: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "std::",
        "__gnu_cxx::",
        "void std::",
        "bool std::",
        "alloc::",
        "<alloc::",
        "core::",
        "<core::",
        "hashbrown::",
        "<hashbrown::",
        "operator new",
        "__rust_",
        "__rdl_",
        "xmalloc",
        "xrealloc",
        "xcalloc",
    ];
    BEGINNINGS.iter().any(|start| function.starts_with(start))
}

/// The place that holds most, in a sentence.
pub fn finding(stacks: &Stacks) -> Option<String> {
    let row = stacks.rows.first().filter(|row| row.shown() != 0.0)?;
    let telling = |name: &&usize| !is_machinery(&stacks.names[**name].function);
    let mut path = row.path.iter().rev().skip_while(|name| !telling(name));
    let at = path.next().or(row.path.last())?;
    let function = |name: &usize| shortened(&stacks.names[*name].function, FUNCTION_LETTERS);
    let caller = path.find(telling).map(|caller| format!(", called by {}", function(caller)));
    let shown = row.shown();
    let (figure, share) = (figure(stacks, shown), share(stacks, shown));
    Some(format!(
        "{figure} ({share} of all) taken by {}{}",
        function(at),
        caller.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::By;
    use crate::prof::fixture;

    const MIB: f64 = 1024.0 * 1024.0;

    #[test]
    fn differences_have_a_sign() {
        let one = fixture::profile(&[("main", MIB)]);
        let two = fixture::profile(&[("main", 3.0 * MIB)]);
        let single = Stacks::of(std::slice::from_ref(&one), &[3], By::Function);
        assert_eq!(figure(&single, MIB), "1.00 MiB");
        let both = Stacks::of(&[one, two], &[3, 3], By::Function);
        assert_eq!(figure(&both, both.total()), "+2.00 MiB");
        assert_eq!(figure(&both, -both.total()), "-2.00 MiB");
        assert_eq!(share(&both, both.total()), "66.7 %");
    }

    #[test]
    fn the_finding_is_about_the_programs_own_code() {
        let profile = fixture::profile(&[
            ("main;parse;std::vector<int>::push_back;operator new(unsigned long)", 3.0 * MIB),
            ("main", MIB),
        ]);
        let stacks = Stacks::of(&[profile], &[3], By::Function);
        assert_eq!(
            finding(&stacks).unwrap(),
            "3.00 MiB (75.0 % of all) taken by parse, called by main"
        );
        assert_eq!(finding(&Stacks::of(&[], &[], By::Function)), None);
    }

    #[test]
    fn long_names_are_cut_and_places_are_left_out_first() {
        let name = |function: &str| Name { function: function.into(), place: "src/a.c:12".into() };
        assert_eq!(super::name(&name("parse"), 20), "parse  src/a.c:12");
        assert_eq!(super::name(&name("parse_everything"), 20), "parse_everything");
        assert_eq!(super::name(&name("parse_everything"), 8), "parse_e…");
    }
}
