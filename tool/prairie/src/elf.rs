//! Reads of an ELF file what decides whether a library can be preloaded into it.
// SPDX-License-Identifier: MIT

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const PT_INTERP: u32 = 3;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;

/// What an ELF file says of itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Elf {
    /// Word size, byte order and machine, to be compared with another file's.
    pub kind: [u8; 4],
    pub loader: Loader,
}

/// The loader that a program asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Loader {
    Named(String),
    /// A static program, and most libraries.
    None,
    /// Only files of 64 bits in little-endian order are read for it.
    Unread,
}

/// None: not an ELF file.
pub fn read(path: &Path) -> io::Result<Option<Elf>> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head)?;
    if head.len() < HEADER_BYTES || !head.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let kind = [head[4], head[5], head[18], head[19]];
    let is_64_bit_little_endian = head[4] == 2 && head[5] == 1;
    let loader = if is_64_bit_little_endian { loader(&mut file, &head)? } else { Loader::Unread };
    Ok(Some(Elf { kind, loader }))
}

fn loader(file: &mut File, head: &[u8]) -> io::Result<Loader> {
    let table = word(head, 32);
    let bytes_each = u64::from(half(head, 54));
    for index in 0..u64::from(half(head, 56)) {
        let mut entry = [0; ENTRY_BYTES];
        file.seek(SeekFrom::Start(table + index * bytes_each))?;
        file.read_exact(&mut entry)?;
        if u32::from_le_bytes(entry[..4].try_into().expect("4 bytes")) == PT_INTERP {
            let mut name = Vec::new();
            file.seek(SeekFrom::Start(word(&entry, 8)))?;
            file.take(word(&entry, 32)).read_to_end(&mut name)?;
            let text = String::from_utf8_lossy(&name);
            return Ok(Loader::Named(text.trim_end_matches('\0').to_owned()));
        }
    }
    Ok(Loader::None)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_asks_for_a_loader() {
        let elf = read(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(matches!(elf.loader, Loader::Named(name) if name.contains("ld-")));
    }

    #[test]
    fn a_program_of_another_word_size_or_byte_order_is_not_called_static() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        let image = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for (at, value) in [(4, 1), (5, 2)] {
            let mut head = image[..HEADER_BYTES].to_vec();
            head[at] = value;
            std::fs::write(&path, head).unwrap();
            assert_eq!(read(&path).unwrap().unwrap().loader, Loader::Unread);
        }
    }

    #[test]
    fn a_script_is_no_elf_file() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(read(&script).unwrap(), None);
    }
}
