"""Peers on a GPU: FlashInfer's attention, on keys in pages as they lie. SPDX-License-Identifier: Apache-2.0

    attest bench 'softmax_*/*' --peer 'python3 kernels/runner/python/peers/flashinfer_peers.py'

FlashInfer compiles a kernel for each format and head dimension when it is first asked for one, which takes longer than a job may:
`flashinfer_peers.py --compile 64,128` does it before, for later runs to find. Head dimensions that AT_FLASHINFER_D (64,128) does not
name are declined. Keys that are not in
pages: a decode gets them as pages of one key, a prefill in its ragged layout. Its plan of a launch, made on the host, is not in the
time. P is rounded to the inputs' format, so each format has a declaration of its own; its log-sum-exp is of base 2. The prefill's
kernel ("fa2") sums the weights after they are rounded, which nothing here declares: its output is within the limits, and its
log-sum-exp is WRONG, by a rounding of P."""
import math
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from attest_runner import kernel, serve, torch_of, Unsupported  # pylint: disable=wrong-import-position

try:
    import torch
    import flashinfer
    from attest_runner_cuda import time_cuda
except ImportError as missing:
    sys.exit("SKIPPED: flashinfer_peers.py wants PyTorch and FlashInfer: %s" % missing)
if not torch.cuda.is_available():
    sys.exit("SKIPPED: flashinfer_peers.py wants a CUDA device; PyTorch %s sees none" % torch.__version__)

FORMATS = {"bf16": torch.bfloat16, "f16": torch.float16}
DIMENSIONS = {int(d) for d in os.environ.get("AT_FLASHINFER_D", "64,128").split(",")}
WORKSPACE = 128 << 20  # what FlashInfer's own examples give it
WORK = torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")
WRAPPERS = {"decode": lambda: flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORK, "NHD"),
            "paged": lambda: flashinfer.BatchPrefillWithPagedKVCacheWrapper(WORK, "NHD", backend="fa2"),
            "ragged": lambda: flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORK, "NHD", backend="fa2")}


def starts(lengths):
    """0, then the sums of the first lengths."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def pages_of(job, keys):
    """Pages of all requests, one after the other: where each request's begin, which they are, keys in each last one; and their size."""
    t = job.tensors
    page = job.size["page"] if "block_table" in t else 1
    counts = -(-keys // page)
    if "block_table" in t:
        table = np.asarray(t["block_table"])
        indices = np.concatenate([table[i, :n] for i, n in enumerate(counts)])
    else:
        indices = np.concatenate([np.arange(first, first + n) for first, n in zip(np.asarray(t["key_start"]), keys)])
    return starts(counts), indices.astype(np.int32), (keys - (counts - 1) * page).astype(np.int32), page


def decline(job, queries, keys):
    """What FlashInfer has no kernel or no answer for."""
    d, stride = job.size["d"], job.tensors["k"].shape[-1]
    if d not in DIMENSIONS or stride != d:
        raise Unsupported("d=%d in rows of %d: compiled for %s" % (d, stride, " ".join(map(str, sorted(DIMENSIONS)))))
    if not keys.all() or (job.param.get("causal") and (queries > keys).any()):
        raise Unsupported("a query without keys has no answer here")


def planned(job, phase, causal, scale):
    """The wrapper with its plan, q, k and v on the device, and the shape that k and v have as pages; None: they are not in pages."""
    t, size, kind = job.tensors, job.size, FORMATS[job.dtype]
    ends = np.asarray(t["query_start"])
    queries, keys = np.diff(ends), np.asarray(t["seq_lens"])
    decline(job, queries, keys)
    indptr, indices, last, page = pages_of(job, keys)
    q, k, v = (torch_of(t[name]).cuda() for name in "qkv")
    host = torch.from_numpy
    heads = (size["h"], size["hk"], size["d"])
    if phase == "decode":
        wrapper = WRAPPERS["decode"]()
        wrapper.plan(host(indptr), host(indices), host(last), *heads, page, q_data_type=kind, kv_data_type=kind, sm_scale=scale)
    elif "block_table" in t:
        wrapper = WRAPPERS["paged"]()
        wrapper.plan(host(starts(queries)), host(indptr), host(indices), host(last), *heads, page, causal=bool(causal),
                     q_data_type=kind, kv_data_type=kind, sm_scale=scale)
    else:
        wrapper = WRAPPERS["ragged"]()
        wrapper.plan(host(starts(queries)).cuda(), host(starts(keys)).cuda(), *heads, causal=bool(causal), q_data_type=kind,
                     kv_data_type=kind, sm_scale=scale)
        at = host(indices.astype(np.int64)).cuda()
        return wrapper, q, k[at], v[at], None
    pool = (k.shape[0] // page, page) + tuple(k.shape[1:])
    return wrapper, q, k[:pool[0] * page], v[:pool[0] * page], pool


def launch_of(wrapper, q, k, v, pool):
    """A launch without arguments; its result: o [query, head, channel] and the log-sum-exp of base 2, [query, head]."""
    if pool is None:
        return lambda: wrapper.run(q, k, v, return_lse=True)
    return lambda: wrapper.run(q, (k.view(pool), v.view(pool)), return_lse=True)


def attention(phase):
    """The function of a phase: decode, or prefill."""

    def run(job, *, scale, causal, bench=None):
        if not len(job.tensors["q"]):
            return None

        def take(result):
            torch_of(job.tensors["o"]).copy_(result[0])
            np.asarray(job.tensors["lse"])[...] = (result[1] * math.log(2)).cpu().numpy()

        wrapper, q, k, v, pool = planned(job, phase, causal, scale)
        torch.cuda.synchronize()
        if bench:
            return time_cuda(lambda q, k, v: launch_of(wrapper, q, k, v, pool)(), (q, k, v), bench, take)
        take(launch_of(wrapper, q, k, v, pool)())
        return None

    return run


def compile_for(dimensions):
    """One small launch of everything, which makes FlashInfer compile it."""
    one = torch.ones(1, dtype=torch.int32)
    zero_one = torch.tensor([0, 1], dtype=torch.int32)
    for d in dimensions:
        for name, kind in FORMATS.items():
            x = torch.ones(1, 1, d, dtype=kind, device="cuda")
            for phase, make in WRAPPERS.items():
                wrapper, types = make(), {"q_data_type": kind, "kv_data_type": kind}
                if phase == "decode":
                    wrapper.plan(zero_one, 0 * one, one, 1, 1, d, 1, **types)
                elif phase == "paged":
                    wrapper.plan(zero_one, zero_one, 0 * one, one, 1, 1, d, 1, **types)
                else:
                    wrapper.plan(zero_one.cuda(), zero_one.cuda(), 1, 1, d, **types)
                launch_of(wrapper, x, x, x, None if phase == "ragged" else (1, 1, 1, d))()
                torch.cuda.synchronize()
                print("%s of %s, d=%d" % (phase, name, d), flush=True)


if sys.argv[1:2] == ["--compile"]:
    compile_for([int(d) for d in (sys.argv[2] if len(sys.argv) > 2 else "64,128").split(",")])
    sys.exit(0)
for phase in ("decode", "prefill"):
    for dtype in FORMATS:
        kernel("softmax_" + phase, variant="91_flashinfer_" + dtype, dtypes=dtype, numerics="free_order=1 p=" + dtype,
               source="FlashInfer " + flashinfer.__version__,
               summary="%s of FlashInfer %s; its plan is not in the time" % (phase, flashinfer.__version__))(attention(phase))
serve(device="%s, PyTorch %s, FlashInfer %s" % (torch.cuda.get_device_name(), torch.__version__, flashinfer.__version__))
