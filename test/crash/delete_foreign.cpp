/* expect: abort "prairie: free of a foreign pointer" */
/* delete_foreign.cpp - an object on the stack is deleted. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

struct Thing {
    long payload[4];
};

int main()
{
    require_prairie();
    Thing thing = {};
    ::operator delete(hidden(&thing));
    missed();
}
