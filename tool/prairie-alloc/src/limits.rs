//! Limits of the process's heap, in bytes. `None`: there is none.
// SPDX-License-Identifier: MIT

// SAFETY: of all blocks here: numbers in, numbers out, at any time.
#![allow(clippy::undocumented_unsafe_blocks)]

/// To C, 0 is no limit.
fn or_zero(bytes: Option<usize>) -> usize {
    bytes.map_or(0, |bytes| bytes.max(1))
}

fn or_none(bytes: usize) -> Option<usize> {
    (bytes != 0).then_some(bytes)
}

/// From where on free pages go back at once and [callbacks](crate::reserve::on_shortage) are told.
pub fn soft() -> Option<usize> {
    or_none(unsafe { prairie_sys::prairie_limit_soft_get() })
}

/// Sets it. The smallest one is of one byte: `Some(0)` is taken for it.
///
/// ```
/// prairie_alloc::limits::set_soft(Some(1 << 30));
/// assert_eq!(prairie_alloc::limits::soft(), Some(1 << 30));
/// ```
pub fn set_soft(bytes: Option<usize>) {
    unsafe { prairie_sys::prairie_limit_soft_set(or_zero(bytes)) }
}

/// What the heap grows to and no further: what would need more is refused.
pub fn hard() -> Option<usize> {
    or_none(unsafe { prairie_sys::prairie_limit_hard_get() })
}

/// Sets it. The smallest one is of one byte, below which no growth is left: `Some(0)` is taken for it.
pub fn set_hard(bytes: Option<usize>) {
    unsafe { prairie_sys::prairie_limit_hard_set(or_zero(bytes)) }
}
