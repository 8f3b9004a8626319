#!/bin/bash
# Joins the shards that attest-array.sh, or anything that names them alike, has left, and exports what becomes of them.
#   attest-merge.sh N RUN.h5 [FORMAT]      RUN.1ofN.h5 .. RUN.NofN.h5 -> RUN.h5, and RUN.pages/ (FORMAT: html, csv, svg, ipynb)
# Ends as `attest show RUN.h5` does: 1 where a verdict fails the run. STRICT=1: as with --strict.
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=attest-merge
set -euo pipefail
[[ $# -ge 2 && "$1" =~ ^[1-9][0-9]*$ ]] || { echo "usage: attest-merge.sh N RUN.h5 [FORMAT]" >&2; exit 2; }
n=$1 out=$2 attest=${ATTEST:-attest}
stem=${out%.h5} shards=()
for ((i = 1; i <= n; i++)); do shards+=("$stem.${i}of$n.h5"); done
"$attest" merge "${shards[@]}" --out "$out"
"$attest" export "$out" --to "${3:-html}" --out "$stem.pages"
"$attest" show "$out" ${STRICT:+--strict}
