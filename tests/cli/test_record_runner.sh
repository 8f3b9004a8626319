#!/bin/bash
# record --runner: a runner's kernels count the same, to the byte of the archive; what a runner cannot count is refused.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 3
runner=$BUILD/attest-cpu
ragged='b=3 h=4 hk=2 sq=70/0/5 sk=90/7/0 d=32 causal=1' own='sigma=1:0.5:2:0 gamma=1:2:3:-4'
[[ ${AT_EFFORT:-full} == fast ]] && ragged='b=3 h=2 hk=1 sq=40/0/5 sk=60/7/0 d=32 causal=1' own='sigma=0.5:0 gamma=2:-4'

recorded() { # name, arguments: by this process and by the runner
    local name=$1; shift
    wants 0 'units' "$attest" record "$@" --out "$name.h5"
    wants 0 'units' "$attest" record "$@" --out "$name.runner.h5" --runner "$runner"
    same "$name.h5" "$name.runner.h5"
}
recorded asynct "asynct_prefill $ragged dtype=bf16 data=normal $own"
recorded softmax "softmax_prefill $ragged dtype=f16 data=normal"
recorded f32 "asynct_prefill b=1 h=2 hk=1 sq=20 sk=40 d=16 dtype=f32 data=nonfinite"
recorded rounded "asynct_prefill b=1 h=2 hk=1 sq=20 sk=40 d=16 dtype=f32 data=overflow" --dtype f16 --what raw,p,out,k
recorded few "asynct_prefill $ragged dtype=f16 data=normal" --what raw,entropy
wants 0 'units' "$attest" record "asynct_prefill $ragged dtype=bf16 data=normal $own" \
    --runner cpu --out cpu.h5
same asynct.h5 cpu.h5

wants 3 '' "$attest" record "softmax_prefill $ragged" --runner false --out no.h5
wants 2 'wanted counts below' "$attest" record 'asynct_prefill b=1 h=1 hk=1 sq=4 sk=4 d=8 dtype=f16 clip=0:1e30' --runner "$runner" --out no.h5
[[ ! -e no.h5 ]] || fail "a refused recording wrote a file"
