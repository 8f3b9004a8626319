#!/bin/bash
# Every deleted barrier is caught; a survivor without a proof, a proof that is wrong and one of nothing are errors, and no
# call goes unseen.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
[[ -x "$BUILD/attest-mechanical" ]] || { echo "attest-mechanical is built by 'make mechanical-built'; only the plain build is tested"; exit 77; }
mechanical=$PWD/tests/build/mechanical.sh
if [[ "${AT_EFFORT:-full}" == fast ]]; then
    wants 0 'deletions caught, ' "$attest" selftest --mechanical --mutants '*/02_*'
else
    wants 0 "of $(wc -l < "$BUILD/mechanical.tsv") deletions caught, " "$attest" selftest --mechanical
fi
grep -q '^killed ' "$scratch/out" || fail "no deletion was caught"

# On one key there is nothing to wait for between scores and gates: that deletion survives there, the other does not.
cp "$BUILD/attest" "$BUILD/attest-mechanical" "$scratch/"
grep '^asynct_decode/02_cooperative_qk__' "$BUILD/mechanical.tsv" |
    sed 's/@(smoke|shapes):\*/shapes:asynct_decode b=2 * sk=1 */' > "$scratch/one_key.tsv"
[[ $(wc -l < "$scratch/one_key.tsv") == 2 ]] || fail "02_cooperative_qk has other barriers than this test knows"
proved() { awk -F '\t' -v OFS='\t' -v rows="$1" '{ $6 = NR <= rows ? "as planted" : ""; print }' "$scratch/one_key.tsv" > "$scratch/mechanical.tsv"; }
proved 0; wants 1 '1 of 2 deletions caught, 0 redundant with a proof' "$scratch/attest" selftest --mechanical
grep -q '^SURVIVED .*__cu_' "$scratch/out" || fail "the survivor is not named"
proved 1; wants 0 '1 of 2 deletions caught, 1 redundant with a proof' "$scratch/attest" selftest --mechanical
proved 2; wants 1 'DISPROVED' "$scratch/attest" selftest --mechanical

# A proof belongs to one call of the source as it is.
patches=("$BUILD"/mechanical/asynct_decode/02_cooperative_qk__*.patch)
proof() { echo "asynct_decode/02_cooperative_qk kernels/asynct_decode/02_cooperative_qk.cu '$1' : as planted" > "$scratch/proofs"; }
proof 'at_sync(); at_decode_gates('
wants 0 'as planted' "$mechanical" list "$scratch/proofs" "${patches[@]}"
[[ $(grep -c 'as planted$' "$scratch/out") == 1 ]] || fail "a proof went to several calls"
proof 'at_sync(); at_decode_gates_as_they_were('
wants 1 'a proof for 0 calls' "$mechanical" list "$scratch/proofs" "${patches[@]}"
proof 'at_sync();'
wants 1 'a proof for 2 calls' "$mechanical" list "$scratch/proofs" "${patches[@]}"
echo 'asynct_decode/02_cooperative_qk is right anyway' > "$scratch/proofs"
wants 1 "proofs:1: wanted FAMILY/VARIANT" "$mechanical" list "$scratch/proofs" "${patches[@]}"

# Every kind of call is found, words and definitions are not; what cannot be deleted by line is refused.
cd "$scratch" || exit 3
mkdir -p kernels/any kernels/device simt/kernels/any
echo 'x.o: kernels/any/01_x.cu kernels/device/any.h' > simt/kernels/any/01_x.d
printf '__device__ void at_barrier_twice(int *b) { at_sync(); }\n    at_fence_async();\n' > kernels/device/any.h
cat > kernels/any/01_x.cu <<'CU'
/* at_sync() is a barrier */
    at_sync();
    if (yes) at_sync_warp(mask(1));
    at_copy_commit();
    at_copy_wait<1>();
    at_barrier_arrive(&b[0]); /* ours */
    at_barrier(1, 64);
    at_mbarrier_init(b, 1);
    at_mbarrier_arrive(b);
    at_mbarrier_arrive_expect(b, 16);
    at_mbarrier_wait(b, 0);
    at_bulk_commit();
    at_bulk_wait_read<0>();
    at_bulk_wait<0>();
    at_cluster_arrive();
    at_cluster_wait();
CU
"$mechanical" patches found . kernels/any/01_x.cu || fail "patches"
got=$(find found -name '*.patch' | sed 's/.*__//; s/\.patch//' | sort | paste -sd' ')
[[ "$got" == 'any_h_2 cu_10 cu_11 cu_12 cu_13 cu_14 cu_15 cu_16 cu_2 cu_3 cu_4 cu_5 cu_6 cu_7 cu_9' ]] || fail "calls found: $got"
grep -qx '+    if (yes) ;' found/any/01_x__cu_3.patch || fail "the call is not what is deleted"
for bad in 'at_sync(); at_sync();' 'at_sync_warp(' 'while (at_barrier_test(b)) {'; do
    echo "    $bad" > kernels/any/01_x.cu
    wants 1 '01_x.cu:1: ' "$mechanical" patches found . kernels/any/01_x.cu
done
