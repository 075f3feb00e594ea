/* expect: ok */
/* ok_sized_delete.cpp - expressions whose sizes the compiler fills in: arrays, cookies,
 * over-aligned and derived types. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

struct Base {
    virtual ~Base() {}
    long payload[2];
};
struct Derived : Base {
    long more[100];
};
struct alignas(128) Wide {
    char bytes[300];
    ~Wide() { bytes[0] = 0; }
};

int main()
{
    require_prairie();
    for (int i = 0; i < 1000; i++) {
        std::unique_ptr<Base> base(new Derived);
        std::unique_ptr<Wide[]> wides(new Wide[(size_t)i % 7 + 1]);
        std::unique_ptr<std::string[]> words(new std::string[(size_t)i % 50]);
        std::vector<int> numbers((size_t)i * 13);
        std::map<int, std::string> table;
        for (int k = 0; k < 20; k++) table[k * 7 % 20] = std::string((size_t)(k * i % 100), 'x');
        auto shared = std::make_shared<Derived>();
        must(table.size() == 20 && shared.use_count() == 1);
    }
    return 0;
}
