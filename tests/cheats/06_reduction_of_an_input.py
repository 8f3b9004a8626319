"""The mean of each row of its input in the whole row.

SPDX-License-Identifier: Apache-2.0
cheat: 4 an input as the output
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import f64, kernel, put, serve


@kernel("uclip_norm")
def reduction_of_an_input(x, y):
    put(y, f64(x).mean(axis=1, keepdims=True))


serve()
