//! Options that a program has from its start, and what may change while it runs.
//!
//! They come from the environment (`MALLOC_CONF`), from a file of the administrator, or from the program itself:
//!
//! ```
//! prairie_alloc::options! { dirty_decay_ms: 1_000, thp: never, prof_prefix: "/tmp/profile" }
//!
//! # fn main() {
//! assert_eq!(prairie_alloc::options::dirty_decay_ms(), 1000);
//! # }
//! ```
// SPDX-License-Identifier: MIT

use crate::leaf::Leaf;
pub use crate::leaf::Refused;
use core::ffi::c_char;

/// A text that the library reads before main.
#[doc(hidden)]
#[repr(transparent)]
pub struct Text(pub *const c_char);
// SAFETY: it is read only, and nobody but the library reads it.
unsafe impl Sync for Text {}

/// As the library reads it: of a literal what it means, so that texts lose their quotes and numbers their
/// underscores; all else as it is written.
#[doc(hidden)]
#[macro_export]
macro_rules! option_text {
    ($value:literal) => {
        $value
    };
    ($value:expr) => {
        stringify!($value)
    };
}

/// Options of the program, which the environment may override. Once in a program.
#[cfg(not(feature = "override"))]
#[macro_export]
macro_rules! options {
    ($($key:ident : $value:expr),+ $(,)?) => {
        const _: () = {
            #[export_name = "prairie_malloc_conf"]
            #[used]
            static CONF: $crate::options::Text = $crate::options::Text(
                concat!($(stringify!($key), ":", $crate::option_text!($value), ",",)+ "\0").as_ptr().cast(),
            );
        };
    };
}

/// Options of the program, which the environment may override. Once in a program.
#[cfg(feature = "override")]
#[macro_export]
macro_rules! options {
    ($($key:ident : $value:expr),+ $(,)?) => {
        const _: () = {
            #[export_name = "malloc_conf"]
            #[used]
            static CONF: $crate::options::Text = $crate::options::Text(
                concat!($(stringify!($key), ":", $crate::option_text!($value), ",",)+ "\0").as_ptr().cast(),
            );
        };
    };
}

/// How long freed memory may stay with the process, in milliseconds; -1: for ever.
pub fn dirty_decay_ms() -> isize {
    Leaf::<isize>::new(c"arenas.dirty_decay_ms").get().unwrap_or(-1)
}

/// Sets it.
pub fn set_dirty_decay_ms(time: isize) -> Result<(), Refused> {
    Leaf::<isize>::new(c"arenas.dirty_decay_ms").set(time)
}

/// May the process have a background thread that gives memory back?
pub fn background_thread() -> bool {
    Leaf::<bool>::new(c"background_thread").get().unwrap_or(false)
}

/// Sets it.
pub fn set_background_thread(allowed: bool) -> Result<(), Refused> {
    Leaf::<bool>::new(c"background_thread").set(allowed)
}

/// Arenas that threads are served from: one for each core, unless `narenas` said another number.
pub fn arenas() -> u32 {
    Leaf::<u32>::new(c"opt.narenas").get().unwrap_or(0)
}

/// Is the process hardened?
pub fn is_hardened() -> bool {
    Leaf::<bool>::new(c"opt.hardened").get().unwrap_or(false)
}
