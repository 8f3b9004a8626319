"""Computes for ever.

SPDX-License-Identifier: Apache-2.0
cheat: 26 no answer
expect: HUNG
case: uclip_norm tokens=9 channels=64 dtype=bf16
options: timeout=0.5
"""
from cheat import kernel, serve


@kernel("uclip_norm")
def hangs(x, y):
    while True:
        pass


serve()
