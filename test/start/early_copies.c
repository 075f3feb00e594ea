/* early_copies.c - memcpy and its kin are called before the library that has them is relocated
 * (early_copies_library.c). */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

extern int (*volatile early_sum)(void);

int main(void)
{
    require_prairie();
    must(early_sum() == 300 + 'd');
    return 0;
}
