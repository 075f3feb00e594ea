//! Memory that is kept for when there is no other, and who is told of it.
// SPDX-License-Identifier: MIT

use core::ffi::{c_int, c_void};
use std::cell::Cell;

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The reserve is below its minimum, or a limit is near.
    Low,
    /// A request could not be served, and is tried again after this.
    Critical,
    /// Nobody could help, and the program ends.
    Failed,
}

type Listener = Box<dyn Fn(Condition, usize) + Send + Sync>;

thread_local! {
    /// Listeners that run in this thread: one that allocates may meet another shortage.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// Who listens; until it is dropped.
///
/// Dropped outside of listeners, it waits for a call that runs, and the closure is dropped with it. Within a listener
/// it cannot wait, because who it waits for might wait for it: nobody is told any more, but the closure, which may
/// run here or in another thread, stays for good with all that it holds. Callbacks that were registered in C are not
/// known as listeners here: it must not be dropped in one of these.
pub struct Registration {
    listener: *mut Listener,
}

// SAFETY: the closure is `Send` and `Sync`, and the pointer is read only when this is dropped.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: the listener was made by `on_shortage` and is dropped here only. Outside of listeners nobody
        // is in it any more when the first call returns.
        unsafe {
            prairie_sys::prairie_reserve_cb_unregister(tell, self.listener.cast());
            if RUNNING.get() == 0 {
                drop(Box::from_raw(self.listener));
            }
        }
    }
}

unsafe extern "C" fn tell(context: *mut c_void, condition: c_int, size: usize) {
    // The context of a registration, whose closure is there while it is called.
    let listener = &*context.cast::<Listener>();
    let condition = match condition {
        0 => Condition::Low,
        1 => Condition::Critical,
        _ => Condition::Failed,
    };
    RUNNING.set(RUNNING.get() + 1);
    // It must return.
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| listener(condition, size)));
    if told.is_err() {
        std::process::abort();
    }
    RUNNING.set(RUNNING.get() - 1);
}

/// Calls `listener` when memory runs short, with the size of the request that met it, in the thread of that request, so
/// that the program can let go of what it can spare. It may allocate and free; a panic in it ends the program. Drop
/// what this returns outside of listeners, so that the closure goes, too, and not while you hold a lock that the
/// listener takes.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// static SHORT: AtomicBool = AtomicBool::new(false);
///
/// let listening = prairie_alloc::reserve::on_shortage(|_, _| SHORT.store(true, Ordering::Relaxed));
/// # drop(listening);
/// ```
pub fn on_shortage(listener: impl Fn(Condition, usize) + Send + Sync + 'static) -> Registration {
    let listener: *mut Listener = Box::into_raw(Box::new(Box::new(listener)));
    // SAFETY: the closure stays until the registration is dropped.
    let refused = unsafe { prairie_sys::prairie_reserve_cb_register(tell, listener.cast()) };
    if refused {
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<Listener>());
    }
    Registration { listener }
}

/// Bytes that the reserve holds now.
pub fn held() -> usize {
    // SAFETY: a number out, at any time.
    unsafe { prairie_sys::prairie_reserve_cur_get() }
}

/// Bytes that it is to hold.
pub fn size() -> usize {
    // SAFETY: a number out, at any time.
    unsafe { prairie_sys::prairie_reserve_min_get() }
}

/// The reserve could not be filled yet; it is when there is memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFilled;

impl std::fmt::Display for NotFilled {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("the reserve could not be filled yet")
    }
}

impl std::error::Error for NotFilled {}

/// Sets what the reserve is to hold, and fills it.
pub fn set_size(bytes: usize) -> Result<(), NotFilled> {
    // SAFETY: any number may be asked for, at any time.
    if unsafe { prairie_sys::prairie_reserve_min_set(bytes) } {
        Err(NotFilled)
    } else {
        Ok(())
    }
}
