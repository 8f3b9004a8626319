"""PyTorch's scaled_dot_product_attention. SPDX-License-Identifier: Apache-2.0

Its flash kernel rounds P to the input's format, so each format has a declaration of its own. The log-sum-exp, which the
operator wants and that function keeps to itself, is computed beside it."""
import sys

from attest_runner import kernel, serve, requests, torch_of, Unsupported

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention
except ImportError as missing:
    sys.exit("SKIPPED: torch_sdpa.py wants PyTorch 2: %s" % missing)
torch.set_num_threads(1)

def sdpa(job, *, scale):
    """a request at a time, the heads as a batch"""
    for r in requests(job):
        if not r.visible.any(axis=1).all():
            raise Unsupported("PyTorch has no answer for a query without keys")
        q, k, v = (torch_of(t).transpose(0, 1)[None] for t in (r.q, r.k, r.v))
        k, v = (t.repeat_interleave(r.group, 1) for t in (k, v))
        mask = None if r.visible.all() else torch.from_numpy(r.visible)
        torch_of(r.o).copy_(scaled_dot_product_attention(q, k, v, mask, scale=scale)[0].transpose(0, 1))
        s = scale * q[0].float() @ k[0].float().transpose(1, 2)
        s = s if mask is None else s.masked_fill(~mask, -torch.inf)
        torch_of(r.lse).copy_(torch.logsumexp(s, 2).T)

for dtype in ("f32", "bf16", "f16"):
    kernel("softmax_prefill", variant="01_sdpa_" + dtype, dtypes=dtype, numerics="free_order=1 p=" + dtype)(sdpa)
serve()
