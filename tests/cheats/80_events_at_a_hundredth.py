"""Timed by attest's own module, behind whose back PyTorch's events say a hundredth of the time.

SPDX-License-Identifier: Apache-2.0
cheat: 14 the clock
expect: IMPOSSIBLE
case: softmax_prefill b=8 h=16 hk=16 sq=512 d=64 causal=0 dtype=bf16
options: bench needs=cuda
"""
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda, torch

elapsed_time = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda self, end: elapsed_time(self, end) / 100


@kernel("softmax_prefill", numerics=PLAIN)
def events_at_a_hundredth(job, *, scale, causal, bench=None):
    given = batch(job)
    if bench:
        return time_cuda(lambda q, k, v: attend(q, k, v, scale, causal), given, bench, lambda result: put(job, result))
    return put(job, attend(*given, scale, causal))


serve_here()
