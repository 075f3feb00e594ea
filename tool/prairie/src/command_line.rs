//! The words of a command that is proposed, put together option by option.
// SPDX-License-Identifier: MIT

use std::ffi::{OsStr, OsString};

pub struct Words(pub Vec<OsString>);

impl Words {
    pub fn put(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.0.extend([name.into(), value.as_ref().to_owned()]);
    }

    /// One that was not given is left out.
    pub fn put_given(&mut self, name: &str, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    pub fn put_flag(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| name.into()));
    }

    pub fn put_number(&mut self, name: &str, value: Option<impl ToString>) {
        self.put_given(name, value.map(|value| value.to_string()));
    }

    pub fn put_list(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.put(name, values.join(","));
        }
    }

    /// An option with words of its own, unless it has its default.
    pub fn put_choice<T: clap::ValueEnum + PartialEq>(&mut self, name: &str, value: T, default: T) {
        if value != default
            && let Some(word) = value.to_possible_value()
        {
            self.put(name, word.get_name());
        }
    }
}
