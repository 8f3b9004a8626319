#!/bin/bash
# export: every kind of archive in every form, read back by other programs; hostile texts; archives of later and newer
# versions; what it refuses, in one line with the right exit code; files that are replaced whole or not at all.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=${AT_PYTHON:-/usr/bin/python3}
reads="$PWD/tests/python/export_reads.py"
one_line() { [[ $(grep -c . "$scratch/out") == 1 ]] || { cat "$scratch/out"; fail "more than one line for bad input"; }; }
golden=tests/golden/run_v1.h5

# ---- what is refused
wants 2 'wants --to' "$attest" export $golden --out "$scratch/x"; one_line
wants 2 'did you mean html' "$attest" export $golden --to htm --out "$scratch/x"; one_line
wants 2 'did you mean ipynb' "$attest" export $golden --to ipnb --out "$scratch/x"; one_line
wants 2 'wants --out' "$attest" export $golden --to csv; one_line
wants 2 'no_such.h5: No such file' "$attest" export "$scratch/no_such.h5" --to csv --out "$scratch/x"; one_line
wants 2 'no regular file' "$attest" export "$scratch" --to csv --out "$scratch/x"; one_line
head -c 100000 /dev/urandom > "$scratch/noise.h5"
wants 2 'noise.h5' "$attest" export "$scratch/noise.h5" --to html --out "$scratch/x"; one_line
for size in 100 3000 60000 117000; do
    head -c $size $golden > "$scratch/cut.h5"
    wants 2 'cut.h5' "$attest" export "$scratch/cut.h5" --to csv --out "$scratch/x"; one_line
done
wants 2 '--cells goes with' "$attest" export $golden --to csv --out "$scratch/x" --cells y.py; one_line
[[ ! -e "$scratch/x" ]] || fail "bad input made the folder"
wants 2 'y.py' "$attest" export $golden --to ipynb --out "$scratch/x" --cells "$scratch/y.py"; one_line
echo 'print(1)' > "$scratch/y.py"
wants 2 'no cell' "$attest" export $golden --to ipynb --out "$scratch/x" --cells "$scratch/y.py"; one_line
echo content > "$scratch/file"
wants 2 'is a file' "$attest" export $golden --to csv --out "$scratch/file"; one_line
[[ $(< "$scratch/file") == content ]] || fail "the file at --out was changed"
wants 3 'No such file' "$attest" export $golden --to csv --out "$scratch/no/folder"; one_line
mkdir "$scratch/shut" && chmod 555 "$scratch/shut"
if [[ -w "$scratch/shut" ]]; then # root writes everywhere but here
    wants 3 '/proc/none' "$attest" export $golden --to csv --out /proc/none; one_line
else
    wants 3 'Permission' "$attest" export $golden --to csv --out "$scratch/shut"; one_line
fi
wants 0 'attest export run.h5' "$attest" export --help

# ---- a full disk: exit 3, one line, the old files as they were, nothing half-written
mkdir "$scratch/disk"
cat > "$scratch/small.sh" << 'END'
mount -t tmpfs -o size=24k none "$2/disk" || exit 99
echo old > "$2/disk/run_v1.html"
"$1" export "$3" --to html --out "$2/disk" > "$2/log" 2>&1
code=$?
ls "$2/disk" > "$2/left"; cat "$2/disk/run_v1.html" >> "$2/left"
exit $code
END
unshare --mount bash "$scratch/small.sh" "$attest" "$scratch" $golden 2> "$scratch/err"; code=$?
if [[ ! -e "$scratch/left" ]]; then
    unshare --map-root-user --mount bash "$scratch/small.sh" "$attest" "$scratch" $golden 2>> "$scratch/err"; code=$?
fi
if [[ -e "$scratch/left" ]]; then
    [[ $code == 3 ]] || { cat "$scratch/log"; fail "exit $code on a full disk, wanted 3"; }
    [[ $(grep -c . "$scratch/log") == 1 ]] || { cat "$scratch/log"; fail "a full disk wants one line"; }
    grep -q 'run_v1.html' "$scratch/log" || { cat "$scratch/log"; fail "the file is not named"; }
    [[ $(< "$scratch/left") == $'run_v1.html\nold' ]] || { cat "$scratch/left"; fail "a full disk left something else"; }
else
    echo "no small file system can be mounted here: $(tail -n 1 "$scratch/err")"
fi

# ---- files of the same name are replaced, others stay; equal archives give equal bytes
mkdir "$scratch/twice"; echo mine > "$scratch/twice/mine.csv"; echo old > "$scratch/twice/run_v1_results.csv"
for kind in csv svg html; do
    wants 0 'run_v1' "$attest" export $golden --to $kind --out "$scratch/twice"
    wants 0 'run_v1' "$attest" export $golden --to $kind --out "$scratch/again"
done
wants 0 'reads ../../' "$attest" export $golden --to ipynb --out "$scratch/twice"
[[ $(< "$scratch/twice/mine.csv") == mine ]] || fail "a file of another name was touched"
grep -q '^result,' "$scratch/twice/run_v1_results.csv" || fail "the old results.csv is still there"
for file in "$scratch"/again/*; do same "$file" "$scratch/twice/$(basename "$file")"; done
[[ -z $(find "$scratch/twice" -name '*.tmp') ]] || fail "a temporary file was left"
cp $golden "$scratch/twice/beside.h5"
wants 0 'reads beside.h5' "$attest" export "$scratch/twice/beside.h5" --to ipynb --out "$scratch/twice"

# ---- everything is read back, and so are archives that were changed: one Python makes them all, one reads them all
job() { local IFS=$'\t'; echo "$*" >> "$scratch/jobs"; }
work() { # what the jobs are, as words for a failure: does them all
    local code n
    n=$(wc -l < "$scratch/jobs")
    "$python" "$reads" all "$scratch/jobs" > "$scratch/log" 2>&1; code=$?
    [[ $code != 77 ]] || { tail -n 1 "$scratch/log"; exit 77; }
    [[ $code == 0 && $(tail -n 1 "$scratch/log") == "$n done" ]] || { cat "$scratch/log"; fail "$1"; }
    rm "$scratch/jobs"
}
export_all() { # archive, kinds with commas: exports; to be read back
    local archive=$1 kind
    for kind in ${2//,/ }; do
        wants 0 "$(basename "$archive" .h5)" "$attest" export "$archive" --to "$kind" --out "$scratch/all"
    done
    job "$2" "$archive" "$scratch/all"
}
heads='4 2'; [[ ${AT_EFFORT:-full} == fast ]] && heads='2 1'
"$BUILD/tests/support/make_archive" "$scratch/run26.h5" 26 || fail make_archive
"$BUILD/tests/support/make_archive" "$scratch/run0.h5" 0 || fail make_archive
# shellcheck disable=SC2086
"$BUILD/tests/support/make_distributions" "$scratch/dist.h5" 2 $heads || fail make_distributions
wants 0 'exp2/00_libm' "$attest" study special --step 1000003 --out "$scratch/exp2.h5"
archives=("$golden" tests/golden/study_v1.h5 tests/golden/distributions_v1.h5 datasets/measurements/h200_bench_gemm.h5
    datasets/measurements/h200_tensor_core.h5 "$scratch/run26.h5" "$scratch/dist.h5"
    "$scratch/exp2.h5")
changed=("${archives[@]}")
[[ ${AT_EFFORT:-full} == fast ]] && changed=("$scratch/run26.h5" "$scratch/dist.h5" "$scratch/exp2.h5")
newer=("$golden": "$golden":results "$golden":cases "$golden":ledger)
for group in '' studies studies/accumulate; do newer+=("tests/golden/study_v1.h5:$group"); done
for group in '' distributions distributions/raw; do newer+=("tests/golden/distributions_v1.h5:$group"); done
for archive in "${changed[@]}"; do
    job hostile "$archive" "$scratch/hostile_$(basename "$archive")"
    job later "$archive" "$scratch/later_$(basename "$archive")"
done
"$BUILD/tests/support/make_archive" "$scratch/run2600.h5" 2600 || fail make_archive
job many "$scratch/run2600.h5" "$scratch/many.h5"
for i in "${!newer[@]}"; do job newer "/${newer[i]#*:}" "${newer[i]%%:*}" "$scratch/newer_$i.h5"; done
work "hostile, later, newer and large archives"
for archive in many many_no_role; do wants 0 "$archive" "$attest" export "$scratch/$archive.h5" --to html --out "$scratch/all"; done
job many_read "$scratch/all/many"

job csv $golden "$scratch/twice"
for archive in "${archives[@]}"; do export_all "$archive" csv,svg,html; done
for archive in "${changed[@]}"; do
    name=$(basename "$archive")
    export_all "$scratch/hostile_$name" csv,svg,html
    export_all "$scratch/later_$name" csv,html
    diff <("$attest" show "$archive" 2>&1) <("$attest" show "$scratch/later_$name" 2>&1) > "$scratch/log" ||
        { cat "$scratch/log"; fail "show: a later minor version of $name is shown otherwise"; }
done
work "what was exported"
wants 0 'run0' "$attest" export "$scratch/run0.h5" --to html --out "$scratch/all"
wants 0 'run0' "$attest" export "$scratch/run0.h5" --to csv --out "$scratch/all"
wants 2 'nothing that is plotted' "$attest" export "$scratch/run0.h5" --to svg --out "$scratch/all"; one_line

for i in "${!newer[@]}"; do
    wants 2 'encoding-version "2.0.0", this program reads version 1' "$attest" export "$scratch/newer_$i.h5" --to csv --out "$scratch/newer"; one_line
    wants 2 'encoding-version "2.0.0", this program reads version 1' "$attest" show "$scratch/newer_$i.h5"; one_line
    [[ ! -e "$scratch/newer" ]] || fail "a newer archive left files"
done

# ---- notebooks run from their own folder
"$python" -c 'import nbclient, nbformat, matplotlib, ipykernel' 2> /dev/null || { echo "notebooks: nbclient or matplotlib is missing, not run"; exit 0; }
[[ ${AT_SLOW_BUILD:-0} == 1 ]] && { echo "notebooks: left to the plain build"; exit 0; }
notebooks=("$scratch/run26.h5") # dist.h5 as the hostile one alone, which has all of it
[[ ${AT_EFFORT:-full} == fast ]] || notebooks+=(tests/golden/study_v1.h5 tests/golden/distributions_v1.h5
    datasets/measurements/h200_bench_gemm.h5 datasets/measurements/h200_tensor_core.h5 "$scratch/exp2.h5"
    "$scratch/hostile_run26.h5" "$scratch/hostile_dist.h5" "$scratch/later_run_v1.h5")
for archive in "${notebooks[@]}"; do export_all "$archive" ipynb; done
work "notebooks"
