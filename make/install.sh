#!/bin/bash
# Puts attest under a folder, or takes it away: install.sh PREFIX PROGRAM... | install.sh --remove PREFIX. Programs go to bin;
# share/attest beside it has what they read, and what people who write a runner read. A .tsv is one of selftest's lists.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
data=(cases certify bench activations measurements stacks)
remove() {
    rm -f "$1"/bin/attest{,-cpu,-cuda,-so,-so-cuda,-mutants} "$1/include/attest_launch.h" "$1/share/man/man1/attest.1" "$1/share/bash-completion/completions/attest"
    rm -rf "$1/share/attest"
}
if [[ "$1" == --remove ]]; then remove "$2"; exit; fi

prefix=$1 share=$1/share/attest; shift
remove "$prefix" # a case file that is gone is gone there too
for name in "${data[@]}"; do # with the folders in them
    (cd datasets && find "$name" -type f -print0) | while IFS= read -r -d '' file; do install -D -m 644 "datasets/$file" "$share/$file"; done
done
install -m 644 kernels/runner/PROTOCOL.md README.md LICENSE "$share"
install -D -m 755 -t "$share/python" tests/python/runner_client.py
install -m 644 -t "$share/python" kernels/runner/python/{*.py,examples/*.py,peers/*.py}
install -D -m 644 -t "$share/launch" kernels/launch/README.md kernels/launch/examples/*.{cu,json,py}
install -D -m 644 -t "$prefix/include" kernels/runner/attest_launch.h # what a shared library of kernels includes
install -D -m 644 -t "$share/so" kernels/runner/examples/*.[ch]
for file in "$@"; do
    [[ "$file" != */mutants.tsv ]] || install -D -m 644 -t "$share/cheats" tests/cheats/*.py # other wrong things that selftest wants
    if [[ "$file" == *.tsv ]]; then install -m 644 "$file" "$share"; else install -D -m 755 -t "$prefix/bin" "$file"; fi
done
install -d "$prefix/share/man/man1" "$prefix/share/bash-completion/completions"
make/documents.sh man "$prefix/bin/attest" > "$prefix/share/man/man1/attest.1"
make/documents.sh bash "$prefix/bin/attest" > "$prefix/share/bash-completion/completions/attest"
