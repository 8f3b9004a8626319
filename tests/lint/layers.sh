#!/bin/bash
# Who may include whom: the table of CONTRIBUTING.md, checked on every #include of the tree. With --self-test it plants
# a forbidden include and must see it.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
operators=$(find reference -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | grep -vxE 'attest|tensor_core|fast|norm' | paste -sd'|')

# For a folder: what its quoted includes may start with, and which <headers> beyond libc it may name.
rule() { # folder -> sets own, outside
    case "$1" in
        reference/attest) own='attest/' outside='' ;;
        reference/tensor_core) own='attest/|tensor_core/' outside='' ;;
        reference/fast) own="attest/|fast/|($operators)/" outside='cblas.h' ;;
        reference/norm) own='attest/|tensor_core/|norm/' outside='' ;;
        reference/*norm | reference/*uclip) own="attest/|norm/|${1#reference/}/" outside='' ;;
        reference/*) own="attest/|tensor_core/|${1#reference/}/" outside='' ;;
        datasets/*) own='attest/|tensor_core/|datasets/' outside='gsl/|Random123/|jansson.h|zlib.h' ;;
        kernels/host) own='attest/|tensor_core/|kernels/host/|('"$operators"')/' outside='cblas.h' ;;
        kernels/device) own="attest/|kernels/device/|kernels/simt/(device|wgmma|tma|warp_roles|cluster|store_matrix)_simt.h" outside="cuda(_|.h)" ;;
        kernels/simt) own='attest/|tensor_core/|kernels/simt/' outside='elfutils/|sanitizer/|tuple' ;;
        kernels/runner) own='attest/|kernels/runner/|kernels/simt/simt_job.h|build_info.h' outside='cuda_runtime_api.h' ;;
        kernels/attention | kernels/norm) own="attest/|kernels/device/|$1/|($operators)/" outside='' ;;
        kernels/*) own="attest/|kernels/(host|device|attention|norm)/|$1/|($operators)/" outside='' ;;
        notebooks_export/plots) own='notebooks_export/plots/' outside='' ;;
        verify/archive) own='attest/|verify/|datasets/readers/reader.h' outside='hdf5|jansson.h' ;;
        verify | verify/*) own='attest/|tensor_core/|score_counts/|verify/|datasets/|fast/|build_info.h' outside='jansson.h|gsl/' ;;
        notebooks_export) own='attest/|notebooks_export/|notebooks_export/plots/|verify/archive/(frame|distributions).h|verify/(cli/commands|result/atomic_file|result/result).h' outside='jansson.h' ;;
        *) return 1 ;;
    esac
}
posix='aio|arpa/|assert|ctype|dirent|dlfcn|errno|fcntl|fenv|float|fnmatch|getopt|inttypes|libgen|limits|linux/|locale|math|poll|pthread|sched|setjmp|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|sys/|termios|threads|time|unistd|wchar|xmmintrin|pmmintrin|immintrin'

check_file() { # file [text of it instead of the file]
    local file=$1 folder own='' outside='' bad=0 include
    folder=$(dirname "$file")
    rule "$folder" || { echo "$file: folder $folder has no line in the table of CONTRIBUTING.md"; return 1; }
    while read -r include; do
        [[ "$include" =~ ^\"($own) ]] && continue
        echo "$file: may not include $include"; bad=1
    done < <(sed -n 's/^ *# *include *\("[^"]*"\).*/\1/p' "${2:-$file}")
    while read -r include; do
        [[ "$include" =~ ^\<($posix) ]] && continue
        [[ -n "$outside" && "$include" =~ ^\<($outside) ]] && continue
        echo "$file: may not include $include"; bad=1
    done < <(sed -n 's/^ *# *include *\(<[^>]*>\).*/\1/p' "${2:-$file}")
    return $bad
}

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp); trap 'rm -f "$planted"' EXIT
    for try in 'reference/attest/status.c|"verify/result/result.h"' 'reference/fast/fast.h|"datasets/language/case.h"' 'verify/plan/plan.c|<hdf5.h>' \
               'kernels/host/any.c|"verify/result/result.h"' 'datasets/language/case.h|"verify/result/result.h"' 'notebooks_export/plots/heat.c|"verify/result/result.h"' \
               'notebooks_export/csv.c|"verify/judge/judge.h"' 'notebooks_export/csv.c|<hdf5.h>' 'verify/plan/plan.c|"notebooks_export/export.h"'; do
        echo "#include ${try#*|}" > "$planted"
        if check_file "${try%%|*}" "$planted" > /dev/null; then echo "layers: did not see ${try#*|} in ${try%%|*}"; exit 1; fi
    done
    exit 0
fi
failed=0
while read -r file; do check_file "$file" || failed=1; done < <(git ls-files 'reference/*.[ch]' 'datasets/*.[ch]' 'kernels/*.[ch]' 'kernels/*.cu' 'verify/*.[ch]' 'notebooks_export/*.[ch]')
exit $failed
