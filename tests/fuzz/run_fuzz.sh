#!/bin/bash
# run_fuzz.sh FUZZER FOLDER SECONDS FORMAT...: libFuzzer on each format. FOLDER keeps what was learned (FORMAT.corpus),
# the log and the files that broke something. Exit 1 when one of them is attest's fault; a fault inside the HDF5 library,
# which attest's child process exists for, is counted and no failure.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
fuzzer=$(realpath "$1") folder=$2 seconds=$3; shift 3
mkdir -p "$folder" && cd "$folder" || exit 3
failed=0
export ASAN_OPTIONS=allocator_may_return_null=1 # a size that nobody has is refused, as malloc() does
limits=(-timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=1024) # one request over the limit is named with its place

in_library() { # file: the innermost frame that is either's lies in libhdf5
    local frames
    frames=$(AT_FUZZ_FORMAT=$format timeout 60 "$fuzzer" "${limits[@]}" "$1" 2>&1 |
        grep -E "^ +#[0-9]+ 0x.*(libhdf5|/(datasets|reference|tests|verify)/[^ ]*[.][ch]:[0-9])")
    [[ "${frames%%$'\n'*}" == *libhdf5* ]]
}

for format in "$@"; do
    rm -f "$format"-{crash,leak,oom,timeout,slow-unit}-*
    mkdir -p "$format.corpus"
    options=("${limits[@]}" -max_total_time="$seconds" -artifact_prefix="$format-" -print_final_stats=1)
    case $format in
        hdf5 | archive | distributions) options+=(-max_len=200000 -fork=1 -ignore_crashes=1 -ignore_ooms=1 -ignore_timeouts=1) ;;
        *) options+=(-max_len=4096) ;;
    esac
    AT_FUZZ_FORMAT=$format AT_FUZZ_WRITE=$format.corpus "$fuzzer" "${options[@]}" "$format.corpus" > "$format.log" 2>&1
    ours=0 library=0
    for found in "$format"-{crash,leak,oom,timeout}-*; do
        [[ -e "$found" ]] || continue
        if in_library "$found"; then library=$((library + 1)); else ours=$((ours + 1)); echo "  $folder/$found"; fi
    done
    tried=$(sed -nE 's/^stat::number_of_executed_units: *//p; s/^#([0-9]+): .*/\1/p' "$format.log" | tail -n 1)
    echo "$format: ${tried:-0} files in $seconds s, $ours faults of attest, $library in the HDF5 library"
    [[ $ours == 0 && ${tried:-0} -gt 0 ]] || { failed=1; tail -n 20 "$format.log"; }
done
exit $failed
