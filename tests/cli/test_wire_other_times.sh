#!/bin/bash
# attest-cpu spoken to by hand, as by an attest of another time: an operator it does not know and a job without a size are
# declined and the conversation goes on; a size and a parameter it does not know are passed over.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$BUILD/attest-cpu" < /dev/null > "$scratch/hello" 2>&1
variant=$(sed -n 's/^variant index=\([0-9]*\) family=uclip_norm name=00_fp32 .*/\1/p' "$scratch/hello")
[[ -n "$variant" ]] || fail "no uclip_norm/00_fp32 in the greeting"

tensors='tensor=0:x:in:f32:1,4:0:16 tensor=1:alpha:in:f32:4:256:16 tensor=2:gamma:in:f32:4:512:16 tensor=3:beta:in:f32:4:768:16 tensor=4:y:out:f32:1,4:1024:16'
job() { # ID OPERATOR SIZES
    echo "job id=$1 variant=$variant op=$2 dtype=f32 memory=0 used=1280 timeout=10 $3 $tensors"
    head -c 1280 /dev/zero
}
{
    echo 'open protocol=5 transport=inline'
    job 0 uclip_norm_of_tomorrow 'size.tokens=1 size.channels=4'
    job 1 uclip_norm 'size.tokens=1'
    job 2 uclip_norm 'size.tokens=1 size.channels=4 size.colours=3 param.taste=0x1p+0 param.lo=-0x1p+0'
    echo quit
} | "$BUILD/attest-cpu" > "$scratch/said" 2> "$scratch/errors" || fail "attest-cpu ended with $?: $(< "$scratch/errors")"
says() { grep -aq "$1" "$scratch/said" || { grep -a '^[a-z]* id=\|^error' "$scratch/said"; fail "does not say $1"; }; }
says '^unsupported id=0 reason=this%20runner%20does%20not%20know%20the%20operator%20uclip_norm_of_tomorrow$'
says '^unsupported id=1 reason=the%20job%20has%20no%20size.channels,'
says '^done id=2 .*bytes=1280'
