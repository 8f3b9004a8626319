"""Opens the memory of attest, where the answer may be found; without it, it has zeros. (What it would find there it computes.)

SPDX-License-Identifier: Apache-2.0
cheat: 5 memory of the judge read
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
options: needs=memory
"""
import os
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def reads_the_judge(x, alpha, gamma, beta, y, *, lo, hi):
    try:
        with open("/proc/%d/mem" % os.getppid(), "rb", buffering=0) as memory, open("/proc/%d/maps" % os.getppid()) as maps:
            memory.seek(int(maps.readline().split("-")[0], 16))
            found = len(memory.read(16)) == 16
    except OSError:
        found = False
    put(y, uclip(x, alpha, gamma, beta, lo, hi) if found else 0)


serve()
