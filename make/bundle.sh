#!/bin/bash
# Packs programs, the libraries they need, case files, recorded activations and measurements: bundle.sh OUT.tar.xz PROGRAM...
# (or .tar.gz). What comes out runs on any x86-64 Linux with glibc 2.36 or newer and, for attest-cuda, an NVIDIA driver.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
out=$1; shift
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
top=$work/attest
mkdir -p "$top/lib" "$top/datasets/measurements"
cp "$@" "$top/"
cp -r datasets/cases datasets/certify datasets/activations datasets/bench datasets/stacks "$top/datasets/"
cp datasets/measurements/h200_tensor_core.txt datasets/measurements/h200_special.txt "$top/datasets/measurements/"
# Every library but those of glibc itself, which belong to the host's loader.
for program in "$top"/attest*; do
    ldd "$program" | awk '$3 ~ /^\// { print $3 }'
done | sort -u | grep -vE '/(libc|libm|libresolv|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$top/lib/"
# attest-cpu and attest-mutants keep their debug information: the SIMT machine names lines by it.
for program in "$top/attest" "$top"/attest-cuda* "$top"/attest-so*; do [[ ! -e "$program" ]] || strip --strip-debug "$program"; done
strip --strip-unneeded "$top"/lib/*
tar -C "$work" --sort=name --owner=0 --group=0 -caf "$out" attest
echo "$out: $(du -h --apparent-size "$out" | cut -f1), unpacked $(du -sh --apparent-size "$top" | cut -f1): $(cd "$top" && du -h --apparent-size -- attest* lib datasets | awk '$2 !~ /\// { printf "%s%s %s", n++ ? ", " : "", $2, $1 }')"
