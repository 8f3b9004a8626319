#!/bin/bash
# --devices: a runner for each device, and the bytes of one. Devices that die in the middle, do not start, or are of another kind;
# kernels that crash wherever they run. The devices are processes of attest-cpu that are told which they are.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
unset CUDA_VISIBLE_DEVICES
export AT_THREADS=4
variants=('asynct_decode/00_@(split_k|blas_p32)' '*uclip_norm/00_fp32') cases='smoke:*'

# A runner that writes down on which device it was started, and does there what the file of that device's name says. One that
# dies takes some lines, and dies of the next one: one that dies between two jobs is started again, and nobody is blamed.
cat > "$scratch/runner" << RUNNER
#!/bin/bash
device=\${CUDA_VISIBLE_DEVICES:-none}
some() { for ((i = 0; i < \$1; i++)); do IFS= read -r line && echo "\$line" || return; done; read -r line; }
echo "\$device" >> "$scratch/started"
case \$(cat "$scratch/device.\$device" 2> /dev/null) in
    "") exec "$BUILD/attest-cpu" ;;
    dies) some \$(cat "$scratch/lines") | "$BUILD/attest-cpu"; exit 3 ;;
    slow) while IFS= read -r line; do sleep 0.03; echo "\$line"; done | "$BUILD/attest-cpu" ;;
    absent) echo "no such device" >&2; exit 3 ;;
    older) exec "$BUILD/attest-cpu" > >(sed -u '1s/device=[^ ]*/device=an%20older%20one/') ;;
esac
RUNNER
chmod +x "$scratch/runner"
devices() { rm -f "$scratch"/device.*; for d in "$@"; do echo "${d#*=}" > "$scratch/device.${d%=*}"; done; : > "$scratch/started"; }
judged() { # OUT options: what the run says is in log
    local out=$1 code; shift
    "$attest" verify "${variants[@]}" --cases "$cases" --quiet --runner "$scratch/runner" --out "$scratch/$out.h5" "$@" > "$scratch/log" 2>&1
    code=$?
    [[ $code == [01] ]] || { tail -n 5 "$scratch/log"; fail "$out: exit $code"; }
}
says() { grep -qE -- "$1" "$scratch/log" || { cat "$scratch/log"; fail "does not say '$1'"; }; }
started() { [[ "$(sort -u "$scratch/started" | xargs)" == "$1" ]] || fail "devices $(sort -u "$scratch/started" | xargs), wanted $1"; }

devices; judged one --jobs 1; started none
devices; judged three --devices 0,1,2; started '0 1 2'
same "$scratch/one.h5" "$scratch/three.h5"
# `all` and numbers are of what this process sees: a scheduler's choice.
devices; CUDA_VISIBLE_DEVICES=4,GPU-7f judged all --devices all; started '4 GPU-7f'
same "$scratch/one.h5" "$scratch/all.h5"
devices; CUDA_VISIBLE_DEVICES=4,GPU-7f judged second --devices 1; started GPU-7f
same "$scratch/one.h5" "$scratch/second.h5"

# One that dies in the middle: every job is judged, none is CRASHED, and after two such jobs nobody asks it again.
echo 6 > "$scratch/lines"
for ((i = 0; i < 20; i++)); do # until it failed two jobs: the first time, the other being slow, but on a busy machine
    devices 0=slow 1=dies; judged dies --devices 0,1 --jobs 2
    same "$scratch/one.h5" "$scratch/dies.h5"
    grep -q 'is given up' "$scratch/log" && break
done
says 'device 1 is given up, 1 left: jobs that failed on it were done by another'
says 'was CRASHED on one device and not on another, which counts: '
[[ $(grep -c 1 "$scratch/started") -le 3 ]] || fail "device 1 was started $(grep -c 1 "$scratch/started") times"
# The first one, which planned the run; and one that does not start.
echo 12 > "$scratch/lines"
devices 0=dies 1=absent; judged first --devices 0,1,2 --jobs 3
same "$scratch/one.h5" "$scratch/first.h5"
says 'device 1 is given up.*no such device'
devices 0=absent; judged skipped --devices 0,1; started '0 1'
same "$scratch/one.h5" "$scratch/skipped.h5"
# Nothing but broken ones: what fails everywhere is a result, as with one device; and what starts nowhere is none.
for ((i = 0; i < 20; i++)); do # until one failed two jobs that the other did, and one failed on both: who gets a job is the machine's choice
    devices 0=dies 1=dies; judged broken --devices 0,1 --jobs 2 --json "$scratch/broken.jsonl"
    [[ $(grep -c 'is given up' "$scratch/log") -le 1 ]] || fail "the last device was given up"
    grep -q 'is given up' "$scratch/log" && grep -q '"state":"CRASHED"' "$scratch/broken.jsonl" && break
done
says 'device [01] is given up'
grep -q '"state":"CRASHED"' "$scratch/broken.jsonl" || fail "nothing is CRASHED where every device dies"
devices 0=absent 1=absent
wants 3 'no such device' "$attest" verify "${variants[@]}" --runner "$scratch/runner" --devices 0,1
devices 1=older
wants 2 'wanted devices of one kind' "$attest" verify "${variants[@]}" --cases "$cases" --runner "$scratch/runner" --devices 0,1 --jobs 2

# A kernel that crashes on every device is that kernel's result: the bytes of one device.
crashing() { # OUT options
    AT_DATASETS=$scratch/few_cases "$attest" verify 'asynct_decode/*' --cases 'few:*' --quiet --out "$scratch/$1.h5" "${@:2}" \
        --runner "/usr/bin/python3 tests/python/runner_client.py --misbehave raises" > "$scratch/log" 2>&1
    [[ $? == 1 ]] || { cat "$scratch/log"; fail "a crashing kernel: $1"; }
}
mkdir -p "$scratch/few_cases/cases"
printf 'asynct_decode b=1 h=1 hk=1 sk=%d d=8 dtype=f32\n' 5 7 > "$scratch/few_cases/cases/few.cases"
if command -v python3 > /dev/null; then
    crashing crash_one --jobs 1; says CRASHED
    crashing crash_two --devices 0,1 --jobs 2
    same "$scratch/crash_one.h5" "$scratch/crash_two.h5"
    grep -q 'is given up' "$scratch/log" && fail "a device was blamed for a kernel"
fi

# A recording: requests go to whichever is free; what a device did not do is counted on another.
source='softmax_prefill b=6 h=2 hk=1 sq=9/3/0/12/5/7 sk=20/7/4/12/9/30 d=16 causal=1 dtype=f16 data=normal'
what=(--what 'raw,p,k')
wants 0 'units' "$attest" record "$source" "${what[@]}" --out "$scratch/counted.h5"
devices
wants 0 'units' "$attest" record "$source" "${what[@]}" --runner "$scratch/runner" --devices 0,1 --out "$scratch/by_two.h5"; started '0 1'
same "$scratch/counted.h5" "$scratch/by_two.h5"
echo 2 > "$scratch/lines" # a request takes two jobs
for ((i = 0; i < 20; i++)); do # until the broken one got a request: but on a busy machine the first time, the other being slow
    devices 0=slow 1=dies
    wants 0 'units' "$attest" record "$source" "${what[@]}" --runner "$scratch/runner" --devices 0,1 --out "$scratch/by_one_left.h5"
    same "$scratch/counted.h5" "$scratch/by_one_left.h5"
    grep -q '^attest: request .* failed on one device and not on another, which counts: ' "$scratch/out" && break
done
((i < 20)) || fail "nothing is said of requests that a device failed"

# Studies: their pieces go to whichever is free, and every result is in its place.
vectors=("$attest" study tensor-core --patterns 700 --instructions 'hopper_*mma_k16*') codes=("$attest" study special --golden --step 503 --instructions '*ex2.approx.f32')
devices; wants 0 'as predicted' "${vectors[@]}" --runner "$scratch/runner" --out "$scratch/vectors.h5"; started none
wants 0 ' 007375ba07630dbc  as the model' "${codes[@]}" --runner "$scratch/runner" # three chunks; the hash is that of one loop over the model
hashes() { grep -oE '[a-z0-9.]+ +[0-9a-f]{16}  .*' "$scratch/out"; } # a slow machine shows its progress, too
hashes > "$scratch/codes"
for how in '' 1=dies 1=absent 0=dies 0=absent; do
    echo 30 > "$scratch/lines"
    devices $how; wants 0 'as predicted' "${vectors[@]}" --runner "$scratch/runner" --devices 0,1 --out "$scratch/by_two.h5"; started '0 1'
    same "$scratch/vectors.h5" "$scratch/by_two.h5"
    echo 3 > "$scratch/lines"
    devices $how; wants 0 '1 instruction on some' "${codes[@]}" --runner "$scratch/runner" --devices 0,1
    cmp <(hashes) "$scratch/codes" || fail "other results from two devices ($how)"
done
# An instruction is not left out because a runner died when it was asked for it.
for lines in 9 10 11; do
    echo $lines > "$scratch/lines"
    devices 0=dies; wants 3 'ended with exit code 3' "${vectors[@]}" --runner "$scratch/runner" --devices 0
done
devices 0=absent 1=absent; wants 3 'no such device' "${codes[@]}" --runner "$scratch/runner" --devices 0,1
wants 2 '--devices wants --runner' "${codes[@]}" --devices 0,1
wants 2 'is for tensor-core and special --golden' "$attest" study zeros --runner cpu --devices 0,1

wants 2 "found 'x', wanted all, or numbers" "$attest" verify --devices 0,x
wants 2 'is there twice' "$attest" verify --devices 1,1
wants 2 'wanted all, or numbers from 0 to 1' env CUDA_VISIBLE_DEVICES=3,5 "$attest" verify --devices 2
wants 3 'CUDA_VISIBLE_DEVICES names none' env CUDA_VISIBLE_DEVICES= "$attest" verify --devices all
wants 2 '--jobs' "$attest" verify --devices 0,1 --jobs 1
wants 2 '--devices wants --runner' "$attest" record "$source" --devices 0,1 --out "$scratch/no.h5"
echo "ok: bytes of one device from several, also where some fail"
