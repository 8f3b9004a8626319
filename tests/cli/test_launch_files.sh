#!/bin/bash
# Device code and a launch file as a variant: judged, accused, refused and timed through the commands, on a driver of the tests.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
runner=$BUILD/tests/kernels/launch/test_launch_device
[[ -x "$runner" ]] || { echo "no $runner"; exit 77; }
printf 'fake code\n' > "$scratch/code.txt"
printf 'other code\n' > "$scratch/other.txt"

# launch_file NAME KERNEL [further fields] [further arguments]: NAME.json in the scratch folder.
launch_file() {
    cat > "$scratch/$1.json" << JSON
{ "family": "uclip_norm", "name": "$1", "cubin": "code.txt", "sm": "sm_90", "numerics": "qk_unit=f32 pv_unit=f32",
  "dtypes": ["f32"], "workspace": 64${3:-},
  "kernels": [ { "name": "$2", "grid": ["tokens"], "block": [128],
      "args": ["ptr:x", "ptr:alpha", "ptr:gamma", "ptr:beta", "ptr:y", "i32:tokens", "i32:channels", "f32:lo", "f32:hi"${4:-}] } ] }
JSON
}
# judged STATE 'text' NAME... : what a run over the files says of the first of them, and that it ends as it must.
judged() {
    local state=$1 text=$2 files=() name line code=1; shift 2
    for name in "$@"; do files+=(--load "$scratch/$name.json"); done
    [[ $state == PASS || $state == UNSUPPORTED ]] && code=0
    [[ $state == UNSUPPORTED ]] && code=4
    wants $code '' "$attest" verify 'uclip_norm/*' --runner "$runner ${files[*]}" --case "$line_of_case" --jobs 1 --quiet --json "$scratch/r.jsonl"
    line=$(grep -F "\"variant\":\"$1\"" "$scratch/r.jsonl")
    [[ "$line" == *"\"state\":\"$state\""* && "$line" == *"$text"* ]] || fail "$1: wanted $state $text, got $line"
}
line_of_case='uclip_norm tokens=7 channels=40 dtype=f32'

launch_file 01_right right
launch_file 02_wrong wrong
launch_file 03_past_y past_y
launch_file 04_before_x before_x
launch_file 05_past_workspace past_workspace '' ', "ptr:workspace"'
launch_file 06_poisoned poisoned '' ', "ptr:workspace"'
launch_file 07_keeps keeps
launch_file 08_input_written input_written
launch_file 09_by_map by_map ', "tensor_maps": { "x": { "dims": ["channels", "tokens"], "box": [8, 1] } }' ', "tma:x"'
launch_file 10_no_code right; sed -i 's/code.txt/other.txt/' "$scratch/10_no_code.json"
launch_file 11_lost_kernel lost
launch_file 12_too_few poisoned
launch_file 13_no_value right; sed -i 's/\["tokens"\]/["tokens \/ (channels - 40)"]/' "$scratch/13_no_value.json"
launch_file 14_needs right ', "requires": ["channels % 64 == 0"]'
launch_file 15_other_sm right; sed -i 's/sm_90/sm_100a/' "$scratch/15_other_sm.json"
judged PASS '' 01_right
grep -qF "$(sha256sum "$scratch/code.txt" | cut -d' ' -f1)" "$scratch/r.jsonl" || fail 'the results do not name the device code'
judged WRONG '' 02_wrong
judged DIRTY 'bytes past y, the first 20 behind its end' 03_past_y
judged DIRTY 'bytes before x, the first 8 before its start' 04_before_x
judged DIRTY 'bytes past the workspace, the first 100 behind its end' 05_past_workspace
judged PASS '' 06_poisoned
judged PASS '' 07_keeps
judged DIRTY 'changed its input beta' 08_input_written
judged PASS '' 09_by_map
judged ERROR 'loading other.txt (line 1: this is no code): CUDA_ERROR_NO_BINARY_FOR_GPU (209)' 10_no_code 01_right
grep -F '"variant":"01_right"' "$scratch/r.jsonl" | grep -qF '"state":"PASS"' || fail 'the variant behind one that cannot be loaded is not judged'
judged ERROR 'looking for kernel lost in code.txt' 11_lost_kernel
judged ERROR 'kernels[0].args: there are 9, and poisoned has 10 parameters' 12_too_few
judged ERROR '\"tokens / (channels - 40)\" divides by 0' 13_no_value
judged UNSUPPORTED 'wants channels % 64 == 0' 14_needs
judged UNSUPPORTED 'for sm_100a, and this device is sm_90' 15_other_sm
line_of_case='uclip_norm tokens=7 channels=40 dtype=bf16'
judged UNSUPPORTED 'for f32 alone' 01_right

# Listed, judged over cases of every kind, timed by the clock of its runner; a bad file ends it with the field's name.
wants 0 '01_right' "$attest" list kernels --runner "$runner --load $scratch/01_right.json"
wants 0 'exit 0' "$attest" verify 'uclip_norm/*' --runner "$runner --load $scratch/01_right.json" --cases '@(smoke|edge|exact):uclip_norm*'
wants 0 'peer 06_poisoned' "$attest" bench 'uclip_norm/*' --runner "$runner --load $scratch/01_right.json" \
    --peer "$runner --load $scratch/06_poisoned.json" --case 'uclip_norm tokens=7 channels=40 dtype=f32'
launch_file 16_output_flag output_flag
wants 1 'not timed: timing the kernel: error' "$attest" bench 'uclip_norm/*' --runner "$runner --load $scratch/16_output_flag.json" --case 'uclip_norm tokens=7 channels=40 dtype=f32'

# `cuda` with arguments is the attest-cuda beside attest; without one it says so, and other words are a shell's.
copy_programs attest
cp "$runner" "$scratch/attest-cuda" && cp "${runner%/*}/fake_driver.so" "$scratch/" || fail 'no copies'
wants 0 'PASS  01_right' "$scratch/attest" verify 'uclip_norm/*' --runner "cuda --load '$scratch/01_right.json'" --case "uclip_norm tokens=7 channels=40 dtype=f32"
rm "$scratch/attest-cuda"
wants 3 "runner cuda: there is no $scratch/attest-cuda" "$scratch/attest" verify 'uclip_norm/*' --runner "cuda --load $scratch/01_right.json"
wants 3 'cudagraph --load x' "$scratch/attest" verify 'uclip_norm/*' --runner 'cudagraph --load x'
sed -i 's/"grid"/"gird"/' "$scratch/01_right.json"
wants 3 '01_right.json: kernels[0]: has no field gird; did you mean grid' "$attest" verify 'uclip_norm/*' --runner "$runner --load $scratch/01_right.json" \
    --case 'uclip_norm tokens=7 channels=40 dtype=f32'

# What the pages show compiles: code for a launch file, and the same kernel in a library.
if command -v nvcc > /dev/null; then
    nvcc -cubin -arch=sm_90a -O3 -o "$scratch/softmax_rows.cubin" kernels/launch/examples/softmax_rows.cu || fail "softmax_rows.cu"
    nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC -I kernels/runner -I kernels/launch/examples \
        kernels/runner/examples/softmax_launch_cuda.cu -o "$scratch/libmine.so" || fail "softmax_launch_cuda.cu"
    [[ "$(nm -D --defined-only "$scratch/libmine.so")" == *attest_declaration* ]] || fail "the library says nothing of itself"
else
    echo "no nvcc: examples of device code are not compiled"
fi
