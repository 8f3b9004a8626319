#!/bin/bash
# What attest needs from the system: reports it (doctor), installs what is missing on Debian/Ubuntu (install
# build|test|lint), or only checks (check build).
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

# group | how it is found | Debian package | what it is for, and what its absence costs
table='build|cmd:gcc|gcc|C compiler; without it nothing is built (clang works too: CC=clang)
build|cmd:pkg-config|pkg-config|finds the libraries
build|pc:openblas|libopenblas-dev|fast tier and host baselines
build|pc:hdf5|libhdf5-dev|the archive
build|pc:gsl|libgsl-dev|distributions and statistics
build|pc:jansson|libjansson-dev|JSON: journal, reports, safetensors headers
build|pc:zlib|zlib1g-dev|members of npz files
build|inc:Random123/philox.h|librandom123-dev|counter-based inputs
build|cmd:g++|g++|compiles the kernels for the SIMT machine
build|inc:elfutils/libdwfl.h|libdw-dev|source lines of what the SIMT machine finds
build|cmd:patch|patch|builds the mutants of the selftest
build|cmd:objcopy|binutils|builds the mutants of the selftest
test|inc:cmocka.h|libcmocka-dev|unit tests
test|inc:mpfr.h|libmpfr-dev|second oracles
test|cmd:python3|python3|the foreign test runner; its tests are skipped without it
test|py:numpy|python3-numpy|runners of Python functions; their test is skipped without it
test|py:h5py|python3-h5py|proves that archives open in h5py
test|py:xarray|python3-xarray|proves that archives open in xarray
test|py:h5netcdf|python3-h5netcdf|xarray engine h5netcdf
test|py:netCDF4|python3-netcdf4|xarray engine netcdf4
test|py:pandas|python3-pandas|proves that columns become data frames
test|py:nbclient|python3-nbclient|runs notebooks; without it they are written, but not run
test|py:ipykernel|python3-ipykernel|what notebooks run in
test|py:matplotlib|python3-matplotlib|draws what notebooks show
test|py:junitparser|python3-junitparser|reads our JUnit XML
test|cmd:xmllint|libxml2-utils|validates our JUnit XML
test|py:yaml|python3-yaml|reads what make/cluster says to GitHub and Kubernetes
test|cmd:sbatch|slurm-wlm|a Slurm that a test starts on the loopback; arrays of shards are not tried without it
test|cmd:chromium|chromium|looks at the pages of attest export; without it they are written, but not looked at
lint|cmd:clang|clang|second compiler
lint|cmd:clang-tidy|clang-tidy|static analysis
lint|cmd:clang-format|clang-format|layout of the sources
lint|cmd:shellcheck|shellcheck|the scripts
lint|cmd:gcov|gcc|coverage
gpu|cmd:nvcc|(CUDA toolkit)|attest-cuda; without it kernels are judged on the CPU only'

found() { # how
    case "$1" in
        cmd:gcc) command -v "${CC:-gcc}" > /dev/null || command -v gcc > /dev/null || command -v clang > /dev/null ;;
        cmd:*) command -v "${1#cmd:}" > /dev/null ;;
        pc:*) command -v pkg-config > /dev/null && pkg-config --exists "${1#pc:}" ;;
        inc:*) [[ -e "/usr/include/${1#inc:}" || -e "/usr/local/include/${1#inc:}" ]] ;;
        py:*) # found, not imported: that takes a second for all of them
            [[ -x /usr/bin/python3 ]] && /usr/bin/python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('${1#py:}'))" ;;
    esac
}

missing() { # groups... : lines of "package|purpose"
    local wanted=" $* "
    while IFS='|' read -r group how package purpose; do
        [[ "$wanted" == *" $group "* ]] || continue
        found "$how" || echo "$package|$purpose"
    done <<< "$table"
}

doctor() {
    while IFS='|' read -r group how package purpose; do
        if found "$how"; then state=found; else state=MISSING; fi
        printf '%-8s %-6s %-24s %-22s %s\n' "$state" "$group" "${how#*:}" "$package" "$purpose"
    done <<< "$table"
}

install_missing() { # groups...
    local packages
    packages=$(missing "$@" | cut -d'|' -f1 | sort -u | tr '\n' ' ')
    [[ -z "${packages// /}" ]] && return 0
    if ! command -v apt-get > /dev/null; then
        echo "attest needs these packages, and this system has no apt-get to bring them: $packages" >&2
        return 3
    fi
    local as=()
    if [[ $(id -u) != 0 ]]; then
        if ! command -v sudo > /dev/null; then
            echo "attest needs these packages; as root run: apt-get install $packages" >&2
            return 3
        fi
        as=(sudo)
        echo "attest needs these packages and asks sudo to install them: $packages" >&2
    else
        echo "installing: $packages" >&2
    fi
    local log; log=$(mktemp)
    if ! { "${as[@]}" apt-get update -qq && "${as[@]}" env DEBIAN_FRONTEND=noninteractive \
               apt-get install -y -qq --no-install-recommends $packages; } > "$log" 2>&1; then
        tail -n 5 "$log" >&2; rm -f "$log"
        echo "apt-get could not install: $packages" >&2
        return 3
    fi
    rm -f "$log"
}

case "${1:-}" in
    doctor) doctor ;;
    install)
        shift
        case "${1:-all}" in
            build) install_missing build ;;
            test) install_missing build test ;;
            lint) install_missing build test lint ;;
            all) install_missing build test lint ;;
            *) echo "dependencies.sh: unknown group $1" >&2; exit 2 ;;
        esac ;;
    check)
        lines=$(missing "${2:-build}")
        if [[ -n "$lines" ]]; then
            echo "missing (make doctor tells more; make deps installs):" >&2
            sed 's/^\([^|]*\)|\(.*\)/  \1: \2/' <<< "$lines" >&2
            exit 3
        fi ;;
    *) echo "usage: dependencies.sh doctor | install build|test|lint | check build" >&2; exit 2 ;;
esac
