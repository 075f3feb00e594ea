//! The allocator under a whole program, at every size and alignment, from several threads.
// SPDX-License-Identifier: MIT

use prairie_alloc::Prairie;
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::{BTreeMap, HashMap};

#[global_allocator]
static ALLOCATOR: Prairie = Prairie;

/// A pattern that only a block of this size and alignment has.
fn mark(layout: Layout, at: usize) -> u8 {
    (layout.size() * 31 + layout.align() * 7 + at) as u8
}

unsafe fn fill(block: *mut u8, layout: Layout) {
    assert!(!block.is_null());
    assert_eq!(block as usize % layout.align(), 0);
    for at in 0..layout.size() {
        block.add(at).write(mark(layout, at));
    }
}

unsafe fn check(block: *mut u8, layout: Layout, bytes: usize) {
    for at in 0..bytes {
        assert_eq!(block.add(at).read(), mark(layout, at));
    }
}

fn layouts() -> impl Iterator<Item = Layout> {
    let sizes =
        (1..300).chain([511, 512, 513, 1023, 1024, 1025, 4000, 14336, 14337, 70000, 3 << 20]);
    sizes.flat_map(|size| {
        [1, 2, 8, 16, 32, 64, 4096].map(|align| Layout::from_size_align(size, align).unwrap())
    })
}

#[test]
fn serves_the_program() {
    let (taken, given) = prairie_alloc::stats::of_this_thread().unwrap();
    let held = vec![1u8; 10 << 20];
    assert!(prairie_alloc::stats::allocated() >= 10 << 20);
    drop(held);
    let (taken_after, given_after) = prairie_alloc::stats::of_this_thread().unwrap();
    assert!(taken_after >= taken + (10 << 20) && given_after >= given + (10 << 20));
}

#[test]
fn keeps_contents() {
    unsafe {
        let blocks: Vec<_> = layouts().map(|layout| (alloc(layout), layout)).collect();
        for &(block, layout) in &blocks {
            fill(block, layout);
        }
        for &(block, layout) in &blocks {
            check(block, layout, layout.size());
            dealloc(block, layout);
        }
    }
}

#[test]
fn zeroes() {
    unsafe {
        for layout in layouts() {
            let used = alloc(layout);
            fill(used, layout);
            dealloc(used, layout);
            let block = alloc_zeroed(layout);
            assert_eq!(block as usize % layout.align(), 0);
            assert!((0..layout.size()).all(|at| block.add(at).read() == 0));
            dealloc(block, layout);
        }
    }
}

#[test]
fn resizes() {
    unsafe {
        for layout in layouts().filter(|layout| layout.size() <= 70000) {
            for size in [1, 8, 15, 16, 17, 100, 700, 1024, 1025, 1100, 5000, 20000] {
                let block = alloc(layout);
                fill(block, layout);
                let to = Layout::from_size_align(size, layout.align()).unwrap();
                let moved = realloc(block, layout, size);
                check(moved, layout, size.min(layout.size()));
                fill(moved, to);
                dealloc(moved, to);
            }
        }
    }
}

#[test]
fn shrinks_aligned_blocks_in_place() {
    unsafe {
        let layout = Layout::from_size_align(32 << 20, 64).unwrap();
        let to = Layout::from_size_align(16 << 20, 64).unwrap();
        let block = alloc(layout);
        fill(block, layout);
        assert_eq!(realloc(block, layout, to.size()), block);
        check(block, layout, to.size());
        dealloc(block, to);
        prairie_alloc::sys::prairie_check_all()
    }
}

#[test]
fn serves_threads() {
    let workers: Vec<_> = (0..4u64)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut words = HashMap::new();
                let mut sorted = BTreeMap::new();
                for number in 0..20_000u64 {
                    let key = (number * 2_654_435_761 + seed) % 5_000;
                    words.entry(key).or_insert_with(Vec::new).push(number);
                    sorted.insert(key, format!("{number} {key}"));
                    if number % 3 == 0 {
                        words.remove(&(key / 2));
                    }
                }
                (words, sorted)
            })
        })
        .collect();
    for worker in workers {
        let (words, sorted) = worker.join().unwrap();
        assert!(words.values().all(|list| !list.is_empty()));
        assert!(sorted.iter().all(|(key, text)| text.ends_with(&format!(" {key}"))));
    }
    unsafe { prairie_alloc::sys::prairie_check_all() }
}

#[cfg(feature = "allocator-api2")]
#[test]
fn serves_containers_of_allocator_api2() {
    use allocator_api2::alloc::Allocator;
    use allocator_api2::{boxed::Box, vec::Vec};

    let mut numbers = Vec::new_in(Prairie);
    numbers.extend(0..100_000u32);
    let boxes: std::vec::Vec<_> = (0..1000u64).map(|n| Box::new_in([n; 5], Prairie)).collect();
    assert!(boxes.iter().enumerate().all(|(n, one)| one[4] == n as u64));
    assert_eq!(numbers[99_999], 99_999);
    let _nothing: Vec<(), _> = Vec::with_capacity_in(10, Prairie);
    let none = Layout::from_size_align(0, 64).unwrap();
    let some = Layout::from_size_align(100, 64).unwrap();
    unsafe {
        let empty = Prairie.allocate(none).unwrap();
        let block = Prairie.grow_zeroed(empty.cast(), none, some).unwrap();
        assert_eq!(block.cast::<u8>().as_ptr() as usize % 64, 0);
        let back = Prairie.shrink(block.cast(), some, none).unwrap();
        Prairie.deallocate(back.cast(), none);
    }
}
