//! What the allocator holds and has done.
// SPDX-License-Identifier: MIT

/// All numbers of one moment; sizes in bytes.
pub type Stats = prairie_sys::prairie_stats;

/// The numbers of now. Other threads go on meanwhile, so they may be apart by what those do.
///
/// ```
/// let before = prairie_alloc::stats::read();
/// assert!(before.mapped >= before.active);
/// ```
pub fn read() -> Stats {
    let mut stats = Stats { struct_bytes: core::mem::size_of::<Stats>(), ..Default::default() };
    // SAFETY: it says how long it is, and no more is written.
    let known = unsafe { prairie_sys::prairie_stats_read(&mut stats) };
    assert!(known, "prairie-sys and prairie.h differ");
    stats
}

/// Bytes of blocks that the program holds.
pub fn allocated() -> usize {
    read().allocated
}

/// Bytes of pages with such blocks in them.
pub fn active() -> usize {
    read().active
}

/// Bytes that the kernel has given and not got back, as far as prairie knows: active pages, dirty ones, the reserve,
/// records.
pub fn resident() -> usize {
    let stats = read();
    stats.active + stats.dirty + stats.reserve_cur + stats.metadata
}

/// Prints all of it to the standard error.
pub fn print() {
    // SAFETY: it may be called at any time.
    unsafe { prairie_sys::prairie_stats_print() }
}

/// All of it as OpenMetrics text, which Prometheus reads; `None`: no memory.
///
/// ```
/// assert!(prairie_alloc::stats::metrics().unwrap().contains("# EOF"));
/// ```
#[cfg(feature = "control")]
pub fn metrics() -> Option<String> {
    use core::ffi::{c_char, c_void, CStr};

    unsafe extern "C" fn add(context: *mut c_void, text: *const c_char) {
        let whole = &mut *context.cast::<Vec<u8>>();
        whole.extend_from_slice(CStr::from_ptr(text).to_bytes());
    }
    let mut whole = Vec::new();
    // SAFETY: `add` gets what it takes for a vector, which nobody else uses meanwhile.
    let done = unsafe {
        prairie_sys::prairie_stats_metrics(Some(add), core::ptr::addr_of_mut!(whole).cast())
    };
    if !done {
        return None;
    }
    String::from_utf8(whole).ok()
}

/// Bytes that this thread has taken and given back since it first asked; exact after every call. Asking makes each of
/// the thread's calls a little slower from then on. `None`: no memory.
pub fn of_this_thread() -> Option<(u64, u64)> {
    // SAFETY: NULL, or a place that stays for as long as this thread does, and that nobody else writes.
    let totals = unsafe { prairie_sys::prairie_thread_totals().as_ref() }?;
    Some((totals.allocated, totals.deallocated))
}
