"""Records q, k and v of every attention layer of a model that vLLM runs, as one safetensors file that attest reads.
SPDX-License-Identifier: Apache-2.0

    VLLM_ENABLE_V1_MULTIPROCESSING=0 python3 capture_vllm.py MODEL --text passages.txt --out mine.safetensors

What is recorded is what vLLM gives its attention backend: after rotary positions and q/k norms, before the scale and the
key/value cache. The text file has one request a line ('#' starts a comment line); each runs alone, so that the tokens of
one call are those of one request. Written, with t tokens in all requests together:

    layers.N.q [t, h, d]    layers.N.k, layers.N.v [t, hk, d]    query_start i32 [b + 1]    token_ids i32 [t]

--ids has token ids instead of text, a request a line: a model without a tokenizer wants them (skip_tokenizer_init). NOT RUN
on vLLM itself: tests/python/test_capture.py plays its interface. Prompts alone; decode steps are not recorded here.

In your own program: `capture(llm, prompts)` gives the same tensors; `llm` is a vllm.LLM made with enforce_eager=True (the
layers are then called from Python), enable_prefix_caching=False (every token passes the layers) and one GPU.
Written against vLLM 0.33.0 (LLM.apply_model, layers of class Attention with num_heads, num_kv_heads and head_size).
"""
import argparse
import math
import sys

import torch

from capture import read_ids, read_passages
from capture_file import CaptureError, write_safetensors


def install(model):
    """Hooks on every attention layer of a model, in the order of the layers; what passes is kept on the model."""
    layers = [m for m in model.modules() if type(m).__name__ == "Attention" and hasattr(m, "num_kv_heads")]
    if not layers:
        raise CaptureError("no vLLM attention layers (class Attention with num_kv_heads) found in %s" % type(model).__name__)
    model.attest_passed = passed = [{w: [] for w in "qkv"} for _ in layers]
    model.attest_hooks = []
    for kept, layer in zip(passed, layers):
        def hook(module, inputs, options, kept=kept):
            named = dict(zip(("query", "key", "value"), inputs), **options)
            for which, x, heads in (("q", named["query"], module.num_heads), ("k", named["key"], module.num_kv_heads),
                                    ("v", named["value"], module.num_kv_heads)):
                if x is None:
                    raise CaptureError("an attention layer shares its keys with another one: not known")
                kept[which].append(x.detach().reshape(-1, heads, module.head_size).to("cpu", copy=True))
        model.attest_hooks.append(layer.register_forward_pre_hook(hook, with_kwargs=True))
    return len(layers)


def collect(model):
    """What has passed since the last call: one {"q", "k", "v"} a layer."""
    taken = [{which: torch.cat(parts) for which, parts in kept.items()} if kept["q"] else None
             for kept in model.attest_passed]
    for kept in model.attest_passed:
        for parts in kept.values():
            parts.clear()
    return taken


def remove(model):
    """Takes the hooks away."""
    for handle in model.attest_hooks:
        handle.remove()
    del model.attest_hooks, model.attest_passed


def alone(results):
    """The result of the only worker."""
    if len(results) != 1:
        raise CaptureError("found %d workers, wanted one: capture with tensor_parallel_size=1" % len(results))
    return results[0]


def capture(llm, prompts, sampling=None):
    """{"layers.N.q": tensor [t, h, d], ..., "query_start": i32 [b + 1]} of a vllm.LLM.

    prompts: texts or lists of token ids. sampling: parameters for one token (default: made from vllm)."""
    if sampling is None:
        from vllm import SamplingParams
        sampling = SamplingParams(max_tokens=1, temperature=0)
    alone(llm.apply_model(install))
    requests, tokens, token_ids = [], [], []
    try:
        for prompt in prompts:
            given = prompt if isinstance(prompt, str) else {"prompt_token_ids": list(prompt)}
            outputs = llm.generate([given], sampling, use_tqdm=False)
            n = len(outputs[0].prompt_token_ids)
            layers = alone(llm.apply_model(collect))
            for i, layer in enumerate(layers):
                found = 0 if layer is None else layer["q"].shape[0]
                # Padding comes after the request's own tokens; fewer than its own means that some came from a cache.
                if found < n:
                    raise CaptureError("layer %d: %d of a request's %d tokens passed; wanted enforce_eager=True and "
                                       "enable_prefix_caching=False" % (i, found, n))
            requests.append([{w: x[:n] for w, x in layer.items()} for layer in layers])
            tokens.append(n)
            token_ids += outputs[0].prompt_token_ids
    finally:
        llm.apply_model(remove)
    if not requests:
        raise CaptureError("found no requests, wanted at least one")
    tensors = {"layers.%d.%s" % (i, w): torch.cat([r[i][w] for r in requests])
               for i in range(len(requests[0])) for w in "qkv"}
    starts = [sum(tokens[:i]) for i in range(len(tokens) + 1)]
    return dict(tensors, query_start=torch.tensor(starts, dtype=torch.int32),
                token_ids=torch.tensor(token_ids, dtype=torch.int32))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="one request a line; lines starting with # are comments")
    source.add_argument("--ids", help="token ids, one request a line: no tokenizer is asked")
    parser.add_argument("--out", required=True)
    parser.add_argument("--dtype", default="auto")
    options = parser.parse_args()
    from vllm import LLM, __version__
    try:
        prompts = read_ids(options.ids) if options.ids else read_passages(options.text)
        llm = LLM(options.model, dtype=options.dtype, enforce_eager=True, enable_prefix_caching=False,
                  skip_tokenizer_init=bool(options.ids))
        tensors = capture(llm, prompts)
    except CaptureError as error:
        sys.exit("capture_vllm.py: %s" % error)
    d = tensors["layers.0.q"].shape[-1]
    write_safetensors(options.out, tensors, {"model": options.model, "captured_at": "attention", "vllm": __version__,
                                             "scale": repr(1 / math.sqrt(d))})
    print("%s: %d layers, %d requests, %d tokens" % (options.out, (len(tensors) - 2) // 3, len(tensors["query_start"]) - 1,
                                                    tensors["layers.0.q"].shape[0]))


if __name__ == "__main__":
    main()
