//! Addresses to names of functions, from debug information, or else from tables of symbols.
// SPDX-License-Identifier: MIT

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use addr2line::{Loader, demangle_auto};
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::profile::{Frame, Mapping, Profile};
use crate::regular;
use crate::units::hexadecimal;

/// Where distributions put debug information that is not in the file itself.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

pub struct Symbols {
    /// Files are looked for below this folder first: those of another machine or container.
    root: Option<PathBuf>,
    /// By path and the build that the profile names; the error says why it tells nothing.
    images: HashMap<(String, String), Result<Image, String>>,
}

impl Symbols {
    pub fn new(root: Option<PathBuf>) -> Symbols {
        Symbols { root, images: HashMap::new() }
    }

    /// Gives a name to each location that has none yet.
    pub fn name(&mut self, profile: &mut Profile) {
        for location in profile.locations.iter_mut().filter(|known| known.frames.is_empty()) {
            let mapping = location.mapping.map(|index| &profile.mappings[index]);
            location.frames = match mapping {
                Some(mapping) => self.frames(mapping, location.address),
                None => vec![unnamed(format!("{:#x}", location.address))],
            };
        }
    }

    /// The files that told nothing, each with the reason.
    pub fn troubles(&self) -> BTreeMap<&str, &str> {
        self.images
            .iter()
            .filter_map(|((path, _), image)| Some((path.as_str(), image.as_ref().err()?.as_str())))
            .collect()
    }

    fn frames(&mut self, mapping: &Mapping, address: u64) -> Vec<Frame> {
        // A profile from elsewhere may say anything.
        let in_file = address.wrapping_sub(mapping.start).wrapping_add(mapping.offset);
        let unknown = || vec![unnamed(format!("{}+{in_file:#x}", mapping.file_name()))];
        if !mapping.path.starts_with('/') {
            return unknown();
        }
        let key = (mapping.path.clone(), mapping.build_id.clone());
        let root = self.root.as_deref();
        let image = self.images.entry(key).or_insert_with(|| Image::open(mapping, root));
        let found = image.as_ref().ok().map(|image| image.frames(in_file)).unwrap_or_default();
        if found.is_empty() { unknown() } else { found }
    }
}

fn unnamed(function: String) -> Frame {
    Frame { function, file: None, line: 0 }
}

/// One file of code.
struct Image {
    /// None: it has no debug information that can be read.
    debug: Option<Loader>,
    /// Start in the file, its length, and the address that it is linked at.
    segments: Vec<(u64, u64, u64)>,
    symbols: Vec<Symbol>,
}

struct Symbol {
    address: u64,
    limit: u64,
    name: String,
}

impl Image {
    fn open(mapping: &Mapping, root: Option<&Path>) -> Result<Image, String> {
        let path = located(&mapping.path, root);
        let bytes = regular::read(&path).map_err(|error| reason(&error))?;
        let file = object::File::parse(&*bytes).map_err(|error| error.to_string())?;
        let build_id = file.build_id().ok().flatten().map(hexadecimal).unwrap_or_default();
        if !mapping.build_id.is_empty() && mapping.build_id != build_id {
            return Err("another build than the one that was profiled".to_owned());
        }
        let segments = file.segments().map(|segment| {
            let (start, length) = segment.file_range();
            (start, length, segment.address())
        });
        let debug_file = debug_file(&build_id, root);
        let mut symbols = symbols_of(&file);
        if let Some(path) = &debug_file
            && let Ok(bytes) = regular::read(path)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            symbols.extend(symbols_of(&file));
        }
        symbols.sort_by_key(|symbol| symbol.address);
        Ok(Image {
            debug: Loader::new(debug_file.as_deref().unwrap_or(&path)).ok(),
            segments: segments.collect(),
            symbols,
        })
    }

    /// The innermost inlined function first; empty: nothing is known of this place.
    fn frames(&self, in_file: u64) -> Vec<Frame> {
        let holds = |(start, length, _): &&(u64, u64, u64)| in_file.wrapping_sub(*start) < *length;
        let Some((start, _, linked)) = self.segments.iter().find(holds) else { return Vec::new() };
        let address = (in_file - start).wrapping_add(*linked);
        let mut frames = self.debug.as_ref().map_or_else(Vec::new, |debug| told(debug, address));
        let symbol = || self.symbol(address).unwrap_or_default();
        for frame in frames.iter_mut().filter(|frame| frame.function.is_empty()) {
            frame.function = symbol();
        }
        if frames.is_empty() {
            frames.push(unnamed(symbol()));
        }
        frames.retain(|frame| !frame.function.is_empty());
        frames
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        // Several may begin at one place, some of them without a length.
        let near = self.symbols[..behind].iter().rev().take(4);
        let found = near.into_iter().find(|symbol| address < symbol.limit)?;
        Some(demangle_auto((&*found.name).into(), None).into_owned())
    }
}

fn told(debug: &Loader, address: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    let Ok(mut found) = debug.find_frames(address) else { return frames };
    while let Ok(Some(frame)) = found.next() {
        let function = frame.function.as_ref().and_then(|name| name.demangle().ok());
        let place = frame.location.as_ref();
        frames.push(Frame {
            function: function.map(|name| name.into_owned()).unwrap_or_default(),
            file: place.and_then(|place| place.file).map(str::to_owned),
            line: place.and_then(|place| place.line).unwrap_or(0),
        });
    }
    frames
}

fn symbols_of(file: &object::File) -> Vec<Symbol> {
    let all = file.symbols().chain(file.dynamic_symbols());
    let functions = all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    functions
        .filter_map(|symbol| {
            let address = symbol.address();
            let name = symbol.name().ok()?.to_owned();
            Some(Symbol { address, limit: address.saturating_add(symbol.size()), name })
        })
        .collect()
}

fn located(path: &str, root: Option<&Path>) -> PathBuf {
    let below = root.map(|root| root.join(path.trim_start_matches('/')));
    below.filter(|path| path.is_file()).unwrap_or_else(|| path.into())
}

fn debug_file(build_id: &str, root: Option<&Path>) -> Option<PathBuf> {
    let (folder, rest) = build_id.split_at_checked(2)?;
    let path = located(&format!("{DEBUG_FILES}/{folder}/{rest}.debug"), root);
    Some(path).filter(|path| path.is_file())
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it is not there (any more)".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::compiled::compiled;
    use crate::prof::profile::Location;

    /// This test's own file, mapped at 1 MiB, and a place in this very function.
    fn profile(build_id: &str) -> Profile {
        let path = std::env::current_exe().unwrap();
        let bytes = fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let name = "a_place_to_look_for";
        let symbol = file.symbols().find(|s| s.name().is_ok_and(|n| n.contains(name))).unwrap();
        let holds = |address: u64, size: u64| (address..address + size).contains(&symbol.address());
        let segment = file.segments().find(|s| holds(s.address(), s.file_range().1)).unwrap();
        let in_file = symbol.address() - segment.address() + segment.file_range().0;
        let mapping = Mapping {
            start: 1 << 20,
            limit: 1 << 40,
            path: path.display().to_string(),
            build_id: build_id.into(),
            ..Mapping::default()
        };
        let address = (1 << 20) + in_file + 1;
        let location = Location { address, mapping: Some(0), frames: Vec::new() };
        Profile { mappings: vec![mapping], locations: vec![location], ..Profile::default() }
    }

    #[inline(never)]
    fn a_place_to_look_for(number: u64) -> u64 {
        std::hint::black_box(number) * 3
    }

    #[test]
    fn a_function_is_named_with_its_line() {
        assert_eq!(a_place_to_look_for(2), 6);
        let mut profile = profile("");
        Symbols::new(None).name(&mut profile);
        let frame = profile.locations[0].frames.last().unwrap();
        assert!(frame.function.ends_with("a_place_to_look_for"), "{frame:?}");
        assert!(
            frame.file.as_ref().unwrap().ends_with("symbols.rs") && frame.line > 0,
            "{frame:?}"
        );
    }

    /// A profile from elsewhere may name any file.
    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe").display().to_string();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut profile = profile("");
        profile.mappings[0].path = path.clone();
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let mut symbols = Symbols::new(None);
            symbols.name(&mut profile);
            send.send(symbols.troubles().get(&*path).map(|reason| (*reason).to_owned())).unwrap();
        });
        let said = receive.recv_timeout(Duration::from_secs(30)).expect("it waits");
        assert_eq!(said.as_deref(), Some("not a regular file"));
    }

    const PROGRAM: &str = "#include <stdlib.h>\n\
        static inline int inner(int n) { return n * (int)(size_t)malloc(n); }\n\
        int outer(int n) { return inner(n) + inner(n + 1); }\n\
        int main(void) { return outer(3); }\n";

    /// A file of code may be anybody's: of one that is damaged some names may be wrong, and no more.
    #[test]
    fn a_damaged_file_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let Some(program) = compiled(path("program"), PROGRAM, &["-g", "-O2"]) else { return };
        let good = fs::read(program).unwrap();
        let mapping = Mapping {
            limit: 1 << 40,
            path: path("damaged").display().to_string(),
            ..Mapping::default()
        };
        let all = (0..good.len() as u64).step_by(16);
        let location = |address| Location { address, mapping: Some(0), frames: Vec::new() };
        let locations: Vec<Location> = all.map(location).collect();
        let named = |bytes: &[u8]| {
            fs::write(path("damaged"), bytes).unwrap();
            let (mappings, locations) = (vec![mapping.clone()], locations.clone());
            let mut profile = Profile { mappings, locations, ..Profile::default() };
            Symbols::new(None).name(&mut profile);
            let mut frames = profile.locations.iter().flat_map(|found| &found.frames);
            frames.any(|frame| frame.function == "outer")
        };
        assert!(named(&good));
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..300 {
            let mut bytes = good.clone();
            for _ in 0..random.random_range(1..20) {
                // Headers and tables stand at the beginning and at the end.
                let at = match random.random_range(0..3) {
                    0 => random.random_range(0..1024),
                    1 => random.random_range(bytes.len() - 4096..bytes.len()),
                    _ => random.random_range(0..bytes.len()),
                };
                bytes[at] = *[0, 1, 0x7f, 0x80, 0xff].choose(&mut random).unwrap();
            }
            if random.random_range(0..4) == 0 {
                bytes.truncate(random.random_range(0..bytes.len()));
            }
            named(&bytes);
        }
    }

    #[test]
    fn debug_information_is_looked_for_below_the_root_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usr/lib/debug/.build-id/01/23.debug");
        assert_eq!(debug_file("0123", Some(folder.path())), None);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(debug_file("0123", Some(folder.path())), Some(path));
        assert_eq!(debug_file("0", Some(folder.path())), None);
    }

    #[test]
    fn another_build_names_nothing() {
        let mut profile = profile("0123");
        let mut symbols = Symbols::new(None);
        symbols.name(&mut profile);
        let frame = &profile.locations[0].frames[0];
        assert!(frame.function.contains("+0x"), "{frame:?}");
        let troubles = symbols.troubles();
        assert!(troubles.values().all(|reason| reason.contains("another build")), "{troubles:?}");
        assert_eq!(troubles.len(), 1);
    }
}
