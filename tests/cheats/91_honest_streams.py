"""Half of the heads on a second stream, which waits for the first and is waited for; timed so, too.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: softmax_prefill b=2 h=8 hk=8 sq=256 d=64 causal=1 dtype=bf16
options: bench strict needs=cuda
"""
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda, torch

side = torch.cuda.Stream()


@kernel("softmax_prefill", numerics=PLAIN)
def honest_streams(job, *, scale, causal, bench=None):
    given = batch(job)

    def launch(*tensors):
        half = tensors[0].shape[1] // 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            last = attend(*(t[:, half:] for t in tensors), scale, causal)
        first = attend(*(t[:, :half] for t in tensors), scale, causal)
        torch.cuda.current_stream().wait_stream(side)
        return [torch.cat(parts, 1) for parts in zip(first, last)]

    if bench:
        return time_cuda(launch, given, bench, lambda result: put(job, result))
    return put(job, launch(*given))


serve_here()
