"""Launches on a stream of its own, which no graph has: it computes while it is captured, and the graph that is timed is empty.

SPDX-License-Identifier: Apache-2.0
cheat: 11 work beside the timed stream
expect: WRONG DIRTY
case: softmax_decode b=4 h=8 hk=2 sk=1024 d=64 dtype=bf16
options: bench needs=cuda
"""
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda, torch

side = torch.cuda.Stream()


@kernel("softmax_decode", numerics=PLAIN)
def work_on_another_stream(job, *, scale, causal, bench=None):
    given = batch(job)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):  # what libraries need for a stream, they have now
        right = attend(*given, scale, causal)
    side.synchronize()

    def launch(q, k, v):
        out = torch.empty_like(right[0]), torch.empty_like(right[1])
        busy = torch.zeros(1 << 22, device="cuda")  # a graph of nothing would be too fast for any device
        with torch.cuda.stream(side):
            out[0].copy_(right[0])
            out[1].copy_(right[1])
        return out + (busy,)

    if bench:
        return time_cuda(launch, given, bench, lambda result: put(job, result[:2]))
    return put(job, right)


serve_here()
