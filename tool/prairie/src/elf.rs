//! Reads of an ELF file what decides whether a library can be preloaded into it.
// SPDX-License-Identifier: MIT

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const PT_INTERP: u32 = 3;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: u16 = 56;
/// Of the loader's name, with the zero at its end; the kernel takes no longer one.
const NAME_BYTES_MAX: u64 = libc::PATH_MAX as u64;

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

/// What the kernel would not start either is an error.
fn loader(file: &mut File, head: &[u8]) -> io::Result<Loader> {
    let table = word(head, 32);
    let count = half(head, 56);
    if count != 0 && half(head, 54) != ENTRY_BYTES {
        return Err(damaged("its program headers are not as long as those are"));
    }
    let entries = bytes(file, table, u64::from(count) * u64::from(ENTRY_BYTES))?;
    for entry in entries.chunks_exact(usize::from(ENTRY_BYTES)) {
        if u32::from_le_bytes(entry[..4].try_into().expect("4 bytes")) == PT_INTERP {
            let length = word(entry, 32);
            if length > NAME_BYTES_MAX {
                return Err(damaged("the name of its loader is too long"));
            }
            let name = bytes(file, word(entry, 8), length)?;
            // The kernel reads up to the first zero, and requires one at the end.
            return match name.split_last() {
                Some((0, _)) => {
                    let end = name.iter().position(|byte| *byte == 0).expect("one at the end");
                    Ok(Loader::Named(String::from_utf8_lossy(&name[..end]).into_owned()))
                }
                _ => Err(damaged("the name of its loader has no end")),
            };
        }
    }
    Ok(Loader::None)
}

fn bytes(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let cut_off = || damaged("it ends before what its header tells of");
    let mut bytes = Vec::new();
    // A place that no file has is refused by the system.
    file.seek(SeekFrom::Start(at)).map_err(|_| cut_off())?;
    file.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(cut_off()) }
}

fn damaged(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a damaged ELF file: {how}"))
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

    /// Writes a word or a half at its place.
    fn put<const N: usize>(image: &mut [u8], at: usize, bytes: [u8; N]) {
        image[at..at + N].copy_from_slice(&bytes);
    }

    /// Headers, a loader's name, and the number of bytes that are told for it.
    fn image(name: &[u8]) -> Vec<u8> {
        let mut image = vec![0; HEADER_BYTES + 2 * usize::from(ENTRY_BYTES)];
        put(&mut image, 0, *b"\x7fELF\x02\x01");
        put(&mut image, 32, (HEADER_BYTES as u64).to_le_bytes());
        put(&mut image, 54, ENTRY_BYTES.to_le_bytes());
        put(&mut image, 56, 2u16.to_le_bytes());
        let entry = HEADER_BYTES + usize::from(ENTRY_BYTES);
        put(&mut image, entry, PT_INTERP.to_le_bytes());
        let at = image.len() as u64;
        put(&mut image, entry + 8, at.to_le_bytes());
        put(&mut image, entry + 32, (name.len() as u64).to_le_bytes());
        image.extend(name);
        image
    }

    fn read_image(image: &[u8]) -> io::Result<Option<Elf>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), image).unwrap();
        read(file.path())
    }

    #[test]
    fn a_damaged_file_is_told_in_words() {
        let good = image(b"/lib/ld.so\0");
        let loader = |image: &[u8]| read_image(image).unwrap().unwrap().loader;
        assert_eq!(loader(&good), Loader::Named("/lib/ld.so".to_owned()));
        assert_eq!(loader(&image(b"/lib/a\0b\0")), Loader::Named("/lib/a".to_owned()));
        let entry = HEADER_BYTES + usize::from(ENTRY_BYTES);
        let word = |at: usize, value: u64| {
            let mut image = good.clone();
            put(&mut image, at, value.to_le_bytes());
            image
        };
        let half = |at: usize, value: u16| {
            let mut image = good.clone();
            put(&mut image, at, value.to_le_bytes());
            image
        };
        for (image, told) in [
            (word(32, u64::MAX), "ends before"),
            (word(32, u64::MAX - 60), "ends before"),
            (word(32, i64::MAX as u64), "ends before"),
            (half(56, u16::MAX), "ends before"),
            (half(54, 0), "not as long"),
            (half(54, u16::MAX), "not as long"),
            (word(entry + 8, u64::MAX), "ends before"),
            (word(entry + 8, 1 << 40), "ends before"),
            (word(entry + 32, 4096), "ends before"),
            (word(entry + 32, 4097), "too long"),
            (word(entry + 32, u64::MAX), "too long"),
            (word(entry + 32, 0), "no end"),
            (image(b"/lib/ld.so"), "no end"),
            (good[..good.len() - 1].to_vec(), "ends before"),
            (good[..entry].to_vec(), "ends before"),
        ] {
            let said = read_image(&image).unwrap_err().to_string();
            assert!(said.starts_with("a damaged ELF file: ") && said.contains(told), "{said}");
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let good = image(b"/lib/ld.so\0");
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut image = good.clone();
                image[at] = value;
                let _ = read_image(&image);
            }
            let _ = read_image(&good[..at]);
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
