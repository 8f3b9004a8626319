#!/bin/bash
# Arrays of Slurm jobs (make/cluster/attest-array.sh) give the bytes of one process: a run, a recording and a study, of which
# shards are killed in the middle and requeued; the dependent job merges and exports. So does an array of `make mutate`. On a
# Slurm of the test's own.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
source tests/cli/loopback_cluster.sh
source tests/cli/mutate_command.sh
export AT_THREADS=1
slurm_up 16 || fail "Slurm does not come up"
shared=$scratch/shared here=$PWD
mkdir "$shared"

# What stands for attest in the jobs: the first start of shard 2 of a run and of a recording is killed without warning when its
# journal has some lines, and then hangs, as on a node that is lost, until it is requeued.
cat > "$scratch/attest_or_killed" << KILLED
#!/bin/bash
out=''; for word in "\$@"; do [[ "\$word" != *.h5 ]] || out=\$word; done
if [[ "\$out" == *@(run|recording).2of* && -z "\${SLURM_RESTART_COUNT:-}" ]]; then
    source $here/tests/cli/lib.sh
    killed "\$out" 3 "$BUILD/attest" "\$@"
    wc -l < "\$out.jsonl" > "\$out.left"; mv "\$out.left" "\$out.killed"
    sleep 86400
fi
exec "$BUILD/attest" "\$@"
KILLED
chmod +x "$scratch/attest_or_killed"
export ATTEST=$scratch/attest_or_killed

run=(verify 'asynct_decode/00_*' '*norm/00_*' --cases '@(smoke:*|exact:*norm*)' --quiet --jobs 1)
recording=(record minilm --layers 2 --what raw --attention asynct --part-seconds 0)
study=(study accumulate --modes '@(f16_k16|f32_fma)' --data '@(same_sign|normal|uniform)' --lengths '32,64' --d 64 --sums 4)
array() { # NAME TASKS command...: the array, and what waits for it; their numbers in job_NAME and merge_NAME
    local name=$1 n=$2 job; shift 2
    job=$(sbatch --parsable --array="1-$n" -o "$shared/$name.%a.log" make/cluster/attest-array.sh "$@" --out "$shared/$name.h5") ||
        fail "sbatch: $name"
    printf -v "job_$name" %s "$job"
    job=$(ATTEST=$BUILD/attest sbatch --parsable --dependency="afterok:$job" -o "$shared/$name.merge.log" make/cluster/attest-merge.sh "$n" \
        "$shared/$name.h5" csv) || fail "sbatch: merge of $name"
    printf -v "merge_$name" %s "$job"
}
array run 4 "${run[@]}"
array recording 3 "${recording[@]}"
array study 3 "${study[@]}"

# Mutants are drawn in the plain build alone: the others hold the same kernels. What stands for make runs its command.
if [[ -e "$BUILD/mechanical.tsv" ]]; then
    mutants=(mutate JOBS=1 ONLY='kernels/rms_norm/*.h' CASES='smoke:*' N=5 SEED=3)
    cat > "$scratch/make" << MAKE
#!/bin/bash
cd $here && source tests/cli/mutate_command.sh && bash <(BUILD=$BUILD mutate_command "\$@")
MAKE
    chmod +x "$scratch/make"
    job_mutants=$(MAKE=$scratch/make MUTATE_DIR=$shared sbatch --parsable --array=1-3 -o "$shared/mutants.%a.log" \
        make/cluster/attest-array.sh make "${mutants[@]}") || fail "sbatch: mutants"
    merge_mutants=$(MUTATE_DIR=$shared sbatch --parsable --dependency="afterok:$job_mutants" -o "$shared/mutants.merge.log" \
        --wrap "$scratch/make ${mutants[*]@Q} MERGE=3") || fail "sbatch: merge of mutants"
    MUTATE_DIR=$scratch/mutants "$scratch/make" "${mutants[@]}" > "$scratch/mutants.log" 2>&1 ||
        { tail -n 5 "$scratch/mutants.log"; fail "mutants in one process"; }
fi

for name in run recording study; do
    command="${name}[@]"
    "$attest" "${!command}" --out "$scratch/$name.h5" > "$scratch/$name.log" 2>&1
    [[ $? == [01] ]] || { tail -n 5 "$scratch/$name.log"; fail "$name in one process"; }
done

for name in run recording; do
    n=4; [[ $name == run ]] || n=3
    job=job_$name task=${!job}_2
    until_true 300 test -e "$shared/$name.2of$n.h5.killed" || { tail -n 5 "$shared"/*.log; fail "$name: shard 2 was not killed"; }
    [[ ! -e "$shared/$name.2of$n.h5" ]] || fail "$name: what was killed had ended"
    scontrol requeue "$task" || fail "requeue of $task"
done
sleep 3
for name in run recording; do
    job=job_$name task=${!job}_2
    until_true 300 restart_now "$task" || fail "$task does not begin again: $(scontrol -o show job "$task")"
done
for name in run recording study; do
    merge=merge_$name
    until_true 300 has_ended "${!merge}" || { squeue; tail -n 5 "$shared"/*.log; fail "$name: the merge has not ended"; }
    tail -n 1 "$shared/$name".*.log | grep -q . || fail "$name: no log"
    [[ -e "$shared/$name.h5" ]] || { tail -n 5 "$shared/$name".*.log; fail "$name: nothing was merged"; }
    same "$scratch/$name.h5" "$shared/$name.h5"
    [[ -n "$(ls "$shared/$name.pages")" ]] || fail "$name: nothing was exported"
done
if [[ -n "${merge_mutants:-}" ]]; then
    until_true 300 has_ended "$merge_mutants" || { squeue; tail -n 5 "$shared"/mutants.*; fail "the merge of mutants has not ended"; }
    [[ -s "$shared/3/score" ]] || { tail -n 5 "$shared"/mutants.*; fail "no mutants were merged"; }
    for file in score mutants; do
        diff <(sed "s|$scratch/mutants/|$shared/|" "$scratch/mutants/3/$file") "$shared/3/$file" || fail "$file of the mutants (one process <, array >)"
    done
fi
for name in run recording; do # nothing that the killed process had done was done again
    log=$shared/$name.2.log
    grep -q 'JOB REQUEUE' "$log" && grep -q 'shard 2/. is done' "$log" || { cat "$log"; fail "$name: shard 2 was not requeued"; }
done
echo "ok: arrays of a run, a recording, a study${merge_mutants:+, a sample of mutants}, two of their shards killed after $(cat "$shared"/*.killed | xargs) lines and requeued"
