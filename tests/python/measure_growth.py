#!/usr/bin/env python3
"""Time and memory of commands against the work they are given: measure_growth.py ATTEST [RESULTS...]

Runs in an empty folder. Prints a row for each command and number of results: seconds by the clock, of a processor, MB at the
peak, MB of the file read or written. `verify` judges random cases of a C baseline; merge, show and export work on the journals
that grow_journals.py makes of a small run, in a hundredth as many shards as results, from 1 to 100.
SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import time

attest = sys.argv[1]
sizes = [int(n) for n in sys.argv[2:]] or [100, 1000, 10_000, 100_000, 1_000_000]
grow = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grow_journals.py")


def measured(command, n, shards, *arguments, file):
    start = time.time()
    child = subprocess.Popen([attest, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"{command} of {n}: exit {child.returncode}"
    print(f"{command:<8} {n:>8} {shards:>6} {time.time() - start:>9.2f} {usage.ru_utime + usage.ru_stime:>9.2f} "
          f"{usage.ru_maxrss / 1024:>7.0f} {os.path.getsize(file) / 1e6:>8.1f}", flush=True)


print("command   results shards   seconds processor  peak MB  file MB")
for n in (n for n in sizes if n <= 100_000):
    measured("verify", n, 1, "verify", "argmax/00_*", "--random", str(n), "--again", "1000000", "--quiet", "--out", "verified.h5", file="verified.h5")
subprocess.run([attest, "verify", "asynct_decode/00*", "--cases", "smoke:*", "--again", "1000", "--out", "base.h5", "--quiet"],
               check=True, stdout=subprocess.DEVNULL)
for n in sizes:
    shards = min(100, max(1, n // 100))
    made = int(subprocess.run([sys.executable, grow, "base.h5.jsonl", str(n), str(shards), "shard"], check=True,
                              capture_output=True).stdout)
    names = [f"shard{i + 1}.h5" for i in range(shards)]
    measured("merge", made, shards, "merge", "--out", "all.h5", *names, file="all.h5")
    measured("show", made, 1, "show", "all.h5", file="all.h5")
    measured("csv", made, 1, "export", "all.h5", "--to", "csv", "--out", "csv", file="csv/all_results.csv")
    for name in names:
        os.remove(name + ".jsonl")
