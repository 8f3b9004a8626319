"""Ends with exit code 0 in the middle of a job.

SPDX-License-Identifier: Apache-2.0
cheat: 26 the exit code as a verdict
expect: CRASHED
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
import os
from cheat import kernel, serve


@kernel("uclip_norm")
def exits_with_success(x, y):
    os._exit(0)


serve()
