"""The first heads of recorded activations, for tests that record them often.
SPDX-License-Identifier: Apache-2.0

    python3 few_heads.py IN.safetensors OUT.safetensors HEADS

Needs numpy.
"""
import re
import sys

from drift_captures import read, write

source, target, heads = sys.argv[1:]
write(target, {name: x[:, :int(heads)] if re.fullmatch(r"layers\.\d+\.[qkv]", name) else x
               for name, x in read(source).items()})
