"""A decoder with AsyncT attention, and its softmax twin, in PyTorch: the operators of reference/, one function each.
SPDX-License-Identifier: Apache-2.0

A layer is that of datasets/stacks/asynct_35.stack (softmax_28.stack): add + norm, three products, norms of q and k by head, rotary
positions, attention, output product, the post-attention and pre-MLP norms ("Peri", v2; add + RMS norm for the twin), gate and up
as one product, ReGLU (SiLU for the twin), down product; a final add + norm, and the head. Activations have one format, `dtype`:
every operator computes in f32 and rounds its outputs to it once, as the reference says, and products sum in f32. Weights are
kept in f32 and rounded to dtype where they are used; parameters of norms and gates stay f32.

Of the gate, trained: sigma and gamma, one each for every query head of every layer. Fixed: window 3 and edge=zero (taps are
1 - sigma/3, -sigma/3, -sigma/3), relu_pre=1, the clamp's ends 0 and 1, the scale 1/sqrt(d). Of UClip norms, trained: alpha, gamma
and beta by channel (of q and k: alpha by channel, one gamma); fixed: the ends -1 and 1. tests/python/test_asynct_decoder.py gives
each function's results to attest, which judges them as it judges any kernel.
"""
import dataclasses
import math

import torch
from torch.nn import functional

WINDOW = 3
RMS_EPS = 1e-6
NORMS = {"asynct": ("norm", "post", "pre", "final"), "softmax": ("norm", "pre", "final")}


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes of a model; kind is asynct or softmax."""

    kind: str
    layers: int = 12
    hidden: int = 512
    h: int = 4
    hk: int = 2
    d: int = 128
    inter: int = 1024
    context: int = 1024
    vocab: int = 256


# ---- operators ----

def uclip_norm(x, alpha, gamma, beta=None, lo=-1.0, hi=1.0):
    """gamma * clamp(alpha x, lo, hi) + beta, by channel of the last dimension."""
    y = gamma * torch.clamp(alpha * x.float(), lo, hi)
    return (y if beta is None else y + beta).to(x.dtype)


def rms_norm(x, gamma, eps=RMS_EPS):
    """gamma * x / sqrt(mean of x^2 + eps), over the last dimension."""
    f = x.float()
    return (gamma * (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + eps))).to(x.dtype)


def reglu(gate_up):
    """max(g, 0) u of the halves."""
    g, u = gate_up.float().chunk(2, dim=-1)
    return (torch.relu(g) * u).to(gate_up.dtype)


def silu_mul(gate_up):
    """g / (1 + exp(-g)) u of the halves."""
    g, u = gate_up.float().chunk(2, dim=-1)
    return (functional.silu(g) * u).to(gate_up.dtype)


def rope_table(positions, d, base=10000.0):
    """Cosines and sines [positions, d/2] in f32, computed in double."""
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
    return angle.cos().float(), angle.sin().float()


def rope(x, cos, sin):
    """x [..., tokens, heads, d]: channels i and i + d/2 turn by the token's angle; cos, sin [tokens, d/2]."""
    a, b = x.float().chunk(2, dim=-1)
    c, s = cos[:, None], sin[:, None]
    return torch.cat((a * c - b * s, b * c + a * s), dim=-1).to(x.dtype)


def taps_of(sigma):
    """[h] to [h, window]: what sigma and edge=zero stand for."""
    first = torch.ones(WINDOW, device=sigma.device)
    first[1:] = 0
    return first - (sigma / WINDOW)[:, None]


def gate(s, taps, clip=(0.0, 1.0)):
    """s [b, h, queries, keys], scaled scores in f32: ReLU, FIR along the keys with taps [h, window], clamp. Not masked: hidden
    keys come after the visible ones, and the filter looks back."""
    r = torch.relu(s)
    z = r * taps[:, 0][:, None, None]
    for j in range(1, taps.shape[1]):
        z = z + functional.pad(r[..., :-j], (j, 0)) * taps[:, j][:, None, None]
    return torch.clamp(z, *clip)


def visible(queries, keys, device):
    """[queries, keys]: the last query sees every key, each one before it one less."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def group(q, hk):
    """[b, queries, h, d] to [b, hk, h/hk * queries, d]: the query heads of a key/value head as rows of one product."""
    b, t, h, d = q.shape
    return q.transpose(1, 2).reshape(b, hk, h // hk * t, d)


def asynct_attention(q, k, v, taps, gamma, clip=(0.0, 1.0), p_dtype=None):
    """q [b, queries, h, d], k and v [b, keys, hk, d]; o like q. Causal; contiguous. taps [h, window], gamma [h].

    p_dtype None: scores are rounded to the inputs' format as they leave the product, and P too: what training does. Else the
    products of f32 copies are summed in f32, and P alone is rounded, to p_dtype: what a kernel does that keeps scores in registers."""
    b, t, h, d = q.shape
    hk, keys = k.shape[2], k.shape[1]
    kt, vt = k.permute(0, 2, 3, 1), v.transpose(1, 2)
    rows = group(q, hk)
    if p_dtype is not None:
        rows, kt, vt = rows.float(), kt.float(), vt.float()
    s = torch.matmul(rows, kt).view(b, h, t, keys).float() * (1 / math.sqrt(d))
    p = torch.where(visible(t, keys, q.device), gate(s, taps, clip), 0.0)
    p = p.to(p_dtype).float() if p_dtype is not None else p.to(q.dtype)
    o = torch.matmul(p.view(b, hk, h // hk * t, keys), vt).view(b, h, t, d).transpose(1, 2)
    return (o.float() * gamma[:, None]).to(q.dtype)


def softmax_attention(q, k, v, p_dtype=None, with_lse=False):
    """The same with softmax; p_dtype None: PyTorch's own. Else P is rounded to p_dtype as exp(s - maximum), and divided by the sum
    of the weights before rounding after the second product: flash attention with one tile. with_lse: (o, lse [b, queries, h])."""
    b, t, h, d = q.shape
    hk, keys = k.shape[2], k.shape[1]
    if p_dtype is None:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
    s = torch.matmul(group(q, hk).float(), k.permute(0, 2, 3, 1).float()).view(b, h, t, keys) * (1 / math.sqrt(d))
    s = s.masked_fill(~visible(t, keys, q.device), -math.inf)
    most = s.amax(-1, keepdim=True)
    e = torch.exp(s - most)
    p, total = e.to(p_dtype).float(), e.sum(-1, keepdim=True)
    o = torch.matmul(p.view(b, hk, h // hk * t, keys), v.transpose(1, 2).float()).view(b, h, t, d)
    o = (o / total).transpose(1, 2).to(q.dtype)
    return (o, (most + total.log())[..., 0].transpose(1, 2)) if with_lse else o


# ---- a layer ----

def product(x, weight):
    return functional.linear(x, weight.to(x.dtype))


def dropped(x, share):
    return functional.dropout(x, share) if share > 0 else x


def heads_of(c, w, n, cos, sin):
    """q, k, v [b, t, heads, d] of the normed stream n: what attention gets."""
    q, k, v = (product(n, w[name]).unflatten(-1, (-1, c.d)) for name in ("q", "k", "v"))
    if c.kind == "asynct":
        q, k = uclip_norm(q, w["q_alpha"], w["q_gamma"]), uclip_norm(k, w["k_alpha"], w["k_gamma"])
    else:
        q, k = rms_norm(q, w["q_gamma"]), rms_norm(k, w["k_gamma"])
    return rope(q, cos, sin), rope(k, cos, sin), v


def normed(c, w, name, x):
    if c.kind == "asynct":
        return uclip_norm(x, w[name + "_alpha"], w[name + "_gamma"], w[name + "_beta"])
    return rms_norm(x, w[name + "_gamma"])


def own_attention(c, w, q, k, v, p_dtype=None):
    if c.kind == "asynct":
        return asynct_attention(q, k, v, taps_of(w["sigma"]), w["gamma"], p_dtype=p_dtype)
    return softmax_attention(q, k, v, p_dtype)


def layer(c, w, x, res, cos, sin, attend=own_attention, drop=0.0, see=None):
    """(x, res) to (x, res). attend(c, w, q, k, v) gives o; see(name, tensor) is shown what passes, where there is one."""
    see = see or (lambda name, tensor: None)
    res = x + res
    see("res", res)
    q, k, v = heads_of(c, w, normed(c, w, "norm", res), cos, sin)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        see(name, tensor)
    a = attend(c, w, q, k, v)
    see("attention_out", a)
    o = dropped(product(a.flatten(-2), w["o"]), drop)
    see("o_proj", o)
    res = (normed(c, w, "post", o) if c.kind == "asynct" else o) + res
    see("res", res)
    gate_up = product(normed(c, w, "pre", res), w["gate_up"])
    see("gate_up", gate_up)
    act = reglu(gate_up) if c.kind == "asynct" else silu_mul(gate_up)
    see("act", act)
    x = dropped(product(act, w["down"]), drop)
    see("down", x)
    return x, res


# ---- the model ----

def layer_shapes(c):
    """Matrices of a layer, [out, in], and the factor of their first values beside 1/sqrt(in)."""
    branch = 1 / math.sqrt(2 * c.layers)
    o = 1.0 if c.kind == "asynct" else branch  # AsyncT's branch is scaled by the norm behind it
    return {"q": (c.h * c.d, c.hidden, 1.0), "k": (c.hk * c.d, c.hidden, 1.0), "v": (c.hk * c.d, c.hidden, 1.0),
            "o": (c.hidden, c.h * c.d, o), "gate_up": (2 * c.inter, c.hidden, 1.0), "down": (c.hidden, c.inter, branch)}


def first_norm(c, name, n, factor=1.0):
    """A UClip norm begins as the identity between -2 and 2 (times factor), an RMS norm with gamma 1."""
    if c.kind == "softmax":
        return {name + "_gamma": torch.ones(n)}
    return {name + "_alpha": torch.full((n,), 0.5), name + "_gamma": torch.full((n,), 2.0 * factor), name + "_beta": torch.zeros(n)}


def first_layer(c, generator):
    made = {name: torch.randn(out, fan, generator=generator) * (factor / math.sqrt(fan))
            for name, (out, fan, factor) in layer_shapes(c).items()}
    for name in NORMS[c.kind][:-1]:
        made.update(first_norm(c, name, c.hidden, 1 / math.sqrt(2 * c.layers) if name == "post" else 1.0))
    if c.kind == "asynct":
        for name in ("q", "k"):
            made.update({name + "_alpha": torch.full((c.d,), 0.5), name + "_gamma": torch.full((), 2.0)})
        made.update(sigma=torch.ones(c.h), gamma=torch.full((c.h,), 1 / 32))
    else:
        made.update(q_gamma=torch.ones(c.d), k_gamma=torch.ones(c.d))
    return made


class Model(torch.nn.Module):
    """Bytes [b, t] to logits [b, t, vocab] in f32."""

    def __init__(self, c, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.c = c
        self.embedding = torch.nn.Parameter(torch.randn(c.vocab, c.hidden, generator=generator))
        self.layers = torch.nn.ModuleList(torch.nn.ParameterDict(first_layer(c, generator)) for _ in range(c.layers))
        self.final = torch.nn.ParameterDict(first_norm(c, "final", c.hidden))
        self.head = torch.nn.Parameter(torch.randn(c.vocab, c.hidden, generator=generator) * (0.5 / math.sqrt(c.hidden)))
        cos, sin = rope_table(c.context, c.d)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def weights(self):
        """A plain dict a layer, as the functions take it."""
        return [dict(w.items()) for w in self.layers]

    def forward(self, ids, dtype=torch.float32, run=None, drop=0.0, attend=own_attention, see=None):
        """run: layer(), or a compiled one. see(layer, name, tensor)."""
        x = self.embedding[ids].to(dtype)
        res = x - x  # zeros with a gradient, as every layer's residual stream has one: layers compile once
        cos, sin = self.cos[:ids.shape[1]], self.sin[:ids.shape[1]]
        for n, w in enumerate(self.weights()):
            if run is not None:
                x, res = run(self.c, w, x, res, cos, sin, drop=drop)
            else:
                shown = None if see is None else lambda name, tensor, n=n: see(n, name, tensor)
                x, res = layer(self.c, w, x, res, cos, sin, attend, drop, shown)
        y = normed(self.c, dict(self.final.items()), "final", x + res)
        return product(y, self.head).float()
