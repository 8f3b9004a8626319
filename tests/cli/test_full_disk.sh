#!/bin/bash
# A disk that fills up: one clear line, exit code 3, nothing half-written, and what was journaled stays readable.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
variants='*/00_*' # the journal of the smoke cases has 500 KB with these, 75 KB with those
[[ ${AT_EFFORT:-full} == fast ]] && variants='asynct_decode/00_*'
[[ -c /dev/full ]] || { echo "no /dev/full here"; exit 77; }
line='asynct_decode b=2 h=4 hk=2 sk=33 d=32 dtype=bf16'
wants 3 /dev/full "$attest" verify --case "$line" --junit /dev/full
wants 3 /dev/full "$attest" verify --case "$line" --json /dev/full
"$attest" verify --case "$line" > /dev/full 2> "$scratch/err"
[[ $? == 3 ]] || fail "a full stdout did not give exit code 3"
grep -q stdout "$scratch/err" || fail "a full stdout is not named"

# A file system of 40 KiB of our own, in a mount namespace of our own: the journal breaks off in the middle of a line, and
# everything before that is whole. On another, an archive that is written at once, without a journal.
mkdir "$scratch/disk" "$scratch/other"
cat > "$scratch/small.sh" << 'END'
mount -t tmpfs -o size=40k none "$2/disk" || exit 99
"$1" verify "$3" --cases 'smoke:*' --quiet --out "$2/disk/small.h5" > "$2/log" 2>&1
code=$?
ls "$2/disk" > "$2/left"
cp "$2"/disk/* "$2"
mount -t tmpfs -o size=40k none "$2/other" || exit 99
"$1" replay "asynct_decode/00_split_k asynct_decode b=2 h=4 hk=2 sk=333 d=128" --dump "$2/other/job.h5" > /dev/null 2> "$2/dumped"
echo "exit $?" >> "$2/dumped"
ls "$2/other" > "$2/other_left"
exit $code
END
unshare --mount bash "$scratch/small.sh" "$attest" "$scratch" "$variants" 2> "$scratch/err"
code=$?
if [[ ! -e "$scratch/left" ]]; then # not root: a user namespace may do
    unshare --map-root-user --mount bash "$scratch/small.sh" "$attest" "$scratch" "$variants" 2>> "$scratch/err"
    code=$?
fi
if [[ ! -e "$scratch/left" ]]; then
    echo "no small file system can be mounted here: $(tail -n 1 "$scratch/err")"
    exit 77
fi
[[ $code == 3 ]] || { cat "$scratch/log"; fail "exit $code on a full disk, wanted 3"; }
grep -q 'small.h5' "$scratch/log" || { cat "$scratch/log"; fail "the file is not named"; }
[[ $(grep -c '^attest: ' "$scratch/log") == 1 ]] || { cat "$scratch/log"; fail "wanted one clear line"; }
[[ $(cat "$scratch/left") == small.h5.jsonl ]] || { cat "$scratch/left"; fail "more than the journal was left"; }
grep -q 'No space left on device' "$scratch/log" || { cat "$scratch/log"; fail "the reason is not named"; }
grep -q 'job.h5: No space left on device' "$scratch/dumped" || { cat "$scratch/dumped"; fail "the reason is not named"; }
grep -q 'exit 3' "$scratch/dumped" || { cat "$scratch/dumped"; fail "wanted exit 3"; }
[[ ! -s "$scratch/other_left" ]] || { cat "$scratch/other_left"; fail "an archive that was broken off is left"; }
"$attest" verify "$variants" --cases 'smoke:*' --quiet --out "$scratch/small.h5" --resume > "$scratch/log" 2>&1
[[ $? -le 1 ]] || { cat "$scratch/log"; fail "the journal of a full disk could not be resumed"; }
"$attest" verify "$variants" --cases 'smoke:*' --quiet --out "$scratch/whole.h5" > /dev/null 2>&1
same "$scratch/small.h5" "$scratch/whole.h5"
