#!/bin/bash
# The demonstration: host variants and three CUDA kernels on recorded activations of a real model, a planted wrong result, a
# planted race, the archive and its page.
#   demo.sh sources                    what its runner is made of: make/demo.mk compiles these files and no others
#   demo.sh run BUILD [OUT [CASES]]
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
hosts=(asynct_prefill/00_* softmax_prefill/00_* asynct_decode/00_*)
cuda=(asynct_decode/07_split_k asynct_prefill/18_wgmma_q_pair_store softmax_prefill/03_fa3)
wrong=asynct_prefill/01_last_key_dropped
racy=asynct_prefill/75_no_proxy_fence_after_p

sources() {
    local name
    for name in "${hosts[@]}"; do printf '%s\n' kernels/$name.c; done
    printf 'kernels/%s.cu\n' "${cuda[@]}"
    printf 'tests/mutants/%s.patch\n' "$wrong" "$racy"
}

must_fail() { # KERNEL CASE: judged, and rejected
    "$build/attest" verify "$1" --runner demo --case "$2" --quiet
    [[ $? == 1 ]] || { echo "demo: the wrong kernel $1 was not rejected" >&2; exit 1; }
    echo
}

run() {
    local start=${EPOCHREALTIME/./} archive=$out/minilm.h5 seconds
    mkdir -p "$out"
    rm -f "$archive" "$archive.jsonl"
    echo '== real activations (MiniLM, bf16 and f16): host variants, and three CUDA kernels from their own source, with no GPU:'
    printf '   %s\n' "${cuda[@]}"
    "$build/attest" verify "${hosts[@]}" "${cuda[@]}" --runner demo --cases "$cases" --strict --out "$archive" || exit $?
    echo
    echo '== planted: a host variant that leaves out the last key. Its result must be called WRONG'
    must_fail "$wrong" 'asynct_prefill dataset=minilm layer=3 dtype=bf16'
    echo '== planted: a CUDA kernel without a proxy fence between its store of P and the wgmma that reads it. It must be called RACY'
    must_fail "$racy" 'asynct_prefill dataset=minilm layer=3 pad_d=64 dtype=bf16'
    "$build/attest" export "$archive" --to html --out "$out" > /dev/null && mv "$out/minilm.html" "$out/report.html" || exit 1
    seconds=$(((${EPOCHREALTIME/./} - start) / 100000))
    echo "== archive: $archive (for h5py, xarray, pandas); its page: $out/report.html; judged in ${seconds%?}.${seconds: -1} s"
    echo '== your own kernel: any program that speaks kernels/runner/PROTOCOL.md is a runner; this one is plain Python:'
    echo "     build/attest verify --runner 'python3 tests/python/runner_client.py' --cases 'smoke:uclip*'"
    echo '   or a file kernels/asynct_decode/NN_idea.cu beside the others, which the build finds by its path'
    echo "== next: make (all kernels), build/attest verify '*_decode/*' --strict, make check (every test), README.md"
}

cd "$(dirname "$0")/../.." || exit 3
case "${1:-}" in
    sources) sources ;;
    run) build=$2 out=${3:-build/demo} cases=${4:-'real:@(*_prefill*layer=3*|*_decode*layer=5*)'}
         run ;;
    *) echo "demo.sh: sources, or run BUILD [OUT [CASES]]" >&2; exit 2 ;;
esac
