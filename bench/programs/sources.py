# sources.py - writes C++ sources of a given size: one large file, or a tree with its Makefile.
# SPDX-License-Identifier: MIT
"""Usage: sources.py file|tree PER_CENT FOLDER"""
import sys
from pathlib import Path

RECORDS = 3          # of the large file, at 100 per cent
FILES = 4            # of the tree, at 100 per cent

HEADERS = """algorithm array chrono deque functional iostream map memory numeric optional set
sstream string tuple unordered_map utility variant vector""".split()

# Every number instantiates the templates anew.
RECORD = """
struct record_@N@ {
    int key = @N@;
    std::array<double, 1 + @N@ % 7> weights{};
    std::variant<int, std::string, std::vector<long>> value;
    bool operator<(const record_@N@ &other) const { return key < other.key; }
};

long use_@N@(long seed)
{
    std::map<record_@N@, std::string> names;
    std::unordered_map<std::string, std::vector<record_@N@>> groups;
    std::deque<std::shared_ptr<record_@N@>> queue;
    std::function<long(const record_@N@ &)> weigh = [](const record_@N@ &r) {
        return std::visit([](const auto &v) -> long {
            if constexpr (std::is_same_v<std::decay_t<decltype(v)>, int>) return v;
            else return long(v.size());
        }, r.value) + long(r.weights.size());
    };
    for (int i = 0; i < 40; i++) {
        record_@N@ r{int((i * @N@ + seed) % 31), {}, std::string(std::size_t(i % 9), 'x')};
        names.emplace(r, std::to_string(i));
        groups[names[r]].push_back(r);
        queue.push_front(std::make_shared<record_@N@>(r));
    }
    std::stable_sort(queue.begin(), queue.end(), [](auto &a, auto &b) { return *a < *b; });
    long total = std::accumulate(queue.begin(), queue.end(), 0L,
                                 [&](long sum, auto &r) { return sum + weigh(*r); });
    for (auto &[name, records] : groups) total += long(name.size() * records.size());
    std::ostringstream out;
    out << total << ' ' << names.begin()->second;
    return total + long(out.str().size());
}
"""

MAKEFILE = """# Made by sources.py.
CXXFLAGS = -std=c++17 -O0 -frandom-seed=prairie
OBJECTS = {objects}
program: $(OBJECTS)
\t$(CXX) -o $@ $(OBJECTS) -Wl,--build-id=none
"""


def headers():
    return "".join(f"#include <{header}>\n" for header in HEADERS)


def main_of(numbers):
    declared = "".join(f"long use_{number}(long seed);\n" for number in numbers)
    total = " + ".join(f"use_{number}(1)" for number in numbers)
    return (f"{declared}int main() {{ std::cout << {total} << std::endl; }}\n")


def main():
    kind, per_cent, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if kind == "file":
        numbers = range(1, 1 + max(1, RECORDS * per_cent // 100))
        text = "".join(RECORD.replace("@N@", str(number)) for number in numbers)
        (folder / "large.cc").write_text(headers() + text + main_of(numbers), encoding="ascii")
        return
    numbers = range(1, 1 + max(1, FILES * per_cent // 100))
    for number in numbers:
        (folder / f"part{number}.cc").write_text(
            headers() + RECORD.replace("@N@", str(number)), encoding="ascii")
    (folder / "main.cc").write_text("#include <iostream>\n" + main_of(numbers), encoding="ascii")
    objects = " ".join(["main.o"] + [f"part{number}.o" for number in numbers])
    (folder / "Makefile").write_text(MAKEFILE.format(objects=objects), encoding="ascii")


main()
