# puzzle.py - writes problems for an SMT solver: words, numbers, arrays and logic.
# SPDX-License-Identifier: MIT
"""Usage: puzzle.py PER_CENT FILE"""
import random
import sys

CLAUSES_PER_VARIABLE = 4.1      # near the ratio where it turns from easy to hard


def logic(source, count):
    """Random clauses of three."""
    yield from (f"(declare-const p{n} Bool)" for n in range(count))
    for _ in range(int(CLAUSES_PER_VARIABLE * count)):
        three = source.sample(range(count), 3)
        words = [f"p{n}" if source.random() < 0.5 else f"(not p{n})" for n in three]
        yield f"(assert (or {' '.join(words)}))"


def factors(bits, product):
    """A product of two words taken apart."""
    yield f"(declare-const a (_ BitVec {bits}))(declare-const b (_ BitVec {bits}))"
    yield f"(assert (= (bvmul a b) (_ bv{product} {bits})))"
    half = 1 << (bits // 2)
    yield f"(assert (bvult a (_ bv{half} {bits})))(assert (bvult b (_ bv{half} {bits})))"
    yield f"(assert (bvugt a (_ bv1 {bits})))(assert (bvule a b))"


def timetable(source, jobs):
    """Jobs that must not overlap: differences of integers."""
    yield from (f"(declare-const s{n} Int)(assert (>= s{n} 0))" for n in range(jobs))
    length = [source.randint(1, 9) for _ in range(jobs)]
    for one in range(jobs):
        for other in range(one):
            if source.random() < 0.35:
                yield (f"(assert (or (<= (+ s{one} {length[one]}) s{other})"
                       f" (<= (+ s{other} {length[other]}) s{one})))")
    yield from (f"(assert (<= (+ s{n} {length[n]}) {jobs * 2}))" for n in range(jobs))


def arrays(count):
    """Stores into an array in two orders give the same array."""
    yield "(declare-const m (Array Int Int))"
    yield from (f"(declare-const i{n} Int)" for n in range(count))
    yield f"(assert (distinct {' '.join(f'i{n}' for n in range(count))}))"
    forth, back = "m", "m"
    for n in range(count):
        forth = f"(store {forth} i{n} {n})"
        back = f"(store {back} i{count - 1 - n} {count - 1 - n})"
    yield f"(assert (not (= {forth} {back})))"


def main():
    per_cent = int(sys.argv[1])
    source = random.Random(20080330)
    problems = []
    for _ in range(max(1, 50 * per_cent // 100)):
        problems += [logic(source, 130), timetable(source, 28), arrays(6), factors(20, 283 * 331)]
    with open(sys.argv[2], "w", encoding="ascii") as file:
        for problem in problems:
            lines = "\n".join(problem)
            file.write(f"(push)\n{lines}\n(check-sat)\n(pop)\n")


main()
