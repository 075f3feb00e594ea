/* prairie.c - the whole library as one file: every .c in the order of the floors.
 *
 * This is what releases compile, and all that a program needs to carry prairie along:
 *
 *      cc -O2 -fno-lto -fvisibility=hidden -include tool/prairie-sys/names.h -c src/prairie.c
 *
 * Hundreds of functions that only this file knows are global in it. names.h gives them names that
 * no program has; being hidden, they take the place of no shared library's.
 *
 * PRAIRIE_OS_ELSEWHERE  who links this file brings another kernel along (test/kernel/fake.c)
 * PRAIRIE_KERNEL_GATE  every system call passes a function of who links this file
 *                    (test/fault/gate.c)
 * PRAIRIE_OWN_NAMES  only the prairie_ names, not malloc's own; 2: with the control tree and the
 *                    options (tool/prairie-sys)
 * PRAIRIE_PREFIX     the names will get this prefix (cmake/prefix.cmake): those of the C library's
 *                    own and C++'s are left out
 * PRAIRIE_QUANTUM    8: the size classes of slabs/size_classes_8.h, whose blocks malloc itself may
 *                    not give out
 * PRAIRIE_CHECK      0, 1 or 2: the plain, check and audit flavours (base/check.h)
 * PRAIRIE_TINY       tiny constants (base/constants.h)
 * PRAIRIE_RULE_ELSEWHERE  who includes this file brings rule_choose along, which caches ask instead
 *                    of arena_choose (lab/arenas)
 *
 * space.c comes first on its floor for the sake of a page (docs/decisions/0013).
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#if defined(PRAIRIE_QUANTUM) && PRAIRIE_QUANTUM == 8 && !defined(PRAIRIE_PREFIX) \
    && !defined(PRAIRIE_OWN_NAMES)
#error "PRAIRIE_QUANTUM=8 needs PRAIRIE_PREFIX or PRAIRIE_OWN_NAMES: malloc aligns to 16"
#endif

#include "base/fatal.c"
#include "base/lock.c"
#include "base/options.c"
#include "base/report.c"
#if !defined(_WIN32)
#include "os/posix.c"
#endif
#ifndef PRAIRIE_OS_ELSEWHERE
#include "os/port.c"
#endif
#include "space/space.c"
#include "space/sealed.c"
#include "space/meta.c"
#include "space/page_map.c"
#include "space/foreign.c"
#include "space/commit.c"
#include "page_heap/huge.c"
#include "page_heap/page_heap.c"
#include "page_heap/run_find.c"
#include "page_heap/run_fence.c"
#include "page_heap/run_grow.c"
#include "page_heap/run.c"
#include "page_heap/run_resize.c"
#include "page_heap/run_kernel.c"
#include "page_heap/supplied.c"
#include "page_heap/run_walk.c"
#include "policy/purge.c"
#include "policy/purge_pass.c"
#include "policy/limits.c"
#include "policy/reserve.c"
#include "slabs/size_class.c"
#include "slabs/slab.c"
#include "slabs/guarded_pool.c"
#include "arenas/stock.c"
#include "arenas/arena_set.c"
#include "arenas/arena.c"
#ifdef PRAIRIE_RULE_ELSEWHERE
#define arena_choose rule_choose
struct arena *rule_choose(struct arena *last);
#endif
#include "arenas/arena_check.c"
#include "arenas/extent_hooks.c"
#include "arenas/extents.c"
#include "arenas/arena_hooks.c"
#include "arenas/manual.c"
#include "arenas/magazine.c"
#include "arenas/depot.c"
#include "arenas/sparse.c"
#include "arenas/decay.c"
#include "cache/large_cache.c"
#include "cache/growth.c"
#include "cache/cache.c"
#include "cache/quarantine.c"
#include "cache/quarantine_check.c"
#include "cache/sampler.c"
#include "cache/counting.c"
#include "cache/abandoned.c"
#include "cache/cache_list.c"
#include "cache/sleepers.c"
#include "cache/thread.c"
#include "cache/explicit_cache.c"
#include "sample/unwind.c"
#include "sample/sample.c"
#include "sample/sampling.c"
#include "guard/fill.c"
#include "guard/guarded.c"
#include "guard/guarded_report.c"
#include "profile/profile_out.c"
#include "profile/profile_snapshot.c"
#include "profile/profile_jeprof.c"
#include "profile/profile_pprof.c"
#include "profile/profile.c"
#include "heap/doors.c"
#include "heap/slow.c"
#include "heap/misuse.c"
#include "heap/vast.c"
#include "heap/zero_size.c"
#include "heap/hardened.c"
#include "heap/hardened_held.c"
#include "heap/hardened_large.c"
#include "heap/large.c"
#include "heap/large_resize.c"
#include "heap/realloc.c"
#include "heap/extended.c"
#include "heap/placed.c"
#include "heap/sampled.c"
#include "heap/guarded_doors.c"
#include "heap/start.c"
#include "heap/notify.c"
#include "heap/shortage.c"
#include "heap/reserve_doors.c"
#include "heap/inline.c"
#include "view/snapshot.c"
#include "view/outside.c"
#include "view/stats.c"
#if !defined(PRAIRIE_OWN_NAMES) || PRAIRIE_OWN_NAMES >= 2
#include "control/conf.c"
#include "control/control.c"
#include "control/control_tree.c"
#include "control/control_arenas.c"
#include "control/control_blocks.c"
#include "control/control_opt.c"
#include "control/control_placed.c"
#include "control/control_prof.c"
#include "control/lengths.c"
#include "control/figures.c"
#include "control/stats_print.c"
#include "control/stats_general.c"
#include "control/stats_arena.c"
#include "control/metrics.c"
#if !defined(PRAIRIE_OWN_NAMES) && defined(__APPLE__)
#include "darwin/zone.c"
#include "darwin/zone_tasks.c"
#include "darwin/names.c"
#elif !defined(PRAIRIE_OWN_NAMES) && defined(_WIN32)
#include "jemalloc/jemalloc.c"
#include "windows/crt.c"
#include "windows/imports.c"
#include "windows/names.c"
#else
#include "libc/process.c"
#ifndef PRAIRIE_OWN_NAMES
#include "libc/libc.c"
#include "jemalloc/jemalloc.c"
#ifndef PRAIRIE_PREFIX
#if defined(__GLIBC__)
#include "libc/libc_info.c"
#endif
#include "cxx/cxx_new.c"
#endif
#endif
#endif
#endif
