"""Takes the times of one stream by events, and launches on another, which it waits for when the times are taken.

SPDX-License-Identifier: Apache-2.0
cheat: 11 work beside the timed stream
expect: IMPOSSIBLE
case: softmax_prefill b=8 h=16 hk=16 sq=512 d=64 causal=0 dtype=bf16
options: bench needs=cuda
"""
from cheat import timed
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, torch

side = torch.cuda.Stream()
SHARE = 2e-5  # seconds that a launch is to have taken at least: more than the units need


@kernel("softmax_prefill", numerics=PLAIN)
def stream_not_joined(job, *, scale, causal, bench=None):
    given = batch(job)
    torch.cuda.synchronize()
    result = attend(*given, scale, causal)
    seconds = []
    for _ in range(bench or 0):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(4 + 20):
            with torch.cuda.stream(side):
                result = attend(*given, scale, causal)
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1000 / 24)
        side.synchronize()
    put(job, result)
    return timed(bench, min(max(sorted(seconds)[bench // 2], SHARE), 2 * SHARE)) if bench else None


serve_here()
