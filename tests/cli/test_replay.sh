#!/bin/bash
# Every result prints a line that repeats it; --dump keeps what the job computed.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases='smoke:*' every=5
[[ ${AT_EFFORT:-full} == fast ]] && cases='smoke:@(asynct_prefill b=2|uclip_norm)*' every=3
"$attest" verify 'asynct_prefill/0[04]_*' 'uclip_norm/*' --cases "$cases" --quiet --json "$scratch/r.jsonl" > /dev/null || fail "verify"
n=0
while read -r repro; do
    bash -c "${repro/attest/$attest}" > "$scratch/out" 2>&1
    [[ $? -le 1 ]] || { cat "$scratch/out"; fail "$repro"; }
    grep -qE 'PASS|VACUOUS' "$scratch/out" || { cat "$scratch/out"; fail "$repro: another state"; }
    n=$((n + 1))
done < <(grep -v UNSUPPORTED "$scratch/r.jsonl" | sed -n 's/.*"repro":"\([^"]*\)".*/\1/p' | sort -u | awk -v every=$every 'NR % every == 1')
[[ $n -ge 5 ]] || fail "only $n repro lines"
wants 0 PASS "$attest" replay 'asynct_prefill/00_split_k asynct_prefill b=2 h=4 hk=2 sq=5 sk=33 d=32 causal=1 dtype=bf16' --dump "$scratch/d.h5"
[[ -s "$scratch/d.h5" ]] || fail "no dump"
/usr/bin/python3 -c 'import h5py' 2> /dev/null || { echo "no h5py: the dump was written but not opened"; exit 77; }
/usr/bin/python3 - "$scratch/d.h5" <<'PY' || fail "the dump does not hold together"
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1])
got, exact, limit, model = (f["o"][n][...] for n in ("got", "exact", "limit", "model"))
assert got.shape == exact.shape == limit.shape == model.shape and got.size == 2 * 5 * 4 * 32
assert (np.abs(got - exact) <= limit).all() and (got == model).all() and (limit > 0).any()
p = f["stages_exact"]["p"][...]
assert p.shape == (2 * 5 * 4, 33) and np.isnan(p[0, -1]) and np.nanmax(p) <= 1
PY
