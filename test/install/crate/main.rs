//! What the README of prairie-alloc says, as a program of somebody else.
// SPDX-License-Identifier: MIT
#[global_allocator]
static ALLOCATOR: prairie_alloc::Prairie = prairie_alloc::Prairie;

prairie_alloc::options! { narenas: 3 }

fn main() {
    let before = prairie_alloc::stats::allocated();
    let held: Vec<Box<[u64; 10]>> = (0..100_000).map(|n| Box::new([n; 10])).collect();
    assert!(prairie_alloc::stats::allocated() >= before + 8_800_000);
    assert_eq!(held.iter().map(|one| one[9]).sum::<u64>(), 4_999_950_000);
    assert_eq!(prairie_alloc::options::arenas(), 3);
    let worker = std::thread::spawn(move || held.len());
    assert_eq!(worker.join().unwrap(), 100_000);
    prairie_alloc::purge();
    println!("ok: prairie {}", prairie_alloc::version());
}
