/* lazy.c - a function is looked for when it is first called: the loader allocates then, while the
 * call's numbers wait in registers, which the heap must not spoil. */
/* SPDX-License-Identifier: MIT */
/* usage: lazy CALLER CALLEE: two libraries that are not linked with each other. */
#include "../blackbox/use.h"

/* Bytes that this thread ever took. */
static uint64_t taken_bytes(void)
{
    static int (*control)(const char *, void *, size_t *, void *, size_t);
    uint64_t bytes = 0;
    size_t length = sizeof bytes;

    if (control == NULL)
        control =
            (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    must(control != NULL && control("thread.allocated", &bytes, &length, NULL, 0) == 0);
    return bytes;
}

static double sum(double x, long y)
{
    double result = 0;
    for (int i = 0; i < 8; i++) result += (i + 1) * (x + i);
    for (int i = 0; i < 6; i++) result += (double)((i + 9) * (y + i));
    return result;
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 3 && getenv("LD_BIND_NOW") == NULL);
    must(dlopen(argv[2], RTLD_LAZY | RTLD_GLOBAL) != NULL);
    void *caller = dlopen(argv[1], RTLD_LAZY);
    must(caller != NULL);
    double (*call)(double, long) = (double (*)(double, long))dlsym(caller, "lazy_call");
    must(call != NULL);
    /* That its library needs another one is a new record of the loader's. */
    uint64_t before = taken_bytes();
    double first = call(0.5, 3);
    uint64_t taken = taken_bytes() - before;
    must(first == sum(0.5, 3));
    if (taken == 0 && !any_allocator_will_do())
        give_up("the loader took no block for the first call");
    must(call(1.25, 7) == sum(1.25, 7));
    printf("lazy: the first call took %d bytes\n", (int)taken);
    return 0;
}
