#!/usr/bin/env python3
"""capture.py on small randomly initialised models: a Llama decoder with grouped heads, GPT-2, BERT and GPT-NeoX.
SPDX-License-Identifier: Apache-2.0

Skipped (exit 77) where torch or transformers are not installed; AT_TORCH_PYTHON names a Python that has them.
"""
import importlib.util
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

needed = [n for n in ("torch", "transformers", "numpy") if importlib.util.find_spec(n) is None]
if needed and os.environ.get("AT_TORCH_PYTHON") and not os.environ.get("AT_TORCH_RETRY"):
    os.environ["AT_TORCH_RETRY"] = "1"
    os.execv(os.environ["AT_TORCH_PYTHON"], [os.environ["AT_TORCH_PYTHON"], os.path.abspath(__file__)])
if needed:
    print("not installed: %s (AT_TORCH_PYTHON=/path/to/python names one that has them)" % ", ".join(needed))
    sys.exit(77)

os.environ["HF_HUB_OFFLINE"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets", "activations"))
import numpy
import torch
import transformers

import capture
import capture_vllm

REQUESTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13]]
LIMIT = 2e-5  # fp32 against double; wrong heads or layouts are off by more than 1e-2


def check(condition, message):
    if not condition:
        sys.exit("FAIL %s" % message)


def models():
    torch.manual_seed(7)
    small = {"vocab_size": 40, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6}
    inner = {"intermediate_size": 64, "max_position_embeddings": 32}
    yield "llama", transformers.LlamaModel(transformers.LlamaConfig(num_key_value_heads=2, **small, **inner)), 6, 2
    gpt2 = transformers.GPT2Config(vocab_size=40, n_embd=48, n_layer=3, n_head=6, n_positions=32)
    yield "gpt2", transformers.GPT2Model(gpt2), 6, 6
    yield "bert", transformers.BertModel(transformers.BertConfig(**small, **inner)), 6, 6
    yield "gpt_neox", transformers.GPTNeoXModel(transformers.GPTNeoXConfig(**small, **inner)), 6, 6


def attention(q, k, v, causal):
    """Softmax attention of one request in double; k and v may have fewer heads."""
    q, k, v = (x.double().numpy() for x in (q, k, v))
    k, v = (numpy.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = numpy.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[2])
    if causal:
        scores[:, numpy.triu(numpy.ones(scores.shape[1:], dtype=bool), 1)] = -numpy.inf
    p = numpy.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return numpy.einsum("hqk,khd->qhd", p, v).reshape(q.shape[0], -1)


def contexts(name, model):
    """Input of every layer's output projection, per layer over all requests."""
    layers = {"llama": lambda m: [x.self_attn.o_proj for x in m.layers], "gpt2": lambda m: [x.attn.c_proj for x in m.h],
              "bert": lambda m: [x.attention.output.dense for x in m.encoder.layer],
              "gpt_neox": lambda m: [x.attention.dense for x in m.layers]}[name](model)
    kept = [[] for _ in layers]
    handles = [layer.register_forward_pre_hook(lambda _m, inputs, n=n: kept[n].append(inputs[0][0].detach().clone()))
               for n, layer in enumerate(layers)]
    for ids in REQUESTS:
        capture.forward(model, ids)
    for handle in handles:
        handle.remove()
    return [torch.cat(k) for k in kept]


def check_shapes(name, tensors, layers, h, hk):
    tokens = sum(map(len, REQUESTS))
    check(tensors["query_start"].tolist() == [0, 3, 4, 9], "%s: query_start %s" % (name, tensors["query_start"]))
    check(tensors["token_ids"].tolist() == sum(REQUESTS, []), "%s: token_ids %s" % (name, tensors["token_ids"]))
    check(len(tensors) == 3 * layers + 2, "%s: %d tensors" % (name, len(tensors)))
    for n in range(layers):
        for which, heads in (("q", h), ("k", hk), ("v", hk)):
            shape = tuple(tensors["layers.%d.%s" % (n, which)].shape)
            check(shape == (tokens, heads, 8), "%s: layers.%d.%s is %s" % (name, n, which, shape))


def check_leads_to_output(name, tensors, wanted, causal):
    """Attention computed from the recorded values equals what the model computed from its own."""
    starts = tensors["query_start"].tolist()
    for n, context in enumerate(wanted):
        q, k, v = (tensors["layers.%d.%s" % (n, w)] for w in "qkv")
        out = numpy.concatenate([attention(q[a:b], k[a:b], v[a:b], causal) for a, b in zip(starts, starts[1:])])
        error = numpy.abs(out - context.double().numpy()).max()
        check(error <= LIMIT, "%s: layer %d: attention from q, k, v is off by %g" % (name, n, error))


def read_back(path):
    """The file read with nothing but its format's description."""
    with open(path, "rb") as file:
        data = file.read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return header, {name: data[8 + n + e["data_offsets"][0]:8 + n + e["data_offsets"][1]]
                    for name, e in header.items() if name != "__metadata__"}


def check_file(name, tensors, folder):
    paths = [os.path.join(folder, name + s) for s in ("1.safetensors", "2.safetensors")]
    for path in paths:
        capture.write_safetensors(path, tensors, {"b": "2", "a": "1"})
    with open(paths[0], "rb") as one, open(paths[1], "rb") as two:
        check(one.read() == two.read(), "%s: writing twice gives different bytes" % name)
    header, data = read_back(paths[0])
    check(header["__metadata__"] == {"a": "1", "b": "2"}, "%s: metadata %s" % (name, header["__metadata__"]))
    for key, tensor in tensors.items():
        check(header[key]["shape"] == list(tensor.shape), "%s: %s: shape %s" % (name, key, header[key]["shape"]))
        word = {"F32": "<f4", "I32": "<i4", "BF16": "<i2"}[header[key]["dtype"]]
        codes = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
        check((numpy.frombuffer(data[key], word) == codes.numpy().ravel()).all(), "%s: %s: other values" % (name, key))


def check_refusals():
    bert = transformers.BertModel(transformers.BertConfig(vocab_size=40, hidden_size=8, num_hidden_layers=1,
                                                          num_attention_heads=1, intermediate_size=8))
    for model, requests in ((torch.nn.Linear(2, 2), REQUESTS), (bert, []), (bert, [[1], []])):
        try:
            capture.capture(model, requests)
        except capture.CaptureError:
            continue
        check(False, "requests %s of a %s were taken" % (requests, type(model).__name__))


# ---- decode steps, token ids, tokenizers ----

STEPS = 2


def check_decode(folder):
    """A step has one query and the keys so far; each is what the whole text gives, and what a run with a cache gives."""
    torch.manual_seed(8)
    config = transformers.LlamaConfig(vocab_size=40, hidden_size=48, num_hidden_layers=2, num_attention_heads=6,
                                      num_key_value_heads=2, intermediate_size=64, max_position_embeddings=32)
    model = transformers.LlamaForCausalLM(config).float().eval()
    tensors = capture.capture_decode(model, REQUESTS[:2], STEPS, "attention" if hasattr(transformers, "AttentionInterface")
                                     else "projections")
    queries, keys = (numpy.diff(tensors[n].numpy()).tolist() for n in ("query_start", "key_start"))
    check(queries == [3, 1, 1, 1, 1, 1] and keys == [3, 4, 5, 1, 2, 3], "decode: queries %s, keys %s" % (queries, keys))
    ids, at = tensors["token_ids"].tolist(), tensors["key_start"].tolist()
    check(ids[:3] == REQUESTS[0] and ids[3:6] == REQUESTS[0], "decode: ids %s" % ids)
    with torch.no_grad():
        text = model.generate(torch.tensor([REQUESTS[0]]), max_new_tokens=STEPS, do_sample=False, min_new_tokens=STEPS)
    check(ids[at[2]:at[3]] == text[0].tolist(), "decode: %s, generate() with its cache gives %s" % (ids[at[2]:at[3]], text))
    first, step = (tensors["layers.1.k"][at[r]:at[r] + 3] for r in (0, 2))
    check((first - step).abs().max() <= LIMIT, "decode: the keys of a step do not begin with those of its request")
    path = os.path.join(folder, "decode.safetensors")
    capture.write_safetensors(path, tensors, {})
    check_record(path)
    try:
        capture.capture_decode(transformers.BertModel(transformers.BertConfig(
            vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)), REQUESTS, 1)
    except capture.CaptureError as error:
        check("gives no logits" in str(error), "decode of an encoder: %s" % error)
        return model
    return check(False, "decode steps of an encoder were taken")


def check_ids(folder, model):
    """capture.py as a program: ids from a file, and a model without a tokenizer, by text."""
    saved, listed, text = (os.path.join(folder, n) for n in ("model", "ids.txt", "text.txt"))
    model.save_pretrained(saved)
    with open(listed, "w", encoding="utf-8") as file:
        file.write("# two requests\n5 6 7\n8, 9\n")
    with open(text, "w", encoding="utf-8") as file:
        file.write("some words\n")
    script = os.path.join(os.path.dirname(os.path.abspath(capture.__file__)), "capture.py")
    for options, code, says in ((("--ids", listed), 0, "2 layers, 2 requests, 5 tokens"),
                                (("--ids", listed, "--decode", "1"), 0, "2 layers, 4 requests, 7 tokens"),
                                (("--ids", text), 1, "wanted token ids"),
                                (("--text", text), 1, "has no tokenizer that works"),
                                ((), 2, "--text --ids")):
        out = os.path.join(folder, "ids.safetensors")
        done = subprocess.run([sys.executable, script, saved, *options, "--out", out], capture_output=True, text=True,
                              check=False)
        check(done.returncode == code and says in done.stdout + done.stderr,
              "capture.py %s: exit %d: %s%s" % (options, done.returncode, done.stdout, done.stderr))


# ---- vLLM's interface, played by a decoder of its shape: vLLM itself wants a GPU ----

class Attention(torch.nn.Module):
    """Called as vLLM's layer of this name is: rows of tokens, heads side by side; the last argument by name."""

    def __init__(self, heads, kv_heads, size):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_size = heads, kv_heads, size
        self.seen = []

    def forward(self, query, key, value):
        self.seen.append((query.clone(), key.clone(), value.clone()))
        q, k, v = (x.reshape(x.shape[0], -1, self.head_size) for x in (query, key, value))
        return torch.from_numpy(attention(q, k, v, True)).to(query.dtype)


class Decoder(torch.nn.Module):
    """Two layers with grouped heads, random weights."""

    def __init__(self, heads=6, kv_heads=2, size=8):
        super().__init__()
        width = heads * size
        self.embed = torch.nn.Embedding(40, width)
        self.project = torch.nn.ModuleList(torch.nn.Linear(width, (heads + 2 * kv_heads) * size) for _ in range(2))
        self.attend = torch.nn.ModuleList(Attention(heads, kv_heads, size) for _ in range(2))
        self.cut = [width, kv_heads * size, kv_heads * size]

    def forward(self, ids):
        x = self.embed(ids)
        for project, attend in zip(self.project, self.attend):
            q, k, v = project(x).split(self.cut, dim=-1)
            x = x + attend(q, k, value=v)
        return x


class Engine:
    """apply_model and generate of vllm.LLM: a request runs alone, in pieces, and padded to a multiple of four tokens."""

    def __init__(self, workers=1, cached=0):
        torch.manual_seed(3)
        self.model, self.workers, self.cached, self.calls = Decoder(), workers, cached, 0

    def apply_model(self, function):
        return [function(self.model) for _ in range(self.workers)]

    def generate(self, prompts, _sampling, use_tqdm):
        check(len(prompts) == 1 and use_tqdm is False, "one request at a time")
        ids = prompts[0]["prompt_token_ids"]
        self.calls += 1
        left = ids[self.cached:] if self.calls > 1 else ids
        with torch.no_grad():
            self.model(torch.tensor(left + [0] * (-len(left) % 4), dtype=torch.int64))
        return [type("Output", (), {"prompt_token_ids": ids})]


def check_vllm(folder):
    engine = Engine()
    tensors = capture_vllm.capture(engine, REQUESTS, sampling=object())
    check_shapes("vllm", tensors, 2, 6, 2)
    for n, layer in enumerate(engine.model.attend):
        check(not layer._forward_pre_hooks, "vllm: hooks are left on layer %d" % n)
        for which, part in (("q", 0), ("k", 1), ("v", 2)):
            own = torch.cat([call[part][:len(ids)] for call, ids in zip(layer.seen, REQUESTS)])
            check(torch.equal(tensors["layers.%d.%s" % (n, which)].reshape(own.shape), own), "vllm: layer %d %s" % (n, which))
    path = os.path.join(folder, "vllm.safetensors")
    capture.write_safetensors(path, tensors, {"model": "random"})
    for engine, requests, says in ((Engine(workers=2), REQUESTS, "one: capture with tensor_parallel_size=1"),
                                   (Engine(cached=2), REQUESTS[::2], "enable_prefix_caching=False"),
                                   (Engine(), [], "no requests")):
        try:
            capture_vllm.capture(engine, requests, sampling=object())
        except capture.CaptureError as error:
            check(says in str(error), "vllm: '%s' does not say '%s'" % (error, says))
            continue
        check(False, "vllm: taken, though: %s" % says)
    try:
        capture_vllm.install(torch.nn.Linear(2, 2))
    except capture.CaptureError:
        return path
    return check(False, "vllm: a model without attention was taken")


def check_record(path):
    """attest reads what was captured: with BUILD, as the tests are run."""
    if not os.environ.get("BUILD"):
        return
    out = path + ".h5"
    done = subprocess.run([os.path.join(os.environ["BUILD"], "attest"), "record", path, "--attention", "softmax", "--params", "causal=1", "--out",
                           out],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and os.path.exists(out), "attest record: %s" % done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_models(folder)


def check_models(folder):
    interface = hasattr(transformers, "AttentionInterface")
    for name, model, h, hk in models():
        causal = name != "bert"
        model = model.float().eval()
        wanted = contexts(name, model)
        projections = capture.capture(model, REQUESTS)
        check_shapes(name, projections, 3, h, hk)
        check_file(name, projections, folder)
        if name in ("gpt2", "bert"):  # no rotary positions: what leaves the projections is what attention gets
            check_leads_to_output(name, projections, wanted, causal)
        if interface:
            received = capture.capture(model, REQUESTS, "attention")
            check_shapes(name, received, 3, h, hk)
            check_leads_to_output(name, received, wanted, causal)
            for n in range(3):  # v has no positions in any of them
                key = "layers.%d.v" % n
                check(torch.equal(received[key], projections[key]), "%s: %s differs between the places" % (name, key))
    half = capture.capture(next(m for n, m, _, _ in models() if n == "llama").bfloat16(), REQUESTS)
    check(half["layers.0.q"].dtype == torch.bfloat16, "bf16 model: q is %s" % half["layers.0.q"].dtype)
    check_file("bf16", half, folder)
    check_refusals()
    check_ids(folder, check_decode(folder))
    check_record(check_vllm(folder))
    check_record(os.path.join(folder, "llama1.safetensors"))
    print("ok: 4 models, both places, decode steps, token ids, and vLLM's interface%s" % ("" if interface else " (no AttentionInterface: projections only)"))


main()
