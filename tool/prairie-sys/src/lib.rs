//! The prairie memory allocator, compiled along, and its functions.
//!
//! What they do is said in `prairie/prairie.h` and `prairie/reserve.h`; build scripts of crates that depend on this one
//! find the folder of both in `DEP_PRAIRIE_INCLUDE`. The crate `prairie-alloc` has what a program wants.
// SPDX-License-Identifier: MIT
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::{c_char, c_int, c_void};

extern "C" {
    pub fn prairie_version() -> *const c_char;

    pub fn prairie_malloc(size: usize) -> *mut c_void;
    pub fn prairie_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn prairie_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    pub fn prairie_free(block: *mut c_void);
    pub fn prairie_free_sized(block: *mut c_void, size: usize);
    pub fn prairie_free_aligned_sized(block: *mut c_void, align: usize, size: usize);
    pub fn prairie_aligned_alloc(align: usize, size: usize) -> *mut c_void;
    pub fn prairie_usable_size(block: *const c_void) -> usize;

    pub fn prairie_mallocx(size: usize, flags: c_int) -> *mut c_void;
    pub fn prairie_rallocx(block: *mut c_void, size: usize, flags: c_int) -> *mut c_void;
    pub fn prairie_xallocx(block: *mut c_void, size: usize, extra: usize, flags: c_int) -> usize;
    pub fn prairie_sallocx(block: *const c_void, flags: c_int) -> usize;
    pub fn prairie_dallocx(block: *mut c_void, flags: c_int);
    pub fn prairie_sdallocx(block: *mut c_void, size: usize, flags: c_int);
    pub fn prairie_nallocx(size: usize, flags: c_int) -> usize;

    pub fn prairie_purge() -> usize;
    pub fn prairie_stats_read(stats: *mut prairie_stats) -> bool;
    pub fn prairie_stats_print();
    pub fn prairie_thread_totals() -> *const prairie_thread_totals_t;
    pub fn prairie_check_all();

    pub fn prairie_reserve_cb_register(callback: reserve_cb, context: *mut c_void) -> bool;
    pub fn prairie_reserve_cb_unregister(callback: reserve_cb, context: *mut c_void) -> bool;
    pub fn prairie_reserve_cur_get() -> usize;
    pub fn prairie_reserve_min_get() -> usize;
    pub fn prairie_reserve_min_set(bytes: usize) -> bool;
    pub fn prairie_limit_soft_get() -> usize;
    pub fn prairie_limit_soft_set(bytes: usize);
    pub fn prairie_limit_hard_get() -> usize;
    pub fn prairie_limit_hard_set(bytes: usize);
}

#[cfg(feature = "control")]
extern "C" {
    /// `mallctl`, under a name that no other allocator has.
    pub fn prairie_mallctl(
        name: *const c_char,
        old_value: *mut c_void,
        old_bytes: *mut usize,
        new_value: *mut c_void,
        new_bytes: usize,
    ) -> c_int;
    pub fn prairie_stats_metrics(write: Option<write_text>, context: *mut c_void) -> bool;
}

/// Takes a piece of text that ends with a NUL.
pub type write_text = unsafe extern "C" fn(context: *mut c_void, text: *const c_char);

/// `enum reserve_cnd_t`: 0 low, 1 critical, 2 failed.
pub type reserve_cb = unsafe extern "C" fn(context: *mut c_void, condition: c_int, size: usize);

/// `struct prairie_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct prairie_stats {
    pub struct_bytes: usize,
    pub allocated: usize,
    pub active: usize,
    pub cached: usize,
    pub dirty: usize,
    pub clean: usize,
    pub metadata: usize,
    pub mapped: usize,
    pub large_allocated: usize,
    pub large_count: u64,
    pub purged: u64,
    pub purges: u64,
    pub refills: u64,
    pub overflows: u64,
    pub slab_fills: u64,
    pub slab_drains: u64,
    pub depot_trades: u64,
    pub run_leases: u64,
    pub run_returns: u64,
    pub arena_hops: u64,
    pub lock_acquired: u64,
    pub lock_contended: u64,
    pub lock_waits: u64,
    pub arenas: u32,
    pub threads: u32,
    pub reserve_cur: usize,
    pub reserve_min: usize,
    pub reserve_uses: u64,
    pub reserve_refills: u64,
    pub events_low: u64,
    pub events_crit: u64,
    pub event_calls: u64,
}

/// `struct prairie_thread_totals`.
#[repr(C)]
#[derive(Debug)]
pub struct prairie_thread_totals_t {
    pub allocated: u64,
    pub deallocated: u64,
}
