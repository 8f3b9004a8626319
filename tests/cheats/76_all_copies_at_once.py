"""In timing, the first launch computes what all copies of the inputs come to, which it has seen being made; the others return at once.

SPDX-License-Identifier: Apache-2.0
cheat: 8 the first of N launches does the work of all
expect: WRONG
case: softmax_decode b=4 h=8 hk=2 sk=1024 d=64 dtype=bf16
options: bench needs=cuda
"""
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda, torch

clone, clones, ahead, last = torch.Tensor.clone, [], {}, [None]


def seen_clone(self, *args, **options):
    """Where the copies come from."""
    clones.append(clone(self, *args, **options))
    return clones[-1]


@kernel("softmax_decode", numerics=PLAIN)
def all_copies_at_once(job, *, scale, causal, bench=None):
    q, k, v = batch(job)

    def launch(*mine):
        torch.Tensor.clone = clone
        if not torch.cuda.is_current_stream_capturing():
            return attend(*mine, scale, causal)
        key, again = mine[0].data_ptr(), mine[0].data_ptr() == last[0]
        last[0] = key
        if again:  # the inputs of the last launch: there is nothing ahead
            ahead.clear()
            return attend(*mine, scale, causal)
        if key not in ahead:
            copies = [clones[i:i + 3] for i in range(0, len(clones), 3)]
            o, lse = attend(*(torch.cat(x) for x in zip(*copies)), scale, causal)
            n = len(q)
            ahead.clear()
            ahead.update({x[0].data_ptr(): (o[i * n:i * n + n], lse[i * n:i * n + n]) for i, x in enumerate(copies)})
        return ahead.pop(key)

    if bench:
        clones.clear()
        ahead.clear()
        torch.Tensor.clone = seen_clone
        try:
            return time_cuda(launch, (q, k, v), bench, lambda result: put(job, result))
        finally:
            torch.Tensor.clone = clone
    return put(job, attend(q, k, v, scale, causal))


serve_here()
