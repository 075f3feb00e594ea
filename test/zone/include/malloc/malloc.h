/* malloc/malloc.h - the zones of macOS, as far as documented there, for tests elsewhere: the same
 * members in the same order and the same versions. The functions are those of registry.c.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_ZONE_MALLOC_H
#define PRAIRIE_TEST_ZONE_MALLOC_H

#include <mach/mach.h>

typedef unsigned long long malloc_type_id_t;
enum { MALLOC_ZONE_MALLOC_OPTION_CLEAR = 1 };

typedef struct _malloc_zone_t {
    void *reserved1, *reserved2;
    size_t (*size)(struct _malloc_zone_t *zone, const void *block);
    void *(*malloc)(struct _malloc_zone_t *zone, size_t size);
    void *(*calloc)(struct _malloc_zone_t *zone, size_t count, size_t size);
    void *(*valloc)(struct _malloc_zone_t *zone, size_t size);
    void (*free)(struct _malloc_zone_t *zone, void *block);
    void *(*realloc)(struct _malloc_zone_t *zone, void *block, size_t size);
    void (*destroy)(struct _malloc_zone_t *zone);
    const char *zone_name;
    unsigned (*batch_malloc)(struct _malloc_zone_t *zone, size_t size, void **blocks,
                             unsigned count);
    void (*batch_free)(struct _malloc_zone_t *zone, void **blocks, unsigned count);
    struct malloc_introspection_t *introspect;
    unsigned version;
    void *(*memalign)(struct _malloc_zone_t *zone, size_t align, size_t size);         /* 5 */
    void (*free_definite_size)(struct _malloc_zone_t *zone, void *block, size_t size); /* 6 */
    size_t (*pressure_relief)(struct _malloc_zone_t *zone, size_t goal);               /* 8 */
    boolean_t (*claimed_address)(struct _malloc_zone_t *zone, void *address);          /* 10 */
    void (*try_free_default)(struct _malloc_zone_t *zone, void *block);                /* 13 */
    void *(*malloc_with_options)(struct _malloc_zone_t *zone, size_t align, size_t size,
                                 uint64_t options); /* 15 */
    void *(*malloc_type_malloc)(struct _malloc_zone_t *zone, size_t size,
                                malloc_type_id_t type); /* 16 */
    void *(*malloc_type_calloc)(struct _malloc_zone_t *zone, size_t count, size_t size,
                                malloc_type_id_t type);
    void *(*malloc_type_realloc)(struct _malloc_zone_t *zone, void *block, size_t size,
                                 malloc_type_id_t type);
    void *(*malloc_type_memalign)(struct _malloc_zone_t *zone, size_t align, size_t size,
                                  malloc_type_id_t type);
    void *(*malloc_type_malloc_with_options)(struct _malloc_zone_t *zone, size_t align, size_t size,
                                             uint64_t options, malloc_type_id_t type);
} malloc_zone_t;

typedef struct {
    vm_address_t address;
    vm_size_t size;
} vm_range_t;

typedef struct malloc_statistics_t {
    unsigned blocks_in_use;
    size_t size_in_use, max_size_in_use, size_allocated;
} malloc_statistics_t;

/* Makes memory of a task readable here, until the next call. */
typedef kern_return_t memory_reader_t(task_t task, vm_address_t address, vm_size_t bytes,
                                      void **local);
typedef void vm_range_recorder_t(task_t task, void *context, unsigned type, vm_range_t *ranges,
                                 unsigned count);
typedef void print_task_printer_t(const char *format, ...);

enum {
    MALLOC_PTR_IN_USE_RANGE_TYPE = 1,
    MALLOC_PTR_REGION_RANGE_TYPE = 2,
    MALLOC_ADMIN_REGION_RANGE_TYPE = 4
};

typedef struct malloc_introspection_t {
    kern_return_t (*enumerator)(task_t task, void *context, unsigned types, vm_address_t zone,
                                memory_reader_t reader, vm_range_recorder_t recorder);
    size_t (*good_size)(malloc_zone_t *zone, size_t size);
    boolean_t (*check)(malloc_zone_t *zone);
    void (*print)(malloc_zone_t *zone, boolean_t verbose);
    void (*log)(malloc_zone_t *zone, void *address);
    void (*force_lock)(malloc_zone_t *zone);
    void (*force_unlock)(malloc_zone_t *zone);
    void (*statistics)(malloc_zone_t *zone, malloc_statistics_t *statistics);
    boolean_t (*zone_locked)(malloc_zone_t *zone);
    boolean_t (*enable_discharge_checking)(malloc_zone_t *zone); /* 7 */
    void (*disable_discharge_checking)(malloc_zone_t *zone);
    void (*discharge)(malloc_zone_t *zone, void *block);
    void *enumerate_unavailable_without_blocks;
    void (*reinit_lock)(malloc_zone_t *zone); /* 9 */
    void (*print_task)(task_t task, unsigned level, vm_address_t zone, memory_reader_t reader,
                       print_task_printer_t printer); /* 11 */
    void (*task_statistics)(task_t task, vm_address_t zone, memory_reader_t reader,
                            malloc_statistics_t *statistics); /* 12 */
    unsigned zone_type;                                       /* 14 */
} malloc_introspection_t;

malloc_zone_t *malloc_default_zone(void);
malloc_zone_t *malloc_default_purgeable_zone(void);
void malloc_zone_register(malloc_zone_t *zone);
void malloc_zone_unregister(malloc_zone_t *zone);
malloc_zone_t *malloc_zone_from_ptr(const void *block);
kern_return_t malloc_get_all_zones(task_t task, memory_reader_t reader, vm_address_t **zones,
                                   unsigned *count);
void malloc_zone_free(malloc_zone_t *zone, void *block);
void *malloc_zone_realloc(malloc_zone_t *zone, void *block, size_t size);
size_t malloc_size(const void *block);
size_t malloc_zone_pressure_relief(malloc_zone_t *zone, size_t goal);

#endif
