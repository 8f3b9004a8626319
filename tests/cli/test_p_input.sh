#!/bin/bash
# p=input: where a kernel rounds P to the format of its activations, the declaration gives what naming that format gives; where it
# does not, it is WRONG. The kernels are those of attest-cpu, which say p=bf16 and p=f16.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cat > "$scratch/runner" << RUNNER
#!/bin/bash
exec "$BUILD/attest-cpu" > >(sed -u 's/%20p%3Db\\?f16%20/%20p%3Dinput%20/')
RUNNER
chmod +x "$scratch/runner"
judged() { # NAME options: state, verdict and decoys of each result
    local name=$1; shift
    "$attest" verify 'softmax_decode/0[04]_@(blas|flash)*' 'asynct_prefill/04_mma*' --cases 'smoke:*' --again 1000 --quiet --json "$scratch/$name.jsonl" "$@" > "$scratch/out"
    [[ $? == [01] ]] || { tail -n 5 "$scratch/out"; fail "$name"; }
    sed -E 's/.*"case_id":"([^"]*)".*"decoy_fate":"([^"]*)".*"limit_median":([^,]*).*"model_exact":([^,]*).*"state":"([^"]*)","tensor":"([^"]*)".*"variant":"([^"]*)".*/\7 \6 \1: \5 \4 \2 \3/' \
        "$scratch/$name.jsonl" | sort > "$scratch/$name"
}
judged named
judged input --runner "$scratch/runner"
grep -q '"numerics":"[^"]* p=input ' "$scratch/input.jsonl" || fail "nothing declares p=input"
[[ $(grep -c ': PASS true' "$scratch/input") -ge 10 ]] || fail "hardly a model was met"
# Others than before are the host's alone that round P to one format whatever the activations have, on activations of another.
diff "$scratch/named" "$scratch/input" | grep '^[<>]' > "$scratch/changed"
grep -vE '^[<>] 00_blas_p(bf16 .*dtype=f(16|32) |f16 .*dtype=(bf16|f32) )' "$scratch/changed" && fail "p=input is not what naming the format is"
grep -qE '^> 00_blas_pbf16 .*dtype=f16 .*: WRONG' "$scratch/changed" || fail "P in bf16 passes as P in f16"
grep -qE '^< 00_blas_pbf16 .*dtype=f16 .*: PASS' "$scratch/changed" || fail "P in bf16 is wrong by itself"
# A declaration's fields are tested as those of one that names the format; the format itself also where activations have another.
fields() { "$attest" declarations "$1" --cases 'smoke:*' --json "${@:2}" | sed '/"field":"p"/ s/"value":"[a-z0-9]*"//'; }
diff <(fields softmax_decode/04_flash_decoding_mma) <(fields softmax_decode/04_flash_decoding_mma --runner "$scratch/runner") ||
    fail "fields are tested otherwise"
fields softmax_decode/00_blas_pbf16 --field p --runner "$scratch/runner" | grep -q '"state":"tested".*"not_told_apart":""' ||
    fail "p=input is not told from p=bf16 where activations are f16, too"
