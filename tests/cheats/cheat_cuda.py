"""What the cheats on a GPU and their honest twins share: the right values on the device, its name, a kernel of one's own.

SPDX-License-Identifier: Apache-2.0
"""
import sys

from cheat import kernel, requests, serve  # noqa: F401
from attest_runner import torch_of

import torch
from attest_runner_cuda import time_cuda  # noqa: F401

if not torch.cuda.is_available():
    sys.exit("this cheat wants a CUDA device; PyTorch %s sees none" % torch.__version__)
torch.zeros(1, device="cuda")  # there is a context from here on
NAME = "%s, PyTorch %s" % (torch.cuda.get_device_name(), torch.__version__)
PLAIN = "free_order=1"  # of f32, which the doubles below are well within


def there(*tensors):
    """Tensors of a job on the device, in memory of their own."""
    return [torch_of(t).cuda() for t in tensors]


def uclip(x, alpha, gamma, beta, lo, hi):
    """The right values of uclip_norm."""
    return (gamma.double() * torch.clamp(alpha.double() * x.double(), lo, hi) + beta.double()).to(x.dtype)


def batch(job):
    """q, k and v of requests of equal lengths, [request, head, row, channel], on the device."""
    every = list(requests(job))
    return [torch.stack([torch_of(getattr(r, name)) for r in every]).cuda().transpose(1, 2).contiguous() for name in "qkv"]


def attend(q, k, v, scale, causal):
    """The right o and lse of softmax attention, in double."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1).double() for t in (k, v))
    s = scale * torch.matmul(q.double(), k.transpose(2, 3))
    if causal:
        s = s.masked_fill(torch.ones(s.shape[2:], dtype=torch.bool, device=s.device).triu(1 + s.shape[3] - s.shape[2]), -torch.inf)
    lse = torch.logsumexp(s, 3)
    return torch.matmul(torch.exp(s - lse[..., None]), v).to(q.dtype), lse.float()


def put(job, result):
    """o and lse of a batch to where its requests have theirs."""
    torch.cuda.synchronize()
    o, lse = (t.transpose(1, 2).cpu() for t in result)
    for i, r in enumerate(requests(job)):
        torch_of(r.o).copy_(o[i])
        torch_of(r.lse).copy_(lse[i])


def compiled(source, name):
    """A kernel of CUDA C++: f(grid=, block=, args=, shared_mem=), of tensors and ints; what a float becomes, PyTorch changed."""
    if not hasattr(torch.cuda, "_compile_kernel"):
        sys.exit("this cheat wants a PyTorch with torch.cuda._compile_kernel; there is %s" % torch.__version__)
    return torch.cuda._compile_kernel(source, name)  # pylint: disable=protected-access


def serve_here():
    """serve(), when libraries have started: a job's time is no place for that."""
    warm = torch.ones(1, 1, 16, 16, dtype=torch.bfloat16).cuda()
    attend(warm, warm, warm, 1.0, 1)
    torch.cuda.synchronize()
    serve(device=NAME)
