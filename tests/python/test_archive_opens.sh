#!/bin/sh
# Archives written by attest open in h5py, xarray and pandas, and its JUnit file in junitparser.
# SPDX-License-Identifier: Apache-2.0
set -eu
: "${BUILD:?the build folder}"
here=$(dirname "$0")
python=${AT_PYTHON:-/usr/bin/python3}
if ! command -v "$python" >/dev/null; then
    echo "skipped: no $python"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for n in 0 26 600; do
    "$BUILD/tests/support/make_archive" "$folder/run_$n.h5" "$n" "$folder/run_$n.xml"
done
"$python" "$here/archive_opens.py" "$folder"
