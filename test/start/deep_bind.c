/* deep_bind.c - a library that is opened with RTLD_DEEPBIND calls the C library's malloc and free,
 * and prairie's where examples/no_deep_bind.c is preloaded, too. */
/* SPDX-License-Identifier: MIT */
/* usage: deep_bind LIBRARY SHIM: starts itself again with the library SHIM before prairie. */
#include "limits.h"

static bool is_served(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    if (library == NULL) give_up("%s: %s", path, dlerror());
    void *(*(*its_malloc)(void))(size_t) =
        (void *(*(*)(void))(size_t))dlsym(library, "deep_bind_malloc");
    void (*(*its_free)(void))(void *) = (void (*(*)(void))(void *))dlsym(library, "deep_bind_free");
    must(its_malloc != NULL && its_free != NULL);
    bool serves = lies_in_prairie((void *)its_malloc());
    must(lies_in_prairie((void *)its_free()) == serves);
    return serves;
}

int main(int argc, char **argv)
{
    require_prairie();
    if (argc == 3) {
        char preloaded[8192];
        int length =
            snprintf(preloaded, sizeof preloaded, "%s:%s", argv[2], getenv("PRAIRIE_LIBRARY"));
        if (is_served(argv[1])) give_up("served without %s: switching.md says otherwise", argv[2]);
        must(length > 0 && length < (int)sizeof preloaded
             && setenv("LD_PRELOAD", preloaded, 1) == 0);
        start_again(argv, argv[1]);
    }
    must(argc == 2 && is_served(argv[1]));
    return 0;
}
