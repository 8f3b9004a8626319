#!/bin/bash
# Mechanical mutants: every barrier, fence, arrival, wait and commit of every CUDA kernel deleted in turn.
#   mechanical.sh patches DIR BUILD KERNEL.cu...   a patch for each deletion, DIR/FAMILY/VARIANT__FILE_LINE.patch, and
#                                                  DIR/rules.mk, which says what each is made of
#   mechanical.sh object PATCH OUT BUILD           its object; empty where the kernel's code does not hold the call
#   mechanical.sh list PROOFS PATCH...             columns of mutants.tsv and a sixth: the proof that the call is redundant
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
die() { echo "mechanical: $*" >&2; exit 1; }
names='\bat_(sync|sync_warp|copy_wait|copy_commit|barrier(_[a-z_]+)?|mbarrier_(arrive(_expect)?|wait)|bulk_(commit|wait|wait_read)|cluster_(arrive|wait)|fence_[a-z_]+|proxy_fence|wgmma_(fence|commit|wait))(<[^;<>]*>)?\('
call="${names}[^;]*\);"

sites() { # FILE: line numbers of calls; a call that cannot be deleted by line must not go unseen
    local number text
    while IFS=: read -r number text; do
        [[ "$text" =~ ^\ *(/\*|\*) || "$text" == *__device__* ]] && continue # words, or a definition
        [[ $(grep -oE "$names" <<< "$text" | wc -l) == 1 ]] || die "$1:$number: several calls on a line: $text"
        grep -qE "$call" <<< "$text" || die "$1:$number: wanted a call that is a statement on one line: $text"
        echo "$number"
    done < <(grep -nE "$names" "$1")
}

patches() {
    local dir=$1 build=$2 kernel file number name patch text rules; shift 2
    rules=$(mktemp)
    mkdir -p "$dir"
    for kernel in "$@"; do
        local of=${kernel#kernels/} depends=$build/simt/${kernel%.cu}.d
        of=${of%.cu}
        [[ -e "$depends" ]] || die "$depends: not there; it is built with the kernel"
        for file in "$kernel" $(grep -o 'kernels/device/[a-z0-9_]*\.h' "$depends" | sort -u); do
            sites "$file" > "$dir/sites" || exit 1
            while read -r number; do
                name=${file##*/}; [[ "$file" == "$kernel" ]] && name=cu
                name=${of}__${name//[^a-z0-9]/_}_$number patch=$dir/$name.patch
                mkdir -p "${patch%/*}"
                text=$(sed -n "${number}p" "$file" | grep -oE "$call")
                {
                    printf 'mutant-of: %s\nexpect: ANY\ncases: @(smoke|shapes):*\n' "$of"
                    printf 'fault: without %s at %s:%s\n\n' "${text%;}" "$file" "$number"
                    sed -E "${number}s/$call/;/" "$file" | diff -u --label "a/$file" --label "b/$file" "$file" - || [[ $? == 1 ]]
                } > "$patch.new"
                if cmp -s "$patch.new" "$patch"; then rm "$patch.new"; else mv "$patch.new" "$patch"; fi
                printf 'MECHANICAL += %s\n%s: %s\n' "$patch" "${patch%.patch}.o" "$build/simt/${kernel%.cu}.o" >> "$rules"
            done < "$dir/sites"
        done
    done
    rm -f "$dir/sites"
    mv "$rules" "$dir/rules.mk"
}

object() {
    local patch=$1 out=$2 build=$3 of symbol
    tests/build/build_mutant.sh "$patch" "$out" "$build"
    of=$(sed -n 's/^mutant-of: *//p' "$patch")
    symbol=at_mutant_$(basename "$(dirname "$patch")")_$(basename "$patch" .patch)
    objcopy --strip-debug --redefine-sym "at_kernel_${of/\//_}=$symbol" "$build/simt/kernels/$of.o" "$out.right"
    objcopy --strip-debug "$out" "$out.wrong"
    if cmp -s "$out.right" "$out.wrong"; then : > "$out"; fi # a template of a header that this kernel does not use
    rm -f "$out.right" "$out.wrong"
}

squeezed() { tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'; }

# A line of PROOFS: FAMILY/VARIANT FILE 'text of the source from the call on' : proof. As much text as tells the call from
# the others of the file; spaces and ends of lines are alike.
list() {
    local proofs=$1 row fault of place text key found used i line=0; shift
    local keys=() proved=() times=() where=()
    while read -r row; do
        line=$((line + 1))
        [[ -z "$row" || "$row" == \#* ]] && continue
        [[ "$row" =~ ^([a-z0-9_]+/[a-z0-9_]+)\ +([a-z0-9_/.]+)\ +\'(.*)\'\ +:\ +(.+)$ ]] ||
            die "$proofs:$line: wanted FAMILY/VARIANT FILE 'text of the source' : proof"
        keys+=("${BASH_REMATCH[1]} ${BASH_REMATCH[2]} $(squeezed <<< "${BASH_REMATCH[3]}")")
        proved+=("${BASH_REMATCH[4]}") times+=(0) where+=("$proofs:$line")
    done < "$proofs"
    while IFS= read -r row; do
        of=$(cut -f2 <<< "$row") fault=$(cut -f5 <<< "$row")
        place=${fault##* at } found=''
        text=$(tail -n "+${place##*:}" "${place%:*}" | squeezed)
        for i in "${!keys[@]}"; do
            key="$of ${place%:*} "
            [[ "${keys[i]}" == "$key"* && "$text" == "${keys[i]#"$key"}"* ]] || continue
            found=${proved[i]} times[i]=$((times[i] + 1))
        done
        printf '%s\t%s\n' "$row" "$found"
    done < <(tests/build/write_tables.sh mutant-list "$@")
    for i in "${!keys[@]}"; do
        used=${times[i]}
        [[ $used == 1 ]] || die "${where[i]}: a proof for $used calls: ${keys[i]}"
    done
}

what=$1; shift
case "$what" in
    patches) patches "$@" ;;
    object) object "$@" ;;
    list) list "$@" ;;
    *) die "unknown step $what" ;;
esac
