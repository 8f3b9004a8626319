"""What train_asynct.py measures of a trained model: losses by arithmetic of the attention, zeros and largest values by layer, and
recorded q, k, v.
SPDX-License-Identifier: Apache-2.0

Emulation, not kernels: products of f16 or bf16 numbers are exact in f32, and PyTorch sums them in f32 (no TF32). `ATTENTION` says
which parts are rounded; the rest of the model is in f32 in all of them, so that a difference is the attention's alone.

f16 accumulators: 16 products at a time, in the order of the index, are summed in f32, added to the accumulator in f32 and the sum
rounded to f16, to nearest even: 8 roundings for a score (d 128), one for each 16 keys of an output. The unit rounds inside such a
block too, which this leaves out; `attest study tensor_core` is about that. Scores are taken from the f16 accumulator unscaled and
scaled in f32; the gate, exp and the sum of a row's weights are in f32. Softmax weights are exp(s - the row's maximum), rounded, and
their sum before rounding divides the finished output.
"""
import math

import numpy
import torch
from torch.nn import functional

import asynct_decoder as model_of
import capture_file

# name: (format of q, k, v; format of P; f16 accumulators of q.k; of P.v); None: f32
F16, BF16 = torch.float16, torch.bfloat16
ATTENTION = {"f32": (None, None, 0, 0), "p_bf16": (None, BF16, 0, 0), "p_f16": (None, F16, 0, 0), "bf16": (BF16, BF16, 0, 0),
             "f16": (F16, F16, 0, 0), "f16_qk_sum": (F16, F16, 1, 0), "f16_pv_sum": (F16, F16, 0, 1), "f16_sums": (F16, F16, 1, 1)}
CHUNK, PAGE, TILE = 16, 16, 64
F16_MAX = 65504.0
LAYERS_RECORDED = 4


def windows_of(text, context, n, device):
    """n windows [n, context + 1] of a text, evenly spaced; as many as fit without overlap at most."""
    n = min(n, (len(text) - 1) // context)
    step = (len(text) - 1) // n
    rows = numpy.stack([numpy.frombuffer(text, numpy.uint8, context + 1, i * step) for i in range(n)])
    return torch.from_numpy(rows.astype(numpy.int64)).to(device)


def loss_by_window(model, windows, dtype, attend, batch, see=None):
    """Nats a byte of each window, in double."""
    losses = []
    with torch.no_grad():
        for ids in windows.split(batch):
            logits = model(ids[:, :-1], dtype, attend=attend, see=see)
            each = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
            losses.append(each.view(len(ids), -1).double().mean(1))
    return torch.cat(losses).cpu().numpy()


def summary(losses, base=None):
    """Mean, and of a pair its difference from the base with the standard error of that."""
    said = {"nats_per_byte": float(losses.mean()), "windows": len(losses),
            "windows_not_finite": int((~numpy.isfinite(losses)).sum())}
    if base is not None:
        difference = losses - base
        said.update(difference=float(difference.mean()),
                    standard_error=float(difference.std(ddof=1) / math.sqrt(len(losses))) if len(losses) > 1 else None)
    return said


# ---- attention in other arithmetic ----

def f16_sum(a, b):
    """a [.., m, k] b [.., k, n] with an f16 accumulator: chunks of 16 products, as this file's head says."""
    total = torch.zeros(*a.shape[:-1], b.shape[-1], device=a.device)
    for i in range(0, a.shape[-1], CHUNK):
        total = (total + torch.matmul(a[..., i:i + CHUNK], b[..., i:i + CHUNK, :])).half().float()
    return total


def weights_of(c, w, s):
    """(weights in f32, what divides the output, what multiplies it) from visible-masked scaled scores."""
    mask = model_of.visible(s.shape[-2], s.shape[-1], s.device)
    if c.kind == "asynct":
        p = torch.where(mask, model_of.gate(s, model_of.taps_of(w["sigma"])), 0.0)
        return p, 1.0, w["gamma"][:, None, None]
    s = s.masked_fill(~mask, -math.inf)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return e, e.sum(-1, keepdim=True), 1.0


def attention_in(name, seen=None):
    """An attend() for layer(): ATTENTION[name]. seen(c, dot, scaled, p, sum): is shown scores, weights, and their
    sum over values before the gate's gamma or the division."""
    inputs, p_format, qk_f16, pv_f16 = ATTENTION[name]

    def attend(c, w, q, k, v):
        b, t, h, d = q.shape
        hk, keys = k.shape[2], k.shape[1]
        q32, k32, v32 = (x.to(inputs).float() if inputs else x.float() for x in (q, k, v))
        rows, kt = model_of.group(q32, hk), k32.permute(0, 2, 3, 1)
        dot = (f16_sum(rows, kt) if qk_f16 else torch.matmul(rows, kt)).view(b, h, t, keys)
        scaled = dot * (1 / math.sqrt(d))
        p, below, factor = weights_of(c, w, scaled)
        rows = (p.to(p_format).float() if p_format else p).view(b, hk, h // hk * t, keys)
        o = (f16_sum if pv_f16 else torch.matmul)(rows, v32.transpose(1, 2)).view(b, h, t, d)
        if seen is not None:
            seen(c, dot, scaled, p, o)
        return (o * factor / below).transpose(1, 2).to(q.dtype)
    return attend


def losses_by_arithmetic(model, windows, batch):
    """Held-out loss of each entry of ATTENTION, and of the whole model in other formats."""
    base = loss_by_window(model, windows, torch.float32, attention_in("f32"), batch)
    said = {"model": {"f32": summary(base)}, "attention": {"f32": summary(base)}}
    for name, dtype, attention in (("bf16", BF16, "bf16"), ("f16", F16, "f16"), ("f16_with_f16_sums", F16, "f16_sums")):
        said["model"][name] = summary(loss_by_window(model, windows, dtype, attention_in(attention), batch), base)
    for name in list(ATTENTION)[1:]:
        said["attention"][name] = summary(loss_by_window(model, windows, torch.float32, attention_in(name), batch), base)
    return said


# ---- zeros and largest values ----

def all_zero(x, *block):
    """(zero blocks, blocks) of the last two dimensions."""
    rows, columns = block
    m, n = x.shape[-2] // rows * rows, x.shape[-1] // columns * columns
    live = (x[..., :m, :n] != 0).view(*x.shape[:-2], m // rows, rows, n // columns, columns).any(-1).any(-2)
    return (~live).sum(), live.numel()


class Statistics:
    """Counts by layer, kept on the device until they are asked for."""

    def __init__(self, layers):
        self.most = [{} for _ in range(layers)]
        self.count = [{} for _ in range(layers)]
        self.at = 0

    def largest(self, name, x):
        self.most[self.at][name] = torch.maximum(x.abs().max().float(), self.most[self.at].get(name, torch.zeros((), device=x.device)))

    def add(self, name, some, of):
        a, b = self.count[self.at].get(name, (0, 0))
        self.count[self.at][name] = (a + some, b + of)

    def see(self, n, name, x):
        """What layer n passes on."""
        self.at = n
        if name == "gate_up":
            g, u = x.float().chunk(2, dim=-1)
            self.largest("gate", g)
            self.largest("up", u)
            self.add("gate_not_above_zero", (g <= 0).sum(), g.numel())
            return
        self.largest(name, x)
        if name == "act":
            self.add("ffn_zero", (x == 0).sum(), x.numel())
            self.add("ffn_zero_1x16", *all_zero(x, 1, 16))
            self.add("ffn_zero_16x16", *all_zero(x, 16, 16))

    def scores(self, c, dot, scaled, p, pv):
        """Scores and weights of the layer whose q was seen last; definitions of zeros as `attest record` has them."""
        b, h, t, keys = p.shape
        mask = model_of.visible(t, keys, p.device)
        self.largest("score", torch.where(mask, dot, 0.0))
        self.largest("scaled_score", torch.where(mask, scaled, 0.0))
        self.largest("weight_sum", p.sum(-1))
        self.largest("pv_sum", pv)
        live = p != 0
        pairs = mask.sum()
        self.add("p_zero", b * h * pairs - live.sum(), b * h * pairs)
        self.add("p_zero_in_f16", b * h * pairs - (p.half() != 0).sum(), b * h * pairs)
        for head in range(h):
            self.add("p_zero_head_%d" % head, b * pairs - live[:, head].sum(), b * pairs)
        if c.kind == "asynct":
            self.add("p_one", ((p == 1) & mask).sum(), b * h * pairs)
        of_group = live.view(b, c.hk, h // c.hk, t, keys).any(2)
        self.add("key_zero", b * c.hk * pairs - of_group.sum(), b * c.hk * pairs)
        if t % TILE or keys % TILE:
            return
        pages = of_group.view(b, c.hk, t, keys // PAGE, PAGE).any(-1)
        seen = mask.view(t, keys // PAGE, PAGE).any(-1)
        self.add("page_zero", b * c.hk * seen.sum() - pages.sum(), b * c.hk * seen.sum())
        tiles = live.view(b, h, t // TILE, TILE, keys // PAGE, PAGE).any(-1).any(-2)
        seen = mask.view(t // TILE, TILE, keys // PAGE, PAGE).any(-1).any(1)
        self.add("tile_zero", b * h * seen.sum() - tiles.sum(), b * h * seen.sum())

    def table(self):
        """A dict a layer: shares, largest values, and their headroom to 65504 in powers of two."""
        said = []
        for most, count in zip(self.most, self.count):
            largest = {name: float(x) for name, x in most.items()}
            said.append({"share": {name: float(a) / float(b) for name, (a, b) in count.items() if float(b) > 0},
                         "largest": largest,
                         "headroom_bits": {name: math.log2(F16_MAX / x) if 0 < x < math.inf else None
                                           for name, x in largest.items() if name != "weight_sum"}})
        return said


def statistics(model, windows, batch, dtype=BF16):
    """Statistics of a run with activations of dtype, P rounded to bf16 and sums in f32."""
    gathered = Statistics(model.c.layers)
    loss_by_window(model, windows, dtype, attention_in("bf16", gathered.scores), batch, gathered.see)
    return gathered.table()


# ---- recording ----

def recorded_layers(c):
    """Evenly spaced, with the first and the last."""
    n = min(LAYERS_RECORDED, c.layers)
    return sorted({round(i * (c.layers - 1) / max(n - 1, 1)) for i in range(n)})


def qkv(model, ids, dtype):
    """{layer: {"q", "k", "v", "o"}}, each [t, heads, d], of one request alone; and the logits of its last token."""
    kept, layers, at = {}, recorded_layers(model.c), [0]

    def attend(c, w, q, k, v):
        o = attention_in("bf16")(c, w, q, k, v)
        if at[0] in layers:
            kept[at[0]] = {name: x[0].detach().cpu() for name, x in (("q", q), ("k", k), ("v", v), ("o", o))}
        at[0] += 1
        return o
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)], device=model.head.device), dtype, attend=attend)
    return kept, logits[0, -1]


def exact_attention(c, w, q, k, v, first):
    """Attention of the queries from `first` on, of one request, in double from the definition, element by element of P."""
    q, k, v = (x.double().numpy() for x in (q, k, v))
    out = numpy.zeros((len(q), c.h, c.d))
    for head in range(c.h):
        s = q[:, head] @ k[:, head // (c.h // c.hk)].T / math.sqrt(c.d)
        hidden = numpy.arange(len(k))[None] > numpy.arange(first, first + len(q))[:, None]
        if c.kind == "asynct":
            sigma, r = float(w["sigma"][head]), numpy.maximum(s, 0)
            z = r.copy()
            for j in range(model_of.WINDOW):
                z[:, j:] -= sigma / model_of.WINDOW * r[:, :r.shape[1] - j]
            p = numpy.where(hidden, 0, numpy.clip(z, 0, 1)) * float(w["gamma"][head])
        else:
            s = numpy.where(hidden, -numpy.inf, s)
            p = numpy.exp(s - s.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
        out[:, head] = p @ v[:, head // (c.h // c.hk)]
    return out


def record(model, requests, steps, path, metadata, dtype=BF16):
    """Writes q, k and v of some layers as capture.py does. requests: bytes; steps: for each, decode steps behind it (its own
    prompt is then left out): each a request of one query with the keys so far. Returns what was checked: the largest difference of
    the model's attention and that computed in double from what is written, as a share of the layer's largest output."""
    made = []
    for ids, n in zip(requests, steps):
        longer = list(ids)
        for _ in range(n):
            longer.append(int(qkv(model, longer, dtype)[1].argmax()))
            made.append((list(longer), len(longer) - 1))
        if n == 0:
            made.append((longer, 0))
    parts = [(qkv(model, ids, dtype)[0], first) for ids, first in made]
    tensors, worst = {}, 0.0
    for n in recorded_layers(model.c):
        w = {name: x.detach().cpu() for name, x in model.layers[n].items()}
        tensors["layers.%d.q" % n] = torch.cat([kept[n]["q"][first:] for kept, first in parts])
        for name in "kv":
            tensors["layers.%d.%s" % (n, name)] = torch.cat([kept[n][name] for kept, _ in parts])
        if model.c.kind == "asynct":
            tensors.update({"layers.%d.sigma" % n: w["sigma"].float(), "layers.%d.gamma" % n: w["gamma"].float()})
        for kept, first in parts:
            one = kept[n]
            exact = exact_attention(model.c, w, one["q"][first:], one["k"], one["v"], first)
            error = numpy.abs(one["o"][first:].double().numpy() - exact).max() / max(numpy.abs(exact).max(), 1e-30)
            worst = math.inf if math.isnan(error) else max(worst, float(error))
    starts = [0] + [len(ids) - first for ids, first in made]
    tensors["query_start"] = torch.tensor(numpy.cumsum(starts), dtype=torch.int32)
    tensors["token_ids"] = torch.tensor([i for ids, _ in made for i in ids], dtype=torch.int32)
    if any(steps):
        tensors["key_start"] = torch.tensor(numpy.cumsum([0] + [len(ids) for ids, _ in made]), dtype=torch.int32)
    capture_file.write_safetensors(path, tensors, metadata)
    return worst
