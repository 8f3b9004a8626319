#!/bin/bash
# Packs programs, the libraries they need, case files and recorded activations: bundle.sh BUILD OUT.tar.gz. What comes out
# runs on any x86-64 Linux with glibc 2.36 or newer and, for attest-cuda, an NVIDIA driver.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1 out=$2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
top=$work/attest
mkdir -p "$top/lib" "$top/datasets"
for program in attest attest-cpu attest-cuda attest-mutants attest-cuda-mutants; do
    [[ -x "$build/$program" ]] && cp "$build/$program" "$top/"
done
cp "$build/mutants.tsv" "$top/"
cp -r datasets/cases datasets/activations datasets/bench "$top/datasets/"
install -D -m 644 -t "$top/datasets/measurements" datasets/measurements/h200_tensor_core.txt
# Every library but those of glibc itself, which belong to the host's loader.
for program in "$top"/attest*; do
    ldd "$program" | awk '$3 ~ /^\// { print $3 }'
done | sort -u | grep -vE '/(libc|libm|libresolv|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$top/lib/"
tar -C "$work" -czf "$out" attest
echo "$out: $(du -h "$out" | cut -f1), $(find "$top/lib" -type f | wc -l) libraries"
