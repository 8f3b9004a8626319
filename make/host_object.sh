#!/bin/bash
# Refuses an object of nvcc whose host code calls a __device__ function, and removes it: host_object.sh SOURCE OBJECT. What nvcc
# compiles such a function to for the host is a call of exit(1), and it says nothing where host code in a template calls one: the
# runner would end without a word.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
undefined=$(nm -u "$2")
! grep -qw exit <<< "$undefined" || {
    rm -f "$2"
    echo "$1: a __device__ function is compiled for the host: it is called there, or is neither inline nor static" >&2
    exit 1
}
