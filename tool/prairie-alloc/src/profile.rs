//! Who holds the memory: samples of allocations, for `jeprof` and, with the option `prof_pprof`, `pprof`.
//!
//! A process has them when it begins with `prof:true`, in the environment or in [`options!`](crate::options!).
// SPDX-License-Identifier: MIT

pub use crate::leaf::Refused;
use crate::leaf::{Leaf, EINVAL};
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

/// Sets it. `Refused(2)` (ENOENT): the process did not begin with `prof:true`.
pub fn set_active(active: bool) -> Result<(), Refused> {
    Leaf::<bool>::new(c"prof.active").set(active)
}

/// Writes what is held now into a file. `Refused(2)` (ENOENT): the process did not begin with `prof:true`; `Refused(14)`
/// (EFAULT): the file cannot be written, or another dump of this thread goes on.
pub fn dump(file: impl AsRef<Path>) -> Result<(), Refused> {
    // A path need not be text.
    let name = CString::new(file.as_ref().as_os_str().as_encoded_bytes());
    let name = name.map_err(|_| Refused(EINVAL))?;
    Leaf::<*const c_char>::new(c"prof.dump").set(name.as_ptr())
}
