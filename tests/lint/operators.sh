#!/bin/bash
# Operators say what they are: nobody outside an operator's folder guesses from its name, and PROTOCOL.md has the version
# that the code speaks. With --self-test it plants a fault of each kind in a copy and must see it.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
operators=$(find reference -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | grep -vxE 'attest|tensor_core|special|fast|norm|gated|rotation|cache' | paste -sd'|')

guesses() { # files...: where an operator is told by its name, a tensor's or a dimension's
    grep -nE -- 'strn?(case)?(cmp|str)\(.*op->name, *"|strstr\(.*->name|tensor_index\([^)]*"\) *(>=|<) *0|dims\[0\] == AT_DIM_' "$@"
    grep -nE -- "(strn?cmp|strstr)\(.*\"($operators)\"" "$@" | grep -vE "$of_one"
}
# Features that are made of one operator may call it by name: what a recording launches, what a study measures.
of_one='^verify/(study/|record/dist_device\.c)'
protocol() { # header, page: every version the page names is the header's
    local version bad=0 found
    version=$(sed -n 's/.*AT_PROTOCOL_VERSION = \([0-9]*\).*/\1/p' "$1")
    [[ -n "$version" ]] || { echo "$1: no AT_PROTOCOL_VERSION"; return 1; }
    while read -r found; do
        [[ "$found" =~ [^0-9]"$version"$ ]] || { echo "$2: \"$found\", but AT_PROTOCOL_VERSION is $version"; bad=1; }
    done < <(grep -oE 'protocol, version [0-9]+|protocol=[0-9]+|speaks protocol [0-9]+|version is [0-9]+' "$2")
    [[ "$(grep -c "protocol=$version" "$2")" -ge 4 ]] || { echo "$2: wanted protocol=$version in the tables and the transcript"; bad=1; }
    return $bad
}
header=reference/attest/protocol.h page=kernels/runner/PROTOCOL.md

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp); trap 'rm -f "$planted"' EXIT
    for line in 'rms = strstr(op->name, "rms") != NULL;' 'if (strcmp(p->op->name, "gemm") == 0)' 'if (strcmp(name, "score_counts") == 0)' \
                'return at_op_tensor_index(op, "seq_lens") >= 0;' 'return op->tensors[0].dims[0] == AT_DIM_tokens;'; do
        echo "$line" > "$planted"
        [[ -n "$(guesses "$planted")" ]] || { echo "operators: did not see $line"; exit 1; }
    done
    for change in 's/version 5/version 3/' '0,/protocol=5/s//protocol=4/' 's/protocol=5 transport=inline/protocol=6 transport=inline/'; do
        sed "$change" "$page" > "$planted"
        protocol "$header" "$planted" > /dev/null && { echo "operators: did not see $change"; exit 1; }
    done
    exit 0
fi
failed=0
mapfile -t files < <(git ls-files 'verify/*.[ch]' 'datasets/*.[ch]' 'kernels/runner/*.[ch]' 'reference/attest/*.[ch]' 'reference/norm/*.[ch]')
found=$(guesses "${files[@]}")
if [[ -n "$found" ]]; then echo "$found"; echo "an operator is told by a name: declare it in the operator's table (reference/attest/op.h)"; failed=1; fi
protocol "$header" "$page" || failed=1
version=$(sed -n 's/.*AT_PROTOCOL_VERSION = \([0-9]*\).*/\1/p' "$header")
for client in tests/python/runner_client.py kernels/runner/python/attest_runner.py; do
    grep -qx "PROTOCOL = $version" "$client" || { echo "$client: wanted PROTOCOL = $version"; failed=1; }
done
exit $failed
