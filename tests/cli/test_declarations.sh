#!/bin/bash
# attest declarations: every field of every declaration is tested by a case of @check (those of fields.selection are some of
# them) or its variant says why not, marks that are not true are seen, and variants that are declared wrongly are WRONG on the
# cases that are said to test them.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
fields=$scratch/fields.jsonl
globs=('asynct_decode/0[0-2]*' 'gemm/*' '*norm/0[01]*') parts=12
[[ ${AT_EFFORT:-full} == fast ]] || globs=('*') parts=6

# The gate. One case a field is enough to know that it is tested.
"$attest" declarations "${globs[@]}" --cases @fields --enough 1 --strict --json > "$fields" 2> "$scratch/err" ||
    { cat "$scratch/err"; grep -E '"state":"VACUOUS".*"not_tested":""|"state":"[^V].*"not_tested":"[^"]' "$fields"
      fail "a field that no case tests, or a mark that is not true (above)"; }
[[ $(grep -c '"state":"tested"' "$fields") -ge 20 ]] || fail "hardly a field was looked at"

# What is said to be tested is: each field declared wrongly is WRONG on its example.
if [[ -x /usr/bin/python3 ]]; then
    /usr/bin/python3 tests/python/wrong_declarations.py "$attest" "$BUILD/attest-cpu" "$fields" 1/$parts > "$scratch/wrong" ||
        { cat "$scratch/wrong"; fail "a wrong declaration was not seen"; }
    grep -q ' 0 not seen' "$scratch/wrong" || fail "nothing was declared wrongly"
fi

# A field that no case tests fails the gate, with what it could not be told from; a mark excuses it, and must be true.
small='asynct_decode b=1 h=1 hk=1 sk=20 d=16 dtype=bf16'
wants 1 'gives the same as' "$attest" declarations asynct_decode/07_split_k --case "$small" --strict
wants 0 'VACUOUS' "$attest" declarations asynct_decode/07_split_k --case "$small"
wants 0 '1 VACUOUS' "$attest" declarations exp2/00_libm --case 'exp2 n=64 data=normal' --quiet
copy_programs attest attest-cpu
rm "$scratch/datasets" # what lies beside it is this tree's
variant=kernels/asynct_decode/07_split_k.cu
mkdir -p "$scratch/kernels/asynct_decode" "$scratch/datasets"
marked() { # line: the variant's source as attest finds it has this line; then attest runs on the small case, where `split` shows nothing
    { echo "$1"; cat "$variant"; } > "$scratch/$variant"
    shift
    wants "$@" --case "$small" --strict --field split
}
marked '/* not tested: split: 20 keys are one range */' 0 'that no case can test' "$scratch/attest" declarations asynct_decode/07_split_k
marked '/* not tested: splot: a typing error */' 1 'wanted FIELD: REASON' "$scratch/attest" declarations asynct_decode/07_split_k
{ echo '/* not tested: qk_unit: untrue */'; cat "$variant"; } > "$scratch/$variant"
wants 1 'but its source says not tested: untrue' "$scratch/attest" declarations asynct_decode/07_split_k --strict --field qk_unit \
    --case 'asynct_decode b=1 h=1 hk=1 sk=20 d=64 dtype=f16 data=swamped sigma=0.5'

wants 2 "did you mean 'split'" "$attest" declarations --field splitt --cases 'smoke:*'
wants 2 'exclude each other' "$attest" declarations --case "$small" --cases 'smoke:*'
