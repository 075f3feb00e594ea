"""g++: one large translation unit compiled, linked and run; objects equal bit by bit."""
# SPDX-License-Identifier: MIT

from cases.case import Case

HEADERS = """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat
charconv chrono cinttypes climits clocale cmath codecvt compare complex concepts
condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime
cwchar cwctype deque exception execution filesystem forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept
stop_token streambuf string string_view strstream syncstream system_error thread tuple type_traits
typeindex typeinfo unordered_map unordered_set utility valarray variant vector version""".split()

# Kinds of records: @N@ is a number, so that every one instantiates the templates anew.
RECORD = """
struct record_@N@ {
    int key = @N@;
    std::array<double, 1 + @N@ % 7> weights{};
    std::variant<int, std::string, std::vector<long>> value;
    auto operator<=>(const record_@N@ &other) const { return key <=> other.key; }
    bool operator==(const record_@N@ &other) const { return key == other.key; }
};
struct hash_@N@ {
    std::size_t operator()(const record_@N@ &r) const { return std::size_t(r.key) * @N@; }
};
static long use_@N@()
{
    std::map<record_@N@, std::string> names;
    std::unordered_map<record_@N@, std::vector<std::string>, hash_@N@> groups;
    std::deque<record_@N@> queue;
    std::vector<std::shared_ptr<record_@N@>> shared;
    std::function<long(const record_@N@ &)> weigh = [](const record_@N@ &r) {
        return std::visit([](const auto &v) -> long {
            if constexpr (std::is_same_v<std::decay_t<decltype(v)>, int>) return v;
            else return long(v.size());
        }, r.value) + long(r.weights.size());
    };
    for (int i = 0; i < 40; i++) {
        record_@N@ r{i * @N@ % 31, {}, std::string(std::size_t(i % 9), 'x')};
        names.try_emplace(r, std::to_string(i));
        groups[r].push_back(names[r] + "@N@");
        queue.push_front(r);
        shared.push_back(std::make_shared<record_@N@>(r));
    }
    std::ranges::sort(queue, std::greater{});
    std::stable_sort(shared.begin(), shared.end(), [](auto &a, auto &b) { return *a < *b; });
    auto lengths = names | std::views::values
                 | std::views::transform([](auto &s) { return long(s.size()); });
    long total = std::accumulate(lengths.begin(), lengths.end(), 0L);
    for (auto &[r, strings] : groups) total += weigh(r) + long(strings.size());
    return total + queue.front().key + shared.back()->key;
}
"""

MAIN = """
int main()
{
    std::regex pattern("([a-z]+)-([0-9]+)", std::regex::ECMAScript);
    std::string text = std::regex_replace(std::string("one-1 two-22 three-333"), pattern, "$2:$1");
    std::ostringstream out;
    out << text << ' ' << std::setprecision(12) << std::numbers::pi << ' ' << @SUM@;
    std::cout << out.str() << std::endl;
}
"""

# Names of what is local contain random digits unless a seed is given.
FLAGS = ["-std=c++20", "-frandom-seed=prairie", "-Wno-deprecated", "-Wno-cpp"]


class Gxx(Case):
    name = "g++"
    packages = ("g++",)
    programs = ("g++",)

    def prepare(self, inputs, quick, work):
        count = 1 if quick else 12
        parts = [f"#include <{header}>\n" for header in HEADERS]
        parts += [RECORD.replace("@N@", str(number)) for number in range(1, count + 1)]
        uses = " + ".join(f"use_{number}()" for number in range(1, count + 1))
        parts.append(MAIN.replace("@SUM@", uses))
        (inputs / "large.cc").write_text("".join(parts), encoding="ascii")

    def play(self, on):
        source = on.folder / "large.cc"
        source.write_bytes((on.inputs / "large.cc").read_bytes())
        # (label, options, file): the quick set leaves out the slowest ways.
        ways = [("object, -O1 -g", ["-O1", "-g", "-c"], "large.o")]
        if not on.quick:
            ways += [("object, -O2", ["-O2", "-c"], "large-O2.o"),
                     ("object, -O3 -flto", ["-O3", "-flto", "-c"], "large-lto.o"),
                     ("assembly", ["-Os", "-S"], "large.s")]
        for label, options, name in ways:
            on.run(["g++", *FLAGS, *options, "large.cc", "-o", name])
            on.note_file(label, on.folder / name)
        preprocessed = on.run(["g++", *FLAGS, "-E", "large.cc"])
        on.note_file("preprocessed", preprocessed)
        on.run(["g++", *FLAGS, "large.o", "-o", "large", "-Wl,--build-id=sha1"])
        on.note_file("program", on.folder / "large")
        out = on.run([on.folder / "large"])
        on.note("the program's output", out.read_text(encoding="ascii").strip())

    def proof_command(self, inputs):
        return ["sh", "-c", "echo 'int main() {}' > tiny.cc && g++ tiny.cc -o tiny && ./tiny"]
