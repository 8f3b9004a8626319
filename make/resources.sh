#!/bin/bash
# Compiles every CUDA kernel for every architecture and records what each takes: registers, shared memory, stack, spills.
# resources.sh NVCC OUT.tsv FLAGS...: the table; what spills is printed, and a kernel that an architecture refuses is an
# error, as are a spill on sm_90a, which measurements are of, and host code that calls a __device__ function. Architectures:
# AT_ARCHS, by default the PTX of compute_80 for each that nvcc knows, and sm_90a itself. The last column names what was compiled:
# the source and this project's headers as nvcc reads them, and its release. AT_RECORD=FILE.tsv: sources that are in it as they are
# now are not compiled again, but for one in 16, whose rows must be those of the record.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
nvcc=$1 out=$2; shift 2
ptxas=$(dirname "$(realpath "$nvcc")")/ptxas
host_object=$(dirname "$(realpath "$0")")/host_object.sh
archs=${AT_ARCHS:-sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

record=${AT_RECORD:-}
[[ -z "$record" || -r "$record" ]] || { echo "resources: $record: not there" >&2; exit 1; }
release=$("$nvcc" --version | grep -o 'V[0-9.]*$')

text() { # source, flags: a digest of what nvcc reads of this project (paths of its own headers are absolute, ours are not). The
    # words of declarations are no part of it: what kernels take of them is where they name it, and a new word changes none. Nor is
    # the descriptor, which is the host's.
    local source=$1; shift
    { echo "$release $*"; "$nvcc" "$@" -arch=sm_90a -E "$source" | awk '
        /^# [0-9]+ "/ { split($0, part, "\""); ours = part[2] !~ /^[\/<]/ && part[2] !~ /attest\/(numerics|kernel)\.h$/; next }
        ours && NF { gsub(/[ \t]+/, " "); print }'; } | sha256sum | cut -c 1-16
}
recorded() { # source, text: its rows of the record on the architectures that are asked for
    awk -F'\t' -v OFS='\t' -v source="$1" -v text="$2" -v archs="$archs" '
        BEGIN { n = split(archs, list, " "); for (i = 1; i <= n; i++) asked[list[i]] }
        $1 == source && $3 in asked && $9 == text { print; seen[$3] }
        END { for (arch in asked) if (!(arch in seen)) exit 1 }' "$record"
}
host() { # source, object, flags: what the host runs of a source, refused as `make cuda` refuses it
    local source=$1 object=$2; shift 2
    "$nvcc" "$@" -gencode arch=compute_90a,code=compute_90a -c "$source" -o "$object" 2> "$object.log" || { cat "$object.log" >&2; return 1; }
    "$host_object" "$source" "$object"
}
one() { # source, flags: the table's lines for it, in a file of its own
    local source=$1 arch virtual ptx digest rows=''; shift
    ptx=$work/${source//\//_}
    digest=$(text "$source" "$@")
    [[ -z "$record" ]] || rows=$(recorded "$source" "$digest") || rows=''
    [[ -z "$rows" || $digest == *0 ]] || { printf '%s\n' "$rows" > "$ptx.known"; return; }
    for arch in $archs; do
        virtual=compute_80; [[ $arch == sm_90a ]] && virtual=compute_90a
        [[ -e "$ptx.$virtual" ]] || "$nvcc" "$@" -gencode "arch=$virtual,code=$virtual" -ptx "$source" -o "$ptx.$virtual" 2> "$ptx.log" || { cat "$ptx.log" >&2; return 1; }
        [[ $arch != sm_90a ]] || host "$source" "$ptx.o" "$@" || return 1
        "$ptxas" -arch="$arch" -v "$ptx.$virtual" -o /dev/null 2> "$ptx.log" || { echo "$source for $arch:"; cat "$ptx.log"; return 1; } >&2
        awk -v source="$source" -v arch="$arch" -v text="$digest" '
            /Compiling entry function/ { split($0, part, "\047"); entry = part[2] }
            /bytes stack frame/ { stack = $1; spilled = $5; loaded = $9 }
            /Used [0-9]+ registers/ { shared = 0; for (i = 1; i < NF; i++) if ($(i + 1) ~ /^bytes/ && $(i + 2) ~ /^smem/) shared = $i
                for (i = 1; i < NF; i++) if ($i == "Used") registers = $(i + 1)
                print source "\t" entry "\t" arch "\t" registers "\t" shared "\t" stack "\t" spilled "\t" loaded "\t" text }' "$ptx.log" >> "$ptx.raw"
    done
    c++filt -p < "$ptx.raw" | sed 's/(anonymous namespace):://g' > "$ptx.tsv"
    [[ -z "$rows" ]] || diff <(sort <<< "$rows") <(sort "$ptx.tsv") || { echo "resources: $source: not as it is in $record"; return 1; } >&2
}
export -f one host text recorded; export nvcc ptxas host_object archs work record release
# A kernel that is refused ends xargs with an error, and so the script.
git ls-files 'kernels/*.cu' ':!kernels/*/examples/*' | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'one "$@"' _ {} "$@"
{
    printf 'source\tentry\tarch\tregisters\tstatic_shared_bytes\tstack_bytes\tspill_store_bytes\tspill_load_bytes\ttext\n'
    find "$work" \( -name '*.tsv' -o -name '*.known' \) -exec cat {} + | sort
} > "$out.new"
mv "$out.new" "$out"
kernels=$(($(wc -l < "$out") - 1))
sources=$(tail -n +2 "$out" | cut -f1 | sort -u | wc -l)
[[ $sources == "$(git ls-files 'kernels/*.cu' ':!kernels/*/examples/*' | wc -l)" ]] || { echo "resources: some sources gave no kernel" >&2; exit 1; }
for arch in $archs; do
    on=$(awk -F'\t' -v arch="$arch" '$3 == arch' "$out" | wc -l)
    [[ $((on * $(wc -w <<< "$archs"))) == "$kernels" ]] || { echo "resources: $on kernels on $arch, wanted as many on each" >&2; exit 1; }
done
spills=$(tail -n +2 "$out" | awk -F'\t' '$7 + $8 > 0 { printf "spills %s: %s on %s, %s registers, %s bytes stored, %s loaded\n", $1, $2, $3, $4, $7, $8 }')
[[ -z "$spills" ]] || echo "$spills"
compiled=$(find "$work" -name '*.tsv' | wc -l)
echo "$out: $kernels kernels of $sources sources on $(wc -w <<< "$archs") architectures, $(grep -c . <<< "$spills" || true) spill; $compiled sources compiled${record:+, the others are in $record as they are}"
if grep -q ' on sm_90a,' <<< "$spills"; then echo "resources: kernels spill on sm_90a" >&2; exit 1; fi
