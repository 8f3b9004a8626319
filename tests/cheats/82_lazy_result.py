"""Launches nothing and returns tensors of a class that computes when somebody copies them out, which is after the times.

SPDX-License-Identifier: Apache-2.0
cheat: 10 lazy result
expect: ERROR
case: softmax_decode b=4 h=8 hk=2 sk=1024 d=64 dtype=bf16
options: bench needs=cuda
"""
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda, torch


class Lazy(torch.Tensor):
    """Has its values when it is cloned or transposed."""

    values = None

    def clone(self, *args, **options):
        return self.values().clone(*args, **options)

    def transpose(self, *dimensions):
        return self.values().transpose(*dimensions)


def lazy(like, values):
    """A Lazy of that shape."""
    made = torch.empty_like(like).as_subclass(Lazy)
    made.values = values
    return made


@kernel("softmax_decode", numerics=PLAIN)
def lazy_result(job, *, scale, causal, bench=None):
    given = batch(job)
    right = attend(*given, scale, causal)

    def launch(q, k, v):
        torch.zeros(1 << 22, device="cuda")  # a graph of nothing would be too fast for any device
        return [lazy(right[i], lambda i=i: attend(*given, scale, causal)[i]) for i in range(2)]

    if bench:
        return time_cuda(launch, given, bench, lambda result: put(job, result))
    return put(job, right)


serve_here()
