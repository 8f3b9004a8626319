#!/bin/bash
# Compiles every CUDA kernel for every architecture and records what each takes: registers, shared memory, stack, spills.
# resources.sh NVCC OUT.tsv FLAGS...: the table; what spills is printed, and a kernel that an architecture refuses is an
# error. Architectures: AT_ARCHS, by default the PTX of compute_80 for each that nvcc knows, and sm_90a itself.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
nvcc=$1 out=$2; shift 2
flags=("$@")
ptxas=$(dirname "$(realpath "$nvcc")")/ptxas
archs=${AT_ARCHS:-sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

one() { # source: the table's lines for it
    local source=$1 arch virtual ptx
    ptx=$work/${source//\//_}
    for virtual in compute_80 compute_90a; do
        "$nvcc" "${flags[@]}" -gencode "arch=$virtual,code=$virtual" -ptx "$source" -o "$ptx.$virtual" 2> "$ptx.log" || { cat "$ptx.log" >&2; return 1; }
    done
    for arch in $archs; do
        virtual=compute_80; [[ $arch == sm_90a ]] && virtual=compute_90a
        "$ptxas" -arch="$arch" -v "$ptx.$virtual" -o /dev/null 2> "$ptx.log" || { echo "$source for $arch:"; cat "$ptx.log"; return 1; } >&2
        awk -v source="$source" -v arch="$arch" '
            /Compiling entry function/ { split($0, part, "\047"); entry = part[2] }
            /bytes stack frame/ { stack = $1; spilled = $5; loaded = $9 }
            /Used [0-9]+ registers/ { shared = 0; for (i = 1; i < NF; i++) if ($(i + 1) ~ /^bytes/ && $(i + 2) ~ /^smem/) shared = $i
                for (i = 1; i < NF; i++) if ($i == "Used") registers = $(i + 1)
                print source "\t" entry "\t" arch "\t" registers "\t" shared "\t" stack "\t" spilled "\t" loaded }' "$ptx.log"
    done
}
export -f one; export nvcc ptxas archs work
{
    printf 'source\tentry\tarch\tregisters\tstatic_shared_bytes\tstack_bytes\tspill_store_bytes\tspill_load_bytes\n'
    # flags are an array, which an environment cannot hold
    for source in $(git ls-files 'kernels/*.cu'); do one "$source" > "$work/${source//\//_}.tsv" & [[ $(jobs -rp | wc -l) -ge $(nproc) ]] && wait -n; done
    wait
    cat "$work"/*.tsv | c++filt -p | sed 's/(anonymous namespace):://g' | sort
} > "$out.new"
mv "$out.new" "$out"
kernels=$(($(wc -l < "$out") - 1))
sources=$(tail -n +2 "$out" | cut -f1 | sort -u | wc -l)
[[ $sources == "$(git ls-files 'kernels/*.cu' | wc -l)" ]] || { echo "resources: some sources gave no kernel" >&2; exit 1; }
spills=$(tail -n +2 "$out" | awk -F'\t' '$7 + $8 > 0 { printf "spills %s: %s on %s, %s registers, %s bytes stored, %s loaded\n", $1, $2, $3, $4, $7, $8 }')
[[ -z "$spills" ]] || echo "$spills"
echo "$out: $kernels kernels of $sources sources on $(wc -w <<< "$archs") architectures, $(grep -c . <<< "$spills" || true) spill"
