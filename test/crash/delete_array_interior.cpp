/* expect: abort "prairie: free of an interior pointer" */
/* delete_array_interior.cpp - an array with a cookie is given back without it, as by delete
 * instead of delete[]. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

struct Thing {
    long payload[1000];
    Thing() { payload[0] = 1; }
    ~Thing() { payload[0] = 0; }
};

int main()
{
    require_prairie();
    Thing *things = new Thing[10];
    ::operator delete(hidden(things));
    missed();
}
