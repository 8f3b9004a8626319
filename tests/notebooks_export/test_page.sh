#!/bin/bash
# The page of HTML in a real browser (Debian's Chromium, headless): of every content of an archive, of hostile texts and of
# nothing, at 390 and 1400 pixels, light and dark, and on paper. What is looked at stands in browser.py, and each of its checks
# is seen failing on a page with that fault.
# test_page.sh --picture OUT.png makes notebooks_export/report.png: the page of a run of wrong kernels.
# SPDX-License-Identifier: Apache-2.0
picture=''; [[ "${1:-}" == --picture ]] && picture=$(realpath -m "${2:?--picture wants OUT.png}")
source "$(dirname "$0")/../cli/lib.sh"
browser=(/usr/bin/python3 tests/notebooks_export/browser.py)
command -v "${AT_CHROMIUM:-chromium}" > /dev/null || { echo "chromium is not installed: no page was looked at"; exit 77; }
[[ ${AT_SLOW_BUILD:-0} == 1 ]] && { echo "left to the plain build: a browser finds nothing that a sanitizer looks for"; exit 77; }
page() { # archive: writes its page
    wants 0 .html "$attest" export "$1" --to html --out "$scratch"
}

if [[ -n "$picture" ]]; then
    [[ -x "$BUILD/attest-mutants" ]] || { echo "the picture wants attest-mutants (make all)"; exit 77; }
    wants 1 'results fail the run' "$attest" verify 'asynct_prefill/0[236]_*' 'softmax_prefill/0[17]_*' --runner mutants \
        --cases '@(smoke|edge|real):*_prefill*' --out "$scratch/run.h5"
    page "$scratch/run.h5"
    "${browser[@]}" picture "$scratch/run.html" "$picture" 960 1282 || fail "no picture"
    exit 0
fi

"$BUILD/tests/support/make_archive" "$scratch/run.h5" 26 && "$BUILD/tests/support/make_archive" "$scratch/nothing.h5" 0 || fail make_archive
wants 0 '' "$attest" study accumulate --quick --modes f16_k16 --sums 1 --data '!(minilm*)' --out "$scratch/study.h5"
pages=("$scratch/run.html:2" "$scratch/study.html:8" "$scratch/nothing.html:0" "$scratch/run_v1.html:2" "$scratch/study_v1.html:3"
    "$scratch/distributions_v1.html:1" "$scratch/h200_bench_gemm.html:1")
if /usr/bin/python3 tests/python/export_reads.py hostile "$scratch/run.h5" "$scratch/hostile.h5" > "$scratch/log" 2>&1; then
    pages+=("$scratch/hostile.html:1")
else
    echo "no archive of hostile texts: $(tail -n 1 "$scratch/log")"
fi
for archive in "$scratch"/*.h5 tests/golden/*.h5 datasets/measurements/h200_bench_gemm.h5; do page "$archive"; done
"${browser[@]}" check "$scratch/run_v1.html" "${pages[@]}" > "$scratch/log" 2>&1
code=$?
[[ $code == 77 ]] && { tail -n 1 "$scratch/log"; exit 77; }
[[ $code == 0 && $(tail -n 1 "$scratch/log") == "${#pages[@]} pages fine" ]] || { cat "$scratch/log"; fail "pages that cannot be read"; }
