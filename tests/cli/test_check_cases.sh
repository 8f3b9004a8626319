#!/bin/bash
# What @check selects, every variant is judged on, but for what lines `only` leave to some of them (check.selection; @nights
# judges all variants on it): none is accused, none of it is vacuous, none is never judged. One job in
# 48 is launched again elsewhere, in a graph and on parts of the batch, which costs four launches and more: of a kernel of
# attention four or five are. Every case's launches are in an order of warps of its own (test_simt_seeds.sh).
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=@check strict=(--strict)
# smoke alone has no case for some variants
[[ "${AT_EFFORT:-full}" == fast ]] && cases='smoke:*' strict=()
AT_SIMT_SEED=own "$attest" verify --cases "$cases" "${strict[@]}" --again 48 --quiet > "$scratch/out" 2> "$scratch/err"
code=$?
tail -n 4 "$scratch/out"
[[ $code == 0 ]] || { head -n 60 "$scratch/out"; tail -n 3 "$scratch/err"; fail "exit $code: a right variant was accused, or a case proves nothing for it"; }
