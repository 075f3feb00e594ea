"""A signal writes a profile of the running interpreter. SPDX-License-Identifier: MIT"""
import glob
import os
import signal

import prairie

held = [bytes(100_000) for _ in range(200)]
os.kill(os.getpid(), signal.SIGUSR2)
os.kill(os.getpid(), signal.SIGUSR2)
files = glob.glob(f"heap.{os.getpid()}.*.heap")
assert len(files) == 2, files
first = open(files[0], encoding="ascii").readline()
assert first.startswith("heap_v2/"), first
prairie.profile("by_hand.heap")
assert os.path.getsize("by_hand.heap") > 100
try:
    prairie.profile("nowhere/by_hand.heap")
    raise AssertionError
except OSError as error:
    assert error.filename == "nowhere/by_hand.heap" and "not written" in str(error), error
# A signal whose profile cannot be written does not end the program.
prairie.profile_on(prefix="nowhere/heap")
(come, go), kept = os.pipe(), os.dup(2)
os.dup2(go, 2)
os.kill(os.getpid(), signal.SIGUSR2)
os.dup2(kept, 2)
told = os.read(come, 1000)
assert told.startswith(b"prairie: ") and b"the profile was not written" in told, told
prairie.mallctl("prof.prefix", os.fsdecode(b"odd\xff"))  # no text
prairie.mallctl("prof.dump", None)
assert glob.glob(b"odd\xff.*.heap"), os.listdir()
