//! Whole numbers on the command line, and what is said of those that are none.
// SPDX-License-Identifier: MIT

use std::str::FromStr;

use crate::sys::Pid;
use crate::trouble::{Result, Trouble};

pub fn pid(text: &str) -> Result<Pid> {
    match text.parse::<Pid>() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(Trouble::new("it must be the number of a process, as ps or pgrep print it")),
    }
}

pub fn whole<T: FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| Trouble::new("it must be a whole number, 0 or more"))
}

pub fn above_zero(text: &str) -> Result<u32> {
    match text.parse::<u32>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Trouble::new("it must be a whole number, 1 or more")),
    }
}
