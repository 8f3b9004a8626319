#!/usr/bin/env python3
"""Time and memory of commands against the work they are given: measure_growth.py ATTEST [COMMAND...]

Runs in an empty folder. Prints a row for each command (all, or those that are named) and amount of work: seconds by the clock,
of a processor, MB at the peak, MB of the file read or written. `verify` judges random cases of a C baseline; merge, show and
csv work on the journals that grow_journals.py makes of a small run, in a hundredth as many shards as results, from 1 to 100:
their work is results. `requests` records so many requests of four tokens, `scores` one request with so many.
SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import time

attest, commands = sys.argv[1], sys.argv[2:] or ["verify", "merge", "requests", "scores"]
powers = [100, 1000, 10_000, 100_000, 1_000_000]
assert set(commands) <= {"verify", "merge", "requests", "scores"}, commands
grow = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grow_journals.py")


def measured(command, n, shards, *arguments, file):
    start = time.time()
    child = subprocess.Popen([attest, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"{command} of {n}: exit {child.returncode}"
    print(f"{command:<8} {n:>9} {shards:>6} {time.time() - start:>9.2f} {usage.ru_utime + usage.ru_stime:>9.2f} "
          f"{usage.ru_maxrss / 1024:>7.0f} {os.path.getsize(file) / 1e6:>8.1f}", flush=True)


def verify(n):
    measured("verify", n, 1, "verify", "argmax/00_*", "--random", str(n), "--again", "1000000", "--quiet", "--out", "verified.h5",
             file="verified.h5")


def merge_show_csv(n):
    shards = min(100, max(1, n // 100))
    made = int(subprocess.run([sys.executable, grow, "base.h5.jsonl", str(n), str(shards), "shard"], check=True,
                              capture_output=True).stdout)
    names = [f"shard{i + 1}.h5" for i in range(shards)]
    measured("merge", made, shards, "merge", "--out", "all.h5", *names, file="all.h5")
    measured("show", made, 1, "show", "all.h5", file="all.h5")
    measured("csv", made, 1, "export", "all.h5", "--to", "csv", "--out", "csv", file="csv/all_results.csv")
    for name in names:
        os.remove(name + ".jsonl")


# In a process of its own: a process begins with its parent's memory as its peak.
CAPTURE = """
import sys, numpy
sys.path.insert(0, sys.argv[1])
import drift_captures
n, random = int(sys.argv[2]), numpy.random.default_rng(1)
made = {"layers.0." + name: random.normal(0, 1, (4 * n, 1, 16)).astype(numpy.float16) for name in "qkv"}
drift_captures.write("capture.safetensors", dict(made, query_start=numpy.arange(0, 4 * n + 1, 4, dtype=numpy.int32)))
"""


def requests(n):
    subprocess.run([sys.executable, "-c", CAPTURE, os.path.dirname(grow), str(n)], check=True)
    measured("requests", n, 1, "record", "capture.safetensors", "--attention", "softmax", "--what", "raw,p", "--out", "recorded.h5",
             file="recorded.h5")


def scores(side):
    measured("scores", side * side, 1, "record", f"softmax_prefill b=1 h=1 hk=1 sq={side} sk={side} d=64 causal=0 dtype=bf16 data=normal seed=1",
             "--what", "raw,p", "--out", "recorded.h5", file="recorded.h5")


print("command       work shards   seconds processor  peak MB  file MB")
if "verify" in commands:
    for n in powers[:4]:
        verify(n)
if "merge" in commands:
    subprocess.run([attest, "verify", "asynct_decode/00*", "--cases", "smoke:*", "--again", "1000", "--out", "base.h5", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    for n in powers:
        merge_show_csv(n)
if "requests" in commands:
    for n in powers[:4]:
        requests(n)
if "scores" in commands:
    for side in (100, 1000, 10_000, 20_000):
        scores(side)
