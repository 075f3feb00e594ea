/* expect: ok */
/* ok_free_null.c - every way to give back takes NULL. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    free(hidden(NULL));
    void (*old_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(old_free != NULL && sized != NULL);
    old_free(NULL);
    sized(NULL, 100);
    void *block = realloc(hidden(NULL), 10);
    must(block != NULL && malloc_usable_size(hidden(NULL)) == 0);
    free(block);
    return 0;
}
