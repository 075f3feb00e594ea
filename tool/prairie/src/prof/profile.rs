//! A profile as somebody wrote it: stacks of addresses, and what each of them stands for.
// SPDX-License-Identifier: MIT

/// What a sample counts, as `inuse_space` in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueType {
    pub name: String,
    pub unit: String,
}

impl ValueType {
    pub fn new(name: &str, unit: &str) -> ValueType {
        ValueType { name: name.into(), unit: unit.into() }
    }

    pub fn is_bytes(&self) -> bool {
        self.unit == "bytes"
    }
}

/// The four of a heap profile, in the order of all writers.
pub fn heap_types() -> Vec<ValueType> {
    [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ]
    .map(|(name, unit)| ValueType::new(name, unit))
    .to_vec()
}

#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub types: Vec<ValueType>,
    /// Which of them is shown when nobody says.
    pub default_type: usize,
    pub samples: Vec<Sample>,
    pub locations: Vec<Location>,
    pub mappings: Vec<Mapping>,
    /// Bytes between two samples, on average; 0: not told.
    pub period: u64,
    /// When it was taken; 0: not told.
    pub time_ns: i64,
}

#[derive(Debug, Clone)]
pub struct Sample {
    /// Indices of locations, the caller of malloc first.
    pub stack: Vec<usize>,
    /// One of each type, already multiplied out to estimates of the whole heap.
    pub values: Vec<f64>,
    /// The size of its blocks.
    pub block_bytes: Option<u64>,
    pub thread: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Location {
    /// Within the call, not behind it.
    pub address: u64,
    pub mapping: Option<usize>,
    /// The innermost inlined function first; empty: nobody has looked yet, or nothing is known.
    pub frames: Vec<Frame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Frame {
    pub function: String,
    pub file: Option<String>,
    pub line: u32,
}

#[derive(Debug, Clone, Default)]
pub struct Mapping {
    pub start: u64,
    pub limit: u64,
    pub offset: u64,
    pub path: String,
    /// In hexadecimal; empty: not told.
    pub build_id: String,
}

impl Mapping {
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl Profile {
    pub fn type_called(&self, name: &str) -> Option<usize> {
        self.types.iter().position(|known| known.name == name)
    }

    /// The first mapping of a process is its program, in every format.
    pub fn program(&self) -> Option<&str> {
        let mapping = self.mappings.iter().find(|mapping| mapping.path.starts_with('/'))?;
        Some(mapping.file_name())
    }
}
