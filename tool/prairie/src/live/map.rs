//! Finds prairie's map in a process: the note in the ELF file that says where things are, and the
//! table that says what they look like (src/view/outside.h).
//!
//! What is read belongs to somebody else, who may have written anything there: it is checked before
//! it is believed, and a count that is too large is an error rather than a wait.
// SPDX-License-Identifier: MIT

use std::collections::{HashMap, HashSet};
use std::io;

use super::memory::Memory;
use crate::proc::Mapped;

/// What rows mean together; another version needs another reader.
const VERSION: u64 = 1;
const NOTE_NAME: &[u8] = b"prairie\0";
const NOTE_TYPE: u64 = 1;
const NOTE_HEAD: usize = 12 + NOTE_NAME.len();
const PT_LOAD: u64 = 1;
const PT_NOTE: u64 = 4;
const ROW_BYTES: usize = 36;
const ROW_NAME: usize = 27;
const ROWS_MAX: u64 = 4096;
const PARTS_MAX: u64 = 256;
/// Elements of a variable: twice what the library has of any.
const ELEMENTS_MAX: usize = 8192;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The kernel said no, or the memory is not there.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// What is there is not what a map looks like.
    #[error("{0}")]
    Wrong(String),
}

pub type Result<T> = std::result::Result<T, Fault>;

pub fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(Fault::Wrong(text.into()))
}

/// Elements of `bytes` each, from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub bytes: usize,
    pub count: usize,
}

impl Field {
    /// The index-th element of this member, in a struct that begins with `of`. That may be too short:
    /// it is what another row says that a part of a larger struct is.
    pub fn part<'a>(&self, of: &'a [u8], index: usize) -> Result<&'a [u8]> {
        let index = index.min(self.count.saturating_sub(1));
        Self::within(of, self.offset + self.bytes * index, self.bytes)
    }

    /// All elements.
    pub fn all<'a>(&self, of: &'a [u8]) -> Result<&'a [u8]> {
        Self::within(of, self.offset, self.bytes * self.count)
    }

    fn within(of: &[u8], start: usize, bytes: usize) -> Result<&[u8]> {
        match of.get(start..start + bytes) {
            Some(part) => Ok(part),
            None => wrong("its map has a member that is not within its struct"),
        }
    }

    pub fn nth(&self, of: &[u8], index: usize) -> Result<u64> {
        self.part(of, index).map(number)
    }

    pub fn first(&self, of: &[u8]) -> Result<u64> {
        self.nth(of, 0)
    }
}

/// Little-endian, the first eight bytes at most.
pub fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    let count = bytes.len().min(8);
    whole[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(whole)
}

/// A variable of the library.
#[derive(Debug, Clone, Copy)]
pub struct Root {
    pub address: u64,
    pub bytes: usize,
    pub count: usize,
}

impl Root {
    pub fn nth(&self, index: usize) -> u64 {
        self.address.wrapping_add((self.bytes * index) as u64)
    }
}

#[derive(Debug)]
pub struct Map {
    pub release: String,
    /// By kind and name.
    rows: HashMap<(u8, String), Field>,
    roots: Vec<u64>,
}

impl Map {
    pub fn member(&self, name: &str) -> Result<Field> {
        self.row(b'm', name)
    }

    pub fn size(&self, name: &str) -> Result<usize> {
        Ok(self.row(b's', name)?.bytes)
    }

    pub fn constant(&self, name: &str) -> Result<u64> {
        Ok(self.row(b'c', name)?.offset as u64)
    }

    /// What libraries before this command's do not tell: no limit then.
    pub fn most(&self, name: &str) -> u64 {
        self.constant(name).unwrap_or(u64::MAX)
    }

    pub fn root(&self, name: &str) -> Result<Root> {
        let row = self.row(b'r', name)?;
        match self.roots.get(row.offset) {
            Some(&address) => Ok(Root { address, bytes: row.bytes, count: row.count }),
            None => wrong(format!("the map does not say where {name} is")),
        }
    }

    fn row(&self, kind: u8, name: &str) -> Result<Field> {
        match self.rows.get(&(kind, name.to_owned())) {
            Some(row) => Ok(*row),
            None => wrong(format!("its map has no {name}")),
        }
    }

    /// Rows that do not fit their struct would lead out of what is read.
    fn check(&self) -> Result<()> {
        for ((kind, name), row) in &self.rows {
            if *kind != b'c' && (row.bytes == 0 || row.count == 0) {
                return wrong(format!("{name} has no size"));
            }
            if *kind == b'r' && row.count > ELEMENTS_MAX {
                return wrong(format!("{name} has more elements than a library has"));
            }
            let Some((of, _)) = name.split_once('.').filter(|_| *kind == b'm') else { continue };
            if row.offset + row.bytes * row.count > self.size(of)? {
                return wrong(format!("{name} is not within {of}"));
            }
        }
        Ok(())
    }
}

/// The maps of all libraries of this kind in a process, the first one first; usually one or none.
pub fn find(memory: &dyn Memory, mappings: &[Mapped]) -> Result<Vec<Map>> {
    let mut maps = Vec::new();
    let mut refused = None;
    // A file's own name is a hint where to look first.
    // A process may map thousands of files of data, whose pages are not to be fetched.
    let code: HashSet<&str> =
        mappings.iter().filter(|mapping| mapping.is_code).map(|m| m.path.as_str()).collect();
    let heads = mappings
        .iter()
        .filter(|mapping| mapping.begins_a_file() && code.contains(mapping.path.as_str()));
    let (likely, others): (Vec<_>, Vec<_>) =
        heads.partition(|mapping| mapping.path.contains("prairie"));
    for mapping in likely.into_iter().chain(others) {
        match note_of(memory, mapping.start) {
            Ok(Some(note)) => maps.push(read(memory, note)?),
            Ok(None) => {}
            // A file that was cut off, or memory of a device.
            Err(Fault::Read(error)) if error.raw_os_error() == Some(libc::EFAULT) => {}
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if maps.is_empty() => Err(error),
        _ => Ok(maps),
    }
}

/// Where in a struct of an ELF file the members are that differ between 32 and 64 bits.
struct Shape {
    part_table: usize,
    part_bytes: usize,
    part_count: usize,
    word: usize,
    /// In an entry of the table: offset in the file, address, size in memory.
    entry: [usize; 3],
}

const SHAPE_32: Shape =
    Shape { part_table: 28, part_bytes: 42, part_count: 44, word: 4, entry: [4, 8, 20] };
const SHAPE_64: Shape =
    Shape { part_table: 32, part_bytes: 54, part_count: 56, word: 8, entry: [8, 16, 40] };

fn note_of(memory: &dyn Memory, base: u64) -> Result<Option<u64>> {
    let head = memory.bytes(base, 64)?;
    let is_little_endian_elf = head.starts_with(b"\x7fELF") && head[5] == 1;
    let shape = match head[4] {
        1 if is_little_endian_elf => SHAPE_32,
        2 if is_little_endian_elf => SHAPE_64,
        _ => return Ok(None),
    };
    let word = |at: usize, of: &[u8]| number(&of[at..at + shape.word]);
    let each = number(&head[shape.part_bytes..shape.part_bytes + 2]) as usize;
    let count = number(&head[shape.part_count..shape.part_count + 2]).min(PARTS_MAX) as usize;
    if each < shape.entry[2] + shape.word {
        return Ok(None);
    }
    let table = memory.bytes(base.wrapping_add(word(shape.part_table, &head)), each * count)?;
    let entries = || table.chunks_exact(each);
    let kind = |entry: &[u8]| number(&entry[..4]);
    let bias = entries()
        .find(|entry| kind(entry) == PT_LOAD && word(shape.entry[0], entry) == 0)
        .map_or(base, |entry| base.wrapping_sub(word(shape.entry[1], entry)));
    for entry in entries().filter(|entry| kind(entry) == PT_NOTE) {
        let start = bias.wrapping_add(word(shape.entry[1], entry));
        let bytes = word(shape.entry[2], entry).min(1 << 16) as usize;
        let notes = memory.bytes(start, bytes)?;
        if let Some(at) = note_in(&notes) {
            return Ok(Some(start + at as u64));
        }
    }
    Ok(None)
}

/// Where in these notes ours begins.
fn note_in(notes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(head) = notes.get(at..at + 12) {
        let padded = |bytes: &[u8]| (number(bytes) as usize).next_multiple_of(4);
        if number(&head[..4]) as usize == NOTE_NAME.len()
            && number(&head[8..]) == NOTE_TYPE
            && notes[at + 12..].starts_with(NOTE_NAME)
        {
            return Some(at);
        }
        at += 12 + padded(&head[..4]) + padded(&head[4..8]);
    }
    None
}

pub(super) fn read(memory: &dyn Memory, note: u64) -> Result<Map> {
    let head = memory.bytes(note, NOTE_HEAD)?;
    let count = number(&head[4..8]) as usize / 4;
    if !(1..=1024).contains(&count) {
        return wrong("its note is not as long as a note is");
    }
    let first = note + NOTE_HEAD as u64;
    let distances = memory.bytes(first, 4 * count)?;
    let targets: Vec<u64> = distances
        .chunks_exact(4)
        .enumerate()
        .map(|(index, bytes)| {
            let distance = number(bytes) as u32 as i32;
            (first + 4 * index as u64).wrapping_add_signed(i64::from(distance))
        })
        .collect();
    let layout = memory.bytes(targets[0], 32)?;
    let version = number(&layout[..4]);
    if version != VERSION {
        return wrong(format!("its map has version {version}, and this command reads {VERSION}"));
    }
    let rows = number(&layout[8..12]);
    if number(&layout[4..8]) != ROW_BYTES as u64 || rows > ROWS_MAX {
        return wrong("its rows are not as large as rows are");
    }
    let rows = memory.bytes(targets[0].wrapping_add(32), ROW_BYTES * rows as usize)?;
    let map = Map {
        release: text(&layout[16..]),
        rows: rows.chunks_exact(ROW_BYTES).map(row).collect(),
        roots: targets[1..].to_vec(),
    };
    map.check()?;
    Ok(map)
}

fn row(bytes: &[u8]) -> ((u8, String), Field) {
    let field = Field {
        offset: number(&bytes[28..32]) as usize,
        bytes: number(&bytes[32..34]) as usize,
        count: number(&bytes[34..36]) as usize,
    };
    ((bytes[ROW_NAME], text(&bytes[..ROW_NAME])), field)
}

/// Up to the first NUL.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Memory from address 0x1000 on.
    pub struct Made(pub Vec<u8>);

    impl Memory for Made {
        fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
            let start = address.wrapping_sub(0x1000) as usize;
            match start.checked_add(into.len()).and_then(|end| self.0.get(start..end)) {
                Some(bytes) => {
                    into.copy_from_slice(bytes);
                    Ok(())
                }
                None => Err(io::Error::from_raw_os_error(libc::EFAULT)),
            }
        }
    }

    pub fn row_of(name: &str, kind: u8, offset: u32, bytes: u16, count: u16) -> Vec<u8> {
        let mut row = name.as_bytes().to_vec();
        row.resize(ROW_NAME, 0);
        row.push(kind);
        row.extend(offset.to_le_bytes());
        row.extend(bytes.to_le_bytes());
        row.extend(count.to_le_bytes());
        row
    }

    pub const AT_ROOT: u64 = 0x1800;

    /// A note at 0x1000 with one root, and its layout at 0x1100.
    pub fn made(version: u32, rows: &[Vec<u8>]) -> Made {
        let mut bytes = Vec::new();
        for word in [8_u32, 8, 1] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(NOTE_NAME);
        bytes.extend((0x1100_i32 - 0x1014).to_le_bytes());
        bytes.extend((AT_ROOT as i32 - 0x1018).to_le_bytes());
        bytes.resize(0x100, 0);
        for word in [version, ROW_BYTES as u32, rows.len() as u32, 1] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(b"1.2.3\0..........");
        bytes.extend(rows.concat());
        bytes.resize(0x1000, 0);
        Made(bytes)
    }

    #[test]
    fn a_map_is_read_by_name() {
        let rows = [
            row_of("arenas", b'r', 0, 8, 3),
            row_of("lock", b's', 0, 16, 1),
            row_of("lock.taken", b'm', 8, 4, 2),
            row_of("BLOCKS_MAX", b'c', 127, 0, 0),
        ];
        let map = read(&made(1, &rows), 0x1000).unwrap();
        assert_eq!(map.release, "1.2.3");
        assert_eq!(map.root("arenas").unwrap().nth(2), 0x1810);
        assert_eq!(map.constant("BLOCKS_MAX").unwrap(), 127);
        let of: Vec<u8> = (0..16).collect();
        let taken = map.member("lock.taken").unwrap();
        let pair = (taken.first(&of).unwrap(), taken.nth(&of, 1).unwrap());
        assert_eq!(pair, (0x0b0a_0908, 0x0f0e_0d0c));
        assert_eq!(map.member("lock.given").unwrap_err().to_string(), "its map has no lock.given");
    }

    /// An ELF file with one note, loaded at 0x1000: of 64 bits, as linkers lay it out.
    fn loaded() -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(0x1000, 0);
        file[32] = 64; // the table of parts begins there
        (file[54], file[56]) = (56, 2);
        let mut part = |at: usize, kind: u8, offset: u64, address: u64, bytes: u64| {
            file[at] = kind;
            file[at + 8..at + 16].copy_from_slice(&offset.to_le_bytes());
            file[at + 16..at + 24].copy_from_slice(&address.to_le_bytes());
            file[at + 40..at + 48].copy_from_slice(&bytes.to_le_bytes());
        };
        part(64, 1, 0, 0x40_0000, 0x1000);
        part(120, 4, 0x200, 0x40_0200, 28);
        file[0x200..0x21c].copy_from_slice(&made(1, &[]).0[..28]);
        file
    }

    #[test]
    fn the_note_is_found_through_the_header_in_memory() {
        let mapping = |start, is_code, file: &str| Mapped {
            start,
            limit: start + 0x1000,
            offset: if is_code { 0x1000 } else { 0 },
            is_readable: true,
            is_code,
            path: file.to_owned(),
        };
        assert_eq!(note_of(&Made(loaded()), 0x1000).unwrap(), Some(0x1200));
        // Its map is not there; what has no code, or cannot be read, is passed by.
        let code = [mapping(0x1000, false, "/lib/a"), mapping(0x2000, true, "/lib/a")];
        assert!(find(&Made(loaded()), &code).is_err());
        assert!(find(&Made(loaded()), &code[..1]).unwrap().is_empty());
        let gone = [mapping(0x9000, false, "/lib/a"), mapping(0x2000, true, "/lib/a")];
        assert!(find(&Made(loaded()), &gone).unwrap().is_empty());
        assert!(find(&Made(vec![0; 0x1000]), &code).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let beyond = [row_of("lock", b's', 0, 16, 1), row_of("lock.taken", b'm', 8, 4, 3)];
        let error = |made: Made| read(&made, 0x1000).unwrap_err().to_string();
        assert_eq!(error(made(1, &beyond)), "lock.taken is not within lock");
        assert_eq!(error(made(1, &[row_of("lock", b's', 0, 0, 1)])), "lock has no size");
        let many = row_of("arenas", b'r', 0, 8, u16::MAX);
        assert_eq!(error(made(1, &[many])), "arenas has more elements than a library has");
        assert_eq!(error(made(2, &[])), "its map has version 2, and this command reads 1");
        let mut far = made(1, &[]);
        far.0[0x108..0x10c].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(error(far), "its rows are not as large as rows are");
    }

    /// Rows of which each is within its own struct, but a struct is larger than the member that it is.
    #[test]
    fn a_member_beyond_the_part_that_holds_it_is_refused() {
        let rows = [
            row_of("arena", b's', 0, 16, 1),
            row_of("arena.lock", b'm', 15, 1, 1),
            row_of("lock", b's', 0, 4096, 1),
            row_of("lock.state", b'm', 0, 4, 1),
            row_of("lock.waits", b'm', 4000, 8, 12),
        ];
        let map = read(&made(1, &rows), 0x1000).unwrap();
        let arena = [0; 16];
        let lock = map.member("arena.lock").unwrap().part(&arena, 0).unwrap();
        assert_eq!(lock.len(), 1);
        for name in ["lock.state", "lock.waits"] {
            let member = map.member(name).unwrap();
            let text = "its map has a member that is not within its struct";
            assert_eq!(member.first(lock).unwrap_err().to_string(), text);
            assert_eq!(member.all(lock).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn ours_is_found_among_other_notes() {
        let mut notes = Vec::new();
        for word in [4_u32, 6, 3] {
            notes.extend(word.to_le_bytes());
        }
        notes.extend(b"GNU\0abcdef\0\0");
        let at = notes.len();
        notes.extend(&made(1, &[]).0[..28]);
        assert_eq!(note_in(&notes), Some(at));
        assert_eq!(note_in(&notes[..at]), None);
        assert_eq!(note_in(&[0xff; 64]), None);
    }
}
