/* control_list.h - the leaves that are neither options nor figures, one entry each; taken in twice,
 * with another LEAF each time.
 *
 * LEAF(name, type, rights, serve)
 *
 *   type    of the value: CONTROL_##type
 *   rights  what may be done with it: CONTROL_##rights; with HEAP, the process starts before
 *   serve   an expression: what serves `call`, as control.h says
 *
 * A leaf's number is that of the line it stands on. No include guard.
 * SPDX-License-Identifier: MIT
 */

/* NOLINTBEGIN(bugprone-branch-clone): leaves may have the same answer. */

LEAF("version", TEXT, READ, GIVE(text, JEMALLOC_RELEASE))
LEAF("epoch", U64, HEAP_BOTH, serve_epoch(call))
LEAF("background_thread", BOOL, HEAP_BOTH, serve_option(call, OPTION_BACKGROUND_THREAD))
LEAF("max_background_threads", SIZE, BOTH, serve_thread_limit(call))
LEAF("approximate_stats.active", SIZE, READ, GIVE(size, heap_start() ? limits_held_bytes() : 0))
/* Whatever it comes with: jemalloc looks at no buffer there. */
LEAF("stats.mutexes.reset", ACTION, HEAP_BOTH, serve_locks_reset())

/* How the library was built. */
LEAF("config.cache_oblivious", BOOL, READ, GIVE(flag, true))
LEAF("config.debug", BOOL, READ, GIVE(flag, CHECKED))
LEAF("config.fill", BOOL, READ, GIVE(flag, true))
LEAF("config.lazy_lock", BOOL, READ, GIVE(flag, false))
LEAF("config.malloc_conf", TEXT, READ, GIVE(text, ""))
LEAF("config.opt_safety_checks", BOOL, READ, GIVE(flag, CHECKED))
LEAF("config.prof", BOOL, READ, GIVE(flag, true))
LEAF("config.prof_libgcc", BOOL, READ, GIVE(flag, false))
LEAF("config.prof_libunwind", BOOL, READ, GIVE(flag, false))
LEAF("config.prof_frameptr", BOOL, READ, GIVE(flag, true))
LEAF("config.stats", BOOL, READ, GIVE(flag, true))
LEAF("config.utrace", BOOL, READ, GIVE(flag, false))
LEAF("config.xmalloc", BOOL, READ, GIVE(flag, true))

/* Arenas; the first number of a name is an arena's. */
LEAF("arenas.dirty_decay_ms", SSIZE, HEAP_BOTH, serve_decay(call, OPTION_DIRTY_DECAY_MS))
LEAF("arenas.muzzy_decay_ms", SSIZE, HEAP_BOTH, serve_decay(call, OPTION_MUZZY_DECAY_MS))
LEAF("arenas.lookup", UNSIGNED, HEAP_ASK, serve_lookup(call))
LEAF("arenas.create", UNSIGNED, HEAP_MAKE, serve_create(call, sizeof(void *)))
LEAF("arenas.narenas", UNSIGNED, HEAP_READ, GIVE(number, control_arena_count()))
LEAF("arenas.quantum", SIZE, HEAP_READ, GIVE(size, QUANTUM_BYTES))
LEAF("arenas.page", SIZE, HEAP_READ, GIVE(size, page_bytes()))
LEAF("arenas.hugepage", SIZE, HEAP_READ, GIVE(size, huge_page_bytes()))
LEAF("arenas.tcache_max", SIZE, HEAP_READ, GIVE(size, class_bytes[cached_class_max]))
LEAF("arenas.nbins", UNSIGNED, HEAP_READ, GIVE(number, BIN_CLASS_COUNT))
LEAF("arenas.nhbins", UNSIGNED, HEAP_READ, GIVE(number, cached_class_max))
LEAF("arenas.nlextents", UNSIGNED, HEAP_READ, GIVE(number, lextent_count()))
LEAF("arena.*.initialized", BOOL, HEAP_READ,
     GIVE(flag, control_arena_kind(call->index[0]) != CONTROL_ARENA_NONE))
LEAF("arena.*.purge", ACTION, HEAP, serve_purge(call))
LEAF("arena.*.decay", ACTION, HEAP, serve_decay_now(call))
LEAF("arena.*.reset", ACTION, HEAP, serve_reset(call))
LEAF("arena.*.destroy", ACTION, HEAP, serve_destroy(call))
LEAF("arena.*.dss", TEXT, HEAP_BOTH, serve_arena_option(call, OPTION_DSS))
LEAF("arena.*.oversize_threshold", SIZE, HEAP_BOTH,
     serve_arena_option(call, OPTION_OVERSIZE_THRESHOLD))
LEAF("arena.*.dirty_decay_ms", SSIZE, HEAP_BOTH, serve_arena_decay(call, OPTION_DIRTY_DECAY_MS))
LEAF("arena.*.muzzy_decay_ms", SSIZE, HEAP_BOTH, serve_arena_decay(call, OPTION_MUZZY_DECAY_MS))
LEAF("arena.*.retain_grow_limit", SIZE, HEAP_BOTH, serve_grow_limit(call))
LEAF("arena.*.extent_hooks", POINTER, HEAP_BOTH, serve_extent_hooks(call))
LEAF("arena.*.name", RAW, HEAP_BOTH, serve_name(call))
LEAF("experimental.arenas_create_ext", UNSIGNED, HEAP_MAKE,
     serve_create(call, sizeof(struct arena_wish)))
LEAF("experimental.arenas.*.pactivep", POINTER, HEAP_EXACT, serve_active_at(call))

/* Explicit caches, and the calling thread's own. */
LEAF("tcache.create", UNSIGNED, HEAP_EXACT, serve_cache_create(call))
LEAF("tcache.flush", UNSIGNED, HEAP_WRITE, serve_cache_flush(call))
LEAF("tcache.destroy", UNSIGNED, HEAP_WRITE, serve_cache_destroy(call))
LEAF("thread.arena", UNSIGNED, HEAP_BOTH, serve_thread_arena(call))
LEAF("thread.idle", ACTION, NONE, serve_thread_flush())
LEAF("thread.tcache.enabled", BOOL, HEAP_BOTH, serve_cache_enabled(call))
LEAF("thread.tcache.flush", ACTION, HEAP, serve_thread_flush())
LEAF("thread.tcache.max", SIZE, HEAP_BOTH, serve_cache_max(call))
LEAF("thread.tcache.ncached_max.read_sizeclass", SIZE, HEAP_ASK, serve_cache_blocks(call))
LEAF("experimental.batch_alloc", SIZE, HEAP_MAKE, serve_batch_take(call))

/* Samples of allocations, and what the calling thread took and gave back. */
LEAF("prof.active", BOOL, BOTH, serve_switch(call, RELAXED_LOAD(sampling_active), set_active))
LEAF("prof.dump", RAW, WRITE, serve_dump(call))
LEAF("prof.gdump", BOOL, BOTH, serve_switch(call, RELAXED_LOAD(profile.gdump), profile_set_gdump))
LEAF("prof.interval", U64, READ, GIVE(u64, profile.interval_bytes))
LEAF("prof.lg_sample", SIZE, READ, GIVE(size, RELAXED_LOAD(profile.lg_sample)))
LEAF("prof.prefix", TEXT, WRITE, serve_prefix(call))
LEAF("prof.reset", RAW, WRITE, serve_profile_reset(call))
LEAF("prof.thread_active_init", BOOL, BOTH,
     serve_switch(call, threads_sampling_at_birth(), threads_sampling_init))
LEAF("experimental.hooks.prof_backtrace", POINTER, BOTH, serve_prof_hook(call, HOOK_WALK))
LEAF("experimental.hooks.prof_dump", POINTER, BOTH, serve_prof_hook(call, HOOK_DUMP))
LEAF("experimental.hooks.prof_sample", POINTER, BOTH, serve_prof_hook(call, HOOK_TAKEN))
LEAF("experimental.hooks.prof_sample_free", POINTER, BOTH, serve_prof_hook(call, HOOK_GIVEN))
LEAF("thread.allocated", U64, READ, OF_THREAD(u64, counting->allocated))
LEAF("thread.allocatedp", POINTER, READ, OF_THREAD(pointer, &counting->allocated))
LEAF("thread.deallocated", U64, READ, OF_THREAD(u64, counting->deallocated))
LEAF("thread.deallocatedp", POINTER, READ, OF_THREAD(pointer, &counting->deallocated))
LEAF("thread.peak.read", U64, READ, OF_THREAD(u64, counting_peak(counting)))
LEAF("thread.peak.reset", ACTION, NONE, OF_THREAD(u64, (counting_forget_peak(counting), 0)))
LEAF("thread.prof.name", TEXT, BOTH, serve_thread_name(call))
LEAF("thread.prof.active", BOOL, BOTH, serve_thread_sampling(call))

/* The memory reserve and the limits; prairie's own. */
LEAF("reserve.cur", SIZE, READ, GIVE(size, reserve_cur_get()))
LEAF("reserve.max", SIZE, READ, GIVE(size, reserve_max_get()))
LEAF("reserve.min", SIZE, BOTH, serve_reserve(call))
LEAF("limit.hard", SIZE, BOTH, serve_limit(call, limit_hard_get, limit_hard_set))
LEAF("limit.soft", SIZE, BOTH, serve_limit(call, limit_soft_get, limit_soft_set))
LEAF("limit.used", SIZE, READ, GIVE(size, commit_taken_bytes()))

/* The last two are for servers that know the size classes of a quantum of 8; with another one they
 * would take bins for what they are not, so that then these names do not exist. */
LEAF("experimental.utilization.batch_query", RAW, HEAP_BOTH, serve_batch_query(call))
LEAF("experimental.utilization.query", RAW, HEAP_BOTH, serve_query(call))

/* NOLINTEND(bugprone-branch-clone) */
