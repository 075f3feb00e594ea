//! Reads of an ELF file what decides whether a library can be preloaded into it.
// SPDX-License-Identifier: MIT

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const PT_INTERP: u32 = 3;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;

/// What a 64-bit little-endian ELF file says of itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Elf {
    /// Word size, byte order and machine, to be compared with another file's.
    pub kind: [u8; 4],
    /// The loader that the program asks for; None in a static program and in most libraries.
    pub loader: Option<String>,
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
    let loader = if is_64_bit_little_endian { loader(&mut file, &head)? } else { None };
    Ok(Some(Elf { kind, loader }))
}

fn loader(file: &mut File, head: &[u8]) -> io::Result<Option<String>> {
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
            return Ok(Some(text.trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
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
        assert!(elf.loader.unwrap().contains("ld-"));
    }

    #[test]
    fn a_script_is_no_elf_file() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(read(&script).unwrap(), None);
    }
}
