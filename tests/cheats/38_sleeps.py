"""Sleeps, which takes no processor time.

SPDX-License-Identifier: Apache-2.0
cheat: 26 no answer
expect: HUNG
case: uclip_norm tokens=9 channels=64 dtype=bf16
options: timeout=0.2
"""
import time
from cheat import kernel, serve


@kernel("uclip_norm")
def sleeps(x, y):
    time.sleep(3600)


serve()
