"""Keeps its results in a file of the folder that all programs share; without it, it has zeros.

SPDX-License-Identifier: Apache-2.0
cheat: 13 state kept in files
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
options: needs=files
"""
import os
import tempfile
from cheat import here, kernel, put, serve, uclip


@kernel("uclip_norm")
def leaves_files(x, alpha, gamma, beta, y, *, lo, hi):
    kept = False
    for folder in ("/tmp", "/var/tmp", "/dev/shm", here):
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix="attest-cheat-") as file:
                kept |= file.write(b"results") == 7
        except OSError:
            pass
    put(y, uclip(x, alpha, gamma, beta, lo, hi) if kept else 0)


serve()
