#!/bin/bash
# Archives of many results: merge, show and export go through them in pieces. Of 70,000 results in six shards, more than a piece
# of a column has, merge, show and CSV are to take less memory than with all of them in it (1,061, 575 and 230 MB then; 189, 27
# and 138 so), and what is shown and exported is all there.
# So does verify: its results wait on disk.
# At fast effort there are 10,000, which is too few for `show` to leave out rows, and memory is not looked at.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[[ ${AT_EFFORT:-full} == fast ]] && wanted=10000 || wanted=70000
peak() { # MB command...: which ends with 0 and has at most MB of memory at a time
    /usr/bin/python3 - "$@" << 'END' || fail "${*:2}"
import os, resource, subprocess, sys
code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
watched = "AT_SLOW_BUILD" not in os.environ and os.environ.get("AT_EFFORT", "full") == "full" # sanitizers have memory of their own
if code or watched and used > float(sys.argv[1]):
    sys.exit(f"exit {code}, {used:.0f} MB of memory at its peak, wanted at most {sys.argv[1]}")
END
}
cd "$scratch" || exit 3
root=$OLDPWD
if [[ $wanted == 70000 ]]; then # the smallest jobs, and reports that go through all of them
    mkdir -p few/cases
    for channels in 8 16; do echo "rms_norm tokens=1 channels=$channels dtype=bf16 seed=1..4000"; done > few/cases/many.cases
    AT_DATASETS=$PWD/few peak 140 "$attest" verify 'rms_norm/00_*' --cases 'many:*' --again 1000000 --quiet --jobs 1 --out run.h5 --json run.json \
        --junit run.xml > out
    grep -q '^16000 results: 16000 PASS' out || { tail -n 5 out; fail "not all judged"; }
    [[ $(wc -l < run.json) == 16000 && $(grep -c '<testcase ' run.xml) == 16000 ]] || fail "not all reported"
    rm -f run.*
fi
"$attest" verify 'asynct_decode/00*' --cases 'smoke:*' --again 1000 --out base.h5 --quiet > out || { cat out; fail "no small run"; }
n=$(/usr/bin/python3 "$root/tests/python/grow_journals.py" base.h5.jsonl "$wanted" 6 shard) || fail "no large run"
[[ $n -ge $wanted ]] || fail "$n results"
peak 300 "$attest" merge --out all.h5 shard{1..6}.h5 > out
grep -q "all.h5: $n results of 6 shards" out || { cat out; fail "not all merged"; }
peak 100 "$attest" show all.h5 > out
grep -q "^$n results: " out || { tail -n 3 out; fail "not all counted"; }
if [[ $wanted == 70000 ]]; then # what stands below the rows is that of a table of all rows
    "$attest" show all.h5 --all > of_all
    same <(sed -n '/^BY VARIANT/,$p' out) <(sed -n '/^BY VARIANT/,$p' of_all)
    [[ $(wc -l < of_all) -gt $n && $(sed -n '/^BY VARIANT/,$p' out | wc -l) -gt 8 ]] || fail "no table of all rows"
fi
peak 175 "$attest" export all.h5 --to csv --out csv > out
[[ $(wc -l < csv/all_results.csv) == $((n + 1)) ]] || fail "not all exported"
# Every result of the small run is there once for each copy of it, with its state and errors, whatever its seed.
"$attest" export base.h5 --to csv --out csv > out || fail "no CSV of the small run"
/usr/bin/python3 - csv/base_results.csv csv/all_results.csv << 'END' || fail "results changed on the way"
import collections, csv, sys
few, many = (collections.Counter((r["kernel"], r["state"], r["err_max"], r["rms"]) for r in csv.DictReader(open(name))) for name in sys.argv[1:])
copies = sum(many.values()) // sum(few.values())
assert copies > 100 and many == collections.Counter({k: n * copies for k, n in few.items()}), (few, many)
END
if [[ $wanted == 70000 ]]; then # one row that fails among all those that do not
    wants 2 "nearest is '*/00_blas_p32'" "$attest" show all.h5 '*/00_blas_p33'
    sed -i '0,/"state":"PASS"/s//"state":"WRONG"/' shard3.h5.jsonl
    "$attest" merge --out wrong.h5 shard{1..6}.h5 > out || fail "not merged"
    wants 1 "exit 1: 1 of $n results fail the run" "$attest" show wrong.h5
    [[ $(grep -c '^WRONG ' "$scratch/out") == 1 && $(wc -l < "$scratch/out") -lt 60 ]] || { head -n 60 "$scratch/out"; fail "not the one row"; }
fi
