#!/bin/bash
# A disk that fills up: one clear line, exit code 3, nothing half-written, and what was journaled stays readable.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
[[ -c /dev/full ]] || { echo "no /dev/full here"; exit 77; }
line='asynct_decode b=2 h=4 hk=2 sk=33 d=32 dtype=bf16'
wants 3 /dev/full "$attest" verify --case "$line" --junit /dev/full
wants 3 /dev/full "$attest" verify --case "$line" --json /dev/full
"$attest" verify --case "$line" > /dev/full 2> "$scratch/err"
[[ $? == 3 ]] || fail "a full stdout did not give exit code 3"
grep -q stdout "$scratch/err" || fail "a full stdout is not named"

# A file-size limit stands for a full disk: the journal breaks off, and everything before that is whole.
( trap '' XFSZ; ulimit -f 24; "$attest" verify --cases 'smoke:*' --quiet --out "$scratch/small.h5" > "$scratch/log" 2>&1 )
code=$?
[[ $code == 3 ]] || { cat "$scratch/log"; fail "exit $code on a full disk, wanted 3"; }
grep -q 'small.h5' "$scratch/log" || { cat "$scratch/log"; fail "the file is not named"; }
[[ ! -e "$scratch/small.h5" ]] || fail "a half-written archive was left"
"$attest" verify --cases 'smoke:*' --quiet --out "$scratch/small.h5" --resume > "$scratch/log" 2>&1
[[ $? -le 1 ]] || { cat "$scratch/log"; fail "the journal of a full disk could not be resumed"; }
"$attest" verify --cases 'smoke:*' --quiet --out "$scratch/whole.h5" > /dev/null 2>&1
same "$scratch/small.h5" "$scratch/whole.h5"
