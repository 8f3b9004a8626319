#!/bin/bash
# Everything `make lint` checks. Each step prints its name and what it found, as many at a time as there are processors; the
# last line counts them.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2046 # lists of files are meant to be split
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
failed=$(mktemp); trap 'rm -f "$failed"' EXIT
one_step() { # name, command...
    local name=$1 out from=$SECONDS; shift
    if out=$("$@" 2>&1); then printf 'ok    %-70s %4d s\n' "$name" $((SECONDS - from)); else printf 'FAIL  %s\n%s\n' "$name" "$out" | head -n 80; echo "$name" >> "$failed"; fi
}
step() {
    while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do wait -n; done
    one_step "$@" &
}
sources() { git ls-files '*.c' '*.h' '*.cu'; }

banned() { # words that hide errors or break the numeric rules
    local bad=0
    grep -nE '\bassert_(float|double)_(not_)?equal|\b(sprintf|strcpy|strcat|gets|alloca|atoi|atof|strtok)\(' $(sources) && bad=1
    # It returns before the copy is made, and streams that do not wait for the default one run ahead of it.
    grep -lPz 'cudaMemcpy\([^;]*cudaMemcpyDeviceToDevice' $(sources) && bad=1
    grep -nE -- '-(ffast-math|Ofast|march=native)' Makefile make/*.mk make/*.sh && bad=1
    grep -rnE '\b(TO''DO|FIX''ME|XX''X)\b' $(sources) && bad=1
    return $bad
}
first_line() { # every source says what it is for, and its licence
    local bad=0 f
    for f in $(sources); do
        head -n 1 "$f" | grep -q '^/\* ' || { echo "$f: line 1 does not say what the file is for"; bad=1; }
        head -n 6 "$f" | grep -qE '^ \* SPDX-License-Identifier: Apache-2.0( \*/)?$' || { echo "$f: no SPDX line of its own at the top"; bad=1; }
    done
    return $bad
}
length() { # files stay short enough to have one job
    local bad=0 lines f
    while read -r lines f; do [[ "$f" == total || $lines -le 450 ]] || { echo "$f: $lines lines"; bad=1; }; done \
        < <(sources | xargs wc -l)
    return $bad
}
unique_names() { # file names are unique across the tree, but for the fixed ones of operators and variants
    local twice
    twice=$(git ls-files 'reference/attest/*.[ch]' 'reference/tensor_core/*.[ch]' 'reference/special/*.[ch]' 'reference/fast/*.[ch]' 'datasets/*.[ch]' 'verify/*.[ch]' 'notebooks_export/*.[ch]' | xargs -n1 basename | sort | uniq -d)
    [[ -z "$twice" ]] || { echo "file names used twice: $twice"; return 1; }
}
symbols() { # a variant's object has one global symbol
    local bad=0 object names
    while read -r object; do
        names=$(nm --defined-only -g "$object" | awk '{print $3}' | grep -v '^__' )
        [[ "$(wc -w <<< "$names")" == 1 && "$names" == at_kernel_* ]] || { echo "$object: global symbols: $names"; bad=1; }
    done < <(find "$BUILD/kernels" -name '[0-9][0-9]_*.o')
    return $bad
}
headers_alone() { # each header compiles by itself
    local bad=0 h
    for h in $(git ls-files '*.h' | grep -E '^(reference|datasets|verify|notebooks_export|tests)/|^kernels/(host|runner|launch|simt)/' | grep -v '_simt.h$'); do
        ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Ireference -I. -I"$BUILD/gen" $(pkg-config --cflags hdf5 openblas) -Wall -Werror \
            -fsyntax-only -x c "$h" 2>/dev/null || { echo "$h does not compile alone"; bad=1; }
    done
    return $bad
}
kernel_headers_as_cxx() { # CUDA C++ reads the vocabulary too
    printf '#include "attest/kernel.h"\n#include "attest/attention.h"\n#include "kernels/attention/asynct.h"\nint main() { return 0; }\n' |
        g++ -std=c++20 -Wall -Werror -mfma -mf16c -Ireference -I. -fsyntax-only -x c++ -
}
kernels_as_cxx() {
    git ls-files 'kernels/*.cu' ':!kernels/*/examples/*' | xargs -P "$(nproc)" -n 4 g++ -std=c++20 -Wall -Wextra -Wvla -Wno-missing-field-initializers -Werror \
        -mfma -mf16c -Ireference -I. -fsyntax-only -x c++
}
format() { sources | xargs clang-format --dry-run -Werror; }
# The analyser explores a function up to 75,000 states, as in clang's own shallow mode; the 225,000 of its deep mode take three
# to four times as long.
tidy_some() { # files...; clang-tidy wants them before the compiler's own words
    # shellcheck disable=SC2046
    clang-tidy --quiet --extra-arg={-Xclang,-analyzer-config,-Xclang,max-nodes=75000} "$@" -- -std=c11 -D_GNU_SOURCE -DAT_VERSION='"x"' -DAT_SOURCE_DIR='"."' -DAT_BUILD_DIR='"."' -Ireference -I. -Ikernels/runner \
        -I"$BUILD/gen" $(pkg-config --cflags openblas hdf5 gsl jansson) 2> /dev/null | grep -E 'warning:|error:'
}
export -f tidy_some
tidy() { # but for what includes headers of CUDA or of gcc alone
    local out
    out=$(git ls-files 'reference/*.c' 'datasets/*.c' 'kernels/*.c' ':!kernels/runner/*cuda*' ':!kernels/runner/coverage.c' ':!kernels/launch/driver_abi.c' 'verify/*.c' 'notebooks_export/*.c' 'tests/*.c' ':!tests/toy_operator/*' |
        xargs -P "$(nproc)" -n 6 bash -c 'tidy_some "$@"' _ | sort -u)
    [[ -z "$out" ]] || { echo "$out"; return 1; }
}
tidy_sees() { # an uninitialised value in a file of its own must be named
    printf 'int main(void) {\n    int x;\n    return x;\n}\n' > "$BUILD/planted.c"
    local seen
    seen=$(tidy_some "$BUILD/planted.c") # its exit code is clang-tidy's own: 1 where there is a fault
    [[ "$seen" == *planted.c:3:*'Undefined or garbage'* ]]
}
shell() { git ls-files '*.sh' .ci/run | xargs shellcheck -S warning; }
# In a folder of its own, whatever BUILD says, and without moving the links in build/.
second_compiler() { env -u BUILD make --no-print-directory CC=clang DEV=1 -j"$(nproc)" build/cpu-clang/attest build/cpu-clang/attest-cpu build/cpu-clang/attest-so; }
other_compiler_name='clang builds it without a warning'

step 'layers: who may include whom' tests/lint/layers.sh
step 'layers: a planted include is seen' tests/lint/layers.sh --self-test
step 'circles: no module includes itself by another' tests/lint/circles.sh
step 'circles: a planted one is seen' tests/lint/circles.sh --self-test
step 'sources: every citation resolves' tests/lint/sources.sh
step 'sources: unknown ones are seen' tests/lint/sources.sh --self-test
step 'names: files and pages named in comments are there' tests/lint/names.sh
step 'names: lost ones are seen' tests/lint/names.sh --self-test
step 'heads: what every variant says of itself' tests/lint/heads.sh
step 'heads: missing fields are seen' tests/lint/heads.sh --self-test
step 'words: those that the field uses' tests/lint/words.sh
step 'words: each of the others is seen' tests/lint/words.sh --self-test
step 'operators: told by their tables; one protocol version' tests/lint/operators.sh
step 'operators: planted guesses and versions are seen' tests/lint/operators.sh --self-test
step 'claims: each in its row of the sources table' tests/lint/claims.sh
step 'claims: lost ones are seen' tests/lint/claims.sh --self-test
step 'no banned calls' banned
step 'first lines and licences' first_line
step 'file lengths' length
step 'file names' unique_names
step 'one global symbol a variant' symbols
step 'headers alone' headers_alone
step 'kernel headers as C++20' kernel_headers_as_cxx
step 'kernels as C++20, without a warning' kernels_as_cxx
step 'shellcheck' shell
step 'clang-format' format
step "$other_compiler_name" second_compiler
[[ "${AT_LINT_FAST:-0}" == 1 ]] || step 'clang-tidy' tidy
step 'clang-tidy: a planted fault is seen' tidy_sees
wait
echo "lint: $(wc -l < "$failed") failed"
[[ ! -s "$failed" ]]
