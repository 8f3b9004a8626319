#!/bin/bash
# Every deleted barrier is caught; a survivor without a proof, a proof that is wrong and one of nothing are errors, and no
# call goes unseen.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
[[ -e "$BUILD/mechanical.tsv" ]] || { echo "mechanical.tsv is written in the plain build alone: the others hold the same kernels"; exit 77; }
mechanical=$PWD/make/mechanical.sh
copy_programs attest attest-cpu # these take a list of the test's own
if [[ "${AT_EFFORT:-full}" == fast ]]; then
    # Of every family the first deletion of every kind of call: "without at_sync() at ...", "without at_wgmma_wait<0>(c) at ...".
    # Redundant ones are judged on all their cases, which takes long, and have their own part below.
    awk -F '\t' '$6 == "" { family = $1; sub(/\/.*/, "", family); call = $5; sub(/[(<].*/, "", call)
        if (!seen[family, call]++) print }' "$BUILD/mechanical.tsv" > "$scratch/mechanical.tsv"
    for column in 1 5; do # no family and no kind of call is left out
        diff <(cut -f$column "$BUILD/mechanical.tsv" | sed 's/[/(<].*//' | sort -u) <(cut -f$column "$scratch/mechanical.tsv" | sed 's/[/(<].*//' | sort -u) ||
            fail "a kind of deletion is not tried"
    done
    n=$(wc -l < "$scratch/mechanical.tsv")
    wants 0 "$n of $n deletions caught, " "$scratch/attest" selftest --mechanical
    grep -q '^killed ' "$scratch/out" || fail "no deletion was caught"
else
    # The cases that catch what few of its family's cases catch, before which dozens that cannot would be judged. All deletions are
    # tried on these first; what survives them is tried on all of its cases, as are those with a proof.
    awk -F '\t' -v OFS='\t' '
        BEGIN {
            telling["asynct_prefill"] = "@(*sq=68 sk=258*|b=3 *|b=1 h=8 *|b=2 h=16*|b=8 *|b=2 h=2 hk=1 sq=3 *)"
            telling["softmax_prefill"] = "@(*sq=68 sk=258*|*sq=4 sk=0*|b=1 h=66*|b=1 h=24 *|*sq=3 sk=200*|b=[358] *|b=20 *)"
            telling["score_counts"] = "*@(sk=33 d=1 *|sk=100 d=40 *|sk=70 d=[18] *)"
        }
        { family = $1; sub(/\/.*/, "", family) }
        $6 == "" && family in telling { $4 = "reach:" family " " telling[family]; print }' "$BUILD/mechanical.tsv" > "$scratch/mechanical.tsv"
    "$scratch/attest" selftest --mechanical > "$scratch/first"; code=$?
    [[ $code == [01] ]] || { tail -n 5 "$scratch/first"; fail "deletions on the cases that tell most: exit $code"; }
    awk -F '\t' -v OFS='\t' 'NR == FNR { if (/^killed /) { split($0, word, " +"); caught[word[2]] = 1 } next }
        !($1 in caught)' "$scratch/first" "$BUILD/mechanical.tsv" > "$scratch/mechanical.tsv"
    early=$(grep -c '^killed ' "$scratch/first") n=$(wc -l < "$scratch/mechanical.tsv") proofs=$(awk -F '\t' '$6 != ""' "$scratch/mechanical.tsv" | wc -l)
    [[ $early -gt 0 && $((early + n)) == $(wc -l < "$BUILD/mechanical.tsv") ]] || fail "$early deletions caught at first, and $n left"
    wants 0 "$((n - proofs)) of $n deletions caught, $proofs redundant with a proof" "$scratch/attest" selftest --mechanical
fi

# What is left out is the call and nothing else: at a line without one all is right.
for text in kernels/asynct_decode/02_cooperative_qk.cu:1 "$(cut -f3 "$BUILD/mechanical.tsv" | tail -n 1)"; do
    AT_SIMT_WITHOUT=$text wants 0 "exit 0: no result fails the run" "$attest" verify asynct_decode/02_cooperative_qk
done
for text in 12 kernels/x.cu: :12 kernels/x.cu:12x kernels/x.cu:0; do
    AT_SIMT_WITHOUT=$text wants 3 "AT_SIMT_WITHOUT=$text: wanted FILE:LINE" "$attest" verify asynct_decode/02_cooperative_qk
done

# On one key there is nothing to wait for between scores and gates: that deletion survives there, the other does not.
grep '^asynct_decode/02_cooperative_qk__' "$BUILD/mechanical.tsv" |
    sed 's/@(smoke|shapes|reach):\*/shapes:asynct_decode b=2 * sk=1 */' > "$scratch/one_key.tsv"
[[ $(wc -l < "$scratch/one_key.tsv") == 2 ]] || fail "02_cooperative_qk has other barriers than this test knows"
proved() { awk -F '\t' -v OFS='\t' -v rows="$1" '{ $6 = NR <= rows ? "as planted" : ""; print }' "$scratch/one_key.tsv" > "$scratch/mechanical.tsv"; }
proved 0; wants 1 '1 of 2 deletions caught, 0 redundant with a proof' "$scratch/attest" selftest --mechanical
grep -q '^SURVIVED .*__cu_' "$scratch/out" || fail "the survivor is not named"
proved 1; wants 0 '1 of 2 deletions caught, 1 redundant with a proof' "$scratch/attest" selftest --mechanical
proved 2; wants 1 'DISPROVED' "$scratch/attest" selftest --mechanical

# A proof belongs to one call of the source as it is.
kernel=kernels/asynct_decode/02_cooperative_qk.cu
proof() { echo "asynct_decode/02_cooperative_qk $kernel '$1' : as planted" > "$scratch/proofs"; }
listed() { "$mechanical" list "$scratch/proofs" build/simt "$kernel"; }
proof 'at_sync(); at_decode_gates('
wants 0 'as planted' listed
[[ $(grep -c 'as planted$' "$scratch/out") == 1 ]] || fail "a proof went to several calls"
proof 'at_sync(); at_decode_gates_as_they_were('
wants 1 'a proof for 0 calls' listed
proof 'at_sync();'
wants 1 'a proof for 2 calls' listed
echo 'asynct_decode/02_cooperative_qk is right anyway' > "$scratch/proofs"
wants 1 "proofs:1: wanted FAMILY/VARIANT" listed

# Every kind of call is found and left out by name; words, definitions and what the kernel does not use are not in the
# list; what cannot be told by its line is refused.
cd "$scratch" || exit 3
mkdir -p kernels/any kernels/device kernels/simt objects/kernels/any
: > proofs
cat > kernels/simt/any_simt.h <<'CU'
void at_simt_any(const char *file, int line);
#define CALL(name) static inline __attribute__((always_inline)) void name(int = 0, int = 0, int line = __builtin_LINE(), const char *file = __builtin_FILE()) { at_simt_any(file, line); }
CALL(at_sync) CALL(at_sync_warp) CALL(at_copy_commit) CALL(at_barrier_arrive) CALL(at_barrier) CALL(at_mbarrier_init) CALL(at_mbarrier_arrive)
CALL(at_mbarrier_arrive_expect) CALL(at_mbarrier_wait) CALL(at_bulk_commit) CALL(at_cluster_arrive) CALL(at_cluster_wait) CALL(at_fence_async)
CALL(at_proxy_fence) CALL(at_wgmma_fence) CALL(at_wgmma_commit) CALL(waits)
template <int N> void at_copy_wait(int line = __builtin_LINE()) { waits(N, line); }
template <int N> void at_bulk_wait(int line = __builtin_LINE()) { waits(N, line); }
CU
cat > kernels/device/any.h <<'CU'
#include "kernels/simt/any_simt.h"
__attribute__((noinline)) static void barrier_twice(int b) { at_sync(b); }
template <int N> void not_used() {
    at_sync();
}
static inline void inlined(int b) {
    at_fence_async();
}
CU
cat > kernels/any/01_x.cu <<'CU'
#include "kernels/device/any.h"
/* at_sync() is a barrier */
void all(bool yes, int b) {
    at_sync();
    if (yes) at_sync_warp(b + 1);
    at_copy_commit();
    at_copy_wait<1>();
    at_barrier_arrive(b); /* ours */
    at_barrier(1, 64);
    at_mbarrier_init(b, 1);
    at_mbarrier_arrive(b);
    at_mbarrier_arrive_expect(b, 16);
    at_mbarrier_wait(b, 0);
    at_bulk_commit();
    at_bulk_wait<0>();
    at_cluster_arrive();
    barrier_twice(b);
    inlined(b);
    at_proxy_fence();
    at_wgmma_fence(b);
    at_wgmma_commit();
    at_cluster_wait();
}
CU
compiled() { g++ -std=c++20 -O1 -g1 -I. -x c++ -c "kernels/any/$1.cu" -o "objects/kernels/any/$1.o" || fail "the kernel of this test"; }
compiled 01_x
"$mechanical" list proofs objects kernels/any/01_x.cu > found || fail "list"
got=$(cut -f1 found | sed 's/.*__//' | sort | paste -sd' ')
[[ "$got" == 'any_h_2 any_h_7 cu_11 cu_12 cu_13 cu_14 cu_15 cu_16 cu_19 cu_20 cu_21 cu_22 cu_4 cu_5 cu_6 cu_7 cu_8 cu_9' ]] || fail "calls found: $got"
grep -qP '^any/01_x__cu_5\tany/01_x\tkernels/any/01_x.cu:5\t@\(smoke\|shapes\|reach\):\*\twithout at_sync_warp\(b \+ 1\) at kernels/any/01_x.cu:5\t$' found || fail "the line of a call"
# Of kernels with the same calls of headers the first stands for all; their own calls, and another set, are their own.
sed 's/_commit();$/_commit(); b++;/' kernels/any/01_x.cu > kernels/any/02_y.cu
grep -v inlined kernels/any/01_x.cu > kernels/any/03_z.cu
for kernel in 02_y 03_z; do compiled $kernel; done
"$mechanical" list proofs objects kernels/any/0[123]_?.cu | cut -f1 > found || fail "list"
[[ $(grep __any_h_ found | paste -sd' ') == 'any/01_x__any_h_2 any/01_x__any_h_7 any/03_z__any_h_2' ]] || { cat found; fail "calls of headers"; }
[[ $(grep -c 02_y__cu found) == 16 && $(grep -c 03_z__cu found) == 16 ]] || fail "calls of kernels that another stands for"
for bad in 'at_sync(); at_sync();' 'at_sync_warp(' 'while (at_barrier_test(b)) {'; do
    echo "    $bad" > kernels/any/01_x.cu
    wants 1 '01_x.cu:1: ' "$mechanical" list proofs objects kernels/any/01_x.cu
done
