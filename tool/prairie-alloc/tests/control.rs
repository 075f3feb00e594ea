//! What a program asks and sets.
// SPDX-License-Identifier: MIT
#![cfg(feature = "control")]

use prairie_alloc::reserve::{self, Condition};
use prairie_alloc::{limits, options, profile, stats, Prairie};
use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: Prairie = Prairie;

prairie_alloc::options! {
    prof: true, lg_prof_sample: 12, lg_prof_interval: -1, dirty_decay_ms: 4_321, thp: never,
    prof_prefix: "/tmp/prairie-control"
}

/// Limits and the reserve are the whole process's: at a limit no other test finds memory.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn options_are_the_programs() {
    let _alone = alone();
    assert_eq!(options::dirty_decay_ms(), 4321);
    options::set_dirty_decay_ms(4321).unwrap();
    assert!(options::set_dirty_decay_ms(-2).is_err());
    assert!(options::arenas() >= 1);
    assert_eq!(options::is_hardened(), cfg!(feature = "hardened"));
    assert_eq!(text_of(c"opt.prof_prefix"), "/tmp/prairie-control");
    assert_eq!(text_of(c"opt.thp"), "never");
}

fn text_of(name: &CStr) -> String {
    let mut text = std::ptr::null::<c_char>();
    let mut size = std::mem::size_of_val(&text);
    let refused = unsafe {
        prairie_alloc::sys::prairie_mallctl(
            name.as_ptr(),
            std::ptr::addr_of_mut!(text).cast(),
            &mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    assert_eq!(refused, 0, "{name:?}");
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

#[test]
fn statistics_agree() {
    let _alone = alone();
    let read = stats::read();
    assert!(read.allocated <= read.active && read.active <= stats::resident() + (1 << 20));
    assert!(stats::metrics().unwrap().contains("# EOF"));
    let (taken, _) = stats::of_this_thread().unwrap();
    let held = vec![0u8; 100_000];
    let (taken_after, given_after) = stats::of_this_thread().unwrap();
    assert!(taken_after >= taken + 100_000);
    drop(held);
    assert!(stats::of_this_thread().unwrap().1 >= given_after + 100_000);
    assert_eq!(prairie_alloc::version().split('.').count(), 3);
    let _ = prairie_alloc::purge();
}

#[test]
fn profiles_are_written() {
    let _alone = alone();
    assert!(profile::is_there() && profile::is_active());
    let held: Vec<_> = (0..1000).map(|size| vec![1u8; size * 10]).collect();
    let file = std::env::temp_dir().join(format!("prairie-alloc-{}.heap", std::process::id()));
    profile::dump(&file).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(text.starts_with("heap_v2/4096"), "{}", &text[..40]);
    drop(held);
    assert_eq!(profile::dump("/nowhere/at/all"), Err(profile::Refused(14)));
    assert_eq!(profile::dump("/tmp/a\0b"), Err(profile::Refused(22)));
}

/// Two error numbers mean something else here than elsewhere.
#[test]
fn what_is_refused_is_told_in_words() {
    let told = |error: &dyn std::error::Error| error.to_string();
    assert_eq!(told(&profile::Refused(2)), "there is no such thing in this process");
    assert_eq!(told(&profile::Refused(14)), "it cannot be done, or not now");
    assert!(told(&profile::Refused(22)).starts_with("Invalid argument"));
    assert_eq!(told(&reserve::NotFilled), "the reserve could not be filled yet");
}

#[cfg(target_os = "linux")]
#[test]
fn the_name_of_a_profile_need_not_be_text() {
    let _alone = alone();
    use std::os::unix::ffi::OsStringExt;
    let name = format!("prairie-alloc-{}-", std::process::id()).into_bytes();
    let name = std::ffi::OsString::from_vec([name, vec![0xff]].concat());
    let file = std::env::temp_dir().join(name);
    profile::dump(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
}

fn grow_until_refused() {
    let mut held = Vec::with_capacity(100);
    limits::set_hard(Some(stats::resident() + (16 << 20)));
    let refused = (0..100).any(|_| {
        let mut one = Vec::<u8>::new();
        let refused = one.try_reserve_exact(1 << 20).is_err();
        held.push(one);
        refused
    });
    drop(held);
    limits::set_hard(None);
    assert_eq!(limits::hard(), None);
    assert!(refused);
}

#[test]
fn limits_refuse_and_the_reserve_tells() {
    let _alone = alone();
    let told = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let here = told.clone();
    let listening = reserve::on_shortage(move |condition, size| {
        assert_ne!(condition, Condition::Failed);
        here.0.fetch_add(1, SeqCst);
        here.1.fetch_max(size, SeqCst);
    });
    reserve::set_size(4 << 20).unwrap();
    assert!(reserve::held() >= 4 << 20 && reserve::size() == 4 << 20);
    grow_until_refused();
    assert!(told.0.load(SeqCst) >= 1 && told.1.load(SeqCst) >= 1 << 20);
    drop(listening);
    let calls = told.0.load(SeqCst);
    grow_until_refused();
    assert_eq!(told.0.load(SeqCst), calls);
    limits::set_soft(Some(1 << 40));
    assert_eq!(limits::soft(), Some(1 << 40));
    limits::set_soft(None);
}

#[test]
fn the_reserve_is_resident() {
    let _alone = alone();
    let size = reserve::size();
    reserve::set_size(256 << 20).unwrap();
    assert!(stats::resident() >= 256 << 20);
    reserve::set_size(size).unwrap();
}

/// What closures own, and how many of them have gone.
struct Owned;
static GONE: AtomicUsize = AtomicUsize::new(0);

impl Owned {
    /// How many have gone while this one is in use.
    fn gone(&self) -> usize {
        GONE.load(SeqCst)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        GONE.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_listener_that_unregisters_itself_runs_to_its_end() {
    static OWN: Mutex<Option<reserve::Registration>> = Mutex::new(None);
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static GONE_WITHIN: AtomicUsize = AtomicUsize::new(0);
    let _alone = alone();
    let owned = Owned;
    let listening = reserve::on_shortage(move |_, _| {
        let owned = &owned;
        drop(OWN.lock().unwrap().take());
        GONE_WITHIN.fetch_add(owned.gone(), SeqCst);
        CALLS.fetch_add(1, SeqCst);
    });
    *OWN.lock().unwrap() = Some(listening);
    reserve::set_size(4 << 20).unwrap();
    grow_until_refused();
    grow_until_refused();
    // It is told no more, and stays.
    assert_eq!((CALLS.load(SeqCst), GONE_WITHIN.load(SeqCst), GONE.load(SeqCst)), (1, 0, 0));

    let owned = Owned;
    drop(reserve::on_shortage(move |_, _| assert_eq!(owned.gone(), 0)));
    assert_eq!(GONE.load(SeqCst), 1);
}
