"""Peers on a GPU: Lightning's decode step in Triton, masked and padded. SPDX-License-Identifier: Apache-2.0

    attest bench 'lightning_decode/*' --peer 'python3 kernels/runner/python/peers/triton_peers.py'

A block of Triton has sides that are powers of two. Heads of 96 channels are either loaded as 128 behind masks, or kept as 128 in
memory, padded with zeros, which is 1.8 times the bytes and is not in the time. A program has the whole state of a head in registers.
The state is read from one tensor and written to another, the same bytes as in place, so that a replay begins where the last one did.
Triton is told not to contract products and sums, so that the state's arithmetic is one that can be declared; how it adds up an
answer is its own affair."""
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from attest_runner import kernel, serve, torch_of, Unsupported  # pylint: disable=wrong-import-position

try:
    import torch
    import triton
    import triton.language as tl
    from attest_runner_cuda import time_cuda
except ImportError as missing:
    sys.exit("SKIPPED: triton_peers.py wants PyTorch and Triton: %s" % missing)
if not torch.cuda.is_available():
    sys.exit("SKIPPED: triton_peers.py wants a CUDA device; PyTorch %s sees none" % torch.__version__)

MAX_STATE = 1 << 15  # elements of a state that the registers of 16 warps hold


@triton.jit
def lightning(q, k, v, slope, state_in, state_out, o, h, d, e, steps, MASKED: tl.constexpr, ROUNDED: tl.constexpr, D: tl.constexpr,
              E: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    c, j = tl.arange(0, D), tl.arange(0, E)
    at = head * d * e + c[:, None] * e + j[None, :]
    inside = (c < d)[:, None] & (j < e)[None, :]
    state = tl.load(state_in + at, mask=inside, other=0.0) if MASKED else tl.load(state_in + at)
    decay = tl.exp(-tl.load(slope + head % h))
    for step in range(steps):
        row = head * steps + step
        if MASKED:
            query = tl.load(q + row * d + c, mask=c < d, other=0.0).to(tl.float32)
            key = tl.load(k + row * d + c, mask=c < d, other=0.0).to(tl.float32)
            value = tl.load(v + row * e + j, mask=j < e, other=0.0).to(tl.float32)
        else:
            query = tl.load(q + row * d + c).to(tl.float32)
            key = tl.load(k + row * d + c).to(tl.float32)
            value = tl.load(v + row * e + j).to(tl.float32)
        product = key[:, None] * value[None, :]
        if ROUNDED:
            product = product.to(q.dtype.element_ty).to(tl.float32)
        state = state * decay + product
        answer = tl.sum(query[:, None] * state, 0).to(o.dtype.element_ty)
        if MASKED:
            tl.store(o + row * e + j, answer, mask=j < e)
        else:
            tl.store(o + row * e + j, answer)
    if MASKED:
        tl.store(state_out + at, state, mask=inside)
    else:
        tl.store(state_out + at, state)


def power(n):
    """The least power of two from n on, and from 16."""
    return max(16, triton.next_power_of_2(n))


def padded(x, *sides):
    """A copy with zeros behind, so that its last dimensions have these sides."""
    out = x.new_zeros(x.shape[:len(x.shape) - len(sides)] + sides)
    out[tuple(slice(n) for n in x.shape)] = x
    return out


def decode(masked):
    """The function of one of both."""

    def run(q, k, v, slope, kv, o, *, d, e, h, steps, outer, bench=None):
        inner, outer_side = power(d), power(e)
        if inner * outer_side > MAX_STATE:
            raise Unsupported("a state of %d x %d in registers: wanted up to %d elements" % (inner, outer_side, MAX_STATE))
        heads = q.shape[0] * h
        if heads == 0:
            if bench:
                raise Unsupported("nothing to time")
            return None
        given = [torch_of(x).cuda() for x in (q, k, v, slope, kv)]
        side_d, side_e = (d, e) if masked else (inner, outer_side)
        if not masked:
            given = [padded(given[0], side_d), padded(given[1], side_d), padded(given[2], side_e), given[3],
                     padded(given[4], side_d, side_e)]

        def launch(q, k, v, slope, state):
            after, answer = torch.empty_like(state), v.new_empty(v.shape)
            lightning[(heads,)](q, k, v, slope, state, after, answer, h, side_d, side_e, steps, masked, bool(outer), inner, outer_side,
                                num_warps=16 if inner * outer_side > 1 << 13 else 4, enable_fp_fusion=False)
            return after, answer

        def take(result):
            torch_of(kv).copy_(result[0][..., :d, :e])
            torch_of(o).copy_(result[1][..., :e])

        if bench:
            return time_cuda(launch, given, bench, take)
        take(launch(*given))
        return None

    return run


for name, summary in (("90_triton_masked", "loads as many channels as a power of two behind masks"),
                      ("90_triton_padded", "channels padded to a power of two in memory, which is not in the time")):
    kernel("lightning_decode", variant=name, dtypes="bf16 f16 f32", numerics="free_order=1 qk_unit=f32 exp=ex2_approx fir_fma=0",
           source="Triton " + triton.__version__, summary="a program of Triton a head; " + summary)(decode(name == "90_triton_masked"))
serve(device="%s, PyTorch %s, Triton %s" % (torch.cuda.get_device_name(), torch.__version__, triton.__version__))
