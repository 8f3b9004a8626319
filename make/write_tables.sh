#!/bin/bash
# Writes the tables that follow from paths: operators, families, kernels (mutants among them), drawn mutants, templates. Checks names on the way.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
die() { echo "write_tables: $*" >&2; exit 1; }

operators() {
    echo '/* Generated from reference/: do not edit. */'
    echo '#include "attest/op.h"'; echo '#include <string.h>'
    for o in "$@"; do echo "extern const struct at_op at_op_$o;"; done
    echo 'static const struct at_op *const table[] = {'
    for o in "$@"; do echo "    &at_op_$o,"; done
    echo '    NULL };'
    echo 'int at_op_count(void) { return (int)(sizeof table / sizeof *table) - 1; }'
    echo 'const struct at_op *at_op_at(int i) { return table[i]; }'
    echo 'const struct at_op *at_op_find(const char *name) {'
    echo '    for (int i = 0; table[i]; i++) if (strcmp(table[i]->name, name) == 0) return table[i];'
    echo '    return NULL; }'
}

families() {
    echo '/* Generated from kernels/families.txt: do not edit. */'
    echo '#include "attest/op.h"'; echo '#include <string.h>'
    echo 'static const struct at_family table[] = {'
    local family op constraint
    while read -r family op constraint; do
        [[ -z "$family" || "$family" == \#* ]] && continue
        [[ -d "reference/$op" ]] || die "kernels/families.txt: family $family names operator $op, but there is no reference/$op"
        case "$constraint" in
            "") echo "    { \"$family\", \"$op\", 0 }," ;;
            sq=1) echo "    { \"$family\", \"$op\", 1 }," ;;
            *) die "kernels/families.txt: family $family: unknown constraint '$constraint' (known: sq=1)" ;;
        esac
    done < "$1"
    echo '    { NULL, NULL, 0 } };'
    echo 'int at_family_count(void) { return (int)(sizeof table / sizeof *table) - 1; }'
    echo 'const struct at_family *at_family_at(int i) { return &table[i]; }'
    echo 'const struct at_family *at_family_find(const char *name) {'
    echo '    for (int i = 0; table[i].name; i++) if (strcmp(table[i].name, name) == 0) return &table[i];'
    echo '    return NULL; }'
}

kernel_rows() { # lines of family, name, symbol, path, sha256, and what a mutant was made of
    echo '#include "kernels/runner/serve.h"'
    local row
    for row in "$@"; do IFS='|' read -r _ _ symbol _ <<< "$row"; echo "extern const struct at_kernel $symbol;"; done
    echo 'static const struct at_kernel_entry table[] = {'
    for row in "$@"; do
        IFS='|' read -r family name symbol path sum _ <<< "$row"
        echo "    { \"$family\", \"$name\", \"$path\", &$symbol, \"$sum\" },"
    done
    echo '    { 0, 0, 0, 0, 0 } };'
    echo 'int at_kernel_count(void) { return (int)(sizeof table / sizeof *table) - 1; }'
    echo 'const struct at_kernel_entry *at_kernel_at(int i) { return &table[i]; }'
    echo 'const char *at_kernel_mutant_of(const struct at_kernel_entry *entry) {'
    echo '    static const char *const made_of[] = {'
    for row in "$@"; do echo "        \"${row##*|}\","; done
    echo '        "" };'
    echo '    return made_of[entry - table]; }'
}

# What identifies a kernel or a mutant is its path: kernels/FAMILY/NAME.cu, tests/mutants/FAMILY/NAME.patch.
family='' name=''
identify() { family=${1%/*}; family=${family##*/}; name=${1##*/}; name=${name%.*}; }

kernels() { # kernels/FAMILY/NAME.cu or .c, and tests/mutants/FAMILY/NAME.patch
    local rows=() path sum line
    [[ $# != 0 ]] || die 'no kernels'
    while read -r sum path; do
        identify "$path"
        # what a dispatcher chooses is in its table
        [[ "$name" != 39_dispatch ]] || sum=$(cat "$path" "${path%/*}/dispatch_table.h" | sha256sum | cut -d' ' -f1)
        if [[ "$path" == *.patch ]]; then
            while IFS= read -r line && [[ "$line" != 'mutant-of:'* ]]; do :; done < "$path"
            line=${line#mutant-of:}
            rows+=("$family|$name|at_mutant_${family}_${name}|$path|$sum|${line// /}")
        else
            [[ "$(< "$path")" == *"AT_KERNEL($family, $name)"* ]] || die "$path: wanted AT_KERNEL($family, $name), the path is the identity"
            rows+=("$family|$name|at_kernel_${family}_${name}|$path|$sum|")
        fi
    done < <(sha256sum -- "$@")
    echo '/* Generated from paths: do not edit. */'
    kernel_rows "${rows[@]}"
}

# Mutants that were drawn: wrong kernels behind the declaration of what they were made of, also where the change has reached
# that too. A constant of the declaration, such as a tile's keys, is a constant of the kernel as well.
drawn() { # patches, as for `kernels`
    local patch of
    kernels "$@" | sed 's/at_mutant_/at_drawn_/g; s/extern const struct at_kernel at_drawn_/extern struct at_kernel at_drawn_/'
    for patch in "$@"; do
        identify "$patch"
        of=$(sed -n 's/^mutant-of: *//p' "$patch" | head -n 1); of=${of/\//_}
        echo "extern const struct at_kernel at_kernel_$of, at_mutant_${family}_$name;"
        echo "struct at_kernel at_drawn_${family}_$name;"
        echo "__attribute__((constructor)) static void declare_${family}_$name(void) {"
        echo "    at_drawn_${family}_$name = at_kernel_$of;"
        echo "    at_drawn_${family}_$name.workspace = at_mutant_${family}_$name.workspace;"
        echo "    at_drawn_${family}_$name.launch = at_mutant_${family}_$name.launch; }"
    done
}

# A patch's head names what it makes wrong: "mutant-of: FAMILY/NN_idea", "expect: STATE", "cases: GLOB", "fault: text"; and
# "runs-on: device" where a device must survive it too (attest-cuda-mutants), "instances: all" where its cases want other
# formats or head sizes than mutants of large kernels are compiled for (kernels/device/instances.h).
mutant_list() {
    local patch line key value values
    for patch in "$@"; do
        local -A values=()
        while IFS= read -r line; do
            [[ "$line" == '--- '* ]] && break
            [[ "$line" =~ ^([a-z-]+):\ *(.*)$ ]] || continue
            key=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
            case "$key" in
                mutant-of | expect | cases | fault | runs-on | instances) ;;
                *) die "$patch: unknown key in its head: $line" ;;
            esac
            values[$key]=${values[$key]:-$value}
        done < "$patch"
        for key in mutant-of expect cases fault; do
            [[ -n "${values[$key]:-}" ]] || die "$patch: no line '$key: ...' before the patch"
        done
        [[ "${values[runs-on]:-device}" == device ]] || die "$patch: runs-on: wanted device, found ${values[runs-on]}"
        [[ "${values[instances]:-all}" == all ]] || die "$patch: instances: wanted all, found ${values[instances]}"
        identify "$patch"
        printf '%s/%s\t%s\t%s\t%s\t%s\n' "$family" "$name" "${values[mutant-of]}" "${values[expect]}" "${values[cases]}" "${values[fault]}"
    done
}

# Text files as C: a literal a line, since C11 promises no literals beyond 4095 bytes.
templates() {
    local path name
    echo '/* Generated from notebooks_export/templates: do not edit. */'
    echo '#include "notebooks_export/templates.h"'; echo '#include <stddef.h>'
    for path in "$@"; do
        name=$(basename "$path")
        [[ "$name" =~ ^[a-z][a-z0-9_]*\.(py|css)$ ]] || die "$path: wanted a name of small letters, digits and _, and .py or .css"
        LC_ALL=C grep -qP '[^\x20-\x7e]' "$path" && die "$path: holds something else than printable ASCII"
        echo "static const char *const lines_${name//./_}[] = {"
        sed 's/\\/\\\\/g; s/"/\\"/g; s/?/\\?/g; s/.*/    "&",/' "$path"
        echo '    NULL };'
    done
    echo 'const struct at_template at_templates[] = {'
    for path in "$@"; do name=$(basename "$path"); echo "    { \"$name\", lines_${name//./_} },"; done
    echo '    { NULL, NULL } };'
}

what=$1; shift
case "$what" in
    operators) operators "$@" ;;
    families) families "$@" ;;
    kernels) kernels "$@" ;;
    drawn) drawn "$@" ;;
    templates) templates "$@" ;;
    mutant-list) mutant_list "$@" ;;
    *) die "unknown table $what" ;;
esac
