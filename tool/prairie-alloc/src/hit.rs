//! The usual ends of malloc and of a sized free in the program's own code, as `prairie/inline.h` has them in C.
//!
//! The words that are read carry the number of the layout in their names: with another one a program does not link.
// SPDX-License-Identifier: MIT

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(miri)
)))]
mod way {
    #[inline(always)]
    pub unsafe fn take(size: usize) -> *mut u8 {
        prairie_sys::prairie_malloc(size).cast()
    }
    #[inline(always)]
    pub unsafe fn give(block: *mut u8, size: usize) {
        prairie_sys::prairie_free_sized(block.cast(), size)
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64", not(miri)))]
mod way {
    use core::arch::asm;
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

    const BYTES_MAX: usize = 1024;

    extern "C" {
        static prairie_frees_v1: [AtomicU8; BYTES_MAX + 1];
    }

    /// Two words for each class: steps of 16 bytes up to 128, then four to a doubling, from 512 on eight.
    const fn word_of(size: usize) -> u8 {
        let class = match size {
            0 => 0,
            1..=8 => 1,
            9..=128 => 1 + size.div_ceil(16),
            129..=256 => 9 + (size - 128).div_ceil(32),
            257..=512 => 13 + (size - 256).div_ceil(64),
            _ => 17 + (size - 512).div_ceil(64),
        };
        2 * class as u8
    }

    /// A constant size is a constant word, in whichever crate asks; any other is looked up here.
    const WORDS: [u8; BYTES_MAX + 1] = {
        let mut words = [0; BYTES_MAX + 1];
        let mut size = 0;
        while size <= BYTES_MAX {
            words[size] = word_of(size);
            size += 1;
        }
        words
    };

    /// This thread's ready blocks: of class n, word 2n points at the block that is next, or at a NULL below the
    /// first, word 2n + 1 points where that is when there is no room for more.
    #[inline(always)]
    fn front() -> *mut *mut *mut u8 {
        let front;
        // SAFETY: reads this thread's word, whose place the linker writes into a table of the program, and
        // changes nothing. It holds an address from the thread's start on.
        unsafe {
            asm!(
                "mov {front}, qword ptr [rip + prairie_front_v1@GOTTPOFF]",
                "mov {front}, qword ptr fs:[{front}]",
                front = out(reg) front,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        front
    }

    #[inline(always)]
    pub unsafe fn take(size: usize) -> *mut u8 {
        if size <= BYTES_MAX {
            let word = front().add(WORDS[size] as usize);
            let top = *word;
            let block = *top;
            if !block.is_null() {
                *word = top.sub(1);
                return block;
            }
        }
        prairie_sys::prairie_malloc(size).cast()
    }

    #[inline(always)]
    pub unsafe fn give(block: *mut u8, size: usize) {
        if size <= BYTES_MAX {
            let word = front().add(prairie_frees_v1[size].load(Relaxed) as usize);
            let top = *word;
            if top != *word.add(1).cast() {
                *top.add(1) = block;
                *word = top.add(1);
                return;
            }
        }
        prairie_sys::prairie_free_sized(block.cast(), size)
    }
}

pub(crate) use way::{give, take};
