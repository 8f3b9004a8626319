"""Takes its times by Python's clocks, when the device has ended, and has made them go half as fast.

SPDX-License-Identifier: Apache-2.0
cheat: 14 the clock
expect: IMPOSSIBLE
case: softmax_prefill b=8 h=16 hk=16 sq=512 d=64 causal=0 dtype=bf16
options: bench needs=cuda
"""
import time
from cheat import replayed
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, torch

for name in ("time", "monotonic", "perf_counter"):
    setattr(time, name, lambda clock=getattr(time, name): clock() / 2)


@kernel("softmax_prefill", numerics=PLAIN)
def clocks_of_python_at_half(job, *, scale, causal, bench=None):
    given = batch(job)

    def launch():
        put_later[:] = attend(*given, scale, causal)
        torch.cuda.synchronize()

    put_later = []
    launch()
    times = replayed(launch, bench, time.perf_counter) if bench else None
    put(job, put_later)
    return times


serve_here()
