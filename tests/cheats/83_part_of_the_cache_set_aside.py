"""Sets a part of the cache aside for lines that are to persist, where its inputs outlive what is to clear it; without, it has zeros.

SPDX-License-Identifier: Apache-2.0
cheat: 16 inputs kept in the cache
expect: WRONG
case: softmax_decode b=4 h=8 hk=2 sk=1024 d=64 dtype=bf16
options: bench needs=cuda
"""
import ctypes
from cheat_cuda import PLAIN, attend, batch, kernel, put, serve_here, time_cuda, torch

driver, PERSISTING_L2_CACHE_SIZE = ctypes.CDLL("libcuda.so.1"), 6


def set_aside():
    """Bytes."""
    size = ctypes.c_size_t()
    code = driver.cuCtxGetLimit(ctypes.byref(size), PERSISTING_L2_CACHE_SIZE)
    if code:
        raise OSError("cuCtxGetLimit: %d" % code)
    return size.value


@kernel("softmax_decode", numerics=PLAIN)
def part_of_the_cache_set_aside(job, *, scale, causal, bench=None):
    given = batch(job)

    def take(result):
        put(job, [t if set_aside() else torch.zeros_like(t) for t in result])

    if bench:
        code = driver.cuCtxSetLimit(PERSISTING_L2_CACHE_SIZE, ctypes.c_size_t(16 << 20))
        if code or not set_aside():
            raise OSError("nothing can be set aside here: cuCtxSetLimit %d, %d bytes" % (code, set_aside()))
        return time_cuda(lambda q, k, v: attend(q, k, v, scale, causal), given, bench, take)
    return put(job, attend(*given, scale, causal))


serve_here()
