"""Kernels for attest_runner.py, right ones and one for each thing that can be wrong with one; what each must be called is in
tests/cli/test_python_runner.sh.

SPDX-License-Identifier: Apache-2.0

Usage: runner_kernels.py [TAKES]
"""
import os
import sys
import time

import numpy as np
from attest_runner import Unsupported, encode, f64, kernel, put, requests, serve


def uclip(x, alpha, gamma, beta, lo, hi):
    """The right values."""
    return f64(gamma) * np.clip(f64(alpha) * f64(x), lo, hi) + f64(beta)


@kernel("uclip_norm")
def right(x, alpha, gamma, beta, y, *, lo, hi):
    print("a word in between")
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


@kernel("uclip_norm")
def by_index(x, alpha, gamma, beta, y, *, lo, hi, tokens, size_channels, param_lo, absent=None):
    assert absent is None and param_lo == lo and x.shape == (tokens, size_channels)
    for i in range(tokens):
        y[i] = uclip(x[i], alpha, gamma, beta, lo, hi)


@kernel("uclip_norm")
def everything(**names):
    names["y"][...] = encode(names["y"].format, uclip(*(names[n] for n in ("x", "alpha", "gamma", "beta", "lo", "hi"))))


@kernel("uclip_norm")
def factor(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, 1.03 * uclip(x, alpha, gamma, beta, lo, hi))


@kernel("uclip_norm")
def one_row(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))
    y[-1] = y[0]


@kernel("uclip_norm")
def unwritten(x, alpha, gamma, beta, y, *, lo, hi):
    put(y[1:], uclip(x, alpha, gamma, beta, lo, hi)[1:])


@kernel("uclip_norm")
def past_the_end(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))
    np.lib.stride_tricks.as_strided(np.asarray(y).reshape(-1), (y.size + 1,))[y.size] = 7


@kernel("uclip_norm")
def input_written(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))
    alpha[3] = 0.5


@kernel("uclip_norm")
def raises(x, y):
    raise ValueError("a first line\nthe last line says why")


@kernel("uclip_norm")
def declines(x, y):
    raise Unsupported("not on a Friday")


@kernel("uclip_norm")
def misnamed(x, y, *, gama):
    put(y, 0)


@kernel("uclip_norm")
def unknown(x, y, *, page):
    put(y, 0)


@kernel("uclip_norm")
def no_output(x):
    pass


@kernel("uclip_norm")
def computes_with_codes(x, y):
    put(y, x * 2)


@kernel("uclip_norm", dtypes="f32 f16")
def other_formats(x, y):
    put(y, 0)


@kernel("uclip_norm")
def of_attention(y, job):
    list(requests(job))


@kernel("uclip_norm")
def exits(x, y):
    sys.stderr.write("going home\n")
    sys.stderr.flush()
    os._exit(1)


@kernel("uclip_norm")
def sleeps(x, y):
    if len(x) > 1:
        raise Unsupported("for one token")
    time.sleep(60)


@kernel("uclip_norm")
def times(x, y, *, bench=7):
    if bench is None:
        put(y, 0)
        return None
    return {"replays": bench, "copies": 4, "cold": 3e-6, "hot": 2e-6, "copy_rate": 4e12}


@kernel("uclip_norm")
def times_nothing(x, y, *, bench):
    return {"cold": 3e-6} if bench else put(y, 0)


@kernel("asynct_decode")
def one_name_twice(o, taps, size_taps, gamma):
    raise Unsupported("taps %s beside %d" % (taps.shape, size_taps))


@kernel("softmax_prefill")
def capped(job, *, scale, softcap, alibi):
    """with a softcap and ALiBi's biases"""
    slopes = f64(job.tensors["slopes"]) if alibi else np.zeros(job.size["h"])
    for r in requests(job):
        k, v = (np.repeat(f64(t), r.group, axis=1) for t in (r.k, r.v))
        s = scale * np.einsum("qhd,khd->hqk", f64(r.q), k)
        s = softcap * np.tanh(s / softcap) if softcap else s
        place = len(k) - len(r.q) + np.arange(len(r.q))
        s = s + slopes[:, None, None] * (np.arange(len(k)) - place[:, None])
        p = np.where(r.visible, np.exp(s - s.max(axis=2, keepdims=True)), 0)
        put(r.o, (np.einsum("hqk,khd->qhd", p, v) / p.sum(axis=2).T[:, :, None]))
        put(r.lse, (s.max(axis=2) + np.log(p.sum(axis=2))).T)


@kernel("softmax_prefill")
def not_capped(q, o, lse, *, scale):
    put(o, 0)


serve(takes=sys.argv[1] if len(sys.argv) > 1 else "")
