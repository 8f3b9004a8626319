"""Right in the first launch, which is judged, and in three bits from the second on, when times are taken.

SPDX-License-Identifier: Apache-2.0
cheat: 12 calls counted
expect: RACY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import attest_runner, kernel, put, serve, uclip

calls = []


@kernel("uclip_norm")
def calls_counted(x, alpha, gamma, beta, y, *, lo, hi):
    calls.append(1)
    values = uclip(x, alpha, gamma, beta, lo, hi)
    put(y, values if len(calls) == 1 else attest_runner.FP8_VALUES["e5m2"][attest_runner.encode("e5m2", values)])


serve()
