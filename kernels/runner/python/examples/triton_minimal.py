"""A verdict on a small kernel in Triton, and its time: fifteen lines beside the kernel and its launch. `triton_softmax.py` is one for all
requests at once. SPDX-License-Identifier: Apache-2.0

    attest verify 'softmax_prefill/*' --runner 'python3 triton_minimal.py'     # TRITON_INTERPRET=1: on the CPU, in f16
    attest bench 'softmax_prefill/*' --runner 'python3 triton_minimal.py' --peer 'python3 ../peers/torch_peers.py' --case '... b=1 ...'"""
import torch
import triton
import triton.language as tl

from attest_runner import kernel, serve, requests, torch_of, Unsupported
from attest_runner_cuda import time_cuda


@triton.jit
def attend(q, k, v, o, lse, sq, sk, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):  # of [head, row, D], causal
    row, c = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    at_row = tl.program_id(1) * sq + row
    at_q = at_row[:, None] * D + c[None, :]
    query = tl.load(q + at_q, mask=(row < sq)[:, None], other=0.0)
    top, total, acc = tl.full([M], -float("inf"), tl.float32), tl.zeros([M], tl.float32), tl.zeros([M, D], tl.float32)
    for begin in range(0, sk, N):
        key = begin + tl.arange(0, N)
        at = tl.program_id(1) * sk * D + key[:, None] * D + c[None, :]
        inside = (key < sk)[:, None]
        s = tl.dot(query, tl.trans(tl.load(k + at, mask=inside, other=0.0))) * scale
        s = tl.where((key < sk)[None, :] & (key[None, :] <= row[:, None] + sk - sq), s, -float("inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        base = tl.where(higher == -float("inf"), 0.0, higher)  # no key so far: inf - inf is NaN
        p, shrink = tl.exp(s - base[:, None]), tl.exp(top - base)
        total, top = total * shrink + tl.sum(p, 1), higher
        acc = tl.dot(p.to(v.dtype.element_ty), tl.load(v + at, mask=inside, other=0.0), acc * shrink[:, None])
    some = total != 0.0
    tl.store(o + at_q, (acc / tl.where(some, total, 1.0)[:, None]).to(o.dtype.element_ty), mask=(row < sq)[:, None])
    tl.store(lse + at_row, tl.where(some, top + tl.log(total), -float("inf")), mask=row < sq)


def attention(q, k, v, scale):
    """o and lse of q, k and v [head, row, channel], of which the last query sees all keys."""
    o, lse = torch.empty_like(q), torch.empty(q.shape[:2], device=q.device)
    attend[triton.cdiv(q.shape[1], 64), q.shape[0]](q, k, v, o, lse, q.shape[1], k.shape[1], scale, D=q.shape[2], M=64, N=32)
    return o, lse


@kernel("softmax_prefill", dtypes="f16 bf16", numerics="free_order=1 exp=ex2_approx p=input")
def minimal(job, *, scale, causal, bench=None):
    if not causal or job.size["d"] not in (64, 128) or (bench and job.size["b"] != 1):
        raise Unsupported("causal, d=64 and d=128 alone, and timed with one request")
    for r in requests(job):
        on = "cuda" if torch.cuda.is_available() else "cpu"
        inputs = [torch_of(t).to(on).transpose(0, 1).repeat_interleave(n, 0).contiguous() for t, n in ((r.q, 1), (r.k, r.group), (r.v, r.group))]
        write = lambda out, r=r: (torch_of(r.o).copy_(out[0].transpose(0, 1)), torch_of(r.lse).copy_(out[1].T))  # pylint: disable=unnecessary-lambda-assignment
        if bench:
            return time_cuda(lambda *x: attention(*x, scale), inputs, bench, write)
        write(attention(*inputs, scale))
    return None


serve()
