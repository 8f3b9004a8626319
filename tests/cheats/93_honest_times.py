"""Right, and timed by attest's own module, long launches and short ones.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: softmax_prefill b=8 h=16 hk=16,4 sq=512,16 d=64 causal=0,1 dtype=bf16
options: bench strict needs=cuda
"""
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda


@kernel("softmax_prefill", numerics=PLAIN)
def honest_times(job, *, scale, causal, bench=None):
    given = batch(job)
    if bench:
        return time_cuda(lambda q, k, v: attend(q, k, v, scale, causal), given, bench, lambda result: put(job, result))
    return put(job, attend(*given, scale, causal))


serve_here()
