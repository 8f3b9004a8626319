#!/bin/bash
# Who may include whom: the table of CONTRIBUTING.md, checked on every #include of the tree. With --self-test it plants
# a forbidden include and must see it.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
operators=$(find reference -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | grep -vxE 'attest|tensor_core|special|fast|norm|gated|rotation|cache' | paste -sd'|')

sources() { git ls-files 'reference/*.[ch]' 'datasets/*.[ch]' 'kernels/*.[ch]' 'kernels/*.cu' 'verify/*.[ch]' 'notebooks_export/*.[ch]'; }

# Rooms of verify/ as a pattern of paths.
rooms() { local r=("${@/#/verify/}"); (IFS='|'; echo "${r[*]/%//}"); }

# For a folder: what its quoted includes may start with, and which <headers> beyond libc it may name.
rule() { # folder -> sets own, outside
    case "$1" in
        reference/attest) own='attest/' outside='' ;;
        reference/tensor_core) own='attest/|tensor_core/' outside='' ;;
        reference/special) own='special/' outside='' ;;
        reference/fast) own="attest/|fast/|($operators)/" outside='cblas.h' ;;
        reference/norm) own='attest/|tensor_core/|special/|norm/' outside='' ;;
        reference/gated) own='attest/|gated/' outside='' ;;
        reference/rotation) own='attest/|rotation/' outside='' ;;
        reference/cache) own='attest/|cache/' outside='' ;;
        reference/silu_mul | reference/reglu) own="attest/|special/|gated/|${1#reference/}/" outside='' ;;
        reference/rope | reference/kv_write | reference/rope_kv_write) own="attest/|rotation/|cache/|${1#reference/}/" outside='' ;;
        reference/*norm | reference/*uclip | reference/*uclip_in_place) own="attest/|norm/|${1#reference/}/" outside='' ;;
        reference/*) own="attest/|tensor_core/|special/|${1#reference/}/" outside='' ;;
        datasets/*) own='attest/|tensor_core/|datasets/' outside='gsl/|Random123/|jansson.h|zlib.h' ;;
        kernels/host) own='attest/|tensor_core/|kernels/host/|('"$operators"')/' outside='cblas.h' ;;
        kernels/device) own="attest/|kernels/device/|kernels/simt/(device|wgmma|tma|warp_roles|cluster|dependent|store_matrix|mma_f64|special)_simt.h" outside="cuda(_|.h)" ;;
        kernels/simt) own='attest/|tensor_core/|special/|kernels/simt/' outside='elfutils/|sanitizer/|type_traits' ;;
        kernels/runner) own='attest/|kernels/runner/|kernels/simt/simt_job.h|kernels/launch/launch_device.h|build_info.h' outside='cuda_runtime_api.h|gcov.h' ;;
        kernels/launch) own='attest/|kernels/launch/|kernels/runner/serve.h' outside='jansson.h|cuda.h' ;;
        kernels/launch/examples) own='none/' outside='cuda_bf16.h' ;;
        kernels/runner/examples) own='attest_launch.h|softmax_float.h|softmax_rows.cu' outside='' ;;
        kernels/attention | kernels/norm) own="attest/|kernels/device/|$1/|($operators)/" outside='' ;;
        kernels/dispatch) own='attest/|kernels/dispatch/' outside='' ;;
        kernels/gated) own="attest/|gated/|kernels/device/|$1/" outside='' ;;
        kernels/rotation) own="attest/|rotation/|kernels/(device|norm)/|$1/" outside='' ;;
        kernels/*) own="attest/|gated/|kernels/(host|device|dispatch|attention|norm|gated|rotation)/|$1/|($operators)/" outside='' ;;
        notebooks_export/plots) own='notebooks_export/plots/' outside='' ;;
        verify) own='attest/|verify/|build_info.h' outside='' ;;
        verify/cli) own="attest/|$(rooms cli)" outside='' ;;
        verify/runner) own="attest/|datasets/fill/|$(rooms runner)" outside='' ;;
        verify/result) own="attest/|$(rooms result)" outside='jansson.h' ;;
        verify/archive) own="attest/|datasets/readers/reader.h|$(rooms archive result)" outside='hdf5|jansson.h' ;;
        verify/report) own="attest/|$(rooms report result)" outside='jansson.h' ;;
        verify/plan) own="attest/|datasets/|$(rooms plan result runner)" outside='' ;;
        verify/design) own="attest/|datasets/|$(rooms design runner cli)" outside='' ;;
        verify/judge) own="attest/|datasets/|fast/|$(rooms judge plan archive result runner)" outside='gsl/' ;;
        verify/run) own="attest/|datasets/|fast/|build_info.h|$(rooms run judge plan archive result runner cli)" outside='jansson.h' ;;
        verify/commands) own="attest/|datasets/|fast/|build_info.h|$(rooms commands run judge plan report archive result runner cli)" outside='jansson.h' ;;
        verify/coverage) own="attest/|notebooks_export/(templates|plots/svg).h|$(rooms coverage run plan result runner cli)" outside='jansson.h' ;;
        verify/study | verify/study/*) own="attest/|tensor_core/|special/|datasets/|$(rooms study commands run plan archive result runner cli)" outside='jansson.h|gsl/' ;;
        verify/record) own="attest/|score_counts/|datasets/|fast/|$(rooms record commands run plan archive result runner cli)" outside='jansson.h' ;;
        verify/fit) own="attest/|datasets/|$(rooms fit plan result runner cli)" outside='jansson.h' ;;
        verify/drift) own="attest/|datasets/fill/random.h|$(rooms drift archive result cli)" outside='jansson.h|gsl/' ;;
        verify/stack) own="attest/|datasets/|$(rooms stack commands run judge plan archive result runner cli)" outside='jansson.h' ;;
        verify/bench) own="attest/|score_counts/|datasets/|fast/|$(rooms bench study record commands run judge plan archive result runner cli)" outside='jansson.h|gsl/' ;;
        verify/certify) own="attest/|datasets/|$(rooms certify commands run judge plan report archive result runner cli)" outside='jansson.h' ;;
        verify/reproduce) own="attest/|datasets/|build_info.h|$(rooms reproduce bench study commands plan archive result runner cli)" outside='jansson.h' ;;
        notebooks_export) own='attest/|notebooks_export/|notebooks_export/plots/|verify/archive/(frame|distributions).h|verify/(cli/(commands|progress)|result/atomic_file|result/result).h' outside='jansson.h' ;;
        *) return 1 ;;
    esac
}
posix='aio|arpa/|assert|ctype|dirent|dlfcn|errno|fcntl|fenv|float|fnmatch|getopt|glob|inttypes|libgen|limits|linux/|locale|math|poll|pthread|sched|setjmp|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|sys/|termios|threads|time|unistd|wchar|xmmintrin|pmmintrin|immintrin'

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
    tried=''
    while read -r file include; do
        [[ "$file" == \#* ]] && continue
        tried+=" $(dirname "$file") "
        echo "#include $include" > "$planted"
        if check_file "$file" "$planted" > /dev/null; then echo "layers: did not see $include in $file"; exit 1; fi
    done < tests/lint/layers_planted.txt
    # Every room has had its fault; operators and families of kernels share a rule each.
    while read -r folder; do
        [[ "$folder" =~ ^reference/($operators)$ || "$folder" == kernels/* || "$tried" == *" $folder "* ]] && continue
        echo "layers: layers_planted.txt has no include for $folder"; exit 1
    done < <(sources | xargs -n 1 dirname | sort -u)
    exit 0
fi
failed=0
while read -r file; do check_file "$file" || failed=1; done < <(sources)
exit $failed
