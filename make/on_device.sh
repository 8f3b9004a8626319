#!/bin/bash
# On a GPU host, from the unpacked bundle: judges, times, and plays the kernels that must not bring a run down.
# on_device.sh BUNDLE OUT [verify|random|bench|reproduce|study|record|train|losses|sanitize|faults|fences ...]; faults and fences want a bundle
# that was made with MUTANTS=1, the others take any. random draws its seed (AT_RANDOM cases, 20000). train wants AT_DOCS=docs.xz of
# docs_corpus.py and PyTorch: it trains the two models of datasets/activations. losses runs what it left in AT_TRAINED (default: a
# folder beside the temporary ones) through their stacks.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
bundle=$(realpath "$1") out=$2; shift 2
trained=${AT_TRAINED:-${TMPDIR:-/tmp}/attest_trained} # stays: the weights are large, and two commands may be what time allows
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir -p "$out"; out=$(realpath "$out")
tar -C "$work" -xf "$bundle" 2> /dev/null || # tar wants the program xz, Python does not
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$bundle" "$work" || exit 3
cd "$work/attest" || exit 3
./attest doctor > "$out/doctor.txt" 2>&1
cases='@(smoke|exact|edge|shapes|nonfinite|real|scenario):*'
(( $# )) || { set -- verify bench study record sanitize; [[ ! -x attest-cuda-mutants ]] || set -- "$@" faults fences; }
for part in "$@"; do
    echo "== $part"
    start=$SECONDS
    case $part in
        verify) ./attest verify --runner cuda --cases "$cases" --strict --quiet --out "$out/verify.h5" > "$out/verify.txt" 2>&1
                echo "exit $?"; tail -n 8 "$out/verify.txt"; rm -f "$out/verify.h5.jsonl" ;;
        random) seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
                ./attest verify --runner cuda --random "${AT_RANDOM:-20000}" --seed "$seed" --again 48 --quiet > "$out/random.txt" 2>&1
                echo "exit $?, seed $seed"; tail -n 12 "$out/random.txt" ;;
        train) rm -rf "$trained"
               python3 datasets/activations/train_asynct.py --corpus "$AT_DOCS" --out "$trained" --work "$work" \
                   --seconds "${AT_SECONDS:-430}" --windows 32 --stack-windows "${AT_WINDOWS:-4}" > "$out/train.txt" 2>&1
               code=$?
               echo "exit $code"; tail -n 3 "$out/train.txt"
               (( code )) || cp "$trained"/results.json "$trained"/curve.csv "$out" ;;
        losses) while read -r number model words; do # a few at a time: half of a stack's time is one thread's
                    printf '%s\0' "$number" "$model" "$words"
                done < <(nl -b a datasets/stacks/losses.txt) |
                    AT_DIR=$trained AT_OUT=$work xargs -0 -n 3 -P "$((($(nproc) + 3) / 4))" bash -c 'read -ra words <<< "$2"
                    ./attest stack "$1_model" --values "$AT_DIR/$1_stack.npz" --set "b=${AT_WINDOWS:-4}" --loss logits \
                        --runner cuda --quiet "${words[@]}" < /dev/null > "$AT_OUT/loss_$0.txt" 2>&1
                    echo "$1 $2: exit $?; $(grep -E "^(MODEL-EXACT|loss)" "$AT_OUT/loss_$0.txt" | tr "\n" ";")"' | tee "$out/losses.txt"
                cat "$work"/loss_*.txt > "$out/stacks.txt" ;;
        bench) ./attest bench "${AT_BENCH:-*}" --runner cuda --out "$out/bench.h5" > "$out/bench.txt" 2> "$out/bench.err"
               echo "exit $?"; tail -n 30 "$out/bench.txt" ;;
        reproduce) ./attest reproduce --runner cuda --out "$out/claims.h5" --json "$out/claims.json" > "$out/claims.txt" 2> "$out/claims.err"
               echo "exit $?"; tail -n 1 "$out/claims.txt" ;;
        study) ./attest study tensor-core --runner cuda --out "$out/tensor_core.h5" --golden "$out/tensor_core.golden" > "$out/tensor_core.txt" 2>&1
               echo "exit $?"; tail -n 1 "$out/tensor_core.txt"
               ./attest study special --runner cuda --out "$out/exp2.h5" > "$out/exp2.txt" 2>&1
               echo "exit $?"; cat "$out/exp2.txt"
               ./attest study special --runner cuda --golden "$out/special.golden" > "$out/special.txt" 2>&1
               echo "exit $?"; cat "$out/special.txt" ;;
        record) # the same bytes whoever counts
            for what in 'minilm --attention asynct' 'minilm --attention softmax' 'minilm --params causal=1 --dtype bf16' \
                    'asynct_prefill b=3 h=4 hk=2 sq=300/1/1700 sk=300/900/1700 d=128 causal=1 dtype=f16 data=outlier_channel' \
                    'softmax_prefill b=1 h=8 hk=4 sq=2048 sk=2048 d=128 causal=1 dtype=bf16 data=normal'; do
                read -ra words <<< "$what"; [[ "$what" == minilm* ]] || words=("$what")
                for runner in cpu cuda; do
                    from=${EPOCHREALTIME/./}
                    ./attest record "${words[@]}" --runner $runner --out "$work/$runner.h5" > "$work/record.txt" 2>&1 || tail -n 3 "$work/record.txt"
                    echo "record $what --runner $runner: $(((${EPOCHREALTIME/./} - from) / 1000)) ms"
                done
                cmp "$work/cpu.h5" "$work/cuda.h5" && echo "equal bytes: $(stat -c %s "$work/cuda.h5")"
                rm -f "$work"/c*.h5*
            done 2>&1 | tee "$out/record.txt" ;;
        sanitize)
            for tool in memcheck racecheck initcheck synccheck; do
                ./attest verify --runner "compute-sanitizer --tool $tool --log-file $work/$tool.%p ./attest-cuda" --cases 'smoke:*' \
                    --jobs 4 --timeout 600 --quiet > "$work/$tool.txt" 2>&1
                echo "$tool: attest exit $?; $(cat "$work/$tool".[0-9]* | grep -c 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards') of $(ls "$work/$tool".[0-9]* | wc -l) processes clean"
                cat "$work/$tool".[0-9]* | grep -v '^$' | tail -n 40 >> "$out/sanitize.txt"
            done ;;
        faults) # each is a state of its job, and the others go on
            ./attest verify --runner ./attest-cuda-mutants --timeout 3 --jobs 1 --cases 'smoke:asynct_decode b=2*' > "$out/faults.txt" 2>&1
            echo "exit $?"; grep -E '^(PASS|WRONG|CRASHED|HUNG|ERROR|DIRTY|RACY|UNSUPPORTED|[0-9])|cause' "$out/faults.txt" ;;
        fences) # proxy fences left out: what the GPU's results and the sanitizer say of them
            for tool in "" memcheck racecheck; do
                runner=./attest-cuda-mutants
                [[ -n "$tool" ]] && runner="compute-sanitizer --tool $tool --log-file $work/fences.$tool.%p ./attest-cuda-mutants"
                ./attest verify 'asynct_prefill/*' --runner "$runner" --timeout 600 --jobs 4 --cases '@(smoke|exact|shapes):*' > "$work/fences.txt" 2>&1
                echo "${tool:-results}: attest exit $?"; grep -E '^[0-9]+ results' "$work/fences.txt"; grep -hE 'SUMMARY' "$work/fences.$tool".[0-9]* 2> /dev/null
            done > "$out/fences.txt" 2>&1
            cat "$out/fences.txt" ;;
    esac
    echo "$part: $((SECONDS - start)) s"
done
