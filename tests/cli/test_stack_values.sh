#!/bin/bash
# attest stack --values and --loss: a model's weights instead of drawn ones. The run in double must have the loss that numpy has of
# the same file, by operators written down once more; what is misspelt, misshapen or missing is named.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import numpy, h5py' 2> /dev/null || { echo "numpy or h5py is not installed"; exit 77; }
sizes=layers=2,b=3,keys=21,page=16,pages=2,spare=2,hidden=128,h=4,hk=2,d=64,inter=96,vocabulary=31
kinds=(asynct:bf16 softmax:f16); [[ ${AT_EFFORT:-full} == fast ]] || kinds+=(asynct:f16 softmax:bf16)
for of in "${kinds[@]}"; do
    kind=${of%:*} dtype=${of#*:} file=$scratch/${of%:*}.npz
    want=$(/usr/bin/python3 tests/python/stack_in_double.py "$kind" "$dtype" "$file") || fail "stack_in_double.py $kind"
    run=("$attest" stack "${kind}_model" --values "$file" --set "$sizes" --dtype "$dtype" --quiet)
    wants 0 'loss of logits: 63 tokens of 3 windows, nats a token: ' "${run[@]}" --loss logits --out "$scratch/$kind.h5"
    grep -q '4 inputs and weights of the stack and 2 parameters of its steps are not among them and were drawn' "$scratch/out" || fail "$of: what was drawn"
    /usr/bin/python3 - "$scratch/$kind.h5" "$want" << 'END' || fail "$of: not the loss that numpy has in double"
import h5py, sys
row = {name: d[0] for name, d in h5py.File(sys.argv[1])["studies/stack_loss"].items() if hasattr(d, "shape") and d.shape}
print(row, sys.argv[2])
assert abs(row["exact"] - float(sys.argv[2])) < 1e-7, row["exact"] - float(sys.argv[2])
assert 0 < abs(row["difference"]) < 3e-3 and abs(row["difference"] - (row["kernel"] - row["exact"])) < 1e-12 and row["standard_error"] > 0
assert (row["windows"], row["tokens"], row["vocabulary"], row["not_finite"]) == (3, 63, 31, 0)
END
    wants 0 'loss of logits: 63 tokens' "$attest" show "$scratch/$kind.h5"
done

# ---- files that do not fit, made of a right one
changed() { # 'python that changes d, a dict of arrays'
    /usr/bin/python3 -c "
import numpy, sys
d = dict(numpy.load('$scratch/asynct.npz'))
$1
numpy.savez(open('$scratch/changed.npz', 'wb'), **d)" || fail "changed: $1"
}
model=("$attest" stack asynct_model --set "$sizes" --quiet)
refused() { # 'python' 'text'
    changed "$1"
    wants 2 "$2" "${model[@]}" --values "$scratch/changed.npz" --loss logits
}
refused 'd["layers.1.w_p"] = d.pop("layers.1.w_q")' 'tensor layers.1.w_p: nothing in this stack has that name, did you mean layers.1.w_'
refused 'd["layers.2.w_q"] = d["layers.1.w_q"]' 'tensor layers.2.w_q: nothing in this stack has that name'
refused 'd["layers.0.w_v"] = d["layers.0.w_v"][:-1]' 'tensor layers.0.w_v has 16256 elements, wanted 16384'
refused 'd["layers.0.peri.beta_post"] = numpy.zeros(127, "f4")' 'layers.0.peri.beta_post has 127 elements, wanted 128'
refused 'd["w_head"] = d["w_head"].astype("i4")' 'tensor w_head is of'
refused 'd["layers.0.attention.taps"] += 1' 'the pooled tap of its sigma'
refused 'del d["targets"]' 'found no targets of i32 [windows, tokens], which --loss wants'
refused 'd["targets"] = d["targets"].astype("f4")' 'found no targets of i32'
refused 'd["targets"] = d["targets"][:, :-1]' '60 targets, and logits has 1953 elements in rows of 31: wanted a row of logits for each'
refused 'd["targets"] = numpy.zeros((1, 1953), "i4")' '1953 targets, and logits has 1953 elements in rows of 31' # divides, and is no row
refused 'd["targets"][1, 3] = 31' 'targets has 31 at 24, wanted -1 (none) to 30'
refused 'd["targets"][:] = -1' 'targets has no class at all'
changed 'd["targets"][0] = -1; d["layers.0.w_q"] = d["layers.0.w_q"].astype("f8").reshape(-1); del d["layers.1.w_down"], d["layers.0.peri.alpha_pre"]'
wants 0 'loss of logits: 42 tokens of 3 windows' "${model[@]}" --values "$scratch/changed.npz" --loss logits # other shapes and formats
grep -q '; 5 inputs and weights of the stack and 3 parameters' "$scratch/out" || { cat "$scratch/out"; fail "a weight or a norm that is drawn is not counted"; }
changed 'd["w_head"][:] = numpy.inf'
wants 0 '63 tokens have none that is a number' "${model[@]}" --values "$scratch/changed.npz" --loss logits
wants 2 'wanted a flow of asynct_model' "${model[@]}" --values "$scratch/asynct.npz" --loss logit
wants 2 'wanted --values with it' "${model[@]}" --loss logits
wants 2 'found --judge with --loss' "${model[@]}" --values "$scratch/asynct.npz" --loss logits --judge 1
wants 2 'nothing in this stack has that name' "${model[@]}" --values "$scratch/asynct.npz" --graph --against softmax_model
wants 2 'a sequence of turns, wanted a stack that runs once' "$attest" stack asynct_serve --values "$scratch/asynct.npz" --quiet
wants 2 '/no/file.npz' "${model[@]}" --values /no/file.npz
