#!/bin/bash
# What somebody meets who judges a function of their own for the first time: frequent faults are named, a declaration that lacks the
# format of P is helped on, and what is misspelt or forgotten says what was meant.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
export PYTHONPATH=$PWD/kernels/runner/python PYTHONDONTWRITEBYTECODE=1
cat > "$scratch/mine.py" << 'PY'
import sys, numpy as np
from attest_runner import kernel, serve, requests, f64, put, encode, Tensor
fault = sys.argv[1]
def in_bf16(x):
    t = np.asarray(encode("bf16", x)).view(Tensor)
    t.format = "bf16"
    return f64(t)
@kernel("softmax_prefill", numerics="free_order=1")
def mine(job, *, scale):
    for r in requests(job):
        k, v = (np.repeat(f64(t), r.group, 1) for t in (r.k, r.v))
        s = scale * {"scale": 1.05}.get(fault, 1) * np.einsum("qhd,khd->hqk", f64(r.q), k)
        mask = {"no_mask": np.ones_like(r.visible), "top_left": np.tril(np.ones_like(r.visible))}.get(fault, r.visible)
        if fault == "one_row":
            mask = r.visible.copy()
            mask[1] = True
        s = np.where(mask, s, -np.inf)
        m = np.where(mask.any(1), s.max(2, initial=-np.inf), 0)
        p = np.exp(s - m[..., None])
        l = p.sum(2)
        with np.errstate(all="ignore"):
            p = p / l[..., None] if fault == "nan" else p / np.where(l > 0, l, 1)[..., None]
            put(r.lse, (np.where(l > 0, m, 0) + np.log(l)).T)
        put(r.o, np.einsum("hqk,khd->qhd", in_bf16(p) if fault == "bf16" else p, v))
        if fault == "returns":
            return r.o
serve()
PY
judge() { "$attest" verify 'softmax_prefill/*' --runner "$python $scratch/mine.py $1" --case "softmax_prefill b=1 h=2 hk=1 ${2:-sq=5 sk=9} d=32 causal=1 dtype=bf16" --quiet; }
cause() { # FAULT 'text of the cause' [keys]
    judge "$1" "${3:-}" > "$scratch/lines" 2>&1
    tr -s ' \n' ' ' < "$scratch/lines" | grep -qF -- "$2" || { cat "$scratch/lines"; fail "$1: wanted $2"; }
}
wants 0 'exit 0' judge right
cause no_mask 'looks like mask_missing: every query sees every key'
cause top_left 'looks like mask_top_left: query i sees keys 0 to i'
cause one_row 'looks like mask_missing in these rows'
judge scale > "$scratch/lines"
grep -q 'looks like' "$scratch/lines" && { cat "$scratch/lines"; fail "a scale that is 5 % off is named as another fault"; }
cause bf16 "hint: the first wrong rows are within the limits of p=bf16; p=input says that P has the inputs' format" 'sq=20 sk=200'
cause nan 'all in rows that have nothing to sum, of queries that see no key' 'sq=5 sk=3'
wants 0 'exit 0' judge right 'sq=5 sk=0'
AT_RUNNER_STDERR=1 wants 0 'attest_runner: mine() returned a value, which nobody looks at: outputs are written in place, put(o, ...)' judge returns

# ---- what is misspelt or forgotten ----
one() { # 'line of Python' ...: a runner of it, on a case of uclip_norm
    printf 'from attest_runner import *\n' > "$scratch/one.py"
    printf '%s\n' "$@" >> "$scratch/one.py"
    "$attest" verify --runner "$python $scratch/one.py" --case 'uclip_norm tokens=2 channels=8' --quiet
}
wants 4 'has softmax_prefil/01_f, and there is no family softmax_prefil; did you mean softmax_prefill?' one '@kernel("softmax_prefil")' 'def f(o): pass' 'serve()'
wants 4 'softmax_attention is an operator; its families are softmax_decode' one '@kernel("softmax_attention")' 'def f(o): pass' 'serve()'
wants 3 'bfloat16 is none of f64 f32 tf32 f16 i32 bf16 e4m3 e5m2; did you mean bf16?' one '@kernel("uclip_norm", dtypes="bfloat16")' 'def f(y): pass' 'serve()'
wants 3 'one in Python calls attest_runner.serve() at its end' one '@kernel("uclip_norm")' 'def f(y): pass'
wants 1 'did you mean x?' one '@kernel("uclip_norm")' 'def f(input, y): pass' 'serve()'
wants 1 'ValueError: first | second (one.py line 4)' one '@kernel("uclip_norm")' 'def f(y):' '    raise ValueError("first\nsecond")' 'serve()'
wants 1 '(one.py line 4)' one '@kernel("uclip_norm")' 'def f(y):' '    __import__("json").loads("{")' 'serve()'
wants 2 'none of the selected variants takes timings' "$attest" bench 'softmax_prefill/*' --runner "$python $scratch/mine.py right" --case 'softmax_prefill b=1 h=2 hk=1 sq=5 sk=9 d=32 dtype=bf16'
grep -q 'not timed: softmax_prefill/01_mine: its runner takes no timings of it' "$scratch/out" || fail "nothing says what takes no timings"
wants 2 "wanted --runner 'python3 $scratch/mine.py'" "$attest" verify --runner "$scratch/mine.py"
wants 2 "found $scratch/mine.py, a file of Python, where a GLOB of variants stands: wanted --runner 'python3 $scratch/mine.py'" "$attest" verify "$scratch/mine.py"
wants 2 'softmax_attention is an operator; its families are softmax_decode' "$attest" verify --case 'softmax_attention b=2'
wants 2 'wanted the name of a file' "$attest" verify 'uclip_norm/*' --cases 'smoke:*' --junit -
wants 2 "no variant of runner" "$attest" verify 'asynct_prefill/*' --runner "$python $scratch/mine.py right"
grep -q 'it has softmax_prefill/01_mine' "$scratch/out" || fail "the runner's own variants are not named"
