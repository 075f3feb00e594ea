/* option_list.h - every option, one entry each; taken in several times, with another OPTION each
 * time.
 *
 * OPTION(id, kind, mode, name, default, least, most, words, sentence)
 *
 *   kind   BOOL      true or false; OPTION_UNASKED as a default: true, but read back as false
 *          UNSIGNED  32 bits;  SIZE, SSIZE, U64, I64: 64 bits; limits are those of the entry
 *          FRACTION  0.25; kept in 65536ths; -1: none
 *          CHOICE    one of `words`, which end with a NUL each; the value is its number
 *          TEXT      anything; `words` is the default
 *          IGNORED   a key that has no value to read back
 *   mode   OBEYED    it does what its sentence says
 *          KEPT      understood, checked and read back; changes nothing, and the sentence says why
 *          SAMPLER   read by the profiler
 *          ..._CLIPPED  the same of a number that counts as the nearest limit when it lies beyond,
 *                    as with jemalloc; others are refused then. None is signed, so that a negative one
 *                    counts as the upper limit
 *
 * The parser, the names opt.* of the control tree, the statistics' list of options and
 * docs/options.md are made from it. The sentences are for the page only; the library does not carry
 * them. No include guard.
 * SPDX-License-Identifier: MIT
 */

/* ---- what the page of options lists first ---- */

OPTION(STATS_PRINT, BOOL, OBEYED, "stats_print", 0, 0, 1, "",
       "Print the statistics to the standard error when the program ends.")
OPTION(STATS_PRINT_OPTS, TEXT, OBEYED, "stats_print_opts", 0, 0, 0, "",
       "Letters for `stats_print`, as `malloc_stats_print` takes them.")
OPTION(
    BACKGROUND_THREAD, BOOL, OBEYED, "background_thread", OPTION_UNASKED, 0, 1, "",
    "`false`: prairie has no thread of its own. Otherwise it may use one, now and then, to give "
    "memory back, also in some programs of one thread ([which](tuning.md#the-background-thread)); "
    "`opt.background_thread` reads true only where somebody asked for it.")
OPTION(NARENAS, UNSIGNED, OBEYED_CLIPPED, "narenas", 0, 0, UINT32_MAX, "",
       "How many arenas there may be, at most 256; 0 or `default` means one for each core the "
       "program may use. Then, under a control group's limit on processor time, threads share as "
       "many of them as the limit has cores, and two at least.")
OPTION(PERCPU_ARENA, CHOICE, OBEYED, "percpu_arena", 0, 0, 2, "disabled\0percpu\0phycpu\0",
       "`percpu`: take the arena of the core a thread runs on each time it needs one; `phycpu`: "
       "core n and core n + half of all cores share one, as the two threads of a processor's core "
       "are often numbered; `disabled`: stay as long as nobody is in the way.")
OPTION(
    DIRTY_DECAY_MS, SSIZE, OBEYED, "dirty_decay_ms", 10000, -1, INT64_MAX, "",
    "Milliseconds after which nine tenths of freed memory are back with the kernel. Without a "
    "background thread, what goes beyond [a budget](tuning.md#the-background-thread) goes back in "
    "the call that frees. 0: free pages go back at once, except for those between blocks; -1: only "
    "near a limit, or when asked for (`malloc_trim`, `arena.N.purge`).")
OPTION(RESERVE_MIN, SIZE, OBEYED, "reserve_min", 0, 0, (uint64_t)1 << 40, "",
       "Bytes of real memory to keep [in reserve](reserve.md); 0 means none, or 2 MiB once the "
       "program registers a callback.")
OPTION(
    RESERVE_MALLOC, BOOL, OBEYED, "reserve_malloc", 0, 0, 1, "",
    "Before `malloc` and its kin return NULL, tell the registered callbacks (CRIT), one after the "
    "other, and try again after each.")
OPTION(
    LIMIT_SOFT, SIZE, OBEYED, "limit_soft", 0, 0, (uint64_t)1 << 47, "",
    "Bytes beyond which free memory goes back at once and callbacks are told (LOW); 0 means none.")
OPTION(LIMIT_HARD, SIZE, OBEYED, "limit_hard", 0, 0, (uint64_t)1 << 47, "",
       "The most bytes that blocks, caches, free pages that were not given back, and prairie's "
       "records "
       "may have together; requests beyond are refused. 0 means no limit.")
OPTION(LIMIT_GROUP, BOOL, OBEYED, "limit_group", 1, 0, 1, "",
       "In a control group with a limit of memory, act near it as near `limit_soft`.")
OPTION(
    RETAIN, BOOL, OBEYED, "retain", 1, 0, 1, "",
    "`false`: free memory at the end of the heap is also closed when it goes back, so that strict "
    "overcommit no longer counts it.")
OPTION(OVERSIZE_THRESHOLD, SIZE, OBEYED, "oversize_threshold", 0, 0, UINT64_MAX, "",
       "A freed block of this many bytes and more goes back to the kernel at once, but for some of "
       "up to 128 KiB that threads keep; 0: none does.")
OPTION(TCACHE, BOOL, OBEYED, "tcache", 1, 0, 1, "",
       "`false`: threads hold no blocks; every call takes a lock.")
OPTION(TCACHE_MAX, SIZE, OBEYED_CLIPPED, "tcache_max", SMALL_BYTES_MAX, 0, UINT64_MAX, "",
       "Threads hold blocks of at most this many bytes; larger values count as 14336. With a "
       "smaller one they hold no runs for large blocks either.")
OPTION(ZERO_REALLOC, CHOICE, OBEYED, "zero_realloc", 1, 0, 2, "alloc\0free\0abort\0",
       "What `realloc(p, 0)` does: `free` it and return NULL, `alloc` a smallest block instead, or "
       "`abort`.")
OPTION(HARDENED, BOOL, OBEYED, "hardened", PRAIRIE_HARDENED, 0, 1, "",
       "Look at [every block](hardened.md) that comes and goes, and hold back what was freed.")
OPTION(GUARD_ZERO_SIZE, BOOL, OBEYED, "guard_zero_size", 1, 0, 1, "",
       "What `malloc(0)` returns may not be read or written: a program that does ends. `false`: it "
       "has the bytes of the smallest block, as always on macOS and where there is little address "
       "space.")
OPTION(GUARD_SAMPLE, UNSIGNED, OBEYED, "guard_sample", 1024, 0, 16384, "",
       "[Guarded blocks](errors.md#guarded-blocks): one is due after so many refills of a thread's "
       "magazines, on average; 0: there are none.")
OPTION(GUARD_INTERVAL, UNSIGNED, OBEYED, "guard_interval", 20, 0, 3600000, "",
       "The least time between two guarded blocks, in milliseconds.")
OPTION(GUARD_CELLS, UNSIGNED, OBEYED, "guard_cells", 64, 1, 256, "",
       "How many guarded blocks there can be, including freed ones that are still watched.")
OPTION(GUARD_RECOVER, BOOL, OBEYED, "guard_recover", 0, 0, 1, "",
       "`true`: what goes wrong with a guarded block is reported, once for each block, and the "
       "program goes on.")
OPTION(
    CACHE_OBLIVIOUS, BOOL, OBEYED, "cache_oblivious", 1, 0, 1, "",
    "`false`: each block above 14 KiB begins with a page. Otherwise one whose pages have 512 bytes "
    "to spare begins with one of the page's first eight lines of 64 bytes.")
OPTION(XMALLOC, BOOL, OBEYED, "xmalloc", 0, 0, 1, "",
       "Say so and abort instead of returning NULL for want of memory.")
OPTION(JUNK, CHOICE, OBEYED, "junk", 0, 0, 3, "false\0alloc\0free\0true\0",
       "Fill blocks with 0xa5 when they are given out (`alloc`), with 0x5a when they are freed "
       "(`free`), or both (`true`). Every call then takes a lock.")
OPTION(ZERO, BOOL, OBEYED, "zero", 0, 0, 1, "",
       "Clear every block that is given out. Every call then takes a lock.")
OPTION(THP, CHOICE, OBEYED, "thp", 0, 0, 2, "default\0always\0never\0",
       "Huge pages for the heap: `default` once it has grown dense, from 8 MiB on for each page "
       "heap in "
       "use (one for each core that allocates, at most 64); `always` from the beginning; `never`.")
OPTION(METADATA_THP, CHOICE, OBEYED, "metadata_thp", 0, 0, 2, "disabled\0auto\0always\0",
       "`always`: let the kernel use huge pages for prairie's own records.")
OPTION(ABORT_CONF, BOOL, OBEYED, "abort_conf", 0, 0, 1, "",
       "Abort when a pair is not understood; keys that begin with `experimental_` are forgiven.")
OPTION(CONFIRM_CONF, BOOL, OBEYED, "confirm_conf", 0, 0, 1, "",
       "Say on the standard error where options came from and which were set.")
OPTION(MAX_BACKGROUND_THREADS, SIZE, OBEYED_CLIPPED, "max_background_threads", 4, 1, UINT64_MAX, "",
       "An upper limit; there is never more than one.")

/* ---- understood, and without effect ---- */

OPTION(MUZZY_DECAY_MS, SSIZE, KEPT, "muzzy_decay_ms", 0, -1, INT64_MAX, "",
       "Free pages are either dirty or with the kernel; there is no state between.")
OPTION(ABORT, BOOL, KEPT, "abort", 0, 0, 1, "", "Misuse always aborts.")
OPTION(DSS, CHOICE, KEPT, "dss", 1, 0, 2, "disabled\0secondary\0primary\0N/A\0",
       "The break of the data segment is never used.")
OPTION(TRUST_MADVISE, BOOL, KEPT, "trust_madvise", 1, 0, 1, "", "It is trusted.")
OPTION(LG_EXTENT_MAX_ACTIVE_FIT, SIZE, KEPT, "lg_extent_max_active_fit", 6, 0, 64, "",
       "Runs of pages are found by length.")
OPTION(NARENAS_RATIO, FRACTION, KEPT, "narenas_ratio", 65536, 0, UINT32_MAX, "", "See `narenas`.")
OPTION(STATS_INTERVAL, I64, KEPT, "stats_interval", -1, -1, INT64_MAX, "",
       "Nothing is printed while the program runs.")
OPTION(STATS_INTERVAL_OPTS, TEXT, KEPT, "stats_interval_opts", 0, 0, 0, "", "As above.")
OPTION(TCACHE_NCACHED_MAX, IGNORED, KEPT, "tcache_ncached_max", 0, 0, 0, "",
       "Magazines grow with what a thread does.")
OPTION(CALLOC_MADVISE_THRESHOLD, SIZE, KEPT_CLIPPED, "calloc_madvise_threshold", 0, 0, UINT64_MAX,
       "", "Up to 32 MiB are cleared, more is given back and taken anew.")
OPTION(PROCESS_MADVISE_MAX_BATCH, SIZE, KEPT_CLIPPED, "process_madvise_max_batch", 0, 0, UINT64_MAX,
       "", "Runs go back one by one.")
OPTION(EXPERIMENTAL_INFALLIBLE_NEW, BOOL, KEPT, "experimental_infallible_new", 0, 0, 1, "",
       "`operator new` throws; `xmalloc` aborts.")
OPTION(BIN_SHARDS, IGNORED, KEPT, "bin_shards", 0, 0, 0, "", "Arenas have one lock each.")
OPTION(SLAB_SIZES, IGNORED, KEPT, "slab_sizes", 0, 0, 0, "", "Slabs have the shape they have.")
OPTION(MUTEX_MAX_SPIN, I64, KEPT, "mutex_max_spin", 600, -1, INT64_MAX, "",
       "Locks spin for a short while, and not at all with one core.")
OPTION(TCACHE_NSLOTS_SMALL_MIN, UNSIGNED, KEPT_CLIPPED, "tcache_nslots_small_min", 20, 1,
       UINT32_MAX, "", "Magazines grow with what a thread does.")
OPTION(TCACHE_NSLOTS_SMALL_MAX, UNSIGNED, KEPT_CLIPPED, "tcache_nslots_small_max", 200, 1,
       UINT32_MAX, "", "As above.")
OPTION(TCACHE_NSLOTS_LARGE, UNSIGNED, KEPT_CLIPPED, "tcache_nslots_large", 20, 1, UINT32_MAX, "",
       "As above.")
OPTION(LG_TCACHE_NSLOTS_MUL, SSIZE, KEPT, "lg_tcache_nslots_mul", 1, -16, 16, "", "As above.")
OPTION(TCACHE_GC_INCR_BYTES, SIZE, KEPT_CLIPPED, "tcache_gc_incr_bytes", 65536, 1024, UINT64_MAX,
       "",
       "The background thread empties depots, and where it can the caches of threads that sleep.")
OPTION(TCACHE_GC_DELAY_BYTES, SIZE, KEPT_CLIPPED, "tcache_gc_delay_bytes", 0, 0, UINT64_MAX, "",
       "As above.")
OPTION(LG_TCACHE_FLUSH_SMALL_DIV, UNSIGNED, KEPT_CLIPPED, "lg_tcache_flush_small_div", 1, 1, 16, "",
       "Half of a full magazine goes, or a whole one.")
OPTION(LG_TCACHE_FLUSH_LARGE_DIV, UNSIGNED, KEPT_CLIPPED, "lg_tcache_flush_large_div", 1, 1, 16, "",
       "As above.")
OPTION(EXPERIMENTAL_TCACHE_GC, BOOL, KEPT, "experimental_tcache_gc", 1, 0, 1, "",
       "The background thread empties depots, and where it can the caches of threads that sleep.")
OPTION(DEBUG_DOUBLE_FREE_MAX_SCAN, UNSIGNED, KEPT_CLIPPED, "debug_double_free_max_scan", 0, 0,
       UINT32_MAX, "",
       "A second free is looked for where frees are slow anyway; no option makes it more.")
OPTION(DISABLE_LARGE_SIZE_CLASSES, BOOL, KEPT, "disable_large_size_classes", 1, 0, 1, "",
       "Large blocks are whole pages.")
OPTION(LG_SAN_UAF_ALIGN, SSIZE, KEPT, "lg_san_uaf_align", -1, -1, 63, "",
       "Guarded blocks have options of their own: `guard_sample`.")
OPTION(SAN_GUARD_SMALL, SIZE, KEPT_CLIPPED, "san_guard_small", 0, 0, UINT64_MAX, "", "As above.")
OPTION(SAN_GUARD_LARGE, SIZE, KEPT_CLIPPED, "san_guard_large", 0, 0, UINT64_MAX, "", "As above.")
OPTION(UTRACE, BOOL, KEPT, "utrace", 0, 0, 1, "", "Linux has no such calls.")
OPTION(LOG, IGNORED, KEPT, "log", 0, 0, 0, "", "Nothing is logged.")
OPTION(HPA, BOOL, KEPT, "hpa", 0, 0, 1, "",
       "There is no allocator of huge pages apart from the page heaps; `thp` is about those.")
OPTION(HPA_SLAB_MAX_ALLOC, SIZE, KEPT_CLIPPED, "hpa_slab_max_alloc", 65536, 4096, UINT64_MAX, "",
       "As above.")
OPTION(HPA_HUGIFICATION_THRESHOLD, SIZE, KEPT_CLIPPED, "hpa_hugification_threshold", 1992294, 0,
       UINT64_MAX, "", "As above.")
OPTION(HPA_HUGIFICATION_THRESHOLD_RATIO, IGNORED, KEPT, "hpa_hugification_threshold_ratio", 0, 0, 0,
       "", "As above.")
OPTION(HPA_HUGIFY_DELAY_MS, U64, KEPT_CLIPPED, "hpa_hugify_delay_ms", 10000, 0, UINT64_MAX, "",
       "As above.")
OPTION(HPA_HUGIFY_SYNC, BOOL, KEPT, "hpa_hugify_sync", 0, 0, 1, "", "As above.")
OPTION(HPA_HUGIFY_STYLE, CHOICE, KEPT, "hpa_hugify_style", 0, 0, 2, "lazy\0eager\0none\0",
       "As above.")
OPTION(HPA_MIN_PURGE_INTERVAL_MS, U64, KEPT_CLIPPED, "hpa_min_purge_interval_ms", 5000, 0,
       UINT64_MAX, "", "As above.")
OPTION(HPA_MIN_PURGE_DELAY_MS, U64, KEPT_CLIPPED, "hpa_min_purge_delay_ms", 0, 0, UINT64_MAX, "",
       "As above.")
OPTION(HPA_PURGE_THRESHOLD, SIZE, KEPT_CLIPPED, "hpa_purge_threshold", 4096, 0, UINT64_MAX, "",
       "As above.")
OPTION(HPA_PURGE_THRESHOLD_RATIO, IGNORED, KEPT, "hpa_purge_threshold_ratio", 0, 0, 0, "",
       "As above.")
OPTION(HPA_DIRTY_MULT, FRACTION, KEPT, "hpa_dirty_mult", 16384, 0, UINT32_MAX, "", "As above.")
OPTION(HPA_SEC_NSHARDS, SIZE, KEPT_CLIPPED, "hpa_sec_nshards", 2, 0, UINT64_MAX, "", "As above.")
OPTION(HPA_SEC_MAX_ALLOC, SIZE, KEPT_CLIPPED, "hpa_sec_max_alloc", 32768, 0, UINT64_MAX, "",
       "As above.")
OPTION(HPA_SEC_MAX_BYTES, SIZE, KEPT_CLIPPED, "hpa_sec_max_bytes", 262144, 0, UINT64_MAX, "",
       "As above.")
OPTION(HPA_SEC_BYTES_AFTER_FLUSH, IGNORED, KEPT, "hpa_sec_bytes_after_flush", 0, 0, 0, "",
       "As above.")
OPTION(HPA_SEC_BATCH_FILL_EXTRA, SIZE, KEPT_CLIPPED, "hpa_sec_batch_fill_extra", 3, 0, UINT64_MAX,
       "", "As above.")
OPTION(EXPERIMENTAL_HPA_MAX_PURGE_NHP, SSIZE, KEPT, "experimental_hpa_max_purge_nhp", -1, -1,
       INT64_MAX, "", "As above.")
OPTION(EXPERIMENTAL_HPA_START_HUGE, BOOL, KEPT, "experimental_hpa_start_huge_if_thp_always", 1, 0,
       1, "", "As above.")
OPTION(EXPERIMENTAL_HPA_ENFORCE_HUGIFY, BOOL, KEPT, "experimental_hpa_enforce_hugify", 0, 0, 1, "",
       "As above.")
OPTION(HUGE_ARENA_PAC_THP, BOOL, KEPT, "huge_arena_pac_thp", 0, 0, 1, "", "As above.")

/* ---- the profiler's ---- */

OPTION(PROF, BOOL, SAMPLER, "prof", 0, 0, 1, "", "Take samples of allocations.")
OPTION(PROF_ACTIVE, BOOL, SAMPLER, "prof_active", 1, 0, 1, "", "Begin at once.")
OPTION(PROF_THREAD_ACTIVE_INIT, BOOL, SAMPLER, "prof_thread_active_init", 1, 0, 1, "",
       "Begin at once in new threads.")
OPTION(PROF_PREFIX, TEXT, SAMPLER, "prof_prefix", 0, 0, 0, "jeprof", "How file names begin.")
OPTION(LG_PROF_SAMPLE, SIZE, SAMPLER_CLIPPED, "lg_prof_sample", 19, 0, 63, "",
       "The logarithm of the bytes between two samples, on average.")
OPTION(LG_PROF_INTERVAL, SSIZE, SAMPLER, "lg_prof_interval", -1, -1, 63, "",
       "The logarithm of the bytes between two dumps; -1: none.")
OPTION(PROF_GDUMP, BOOL, SAMPLER, "prof_gdump", 0, 0, 1, "",
       "Dump at each new peak: as many files as the program has peaks, as with jemalloc.")
OPTION(PROF_FINAL, BOOL, SAMPLER, "prof_final", 0, 0, 1, "", "Dump when the program ends.")
OPTION(PROF_LEAK, BOOL, SAMPLER, "prof_leak", 0, 0, 1, "",
       "Report leaks when it ends; with it `prof` is true.")
OPTION(PROF_LEAK_ERROR, BOOL, SAMPLER, "prof_leak_error", 0, 0, 1, "",
       "Exit with 1 when there are leaks; with it `prof_leak` is true.")
OPTION(PROF_ACCUM, BOOL, SAMPLER, "prof_accum", 0, 0, 1, "", "Count what was freed, too.")
OPTION(PROF_BT_MAX, UNSIGNED, SAMPLER_CLIPPED, "prof_bt_max", 128, 1, 128, "",
       "The deepest stack that is recorded.")
OPTION(PROF_PPROF, BOOL, SAMPLER, "prof_pprof", 0, 0, 1, "",
       "Write files that nobody named in pprof's format, not jeprof's.")
OPTION(PROF_PID_NAMESPACE, BOOL, KEPT, "prof_pid_namespace", 0, 0, 1, "",
       "File names have the number of the process.")
OPTION(PROF_SYS_THREAD_NAME, BOOL, KEPT, "prof_sys_thread_name", 0, 0, 1, "",
       "Threads have the names that they give themselves.")
OPTION(PROF_RECENT_ALLOC_MAX, SSIZE, KEPT, "prof_recent_alloc_max", 0, -1, INT64_MAX, "",
       "None are recorded.")
OPTION(PROF_STATS, BOOL, KEPT, "prof_stats", 0, 0, 1, "", "Every sample tells its size.")
OPTION(PROF_TIME_RESOLUTION, CHOICE, KEPT, "prof_time_resolution", 0, 0, 1, "default\0high\0",
       "Samples have no times.")
OPTION(PROF_LOG, IGNORED, KEPT, "prof_log", 0, 0, 0, "", "There is no log.")
OPTION(PROF_UNBIAS, IGNORED, KEPT, "prof_unbias", 0, 0, 0, "", "Samples are always unbiased.")
