#!/usr/bin/env python3
"""Draws datasets/measurements/growth.txt: plot_growth.py GROWTH.txt GROWTH.svg

Seconds and MB at the peak against work, both axes in powers of ten, and a line of slope one beside them: what rises faster than it
grows faster than its work. Needs matplotlib.
SPDX-License-Identifier: Apache-2.0
"""
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "growth"  # the same names in every run
import matplotlib.pyplot as plt

WORK = {"verify": "results judged", "merge": "results merged", "show": "results shown", "csv": "results exported",
        "requests": "requests recorded", "scores": "scores recorded, one request"}


def main():
    rows = {}
    for line in open(sys.argv[1]):
        words = line.split()
        if words and words[0] in WORK:
            rows.setdefault(words[0], []).append([float(words[i]) for i in (1, 3, 5)])
    figure, (time, memory) = plt.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
    for command, points in rows.items():
        work, seconds, megabytes = zip(*points)
        time.plot(work, seconds, marker="o", markersize=3, label=WORK[command])
        memory.plot(work, megabytes, marker="o", markersize=3, label=WORK[command])
    slope = (1e3, 1e7)
    time.plot(slope, (0.01, 100), color="0.7", linestyle="--", label="slope one")
    memory.plot(slope, (1, 1e4), color="0.7", linestyle="--", label="slope one")
    for axes, what in ((time, "seconds by the clock"), (memory, "MB at the peak")):
        axes.set(xscale="log", yscale="log", xlabel="work", ylabel=what)
        axes.grid(True, color="0.92")
    memory.legend(fontsize=8, loc="upper right")
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()
