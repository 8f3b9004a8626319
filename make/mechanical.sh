#!/bin/bash
# Mechanical mutants: every barrier, fence, arrival, wait and commit of every CUDA kernel left out in turn.
#   mechanical.sh list PROOFS OBJECTS KERNEL.cu...   lines of mutants.tsv: FAMILY/VARIANT__FILE_LINE, variant, FILE:LINE of the
#                                                  call, cases, what is left out; a sixth: the proof that it is redundant
# A kernel has the calls of its file and of the headers it includes that its object for the SIMT machine holds. Kernels that
# hold the same calls of headers differ by a format, an exponential or an order of work: the first stands for all of them.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
die() { echo "mechanical: $*" >&2; exit 1; }
names='\bat_(sync|sync_warp|copy_wait|copy_commit|barrier(_[a-z_]+)?|mbarrier_(arrive(_expect)?|wait)|bulk_(commit|wait|wait_read)|cluster_(arrive(_relaxed)?|wait)|dependency_wait|fence_[a-z_]+|proxy_fence|wgmma_(fence|commit|wait))(<[^;<>]*>)?\('
call="${names}[^;]*\);"

sites() { # FILE...: FILE:LINE and the call; the machine knows calls by their lines, so two on one line must not go unseen
    local line place text
    while IFS= read -r line; do
        [[ "$line" =~ ^([^:]*:[0-9]+):(.*)$ ]] || die "$line: wanted FILE:LINE:text"
        place=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
        [[ "$text" =~ ^\ *(/\*|\*) || "$text" == *__device__* ]] && continue # words, or a definition
        [[ "$text" =~ $names && ! "${text#*"${BASH_REMATCH[0]}"}" =~ $names ]] || die "$place: several calls on a line: $text"
        [[ "$text" =~ $call ]] || die "$place: wanted a call that is a statement on one line: $text"
        printf '%s\t%s\n' "$place" "${BASH_REMATCH[0]%;}"
    done < <(grep -HnE "$names" "$@")
}

held() { # OBJECT: FILE:LINE of every call in its code, with those it was inlined into; the kernel's own loads and stores aside
    ld -r -T <(echo 'SECTIONS { .text : { *(.text .text.*) } }') "$1" -o "$work/merged"
    objdump -dr -j .text "$work/merged" |
        awk '/\tcall / { sub(/:$/, "", $1); at = $1; next } at { if (!/ at_mem_/) print at; at = "" } END { if (at) print at }' |
        addr2line -i -e "$work/merged" -j .text |
        sed -n 's/ (discriminator.*//; s/.*\(kernels\/[a-z0-9_]*\/[a-z0-9_]*\.[a-z]*:[0-9]*\)$/\1/p' | sort -u
}

squeezed() { tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'; }

# A line of PROOFS: FAMILY/VARIANT FILE 'text of the source from the call on' : proof. As much text as tells the call from
# the others of the file; spaces and ends of lines are alike.
keys=() proved=() times=() where=()
read_proofs() {
    local row line=0
    while read -r row; do
        line=$((line + 1))
        [[ -z "$row" || "$row" == \#* ]] && continue
        [[ "$row" =~ ^([a-z0-9_]+/[a-z0-9_]+)\ +([a-z0-9_/.]+)\ +\'(.*)\'\ +:\ +(.+)$ ]] ||
            die "$1:$line: wanted FAMILY/VARIANT FILE 'text of the source' : proof"
        keys+=("${BASH_REMATCH[1]} ${BASH_REMATCH[2]} $(squeezed <<< "${BASH_REMATCH[3]}")")
        proved+=("${BASH_REMATCH[4]}") times+=(0) where+=("$1:$line")
    done < "$1"
}

found='' # the proof for a call of a variant
find_proof() { # VARIANT FILE LINE
    local i text
    found=''
    for i in "${!keys[@]}"; do
        [[ "${keys[i]}" == "$1 $2 "* ]] || continue
        text=$(tail -n "+$3" "$2" | squeezed)
        [[ "$text" == "${keys[i]#"$1 $2 "}"* ]] || continue
        found=${proved[i]} times[i]=$((times[i] + 1))
    done
}

list() {
    local proofs=$1 objects=$2 kernel of file place text name i shared cases; shift 2
    local -A stands=() # the kernel that stands for those with the same calls of headers
    read_proofs "$proofs"
    local headers=() header
    for header in kernels/*/*.h; do
        [[ "$header" == kernels/@(simt|host|runner)/* ]] || headers+=("$header")
    done
    sites "$@" "${headers[@]}" | sort > "$work/sites"
    for kernel in "$@"; do
        of=${kernel#kernels/} of=${of%.cu}
        [[ -e "$objects/${kernel%.cu}.o" ]] || die "$objects/${kernel%.cu}.o: not there"
        held "$objects/${kernel%.cu}.o" > "$work/held"
        join -t $'\t' "$work/held" "$work/sites" > "$work/calls"
        shared="of headers: $(awk -v own="$kernel:" 'index($1, own) != 1 { print $1 }' "$work/calls")"
        [[ -n "${stands[$shared]:-}" ]] || stands[$shared]=$of
        while IFS=$'\t' read -r place text; do
            file=${place%:*} name=${file##*/}
            if [[ "$file" == "$kernel" ]]; then name=cu; elif [[ "${stands[$shared]}" != "$of" ]]; then continue; fi
            find_proof "$of" "$file" "${place##*:}"
            cases='@(smoke|shapes|reach):*'
            [[ -z "$found" ]] || cases='smoke:*' # all of them are judged, where others stop at the first that sees it
            printf '%s__%s_%s\t%s\t%s\t%s\twithout %s at %s\t%s\n' \
                "$of" "${name//[^a-z0-9]/_}" "${place##*:}" "$of" "$place" "$cases" "$text" "$place" "$found"
        done < "$work/calls"
    done
    for i in "${!keys[@]}"; do
        [[ ${times[i]} == 1 ]] || die "${where[i]}: a proof for ${times[i]} calls: ${keys[i]}"
    done
}

[[ "${1:-}" == list ]] || die "unknown step ${1:-}"
shift
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export LC_ALL=C # one order for sort and join
list "$@"
