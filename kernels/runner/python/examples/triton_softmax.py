"""Attention in Triton as FlashAttention 2 walks over keys, judged and timed on a GPU. SPDX-License-Identifier: Apache-2.0

    attest bench 'softmax_prefill/*' --runner 'python3 triton_softmax.py' --peer 'python3 ../peers/torch_peers.py'

One launch for all requests, whose lengths may differ. P is rounded to the inputs' format. A key that a query must not
see has the weight 0, and 0 times a NaN of its v is NaN: attest says so on `nonfinite` cases. `bench` is there for times alone."""
import sys

from attest_runner import kernel, serve, torch_of, Unsupported

try:
    import torch
    import triton
    import triton.language as tl
    from attest_runner_cuda import time_cuda
except ImportError as missing:
    sys.exit("SKIPPED: triton_softmax.py wants PyTorch and Triton: %s" % missing)
INTERPRETED = triton.knobs.runtime.interpret  # TRITON_INTERPRET=1: on the CPU
if not INTERPRETED and not torch.cuda.is_available():
    sys.exit("SKIPPED: triton_softmax.py wants a CUDA device; PyTorch %s sees none" % torch.__version__)


@triton.jit
def attend(q, k, v, query_start, seq_lens, key_start, o, lse, scale, h, hk, d, CAUSAL: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
           N: tl.constexpr):
    request, head = tl.program_id(1), tl.program_id(2)
    first, keys, k_row = tl.load(query_start + request), tl.load(seq_lens + request), tl.load(key_start + request)
    queries = tl.load(query_start + request + 1) - first
    row, c, n = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    if tl.program_id(0) * M < queries:
        at_q = ((first + row).to(tl.int64)[:, None] * h + head) * d + c[None, :]
        there = (row < queries)[:, None] & (c < d)[None, :]
        query = tl.load(q + at_q, mask=there, other=0.0)
        end, shift = keys, keys - queries
        if CAUSAL:
            end = tl.minimum(keys, (tl.program_id(0) + 1) * M + shift)
        top = tl.full([M], -float("inf"), tl.float32)
        weights, sums = tl.zeros([M], tl.float32), tl.zeros([M, D], tl.float32)
        for begin in range(0, end, N):
            key = begin + n
            at = ((k_row + key).to(tl.int64)[:, None] * hk + head // (h // hk)) * d + c[None, :]
            inside = (key < keys)[:, None] & (c < d)[None, :]
            score = tl.dot(query, tl.trans(tl.load(k + at, mask=inside, other=0.0)), input_precision="ieee") * scale
            seen = (key < keys)[None, :]
            if CAUSAL:
                seen = seen & (key[None, :] <= row[:, None] + shift)
            score = tl.where(seen, score, -float("inf"))
            higher = tl.maximum(top, tl.max(score, 1))
            from_zero = tl.where(higher == -float("inf"), 0.0, higher)  # a row without keys so far: inf - inf is NaN
            p, factor = tl.exp(score - from_zero[:, None]), tl.exp(top - from_zero)
            weights = weights * factor + tl.sum(p, 1)
            sums = tl.dot(p.to(v.dtype.element_ty), tl.load(v + at, mask=inside, other=0.0), sums * factor[:, None])
            top = higher
        some = weights != 0.0  # a query without keys: zeros, and -inf
        tl.store(o + at_q, (sums / tl.where(some, weights, 1.0)[:, None]).to(o.dtype.element_ty), mask=there)
        tl.store(lse + (first + row) * h + head, tl.where(some, top + tl.log(weights), -float("inf")), mask=row < queries)


def triton_flash(job, q, query_start, seq_lens, o, lse, *, scale, causal, k=None, v=None, key_start=None, bench=None):
    """online softmax, 64 queries a program"""
    if key_start is None:
        raise Unsupported("keys in pages")
    device, size = "cpu" if INTERPRETED else "cuda", job.size
    if size["d"] > 256:
        raise Unsupported("d=%d: wanted up to 256" % size["d"])
    if k is None:  # of a batch without a key there is no k and no v
        k = v = q[:0, :size["hk"]]
    q, k, v, starts, lengths, slots = (torch_of(t).to(device) for t in (q, k, v, query_start, seq_lens, key_start))
    longest = max((starts[1:] - starts[:-1]).tolist(), default=0)
    grid = (triton.cdiv(longest, 64), len(lengths), size["h"])

    def launch(q, k, v):
        out = torch.empty_like(q), torch.empty(q.shape[:2], dtype=torch.float32, device=device)
        attend[grid](q, k, v, starts, lengths, slots, *out, scale, size["h"], size["hk"], size["d"], CAUSAL=bool(causal),
                     D=max(16, triton.next_power_of_2(size["d"])), M=64, N=64)
        return out

    def put(result):
        torch_of(o).copy_(result[0])
        torch_of(lse).copy_(result[1])

    if bench:
        return time_cuda(launch, (q, k, v), bench, put)
    if longest:
        put(launch(q, k, v))
    return None


for dtype in ("f16",) if INTERPRETED else ("f16", "bf16"):  # the interpreter multiplies bf16 by its codes
    kernel("softmax_prefill", "free_order=1 exp=ex2_approx lse=lg2_approx p=" + dtype,
           variant="01_triton_" + dtype, dtypes=dtype)(triton_flash)
serve(device="Triton %s on %s" % (triton.__version__, "a CPU, interpreted" if INTERPRETED else torch.cuda.get_device_name()))
