"""Records q, k and v of every attention layer of a Hugging Face model as one safetensors file that attest reads.
SPDX-License-Identifier: Apache-2.0

    python3 capture.py MODEL --text passages.txt --out mine.safetensors [--at projections|attention] [--decode STEPS]
    python3 capture.py MODEL --ids ids.txt --out mine.safetensors

MODEL is a local folder or a hub name; the text file has one request a line ('#' starts a comment line). --ids has token ids
instead, a request a line, with spaces or commas: no tokenizer is asked. Each request runs alone, so the file has no padding
tokens. Written, with t tokens in all requests together:

    layers.N.q [t, h, d]    layers.N.k, layers.N.v [t, hk, d]    query_start i32 [b + 1]    token_ids i32 [t]

token_ids say which request is which: `attest drift` pairs two captures by them whatever happens to the values.
--decode STEPS (decoders) goes on from each request greedily: behind it, for each step, a request of one query, the new token,
and the keys of all tokens so far; key_start i32 [b + 1] then says where keys begin, of k, v and token_ids.

in the number format the model computed them in. Two places to look:
  projections  the outputs of the linear projections: before rotary positions, q/k norms and the scale
  attention    what the attention function is called with: after rotary positions and q/k norms, before the scale;
               what a kernel is given. Needs a transformers version with AttentionInterface.

Needs torch, transformers and numpy. record_minilm.py and the tests use the functions.
"""
import argparse
import math
import sys

import numpy
import torch
import transformers

from capture_file import CaptureError, write_safetensors

# Three linear layers of one attention module, by their names in query, key, value order.
SPLIT_NAMES = (("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("q_lin", "k_lin", "v_lin"))
# One linear layer that gives all three: "blocks" = all of q, then all of k, then all of v; "heads" = q, k, v of head
# 0, then of head 1, ...
FUSED_NAMES = {"c_attn": "blocks", "qkv_proj": "blocks", "Wqkv": "blocks", "query_key_value": "heads"}
# Fused layouts with these model types differ from the above: refused rather than mixed up.
UNKNOWN_LAYOUTS = ("falcon", "chatglm", "mpt", "dbrx")


def sizes(config):
    """(h, hk, d) of a model's configuration."""
    h = config.num_attention_heads
    hk = getattr(config, "num_key_value_heads", None) or h
    d = getattr(config, "head_dim", None) or config.hidden_size // h
    return h, hk, d


def attention_layers(model):
    """Attention modules in the order of the layers: list of (module name, {"q": (module, part), ...}).

    part is None for a projection of its own, else the layout of the fused projection."""
    found = []
    for name, module in model.named_modules():
        children = dict(module.named_children())
        for names in SPLIT_NAMES:
            if all(n in children for n in names):
                found.append((name, {w: (children[n], None) for w, n in zip("qkv", names)}))
        for fused, layout in FUSED_NAMES.items():
            if fused in children:
                found.append((name, {w: (children[fused], layout) for w in "qkv"}))
    if not found:
        known = [" ".join(n) for n in SPLIT_NAMES] + sorted(FUSED_NAMES)
        raise CaptureError("no attention projections found in %s; known names: %s"
                           % (type(model).__name__, "; ".join(known)))
    if model.config.model_type in UNKNOWN_LAYOUTS and any(p["q"][1] for _, p in found):
        raise CaptureError("model type %s packs q, k and v in a layout this script does not know"
                           % model.config.model_type)
    return found


def part_of(output, which, layout, h, hk, d):
    """The q, k or v part, [tokens, heads, d], of a projection's output [1, tokens, width]."""
    heads = h if which == "q" else hk
    t = output.shape[-2]
    wanted = heads * d if layout is None else (h + 2 * hk) * d
    if output.shape[-1] != wanted:
        raise CaptureError("projection %s is %d wide, wanted %d (h=%d hk=%d d=%d)"
                           % (which, output.shape[-1], wanted, h, hk, d))
    flat = output.reshape(t, wanted)
    if layout == "blocks":
        start = {"q": 0, "k": h * d, "v": (h + hk) * d}[which]
        flat = flat[:, start:start + heads * d]
    elif layout == "heads":
        if h != hk:
            raise CaptureError("a fused projection by heads with h=%d, hk=%d is not known" % (h, hk))
        flat = flat.reshape(t, h, 3, d)[:, :, "qkv".index(which), :]
    return flat.reshape(t, heads, d).detach().clone()


def run_with_projection_hooks(model, requests):
    """Per request and layer {"q", "k", "v"}, from forward hooks on the projections."""
    layers = attention_layers(model)
    h, hk, d = sizes(model.config)
    current = {}
    handles = []
    for n, (_, projections) in enumerate(layers):
        for which, (module, layout) in projections.items():
            def hook(_module, _inputs, output, n=n, which=which, layout=layout):
                current.setdefault(n, {})[which] = part_of(output, which, layout, h, hk, d)
            handles.append(module.register_forward_hook(hook))
    try:
        captured = []
        for ids in requests:
            current.clear()
            forward(model, ids)
            missing = [layers[n][0] for n in range(len(layers)) if len(current.get(n, {})) != 3]
            if missing:
                raise CaptureError("the forward pass did not call the projections of %s" % missing[0])
            captured.append([current[n] for n in range(len(layers))])
        return captured
    finally:
        for handle in handles:
            handle.remove()


def run_with_attention_function(model, requests):
    """Per request and layer {"q", "k", "v"} as the attention function receives them."""
    interface = getattr(transformers, "AttentionInterface", None)
    if interface is None:
        raise CaptureError("transformers %s has no AttentionInterface; use --at projections" % transformers.__version__)
    current = []
    inner = interface()["sdpa"]

    def recording(module, query, key, value, attention_mask, **options):
        rows = {w: x[0].transpose(0, 1).detach().clone() for w, x in zip("qkv", (query, key, value))}
        current.append(rows)
        return inner(module, query, key, value, attention_mask, **options)

    interface.register("attest_capture", recording)
    if hasattr(transformers, "AttentionMaskInterface"):  # masks are made by the name of the attention function too
        masks = transformers.AttentionMaskInterface
        masks.register("attest_capture", masks()["sdpa"])
    before = model.config._attn_implementation
    model.set_attn_implementation("attest_capture")
    try:
        captured = []
        for ids in requests:
            current.clear()
            forward(model, ids)
            if not current:
                raise CaptureError("%s does not call the attention interface; use --at projections"
                                   % type(model).__name__)
            captured.append(list(current))
        return captured
    finally:
        model.set_attn_implementation(before)


def check_requests(requests):
    """At least one request, and none empty."""
    empty = sum(len(ids) == 0 for ids in requests)
    if not requests or empty:
        raise CaptureError("found %d requests, %d of them without tokens; wanted at least one and none empty"
                           % (len(requests), empty))


def forward(model, ids):
    """One request through the model, alone, without a cache."""
    options = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
    with torch.no_grad():
        return model(input_ids=torch.as_tensor([ids]), **options)


def capture(model, requests, at="projections"):
    """q, k, v of every layer over a ragged batch: {"layers.N.q": tensor [t, h, d], ..., "query_start": i32}.

    requests: a list of lists of token ids, none empty."""
    check_requests(requests)
    model.eval()
    run = {"projections": run_with_projection_hooks, "attention": run_with_attention_function}[at]
    per_request = run(model, requests)
    tensors = {}
    for n in range(len(per_request[0])):
        for which in "qkv":
            tensors["layers.%d.%s" % (n, which)] = torch.cat([r[n][which] for r in per_request])
    starts = numpy.cumsum([0] + [len(ids) for ids in requests])
    tensors["query_start"] = torch.tensor(starts, dtype=torch.int32)
    tensors["token_ids"] = torch.tensor([i for ids in requests for i in ids], dtype=torch.int32)
    return tensors


def with_steps(model, requests, steps):
    """Each request, and then itself longer by the token the model gives next, `steps` times: [(ids, first query)].

    Greedy, without a cache, so that what a step is compared with is what the whole request gives."""
    made = []
    for ids in requests:
        made.append((list(ids), 0))
        longer = list(ids)
        for _ in range(steps):
            logits = getattr(forward(model, longer), "logits", None)
            if logits is None:
                raise CaptureError("%s gives no logits: decode steps want a model that makes text" % type(model).__name__)
            longer = longer + [int(logits[0, -1].argmax())]
            made.append((list(longer), len(longer) - 1))
    return made


def capture_decode(model, requests, steps, at="projections"):
    """The tensors of capture() for each request and `steps` decode steps behind it: a step has one query, the last token, and
    the keys of all tokens so far (key_start).

    The model is causal: the keys of a longer text begin with those of the shorter one, so a step's keys are what a cache
    holds then, but for the order of its sums."""
    check_requests(requests)
    model.eval()
    made = with_steps(model, requests, steps)
    whole = capture(model, [ids for ids, _ in made], at)
    starts = whole["query_start"].tolist()
    queries = torch.cat([torch.arange(starts[r] + first, starts[r + 1]) for r, (_, first) in enumerate(made)])
    tensors = {name: x[queries] if name.endswith(".q") else x for name, x in whole.items()}
    lengths = [len(ids) - first for ids, first in made]
    tensors["key_start"] = whole["query_start"]
    tensors["query_start"] = torch.tensor(numpy.cumsum([0] + lengths), dtype=torch.int32)
    return tensors


def read_passages(path):
    """The lines of a text file that are neither blank nor comments."""
    with open(path, encoding="utf-8") as lines:
        stripped = [line.strip() for line in lines]
    return [line for line in stripped if line and not line.startswith("#")]


def read_ids(path):
    """Token ids, a request a line, with spaces or commas between them."""
    requests = []
    for n, line in enumerate(read_passages(path), 1):
        words = line.replace(",", " ").split()
        if not all(word.isdigit() for word in words):
            raise CaptureError("%s: request %d is '%.40s', wanted token ids, numbers with spaces or commas" % (path, n, line))
        requests.append([int(word) for word in words])
    return requests


def tokenize(folder, passages, most):
    """Token ids of the passages by the model's own tokenizer; says so where there is none that works."""
    wanted = "%s has no tokenizer that works (%s): give token ids with --ids"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # whatever a missing or unknown tokenizer raises, in any version
        raise CaptureError(wanted % (folder, str(error).strip().split("\n", maxsplit=1)[0][:160])) from error
    requests = [tokenizer(p)["input_ids"][:most] for p in passages]
    if passages and not any(requests):
        raise CaptureError(wanted % (folder, "a %s that makes no token of any text" % type(tokenizer).__name__))
    return requests


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0],
                                     epilog="example: capture.py ./my-llama --text text.txt --out llama.safetensors")
    parser.add_argument("model")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="one request a line; lines starting with # are comments")
    source.add_argument("--ids", help="token ids, one request a line: no tokenizer is asked")
    parser.add_argument("--out", required=True)
    parser.add_argument("--at", choices=("projections", "attention"), default="projections")
    parser.add_argument("--max-tokens", type=int, default=4096, help="longer requests are cut (default %(default)s)")
    parser.add_argument("--decode", type=int, default=0, metavar="STEPS", help="decode steps behind each request (default 0)")
    options = parser.parse_args()
    kind = transformers.AutoModelForCausalLM if options.decode > 0 else transformers.AutoModel
    try:
        requests = ([ids[:options.max_tokens] for ids in read_ids(options.ids)] if options.ids
                    else tokenize(options.model, read_passages(options.text), options.max_tokens))
        model = kind.from_pretrained(options.model)
        tensors = (capture_decode(model, requests, options.decode, options.at) if options.decode > 0
                   else capture(model, requests, options.at))
    except CaptureError as error:
        sys.exit("capture.py: %s" % error)
    metadata = {"model": options.model, "captured_at": options.at, "scale": repr(1 / math.sqrt(sizes(model.config)[2])),
                "transformers": transformers.__version__, "torch": torch.__version__}
    write_safetensors(options.out, tensors, metadata)
    layers = sum(name.endswith(".q") for name in tensors)
    print("%s: %d layers, %d requests, %d tokens"
          % (options.out, layers, len(tensors["query_start"]) - 1, int(tensors["query_start"][-1])))


if __name__ == "__main__":
    main()
