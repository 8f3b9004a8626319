#!/bin/bash
# attest-so judges kernels of a shared library, by a plain C launch and by tvm-ffi's convention: right ones pass, wrong ones get
# the state that they must, a crash costs a job, and a declaration that does not hold is refused by what is wrong with it.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
examples=$PWD/kernels/runner/examples
cc=${CC:-gcc}
command -v "$cc" > /dev/null || { echo "no $cc"; exit 77; }

# library NAME [sed program that plants a fault in every source]: NAME.so in the scratch folder, of the example that NAME begins with.
library() {
    local from=$scratch/src.$1
    mkdir -p "$from"
    cp "$examples"/*.[ch] kernels/runner/attest_launch.h "$from"
    [[ -z "${2:-}" ]] || sed -i "$2" "$from"/*.[ch]
    [[ -z "${2:-}" || "$(cat "$examples"/*.[ch] kernels/runner/attest_launch.h)" != "$(cat "$from"/softmax*.[ch] "$from/attest_launch.h")" ]] || fail "nothing planted by $2"
    "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -ffp-contract=off -shared -fPIC -I "$from" "$from/softmax_${1%%.*}.c" -o "$scratch/$1.so" -lm ||
        fail "$1 is not built"
}
judge() { # NAME options...: states and causes go to r.jsonl
    local name=$1; shift
    "$attest" verify 'softmax_prefill/*' --runner "attest-so $scratch/$name.so" --jobs 1 --json "$scratch/r.jsonl" "$@"
}
ragged='softmax_prefill b=2 h=4 hk=2 sq=19/33 sk=24/33 d=64 causal=1 dtype=f32 data=normal seed=10'
paged='softmax_prefill b=2 h=3 hk=1 sq=5/7 sk=40/19 d=32 page=16 causal=1 dtype=f32 data=normal seed=3'
cases='@(smoke|edge|nonfinite):softmax_prefill*'

for way in launch tvm_ffi; do
    library $way
    wants 0 'float' "$BUILD/attest-so" --list "$scratch/$way.so"
    wants 0 '2 PASS' judge $way --case "$ragged" --strict
    wants 0 '2 PASS' judge $way --case "$paged" --strict --sandbox
    wants 0 'exit 0' judge $way --cases "$cases"
    grep -q "dtypes do not have bf16" "$scratch/r.jsonl" || fail "$way: bf16 is not declined for its declaration"
    grep -q "the runner does not say that it takes softcap" "$scratch/r.jsonl" || fail "$way: a softcap is not declined"
    # The last key left out; a value past the end of o; a crash on one shape alone, behind which the run goes on; an exit.
    library $way.wrong 's/? keys - behind/? keys - behind - 1/'
    wants 1 'last_key_dropped' judge $way.wrong --case "$ragged"
    grep -q '"state":"WRONG"' "$scratch/r.jsonl" || fail "$way: the last key left out is not WRONG"
    library $way.dirty 's/^    attend_all(&all);$/    attend_all(\&all); all.lse[-2] = 1;/; s/^        attend_all(&all);$/    { attend_all(\&all); all.lse[-2] = 1; }/'
    wants 1 'DIRTY' judge $way.dirty --case "$ragged"
    library $way.crash 's/^static inline void attend_all(const struct batch \*all) {$/&\n    if (all->d == 64)\n        abort();/'
    wants 1 '2 PASS, 1 CRASHED' judge $way.crash --case 'softmax_prefill b=1 h=2 hk=1 sq=5 sk=9 d=64,32 dtype=f32 data=normal'
    library $way.exit 's/^static inline void attend_all(const struct batch \*all) {$/void _exit(int);\n&\n    _exit(0);/'
    wants 1 'CRASHED' judge $way.exit --case "$ragged"
done

# Results name the library by its bytes, however many of them the hash's last block of 64 has.
library launch.hashed
for last in 55 56 63 0 1; do
    head -c $(((64 + last - $(stat -c %s "$scratch/launch.hashed.so") % 64) % 64)) /dev/zero >> "$scratch/launch.hashed.so"
    wants 0 '2 PASS' judge launch.hashed --case "$ragged" --again 1000000
    grep -q "\"sha256\":\"$(sha256sum < "$scratch/launch.hashed.so" | cut -d' ' -f1)\"" "$scratch/r.jsonl" || fail "another SHA-256 than sha256sum's, $last bytes in the last block"
done
# A file beside the library stands before its own declaration, line by line as wrong as it can be.
declared() { # 'what is said' lines...
    local text=$1; shift
    printf '%s\n' "$@" > "$scratch/launch.so.attest"
    wants 3 "$text" judge launch --case "$ragged"
}
library launch
section='[softmax_prefill/01_mine]'
declared 'launch.so.attest:1: found family softmax_prefil, wanted one of `attest list families`; did you mean softmax_prefill?' '[softmax_prefil/01_mine]'
declared 'launch.so.attest: softmax_prefill/01_mine: found no function, wanted launch = SYMBOL or tvm_ffi = NAME' "$section"
declared 'found launch and tvm_ffi, wanted' "$section" 'launch = softmax' 'tvm_ffi = softmax'
declared 'launch.so.attest:3: found the key numeric, wanted launch, tvm_ffi' "$section" 'launch = softmax' 'numeric = free_order=1'
declared 'did you mean numerics?' "$section" 'launch = softmax' 'numeric = free_order=1'
declared 'launch.so.attest:2: softmax_prefill/01_mine: ' "$section" 'numerics = qk_unit=abacus'
declared 'abacus' "$section" 'numerics = qk_unit=abacus'
declared 'dtypes: found i32, which softmax_attention does not have' "$section" 'dtypes = i32'
declared 'dtypes: ' "$section" 'dtypes = half'
declared 'takes: found scale, wanted a later parameter of softmax_attention' "$section" 'takes = scale'
declared 'is there twice' "$section" 'launch = softmax' "$section"
declared 'launch is there twice in softmax_prefill/01_mine' "$section" 'launch = softmax' 'launch = softmax'
declared 'found "launch", wanted key = value' "$section" 'launch'
declared 'found "launch = softmax", wanted [FAMILY/NAME] first' 'launch = softmax'
declared 'graph: found "yes", wanted 0 or 1' "$section" 'graph = yes'
declared 'found no variant, wanted [FAMILY/NAME]' '# nothing'
declared 'softmax_prefill/01_mine: found no function softmay, wanted it exported' "$section" 'launch = softmay'
declared 'found softmax, wanted __tvm_ffi_softmax: did you mean launch = softmax?' "$section" 'tvm_ffi = softmax' 'arguments = q k v o lse'
declared 'found no function takes, wanted it exported' "$section" 'launch = softmax' 'supports = takes'
declared 'arguments: found qq, wanted tensors, sizes and parameters of softmax_attention; did you mean q?' "$section" 'tvm_ffi = softmax' 'arguments = qq o lse'
declared 'arguments: found no lse, which softmax_attention wants written' "$section" 'tvm_ffi = softmax' 'arguments = q k v o'
declared 'found arguments, which a plain launch does not have' "$section" 'launch = softmax' 'arguments = q'
# Numerics that fit one case and not another cost that job; two variants of one function are two.
printf '%s\n' "$section" 'launch = softmax' 'dtypes = f32' 'numerics = free_order=1 qk_unit=tc_f32 pv_unit=f32' \
    '[softmax_prefill/02_mine]' 'launch = softmax' 'dtypes = f32' > "$scratch/launch.so.attest"
wants 1 'the declared numerics do not fit this case' judge launch --case "$ragged"
grep -q '"state":"PASS".*"variant":"02_mine"' "$scratch/r.jsonl" || fail "the second variant is not judged beside the first"
# A later parameter goes to the variant that says it takes it, which here does not compute it, and not to the one beside it.
printf '%s\n' "$section" 'launch = softmax' 'takes = softcap' '[softmax_prefill/02_mine]' 'launch = softmax' > "$scratch/launch.so.attest"
wants 1 'looks like cap_ignored' judge launch --case "$ragged softcap=2"
grep -q 'its declaration does not say that it takes softcap' "$scratch/r.jsonl" || fail "02_mine does not decline the softcap"
# Without any declaration, without a library, and one that wants a library that is not there.
rm "$scratch/launch.so.attest"
library launch.mute '/^ATTEST_DECLARATION/,/;$/d'
wants 3 'found no symbol attest_declaration and no file' judge launch.mute --case "$ragged"
wants 3 'does not load: ' judge nowhere --case "$ragged"
echo 'int f(void) { return 0; }' > "$scratch/ffi.c"
"$cc" -shared -fPIC "$scratch/ffi.c" -o "$scratch/libtvm_ffi.so" && "$cc" -shared -fPIC -Wl,--no-as-needed -L "$scratch" -x c /dev/null -x none -ltvm_ffi -o "$scratch/needs.so" || fail "no library that needs one"
wants 3 'needs libtvm_ffi.so, which the loader does not find' judge needs --case "$ragged"
echo 'int TVMFFIErrorMoveFromRaised(void *); int f(void) { return TVMFFIErrorMoveFromRaised(0); }' > "$scratch/ffi.c"
"$cc" -shared -fPIC "$scratch/ffi.c" -o "$scratch/unlinked.so" || fail "no library that is not linked"
wants 3 'is not linked with it: wanted -ltvm_ffi' judge unlinked --case "$ragged"
wants 2 'wanted LIBRARY.so' "$BUILD/attest-so"
wants 2 'wanted LIBRARY.so' "$BUILD/attest-so" --listen
wants 0 'runner protocol' "$BUILD/attest-so" --version
wants 0 'usage: attest-so LIBRARY.so' "$BUILD/attest-so" --help
# What a library prints when it is loaded and when it is called stays out of the conversation.
library launch.prints 's/^int softmax(const struct attest_launch \*launch) {$/__attribute__((constructor)) static void loaded(void) { puts("loaded"); fflush(stdout); }\n&\n    puts("called"); fflush(stdout);/'
wants 0 '2 PASS' judge launch.prints --case "$ragged"
# A reason that the function gives, and one that its supports does.
library launch.says 's/^    if (!all.score)$/    if (all.d == 64)\n        free(all.score);\n    if (all.d == 64)/; s/head sizes to 256/head sizes to 16/; s/> 256/> 16 \&\& attest_int(launch, "d") < 64/'
wants 1 'softmax returned it: no memory for scores' judge launch.says --case "$ragged"
wants 4 'head sizes to 16' judge launch.says --case "$paged"
library launch.misspelt 's/attest_real(launch, "scale")/attest_real(launch, "scal")/'
wants 1 'softmax_attention has no size and no parameter scal' judge launch.misspelt --case "$ragged"
library tvm_ffi.says 's/if (n != ALL/if (n == ALL/'
wants 1 'error -1, softmax returned it' judge tvm_ffi.says --case "$ragged"
