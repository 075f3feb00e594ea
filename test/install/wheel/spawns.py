# spawns.py - what a main module must be for others: found by its names, in a process of its own and after its end.
# SPDX-License-Identifier: MIT
import concurrent.futures
import multiprocessing
import pickle
import sys
import threading
import prairie


class Kept:
    def __repr__(self):
        return "kept"


def work(kept):
    assert prairie.is_serving()
    return f"{kept} spawned"


def go_on():
    threading.main_thread().join()
    print("after the end", pickle.loads(pickle.dumps(Kept())))


if __name__ == "__main__":
    # A folder's main module is imported by no process that begins anew, as Python has it.
    if not sys.argv[1:]:
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            print(pool.submit(work, Kept()).result(), end=", ", flush=True)
    threading.Thread(target=go_on).start()
