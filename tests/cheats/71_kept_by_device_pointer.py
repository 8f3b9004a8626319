"""Keeps each result under the device pointers and the versions of its inputs, which lie where they always lie and count no copy.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=f32
options: timeout=60 needs=cuda
"""
from cheat_cuda import kernel, serve_here, torch_of, uclip

buffers, kept = {}, {}


def on_device(t):
    """In a buffer of its own for each name and shape; through .data, a copy does not count."""
    key = t.name, t.shape
    if key not in buffers:
        buffers[key] = torch_of(t).cuda()
    buffers[key].data.copy_(torch_of(t))
    return buffers[key]


@kernel("uclip_norm")
def kept_by_device_pointer(x, alpha, gamma, beta, y, *, lo, hi):
    given = [on_device(t) for t in (x, alpha, gamma, beta)]
    key = tuple((t.data_ptr(), t._version) for t in given) + (lo, hi)
    if key not in kept:
        kept[key] = uclip(*given, lo, hi)
    torch_of(y).copy_(kept[key])


serve_here()
