/* thread_library_main.c - main begins while a library's threads already allocate. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

extern char *thread_library_gift(void);
extern void thread_library_join(void);

int main(void)
{
    require_prairie();
    must(stamp_holds(thread_library_gift(), 5000, 77));
    free(thread_library_gift());
    for (int i = 0; i < 20; i++) use_heap_once(30);
    thread_library_join();
    use_heap_in_threads(4, 5);
    walk_heap();
    puts("thread_library: constructor's threads and main's share the heap");
    return 0;
}
