#!/usr/bin/env bash
# bench/workloads/record.sh - records a real program as build/bench/traces/NAME.trace.
# SPDX-License-Identifier: MIT
#
#   bench/workloads/record.sh python          one of: python python-threads perl sqlite compiler
#   bench/workloads/record.sh mine ls -l      a program of your own
#
# A trace that is there already is kept; remove it to record again.
set -euo pipefail
cd "$(dirname "$0")/../.."

name="${1:-}"
[ -n "$name" ] || { sed -n '4,7s/^# *//p' "$0" >&2; exit 2; }
shift
recorder="$PWD/build/bench/librecord.so"
trace="$PWD/build/bench/traces/$name.trace"
[ -e "$trace" ] && exit 0
[ -e "$recorder" ] || { echo "record.sh: no $recorder; build the bench first" >&2; exit 1; }
case $recorder in
    *[[:space:]:]*) # where the loader splits LD_PRELOAD
        echo "record.sh: '$recorder' cannot be preloaded: its path has a blank or a colon" >&2
        exit 1 ;;
esac
mkdir -p "$(dirname "$trace")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python_words='
import json, re, random
random.seed(1)
words = ["w%x" % random.randrange(30000) for _ in range(60000)]
count = {}
for word in words:
    count.setdefault(word, []).append(len(count))
text = " ".join(words)
found = re.findall(r"w[0-9a-f]*7[0-9a-f]*", text)
rows = [{"id": i, "name": word} for i, word in enumerate(words[:20000])]
document = {"count": count, "found": found, "rows": rows}
again = json.loads(json.dumps(document))
rows = sorted(again["rows"], key=lambda row: row["name"])
print(len(found), len(rows), len(again["count"]))
'
python_crew='
import queue, threading
todo, done = queue.Queue(64), queue.Queue(64)
def work():
    while (text := todo.get()) is not None:
        done.put({word: len(word) for word in text.split("-")})
    done.put(None)
def feed():
    for i in range(6000):
        todo.put("-".join(str(i * k) for k in range(40)))
    for _ in crew[1:]:
        todo.put(None)
crew = [threading.Thread(target=feed)] + [threading.Thread(target=work) for _ in range(3)]
for one in crew: one.start()
left, total = 3, 0
while left:
    part = done.get()
    if part is None: left -= 1
    else: total += sum(part.values())
print(total)
'
perl_words='
my (%count, @lines); my $x = 1;
for (1..150000) {
    $x = ($x * 1103515245 + 12345) % 2147483648;
    push @{$count{"word" . $x % 20000}}, $x % 97;
}
for my $word (sort keys %count) {
    push @lines, join(",", $word, sort { $a <=> $b } @{$count{$word}});
}
my $text = join("\n", @lines); my $found = () = $text =~ /word\d*7/g; $text =~ s/(\d+),/<$1>/g;
print length($text), " $found\n";
'
sqlite_script='
CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT, value INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
    INSERT INTO a SELECT i, hex(i * 7919 % 40000) || " a text", i * 31 % 1000 FROM n;
CREATE INDEX by_name ON a(name);
UPDATE a SET name = name || " longer" WHERE value % 7 = 0;
SELECT count(*), sum(x.value) FROM a x JOIN a y ON x.name = y.name WHERE x.id % 3 = 0;
SELECT value, group_concat(name) FROM a GROUP BY value ORDER BY 2 LIMIT 3;
DELETE FROM a WHERE id % 2 = 0;
SELECT count(*) FROM a;
'
cpp_file='
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> m; m["a"].push_back(1);
    for (auto &p : m) std::sort(p.second.begin(), p.second.end());
    return std::regex_match("abc", std::regex("a.c")) ? 0 : 1;
}
'

case $name in
    python)         command=(python3 -c "$python_words") ;;
    python-threads) command=(python3 -c "$python_crew") ;;
    perl)           command=(perl -e "$perl_words") ;;
    sqlite)         command=(sqlite3 -batch :memory: "$sqlite_script") ;;
    compiler)
        printf '%s' "$cpp_file" > "$scratch/file.cpp"
        g++ -std=c++17 -E "$scratch/file.cpp" -o "$scratch/file.ii"
        command=("$(g++ -print-prog-name=cc1plus)" -quiet -O1 -std=c++17 -fpreprocessed
                 "$scratch/file.ii" -o "$scratch/file.s") ;;
    *)
        if [ $# -eq 0 ]; then
            echo "record.sh: no program '$name'; give a command after the name" >&2
            exit 2
        fi
        command=("$@") ;;
esac

# Into a scratch file first: only a recording that came to its end is kept. The recorder empties the
# file of one that did not.
PYTHONMALLOC=malloc PYTHONHASHSEED=0 PRAIRIE_TRACE="$scratch/trace" LD_PRELOAD="$recorder" \
    "${command[@]}" > "$scratch/output"
[ -s "$scratch/trace" ] || { echo "record.sh: '$name' left no trace" >&2; exit 1; }
mv "$scratch/trace" "$trace"
echo "$trace: $(stat -c %s "$trace") bytes"
