"""Peers on a GPU: cuDNN's attention and FlashAttention 2 as PyTorch has them. SPDX-License-Identifier: Apache-2.0

    attest bench 'softmax_*/*' --peer 'python3 kernels/runner/python/peers/torch_peers.py'

Requests of equal lengths are one batch, which is what is timed; others are computed one by one and not timed. Keys in pages are
gathered before: these calls take contiguous keys alone. Both libraries round P to the inputs' format, so each format has a
declaration of its own."""
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from attest_runner import kernel, serve, requests, torch_of, Unsupported  # pylint: disable=wrong-import-position

try:
    import torch
    from attest_runner_cuda import time_cuda
    aten = torch.ops.aten
    CALLS = {"cudnn": aten._scaled_dot_product_cudnn_attention.default, "flash": aten._scaled_dot_product_flash_attention.default}
except (ImportError, AttributeError) as missing:
    sys.exit("SKIPPED: torch_peers.py wants PyTorch 2.5 or later: %s" % missing)
if not torch.cuda.is_available():
    sys.exit("SKIPPED: torch_peers.py wants a CUDA device; PyTorch %s sees none" % torch.__version__)


def cudnn(q, k, v, causal, scale):
    """o [b, h, sq, d] and the log-sum-exp."""
    return CALLS["cudnn"](q, k, v, None, True, 0.0, causal, False, scale=scale)[:2]


def flash(q, k, v, causal, scale):
    """The same."""
    return CALLS["flash"](q, k, v, 0.0, causal, False, scale=scale)[:2]


def checked(library, *inputs):
    """A library's refusal is one of the problem; an error of the device may stay with the process, which then ends."""
    try:
        result = library(*inputs)
        torch.cuda.synchronize()
        return result
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        text = str(error).split("\n", maxsplit=1)[0]
        if "CUDA error" in text:
            print("torch_peers: " + text, file=sys.stderr, flush=True)
            os._exit(70)
        raise Unsupported("%s: %s" % (library.__name__, text)) from error


def batches(job):
    """Lists of requests that are one batch: all of them where their lengths are equal, else each by itself."""
    every = [r for r in requests(job) if len(r.q)]
    alike = len({(len(r.q), len(r.k)) for r in every}) == 1
    return [every] if alike else [[r] for r in every]


def inputs_of(batch, causal):
    """q [b, h, sq, d], k and v [b, hk, sk, d] on the device, in memory [request, row, head, channel] as they lie in a cache, and
    whether the library is to mask. Its mask of rows and columns that differ in number is not the one wanted (the last query sees
    all keys), but one query sees them all without a mask."""
    queries, keys = len(batch[0].q), len(batch[0].k)
    if not batch[0].seen.all():
        raise Unsupported("a query without keys has no answer here")
    if causal and queries not in (1, keys):
        raise Unsupported("causal with %d queries and %d keys: the library's mask is for as many of both, or one query" % (queries, keys))
    if batch[0].q.shape[2] % 8 or batch[0].q.shape[2] > 256:
        raise Unsupported("d=%d: wanted a multiple of 8 up to 256" % batch[0].q.shape[2])
    q, k, v = (torch.stack([torch_of(getattr(r, name)) for r in batch]).cuda().transpose(1, 2) for name in "qkv")
    return q, k, v, bool(causal) and queries > 1


def put_outputs(batch, o, lse):
    """Outputs of a batch, o [b, h, sq, d] and lse of [b, h, sq], to where its requests have theirs."""
    lse = lse.reshape(o.shape[:3]).transpose(1, 2).float().cpu()
    o = o.transpose(1, 2).cpu()
    for i, r in enumerate(batch):
        torch_of(r.o).copy_(o[i])
        np.asarray(r.lse)[...] = lse[i].numpy()


def attention(library):
    """The function of a library."""

    def run(job, *, scale, causal, bench=None):
        parts = batches(job)
        if bench and len(parts) > 1:
            raise Unsupported("requests of unequal lengths: this would time a launch for each of them")
        for batch in parts:
            q, k, v, mask = inputs_of(batch, causal)
            o, lse = checked(library, q, k, v, mask, scale)
            if bench:
                # their copies keep the order of dimensions in memory
                return time_cuda(lambda q, k, v, mask=mask: library(q, k, v, mask, scale), (q, k, v), bench,
                                 lambda result, batch=batch: put_outputs(batch, *result))
            put_outputs(batch, o, lse)
        if bench:
            raise Unsupported("nothing to time")
        return None

    return run


VERSIONS = {"cudnn": "cuDNN %s" % torch.backends.cudnn.version(), "flash": "FlashAttention 2"}
for library in (cudnn, flash):
    for dtype in ("bf16", "f16"):
        for family in ("softmax_decode", "softmax_prefill"):
            kernel(family, variant="90_torch_%s_%s" % (library.__name__, dtype), dtypes=dtype, numerics="free_order=1 p=" + dtype,
                   source="PyTorch " + torch.__version__, summary="%s of PyTorch %s, requests as one batch; keys in pages are gathered "
                   "before and not in the time" % (VERSIONS[library.__name__], torch.__version__))(attention(library))
serve(device="%s, PyTorch %s, %s" % (torch.cuda.get_device_name(), torch.__version__, VERSIONS["cudnn"]))
