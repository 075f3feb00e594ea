//! Who holds the memory: samples of allocations, for `jeprof` and, with the option `prof_pprof`, `pprof`.
//!
//! A process has them when it begins with `prof:true`, in the environment or in [`options!`](crate::options!).
// SPDX-License-Identifier: MIT

use crate::leaf::Leaf;
pub use crate::leaf::Refused;
use core::ffi::c_char;
use std::ffi::CString;
use std::path::Path;

/// Did the process begin with `prof:true`?
pub fn is_there() -> bool {
    Leaf::<bool>::new(c"opt.prof").get().unwrap_or(false)
}

/// Are samples taken now?
pub fn is_active() -> bool {
    Leaf::<bool>::new(c"prof.active").get().unwrap_or(false)
}

/// Sets it.
pub fn set_active(active: bool) -> Result<(), Refused> {
    Leaf::<bool>::new(c"prof.active").set(active)
}

/// Writes what is held now into a file.
pub fn dump(file: impl AsRef<Path>) -> Result<(), Refused> {
    const EINVAL: i32 = 22;
    let name = file.as_ref().to_str().and_then(|name| CString::new(name).ok());
    let name = name.ok_or(Refused(EINVAL))?;
    Leaf::<*const c_char>::new(c"prof.dump").set(name.as_ptr())
}
