//! The prairie memory allocator for Rust programs.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: prairie_alloc::Prairie = prairie_alloc::Prairie;
//!
//! let numbers: Vec<u32> = (0..1000).collect();
//! assert!(prairie_alloc::stats::allocated() >= 4000);
//! # drop(numbers);
//! ```
//!
//! What a program may ask and set, without strings: [`stats`], [`limits`] and [`reserve`].
#![cfg_attr(
    feature = "control",
    doc = "With the feature `control`, which is a default one, also [`profile`] and [`mod@options`]."
)]
// SPDX-License-Identifier: MIT
#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

use core::alloc::{GlobalAlloc, Layout};

mod hit;
pub mod limits;
#[cfg(feature = "control")]
pub mod options;
#[cfg(feature = "control")]
pub mod profile;
pub mod reserve;
pub mod stats;

#[cfg(feature = "control")]
mod leaf;

pub use prairie_sys as sys;

/// The allocator. It has no state: all of them are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prairie;

/// What malloc promises without being asked: blocks of 16 bytes and more are aligned to 16, all others to 8.
#[inline(always)]
const fn is_natural(layout: Layout) -> bool {
    layout.align() <= 8 || (layout.align() == 16 && layout.size() >= 16)
}

#[inline(always)]
unsafe fn take(layout: Layout) -> *mut u8 {
    if is_natural(layout) {
        hit::take(layout.size())
    } else {
        sys::prairie_aligned_alloc(layout.align(), layout.size()).cast()
    }
}

#[inline(always)]
unsafe fn give(block: *mut u8, layout: Layout) {
    if is_natural(layout) {
        hit::give(block, layout.size())
    } else {
        sys::prairie_free_aligned_sized(block.cast(), layout.align(), layout.size())
    }
}

/// What the functions with flags call an alignment; 0 is malloc's.
#[inline(always)]
const fn align_flag(layout: Layout) -> i32 {
    if is_natural(layout) {
        0
    } else {
        layout.align().trailing_zeros() as i32
    }
}

#[inline(always)]
unsafe fn resize(block: *mut u8, layout: Layout, to: Layout) -> *mut u8 {
    if is_natural(layout) && is_natural(to) {
        sys::prairie_realloc(block.cast(), to.size()).cast()
    } else {
        sys::prairie_rallocx(block.cast(), to.size(), align_flag(to)).cast()
    }
}

#[inline(always)]
unsafe fn take_zeroed(layout: Layout) -> *mut u8 {
    if is_natural(layout) {
        return sys::prairie_calloc(1, layout.size()).cast();
    }
    const ZERO: i32 = 0x40;
    sys::prairie_mallocx(layout.size(), ZERO | align_flag(layout)).cast()
}

// SAFETY: blocks are as large and aligned as the layout says and nobody else's until they are given back, and
// no function unwinds: misuse ends the program.
unsafe impl GlobalAlloc for Prairie {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout)
    }
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        give(block, layout)
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take_zeroed(layout)
    }
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        resize(block, layout, Layout::from_size_align_unchecked(size, layout.align()))
    }
}

/// Containers of `allocator_api2` whose blocks are prairie's, whatever the global allocator is.
///
/// ```
/// # #[cfg(feature = "allocator-api2")] {
/// use allocator_api2::{boxed::Box, vec::Vec};
/// use prairie_alloc::Prairie;
///
/// let mut words = Vec::new_in(Prairie);
/// words.push(Box::new_in("a word", Prairie));
/// # }
/// ```
#[cfg(feature = "allocator-api2")]
mod api2 {
    use super::{give, resize, take, take_zeroed, Layout, Prairie};
    use allocator_api2::alloc::{AllocError, Allocator};
    use core::ptr::{slice_from_raw_parts_mut, NonNull};

    /// Of size 0: an address that is aligned and nobody's.
    #[inline(always)]
    fn nothing(layout: Layout) -> NonNull<[u8]> {
        let address = core::ptr::null_mut::<u8>().wrapping_add(layout.align());
        // SAFETY: an alignment is not 0.
        unsafe { NonNull::new_unchecked(slice_from_raw_parts_mut(address, 0)) }
    }

    #[inline(always)]
    fn slice(block: *mut u8, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        NonNull::new(slice_from_raw_parts_mut(block, layout.size())).ok_or(AllocError)
    }

    // SAFETY: blocks stay where they are until they are given back, by any copy: all are the same.
    unsafe impl Allocator for Prairie {
        #[inline(always)]
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if layout.size() == 0 {
                return Ok(nothing(layout));
            }
            // SAFETY: the size is not 0.
            slice(unsafe { take(layout) }, layout)
        }
        #[inline]
        fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if layout.size() == 0 {
                return Ok(nothing(layout));
            }
            // SAFETY: the size is not 0.
            slice(unsafe { take_zeroed(layout) }, layout)
        }
        #[inline(always)]
        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            if layout.size() != 0 {
                give(block.as_ptr(), layout)
            }
        }
        #[inline]
        unsafe fn grow(
            &self,
            block: NonNull<u8>,
            from: Layout,
            to: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            if from.size() == 0 {
                return self.allocate(to);
            }
            slice(resize(block.as_ptr(), from, to), to)
        }
        #[inline]
        unsafe fn grow_zeroed(
            &self,
            block: NonNull<u8>,
            from: Layout,
            to: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            let grown = self.grow(block, from, to)?;
            grown.cast::<u8>().as_ptr().add(from.size()).write_bytes(0, to.size() - from.size());
            Ok(grown)
        }
        #[inline]
        unsafe fn shrink(
            &self,
            block: NonNull<u8>,
            from: Layout,
            to: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            if from.size() == 0 {
                return Ok(nothing(to));
            }
            if to.size() == 0 {
                give(block.as_ptr(), from);
                return Ok(nothing(to));
            }
            slice(resize(block.as_ptr(), from, to), to)
        }
    }
}

/// What the page of the crate says is so.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Gives free memory back to the kernel now. Returns bytes given back.
pub fn purge() -> usize {
    // SAFETY: it may be called at any time.
    unsafe { sys::prairie_purge() }
}

/// The version of the library, such as `0.1.0`.
pub fn version() -> &'static str {
    // SAFETY: a constant that ends with NUL.
    let text = unsafe { core::ffi::CStr::from_ptr(sys::prairie_version()) };
    text.to_str().unwrap_or("")
}
