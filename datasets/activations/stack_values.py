"""A trained decoder of asynct_decoder.py as a file of tensors for `attest stack asynct_model --values FILE --loss logits` (or
softmax_model): weights, parameters of norms and gates, embeddings of some windows of text, and what came next in it.
SPDX-License-Identifier: Apache-2.0

numpy alone: train_asynct.py calls it with --stack-windows, and a test with weights that nobody trained. Numbers are f32; attest
rounds them to the stack's format. Names: verify/stack/README.md.
"""
import numpy

WINDOW = 3  # of the gate: asynct_decoder.WINDOW

# the model's name: the stack's step and tensor
ASYNCT = {"norm_alpha": "add_norm.alpha", "norm_gamma": "add_norm.gamma", "norm_beta": "add_norm.beta",
          "q_alpha": "qk_norm.alpha_q", "k_alpha": "qk_norm.alpha_k", "q_gamma": "qk_norm.gamma_q", "k_gamma": "qk_norm.gamma_k",
          "post_alpha": "peri.alpha_post", "post_gamma": "peri.gamma_post", "post_beta": "peri.beta_post",
          "pre_alpha": "peri.alpha_pre", "pre_gamma": "peri.gamma_pre", "pre_beta": "peri.beta_pre",
          "sigma": "attention.sigma", "gamma": "attention.gamma"}
SOFTMAX = {"norm_gamma": "add_norm.gamma", "q_gamma": "q_norm.gamma", "k_gamma": "k_norm.gamma", "pre_gamma": "pre_mlp.gamma"}
MATRICES = {name: "w_" + name for name in ("q", "k", "v", "o", "gate_up", "down")}


def taps_of(sigma):
    """[h] to [h, WINDOW] in f32: 1 - sigma/3, -sigma/3, -sigma/3, each rounded once from double."""
    share = sigma.astype(numpy.float64)[:, None] / WINDOW
    return (numpy.eye(1, WINDOW) - share).astype(numpy.float32)


def of_layer(kind, weights):
    names = dict(MATRICES, **(ASYNCT if kind == "asynct" else SOFTMAX))
    values = {names[name]: numpy.asarray(x, numpy.float32) for name, x in weights.items()}
    if kind == "asynct":
        values["attention.taps"] = taps_of(values["attention.sigma"])
    return values


def stack_values(kind, embedding, layers, final, head, windows):
    """windows [n, tokens + 1] of token ids; layers: the model's dict of each; final: of its last norm. Returns arrays by name."""
    windows = numpy.asarray(windows)
    x = numpy.asarray(embedding, numpy.float32)[windows[:, :-1]]
    values = {"x": x, "res": numpy.zeros_like(x), "w_head": numpy.asarray(head, numpy.float32),
              "targets": numpy.ascontiguousarray(windows[:, 1:], numpy.int32)}
    values.update((name.replace("final_", "final."), numpy.asarray(x, numpy.float32)) for name, x in final.items())
    for n, weights in enumerate(layers):
        values.update(("layers.%d.%s" % (n, name), x) for name, x in of_layer(kind, weights).items())
    return values


def write(path, values):
    """An npz whose name is `path`, to the letter."""
    with open(path, "wb") as out:
        numpy.savez(out, **values)
