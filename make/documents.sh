#!/bin/bash
# The man page and the shell completion, from what the commands themselves say: documents.sh man|bash ATTEST.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
what=$1 attest=$2

# Lines of "name<TAB>text" below a heading of a help text.
below() { # HEADING: stdin
    awk -v heading="$1" '$0 == heading { on = 1; next } on && !/^  / { exit }
        on { sub(/^ +/, ""); at = match($0, /  +/); if (at) print substr($0, 1, at - 1) "\t" substr($0, at + RLENGTH); else print $0 "\t" }'
}
commands() { "$attest" --help | below commands: ; }
options() { "$attest" "$1" --help | below options: ; }
roff() { sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/' <<< "$*"; }

man() {
    local name summary option text help
    echo ".TH ATTEST 1 \"\" \"$("$attest" --version | cut -d' ' -f1-2)\" \"\""
    echo '.SH NAME'; roff 'attest - judges GPU attention kernels against plain C references'
    echo '.SH SYNOPSIS'; echo '.B attest'; roff 'COMMAND [ARGUMENTS]'
    echo '.SH COMMANDS'
    while IFS=$'\t' read -r name summary; do
        help=$("$attest" "$name" --help)
        echo ".SS attest $name"; roff "$summary"
        echo '.PP'; roff "$(sed -n 's/^usage: //p' <<< "$help")"
        while IFS=$'\t' read -r option text; do
            echo '.TP'; echo ".B $(roff "$option")"; roff "$text"
        done < <(below options: <<< "$help")
        text=$(awk '/^example:/ { on = 1; next } on && !/^  / { exit } on' <<< "$help")
        [[ -z "$text" ]] || { echo '.PP'; echo 'Example:'; echo '.PP'; echo '.nf'; while IFS= read -r line; do roff "$line"; done <<< "$text"; echo '.fi'; }
    done < <(commands)
    echo '.SH EXIT STATUS'
    roff "$("$attest" --help | awk '/Exit codes:/ { sub(/.*Exit codes: */, ""); on = 1 } on' | tr '\n' ' ')"
    echo '.SH FILES'
    roff 'share/attest beside bin: cases, benchmarks, recorded activations, measurements, PROTOCOL.md of runners, a runner in Python'
}

completion() {
    local name
    echo '# Completion of attest for bash, made from its own help.'
    echo '_attest() {'
    echo '    local word=${COMP_WORDS[COMP_CWORD]} words'
    echo '    if ((COMP_CWORD == 1)); then'
    echo "        words='$(commands | cut -f1 | tr '\n' ' ')--help --version'"
    echo '    else'
    echo '        case ${COMP_WORDS[1]} in'
    while read -r name; do
        echo "            $name) words='$(options "$name" | cut -f1 | cut -d' ' -f1 | tr '\n' ' ')--help' ;;"
    done < <(commands | cut -f1)
    echo '            *) return ;;'
    echo '        esac'
    echo '    fi'
    echo '    [[ $COMP_CWORD == 1 || $word == -* ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")'
    echo '}'
    echo 'complete -o default -F _attest attest'
}

case "$what" in
    man) man ;;
    bash) completion ;;
    *) echo "documents.sh: man or bash, found $what" >&2; exit 2 ;;
esac
