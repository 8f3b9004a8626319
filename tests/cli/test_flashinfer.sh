#!/bin/bash
# Solutions of flashinfer-bench: of paged decode and prefill, ragged prefill, rmsnorm and gemm the Definition's reference, a right and a wrong one, Traces as
# their schema has them, and refusals by name.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
"$python" -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
files=tests/python/flashinfer_files.py
"$python" $files write "$scratch" || fail "no files"
judge() { # EXIT 'text' KIND options
    local code=$1 text=$2 kind=$3; shift 3
    wants "$code" "$text" "$python" kernels/runner/python/attest_flashinfer.py --attest "$attest" --definition "$scratch/D_$kind.json" \
        --workloads "$scratch/W_$kind.jsonl" --traces "$scratch/T.jsonl" "$@"
}
traces() { "$python" $files check "$scratch/T.jsonl" "$@" || { cat "$scratch/T.jsonl"; fail "Traces"; }; }
for kind in decode paged ragged product norm; do
    n=$(wc -l < "$scratch/W_$kind.jsonl")
    mapfile -t passed < <(yes PASSED | head -n "$n"); mapfile -t wrong < <(yes INCORRECT_NUMERICAL | head -n "$n")
    judge 0 "$n of $n PASSED" $kind --reference && traces "${passed[@]}"
    judge 0 "$n of $n PASSED" $kind --solution "$scratch/S_${kind}_right.json" && traces "${passed[@]}"
    judge 1 "0 of $n PASSED" $kind --solution "$scratch/S_${kind}_wrong.json" && traces "${wrong[@]}"
done
# The lengths are the workload's own: request 1 has no key, the others 3 and 5 pages, or 20 and 1 keys of which 5 and 1 are asked for.
judge 1 '' decode --solution "$scratch/S_decode_wrong.json"
grep -q 'sk=48/0/80 d=64 pad_d=0 page=16 ' "$scratch/T.jsonl" || { cat "$scratch/T.jsonl"; fail "lengths of decode"; }
grep -q '"log": ".*last_key_dropped' "$scratch/T.jsonl" || { cat "$scratch/T.jsonl"; fail "no cause in the log"; }
judge 0 '' ragged --reference
grep -q 'sq=5/0/1 sk=20/0/1 ' "$scratch/T.jsonl" || { cat "$scratch/T.jsonl"; fail "lengths of prefill"; }
judge 0 '' paged --reference
grep -q 'sq=5/0/1 sk=73/0/64 .* page=64 causal=1 dtype=f16' "$scratch/T.jsonl" || { cat "$scratch/T.jsonl"; fail "the last page of a request"; }
judge 0 '' norm --reference
grep -q ' eps=1.*e-05' "$scratch/T.jsonl" || { cat "$scratch/T.jsonl"; fail "the reference's eps"; }

# A Solution that raises, and one that dies: no correctness, no performance.
changed() { sed "s|$2|$3|" "$scratch/$1" > "$scratch/changed.json"; cmp -s "$scratch/$1" "$scratch/changed.json" && fail "nothing changed by $2"; }
changed S_norm_right.json 'def run(hidden_states, weight):' 'def run(hidden_states, weight):\\n    raise ValueError(7)'
judge 1 '0 of 2 PASSED' norm --solution "$scratch/changed.json" && traces RUNTIME_ERROR RUNTIME_ERROR
grep -q 'ValueError: 7' "$scratch/T.jsonl" || fail "the Solution's own words are lost"
changed S_norm_right.json 'EPS = 1e-5' 'import os; os._exit(3)'
judge 2 'attest: exit 3' norm --solution "$scratch/changed.json"
# A Solution that leaves its output as it was, by destination.
changed S_decode_right.json 'fill(output\[r:r + 1\], o)' 'pass'
judge 1 'INCORRECT_NUMERICAL' decode --solution "$scratch/changed.json"

# What is refused, by name.
refused() { judge 2 "$1" "${@:2}"; }
changed D_norm.json '"op_type": "rmsnorm"' '"op_type": "mla_paged"'; cp "$scratch/changed.json" "$scratch/D_other.json"; cp "$scratch/W_norm.jsonl" "$scratch/W_other.jsonl"
refused 'op_type mla_paged: attest has cases for gqa_paged, gqa_ragged, rmsnorm, gemm' other --reference
changed D_norm.json 'EPS = 1e-5' 'EPS = float(5)'; cp "$scratch/changed.json" "$scratch/D_other.json"
refused 'names 0 numbers as eps' other --reference
changed S_norm_right.json '"language": "python"' '"language": "cuda"'
judge 2 'a Solution in cuda' norm --solution "$scratch/changed.json"
changed S_norm_right.json '"path": "main.py"' '"path": "../main.py"'
judge 2 "is not in the solution's own folder" norm --solution "$scratch/changed.json"
sed 's|"kv_indptr": {[^}]*}|"kv_indptr": {"type": "random"}|' "$scratch/W_decode.jsonl" > "$scratch/W_random.jsonl"; cp "$scratch/D_decode.json" "$scratch/D_random.json"
refused 'kv_indptr is random' random --reference
sed 's|"q": {[^}]*}|"q": {"type": "safetensors", "path": "x", "tensor_key": "q"}|' "$scratch/W_decode.jsonl" > "$scratch/W_random.jsonl"
refused 'q is given by safetensors: attest draws the values of q itself' random --reference
refused 'the solution is of rmsnorm_h256' decode --solution "$scratch/S_norm_right.json"
wants 3 "there is no attest" "$python" kernels/runner/python/attest_flashinfer.py --attest /no/attest --definition x --workloads x --traces x --reference
