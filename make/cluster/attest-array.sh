#!/bin/bash
# One shard of a run, a recording, a study or a sample of mutants, as a task of a Slurm array. RUN.h5 becomes RUN.2of8.h5 and so on beside it, in a
# folder that all nodes share; attest-merge.sh joins them.
#   job=$(sbatch --parsable --array=1-8 attest-array.sh verify --cases @check --out /shared/run.h5)
#   sbatch --dependency=afterok:$job attest-merge.sh 8 /shared/run.h5
# `make mutate` is cut alike, in a tree that all nodes share, and begins again where it was killed; MAKE names another make:
#   job=$(sbatch --parsable --array=1-8 attest-array.sh make mutate N=300 SEED=7)
#   sbatch --dependency=afterok:$job --wrap 'make mutate N=300 SEED=7 MERGE=8'
# A task that was killed, preempted or requeued goes on from its journal. A verdict that fails a run is no failure of its task,
# which ends with 0: the merge says what the whole run is worth. ATTEST names the program, where it is not on the PATH.
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=attest
#SBATCH --requeue
#SBATCH --open-mode=append
set -uo pipefail
die() { echo "attest-array.sh: $*" >&2; exit 2; }
[[ -n "${SLURM_ARRAY_TASK_ID:-}" ]] || die "is no task of an array; wanted: sbatch --array=1-N attest-array.sh COMMAND..."
[[ $# -gt 0 ]] || die "wants a command of attest: verify, record or study, with --out; or make mutate"
n=$SLURM_ARRAY_TASK_COUNT step=${SLURM_ARRAY_TASK_STEP:-1}
i=$(((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN) / step + 1))
((SLURM_ARRAY_TASK_MAX == SLURM_ARRAY_TASK_MIN + (n - 1) * step)) || die "the array has gaps; wanted --array=1-$n"
if [[ $1 == make ]]; then
    [[ -z "${SLURM_CPUS_PER_TASK:-}" ]] || set -- "$@" JOBS="$SLURM_CPUS_PER_TASK"
    exec "${MAKE:-make}" "${@:2}" SHARD="$i/$n"
fi

named() { [[ "$1" == *.h5 ]] && echo "${1%.h5}.${i}of$n.h5" || echo "$1.${i}of$n"; }
args=() has_out=''
while (($# > 0)); do
    case "$1" in
        --out | --junit | --json) (($# > 1)) || die "$1 wants a file"
            args+=("$1" "$(named "$2")"); [[ "$1" != --out ]] || has_out=1; shift ;;
        --out=* | --junit=* | --json=*) args+=("${1%%=*}=$(named "${1#*=}")"); [[ "$1" != --out=* ]] || has_out=1 ;;
        *) args+=("$1") ;;
    esac
    shift
done
[[ -n "$has_out" ]] || die "wants --out RUN.h5, in a folder that all nodes share"
# As many jobs as Slurm gave processors, also where it does not bind tasks to them.
[[ -z "${SLURM_CPUS_PER_TASK:-}" ]] || export AT_THREADS=$SLURM_CPUS_PER_TASK

"${ATTEST:-attest}" "${args[@]}" --shard "$i/$n" --resume; code=$?
case $code in
    0 | 1 | 4) echo "attest-array.sh: shard $i/$n is done (attest ended with $code)" ;; # 4: none of its jobs was judged
    *) exit $code ;;
esac
