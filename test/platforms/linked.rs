// linked.rs - a Rust program whose standard library allocates from the prairie that it is linked with.
// SPDX-License-Identifier: MIT
use std::collections::HashMap;
use std::os::raw::{c_char, c_void};
#[link(name = "prairie", kind = "static")]
extern "C" {
    fn prairie_version() -> *const c_char;
    fn prairie_usable_size(block: *mut c_void) -> usize;
    fn prairie_check_all();
}
fn main() {
    let threads: Vec<_> = (0..4u64)
        .map(|n| std::thread::spawn(move || {
            let mut map = HashMap::new();
            for i in 0..50_000u64 { map.insert(i * 7 + n, vec![i as u8; (i % 300) as usize]); }
            map.retain(|k, _| k % 3 == 0);
            map.values().map(|v| v.len() as u64).sum::<u64>()
        })).collect();
    let sum: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let mut block = vec![0u8; 1000];
    let usable = unsafe { prairie_usable_size(block.as_mut_ptr() as *mut c_void) };
    assert!(usable >= 1000);
    unsafe { prairie_check_all(); }
    println!("{} {} {}", sum, usable, unsafe { std::ffi::CStr::from_ptr(prairie_version()).to_str().unwrap() });
}
