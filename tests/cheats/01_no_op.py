"""Returns at once and leaves its output as it was.

SPDX-License-Identifier: Apache-2.0
cheat: 1 nothing is computed
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, serve


@kernel("uclip_norm")
def no_op(x, y):
    pass


serve()
