//! The smallest limits. They are the whole process's, so that nothing else runs beside this.
// SPDX-License-Identifier: MIT

use prairie_alloc::{limits, Prairie};

#[global_allocator]
static ALLOCATOR: Prairie = Prairie;

#[test]
fn a_limit_of_nothing_is_not_none() {
    assert_eq!((limits::hard(), limits::soft()), (None, None));
    limits::set_hard(Some(0));
    let refused = Vec::<u8>::new().try_reserve_exact(64 << 20).is_err();
    let told = limits::hard();
    limits::set_hard(None);
    assert!(refused);
    assert_eq!((told, limits::hard()), (Some(1), None));
    limits::set_soft(Some(0));
    assert_eq!(limits::soft(), Some(1));
    limits::set_soft(None);
    assert_eq!(limits::soft(), None);
}
