"""Repairs repair_kernel.py by what `attest verify --jsonl -` says of it, and nothing else: verify/REPAIR.md's loop.

SPDX-License-Identifier: Apache-2.0

repair_loop.py ATTEST PARAMETERS CASE...: judges, takes the first failing line whose cause it understands, has its repro line say the same
again, switches the fault off that the cause names, and so on until exit 0. Prints what it did.
"""
import json
import os
import re
import subprocess
import sys

attest, parameters, cases = sys.argv[1], sys.argv[2], sys.argv[3:]
kernel = os.path.join(os.path.dirname(os.path.abspath(__file__)), "repair_kernel.py")
RUNNER = "%s %s %s" % (sys.executable, kernel, parameters)
VERDICT = ("family", "variant", "case_id", "tensor", "state", "cause", "place", "fails", "wrong", "worst_got", "worst_want")


def lines_of(command):
    """Exit code and JSON lines of a command that has --jsonl -."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, shell=isinstance(command, str), check=False)
    if done.returncode not in (0, 1):
        sys.exit("%s: exit %d: %s" % (command, done.returncode, done.stderr.decode()))
    return done.returncode, [json.loads(line) for line in done.stdout.decode().splitlines()]


def verdicts(results):
    """What two runs must agree in."""
    return [[r[key] for key in VERDICT] for r in sorted(results, key=lambda r: r["tensor"])]


def fault_of(result):
    """The fault that the cause, or the place, names; None: not understood."""
    if re.search(r"left \d+ of \d+ elements of lse unwritten", result["cause"]):
        return "unwritten"
    found = re.search(r"looks like (\w+):", result["cause"])
    if found:
        return found[1]
    found = re.search(r"only token (\d+)", result["cause"])
    if found and result["place"].startswith("o[token %s," % found[1]):
        return "bad_token " + found[1]
    return None


def reproduced(result, results):
    """The repro line, as it stands, gives the verdicts of its job again."""
    code, again = lines_of(result["repro"] + " --jsonl -")
    job = [r for r in results if r["repro"] == result["repro"]]
    if code != 1 or verdicts(again) != verdicts(job):
        sys.exit("%s: exit %d, %s, wanted %s" % (result["repro"], code, verdicts(again), verdicts(job)))


def switch_off(fault):
    """Takes the fault's line out of the file."""
    with open(parameters, encoding="ascii") as file:
        kept = [line for line in file if not line.startswith(fault)]
    with open(parameters, "w", encoding="ascii") as file:
        file.writelines(kept)


os.environ["PATH"] = os.path.dirname(attest) + os.pathsep + os.environ["PATH"]  # where repro lines find `attest`
for turn in range(1, 9):
    failing, everything = [], []
    for case in cases:
        code, results = lines_of([attest, "verify", "softmax_prefill/*", "--runner", RUNNER, "--case", case, "--strict", "--jsonl", "-"])
        if (code == 1) != any(r["fails"] for r in results):
            sys.exit("exit %d beside %s" % (code, verdicts(results)))
        everything += results
        failing += [r for r in results if r["fails"]]
    if not failing:
        print("turn %d: exit 0, %d results" % (turn, len(everything)))
        sys.exit(0)
    named = [(r, fault_of(r)) for r in failing if fault_of(r)]
    if not named:
        sys.exit("turn %d: no cause is understood: %s" % (turn, [r["cause"] for r in failing]))
    result, fault = named[0]
    reproduced(result, everything)
    switch_off(fault)
    print("turn %d: %s %s: %s" % (turn, result["state"], fault, result["cause"]))
sys.exit("still failing after %d turns" % turn)
