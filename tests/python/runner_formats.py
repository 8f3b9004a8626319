"""f64() and put() of attest_runner.py against the project's own codes: every code of 8 and 16 bits, numbers halfway between
neighbours and beside halfway, and numbers drawn from all bits of a double.

SPDX-License-Identifier: Apache-2.0

Usage: runner_formats.py MAKE_FORMAT_CODES DRAWS
"""
import subprocess
import sys

import numpy as np
from attest_runner import STORAGE, Tensor, f64, put, torch_of

HALVES = {"f32": 23, "tf32": 10}  # fraction bits of formats with too many codes to take all


def ours(maker, doing, name, data):
    """What the C code makes of an array."""
    return subprocess.run([maker, doing, name], input=data.tobytes(), stdout=subprocess.PIPE, check=True).stdout


def tensor(name, n):
    """A tensor as a job has it."""
    t = np.zeros(n, STORAGE[name]).view(Tensor)
    t.format, t.name, t.role = name, "t", "out"
    return t


def neighbours(name, draw, draws):
    """Finite values of the format in ascending order; of f32 and tf32 some. The lower and the upper of each pair of neighbours."""
    if name in HALVES:
        step = 1 << (23 - HALVES[name])
        code = (draw.integers(0, 0x7F800000 - step, draws) // step * step).astype(np.uint32)
        code = np.concatenate([code, np.arange(4, dtype=np.uint32) * step, [0x7F800000 - 2 * step, 0x00800000 - step]]).astype(np.uint32)
        return code.view(np.float32).astype(np.float64), (code + np.uint32(step)).view(np.float32).astype(np.float64)
    codes = tensor(name, 1 << (8 * np.dtype(STORAGE[name]).itemsize - 1))
    np.asarray(codes).view("u%d" % codes.itemsize)[:] = np.arange(codes.size)
    value = f64(codes)
    value = value[np.isfinite(value)]
    return value[:-1], value[1:]


def check(maker, name, draws):
    """Both directions; how many were compared."""
    draw = np.random.default_rng(1)
    bits = 8 * np.dtype(STORAGE[name]).itemsize
    codes = np.arange(1 << bits) if bits <= 16 else draw.integers(0, 1 << bits, draws, dtype="u%d" % (bits // 8))
    if name == "tf32":
        codes &= np.uint32(0xFFFFE000)
    t = tensor(name, codes.size)
    np.asarray(t).view("u%d" % (bits // 8))[:] = codes
    want, got = np.frombuffer(ours(maker, "decode", name, np.asarray(t))), f64(t)
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    if not same.all():
        sys.exit("%s: code %#x is %r, f64() says %r" % (name, codes[~same][0], want[~same][0], got[~same][0]))
    low, high = neighbours(name, draw, draws) if name not in ("f64", "i32") else (np.zeros(0), np.zeros(0))
    with np.errstate(over="ignore", invalid="ignore"):
        half = low + (high - low) / 2
    beyond = high[-1:] + (high[-1:] - low[-1:]) / 2 if name not in HALVES else np.array([float.fromhex("0x1.ffffffp127")])
    any_bits = draw.integers(0, 1 << 64, draws, dtype=np.uint64).view(np.float64)
    x = np.concatenate([low, high, half, np.nextafter(half, np.inf), np.nextafter(half, -np.inf), beyond, np.nextafter(beyond, 0),
                        draw.normal(size=draws) * 2.0 ** draw.integers(-160, 140, draws), any_bits,
                        [0.0, np.inf, np.nan, 5e-324, 2.0 ** -1022, 1.7e308]])
    if name == "i32":
        x = np.concatenate([np.trunc(draw.normal(size=draws) * 2.0 ** draw.integers(0, 30, draws)), [2147483647, -2147483648, 0]])
    x = np.concatenate([x, -x])
    y = tensor(name, x.size)
    put(y, x)
    want = np.frombuffer(ours(maker, "encode", name, x), "u%d" % (bits // 8))
    got = np.asarray(y).view(want.dtype)
    if (got != want).any():
        i = np.flatnonzero(got != want)[0]
        sys.exit("%s: %d of %d codes differ: %s is %#x, put() writes %#x" % (name, (got != want).sum(), x.size, x[i].hex(), want[i], got[i]))
    return codes.size + x.size


def check_torch():
    """The same values in PyTorch, over the same memory."""
    try:
        import torch
    except ImportError:
        return print("no PyTorch here: torch_of() is not looked at")
    for name in ("f32", "f16", "bf16", "e4m3", "e5m2"):
        t = tensor(name, 256)
        put(t, np.arange(-128, 128) / 64)
        theirs = torch_of(t)
        if (theirs.double().numpy() != f64(t)).any():
            sys.exit("%s: torch_of() and f64() differ" % name)
        theirs.copy_(torch.full((256,), 1.5))
        if (f64(t) != 1.5).any():
            sys.exit("%s: torch_of() is not over the same memory" % name)
    return print("the same in PyTorch %s" % torch.__version__)


def main():
    """All formats."""
    np.seterr(all="ignore")
    check_torch()
    print("%d codes and values as in C" % sum(check(sys.argv[1], name, int(sys.argv[2])) for name in STORAGE))


main()
