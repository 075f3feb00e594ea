//! Names of the control tree with the types that they have.
// SPDX-License-Identifier: MIT

use core::ffi::CStr;
use core::marker::PhantomData;
use core::mem::{size_of, MaybeUninit};

/// What the control tree answers when it refuses: an error number of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub i32);

const ENOENT: i32 = 2;
const EFAULT: i32 = 14;
pub(crate) const EINVAL: i32 = 22;

impl std::fmt::Display for Refused {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ENOENT => to.write_str("there is no such thing in this process"),
            EFAULT => to.write_str("it cannot be done, or not now"),
            error => std::io::Error::from_raw_os_error(error).fmt(to),
        }
    }
}

impl std::error::Error for Refused {}

pub(crate) struct Leaf<T> {
    name: &'static CStr,
    of: PhantomData<fn() -> T>,
}

impl<T: Copy> Leaf<T> {
    /// `name` is that of a leaf whose type is `T`: nobody looks.
    pub(crate) const fn new(name: &'static CStr) -> Leaf<T> {
        Leaf { name, of: PhantomData }
    }

    pub(crate) fn get(&self) -> Result<T, Refused> {
        let mut value = MaybeUninit::<T>::uninit();
        let mut bytes = size_of::<T>();
        // SAFETY: a name that ends with NUL, and a place for as many bytes as it says.
        let error = unsafe {
            prairie_sys::prairie_mallctl(
                self.name.as_ptr(),
                value.as_mut_ptr().cast(),
                &mut bytes,
                core::ptr::null_mut(),
                0,
            )
        };
        if error != 0 {
            return Err(Refused(error));
        }
        // A leaf of another type: what was written is not a whole value.
        if bytes != size_of::<T>() {
            return Err(Refused(EINVAL));
        }
        // SAFETY: all of it was written, and `T` is the type of this leaf.
        Ok(unsafe { value.assume_init() })
    }

    pub(crate) fn set(&self, value: T) -> Result<(), Refused> {
        let mut value = value;
        // SAFETY: a name that ends with NUL, and a value of as many bytes as it says. A pointer in it is
        // valid for the call, as `T` is the type of this leaf.
        let error = unsafe {
            prairie_sys::prairie_mallctl(
                self.name.as_ptr(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::addr_of_mut!(value).cast(),
                size_of::<T>(),
            )
        };
        if error != 0 {
            return Err(Refused(error));
        }
        Ok(())
    }
}
