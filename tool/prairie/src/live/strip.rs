//! Which pages of the heap are resident, as a strip of cells from its lowest address to its highest.
// SPDX-License-Identifier: MIT

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::count::Regions;
use crate::proc;
use crate::sys::{self, Pid};

/// Of which every one is looked at; of more, some in each cell.
const PAGES_MAX: u64 = 1 << 18;
const LOOKS_PER_CELL: u64 = 8;
const PAGES_PER_LOOK: u64 = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strip {
    /// Open bytes of the heap.
    pub bytes: u64,
    /// Of them resident, and swapped out; guessed from what was looked at when `exact` is false.
    pub resident: u64,
    pub swapped: u64,
    pub exact: bool,
    /// Of each cell, hundredths that are resident.
    pub cells: Vec<u8>,
}

/// None: the kernel does not say, or nothing is open.
pub fn look(pid: Pid, regions: &Regions, cells: usize) -> Option<Strip> {
    let file = File::open(format!("/proc/{}/pagemap", proc::living(pid))).ok()?;
    look_in(&file, regions, cells, sys::page_bytes())
}

fn look_in(file: &File, regions: &Regions, cells: usize, page_bytes: u64) -> Option<Strip> {
    let pages: u64 = regions.iter().map(|(_, bytes)| bytes / page_bytes).sum();
    if pages == 0 || cells == 0 {
        return None;
    }
    let cells = (cells as u64).min(pages);
    let mut strip =
        Strip { bytes: pages * page_bytes, exact: pages <= PAGES_MAX, ..Strip::default() };
    let (mut resident, mut swapped, mut looked) = (0, 0, 0);
    for cell in 0..cells {
        let (first, end) = (pages * cell / cells, pages * (cell + 1) / cells);
        let seen = look_at_cell(file, regions, page_bytes, first, end, strip.exact)?;
        strip.cells.push((seen.resident * 100).div_ceil(seen.pages.max(1)) as u8);
        resident += seen.resident;
        swapped += seen.swapped;
        looked += seen.pages;
    }
    let share = |count: u64| {
        (u128::from(count) * u128::from(strip.bytes) / u128::from(looked.max(1))) as u64
    };
    (strip.resident, strip.swapped) = (share(resident), share(swapped));
    Some(strip)
}

#[derive(Default)]
struct Seen {
    pages: u64,
    resident: u64,
    swapped: u64,
}

fn look_at_cell(
    file: &File,
    regions: &Regions,
    page_bytes: u64,
    first: u64,
    end: u64,
    all: bool,
) -> Option<Seen> {
    let mut seen = Seen::default();
    if all || end - first <= LOOKS_PER_CELL * PAGES_PER_LOOK {
        look_at_pages(file, regions, page_bytes, first, end, &mut seen)?;
        return Some(seen);
    }
    let stride = (end - first) / LOOKS_PER_CELL;
    for look in 0..LOOKS_PER_CELL {
        let from = first + look * stride;
        look_at_pages(file, regions, page_bytes, from, from + PAGES_PER_LOOK, &mut seen)?;
    }
    Some(seen)
}

/// Pages by their number in all regions together.
fn look_at_pages(
    file: &File,
    regions: &Regions,
    page_bytes: u64,
    mut first: u64,
    end: u64,
    seen: &mut Seen,
) -> Option<()> {
    const ENTRY: u64 = 8;
    let mut before = 0;
    for (base, bytes) in regions {
        let count = bytes / page_bytes;
        if first < end && first < before + count {
            let last = end.min(before + count);
            let mut entries = vec![0; ((last - first) * ENTRY) as usize];
            let page = base / page_bytes + (first - before);
            // Past the address space the file ends, where a process has changed meanwhile.
            let read = file.read_at(&mut entries, page * ENTRY).ok()?;
            for entry in entries[..read].chunks_exact(ENTRY as usize) {
                let entry = u64::from_le_bytes(entry.try_into().expect("8 bytes"));
                seen.resident += entry >> 63;
                seen.swapped += entry >> 62 & 1;
                seen.pages += 1;
            }
            first = last;
        }
        before += count;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const PAGE: u64 = 4096;

    /// A page map in which the pages of this list are resident, and all others are not.
    fn made(pages: u64, resident: impl Fn(u64) -> bool) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let entries: Vec<u8> =
            (0..pages).flat_map(|page| (u64::from(resident(page)) << 63).to_le_bytes()).collect();
        file.write_all(&entries).unwrap();
        file
    }

    #[test]
    fn cells_go_over_the_gaps_between_regions() {
        // Pages 10 to 13 and 20 to 23 are open; those from 12 on are resident.
        let file = made(32, |page| page >= 12);
        let regions = vec![(10 * PAGE, 4 * PAGE), (20 * PAGE, 4 * PAGE)];
        let strip = look_in(&file, &regions, 4, PAGE).unwrap();
        assert_eq!(strip.cells, [0, 100, 100, 100]);
        assert_eq!((strip.bytes, strip.resident, strip.exact), (8 * PAGE, 6 * PAGE, true));
        assert_eq!(look_in(&file, &regions, 3, PAGE).unwrap().cells, [0, 100, 100]);
        assert_eq!(look_in(&file, &regions, 100, PAGE).unwrap().cells.len(), 8);
        assert_eq!(look_in(&file, &vec![(0, 0)], 4, PAGE), None);
    }

    #[test]
    fn a_large_heap_is_looked_at_here_and_there() {
        let pages = PAGES_MAX * 2;
        let file = made(pages, |page| page < pages / 2);
        let strip = look_in(&file, &vec![(0, pages * PAGE)], 10, PAGE).unwrap();
        assert_eq!(strip.cells, [100, 100, 100, 100, 100, 0, 0, 0, 0, 0]);
        assert_eq!((strip.exact, strip.resident), (false, pages * PAGE / 2));
    }

    #[test]
    fn own_memory_is_resident_where_it_was_touched() {
        let page = sys::page_bytes() as usize;
        let block = vec![1_u8; 64 * page];
        let start = (block.as_ptr() as usize).next_multiple_of(page);
        let regions = vec![(start as u64, 32 * page as u64)];
        let Some(strip) = look(sys::own_pid(), &regions, 4) else {
            eprintln!("skipped: no /proc/self/pagemap");
            return;
        };
        assert_eq!(strip.cells, [100; 4]);
        assert_eq!(block[page], 1);
    }
}
