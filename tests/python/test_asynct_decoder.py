#!/usr/bin/env python3
"""The PyTorch model of datasets/activations/asynct_decoder.py is made of this project's operators: attest judges each function as a
kernel. Then a small pair is trained on this project's pages, measured and recorded, and attest reads what was recorded.
SPDX-License-Identifier: Apache-2.0

    test_asynct_decoder.py            the test; skipped (exit 77) where torch or numpy is missing; AT_TORCH_PYTHON names a Python with both
    test_asynct_decoder.py --serve    a runner whose kernels are the model's functions
"""
import glob
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

needed = [n for n in ("torch", "numpy") if importlib.util.find_spec(n) is None]
if needed and os.environ.get("AT_TORCH_PYTHON") and not os.environ.get("AT_TORCH_RETRY"):
    os.environ["AT_TORCH_RETRY"] = "1"
    os.execv(os.environ["AT_TORCH_PYTHON"], [os.environ["AT_TORCH_PYTHON"], os.path.abspath(__file__)] + sys.argv[1:])
if needed:
    print("not installed: %s (AT_TORCH_PYTHON=/path/to/python names one that has them)" % ", ".join(needed))
    sys.exit(77)

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SCRIPTS = os.path.join(ROOT, "datasets", "activations")
sys.path[:0] = [SCRIPTS, HERE]
import torch

import asynct_decoder as model_of
import docs_corpus
import runner_client

torch.set_num_threads(1)


# ---- the runner ----

class Unfit(Exception):
    """The model has no such operator; the message says which part."""


def get(job, name):
    t = job.t[name]
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32}[t.format]
    count = math.prod(t.shape)
    return torch.frombuffer(t.data, dtype=kind, count=count).view(t.shape) if count else torch.empty(t.shape, dtype=kind)


def put(job, name, x):
    if x.numel():
        get(job, name).copy_(x.reshape(job.t[name].shape))


def attention(job):
    """Request by request, as the model runs them; padded, paged and ragged as the job has it."""
    s, q, k, v = job.size, get(job, "q"), get(job, "k"), get(job, "v")
    if not math.isclose(job.param["scale"], 1 / math.sqrt(s["d"]), rel_tol=1e-6):
        raise Unfit("the model's scale is 1/sqrt(d)")
    out = torch.zeros(job.t["o"].shape, dtype=q.dtype)
    for r in range(s["b"]):
        first, end, keys = job.t["query_start"][r], job.t["query_start"][r + 1], job.t["seq_lens"][r]
        if not job.param["causal"] and end - first > 1:
            raise Unfit("the model is causal")
        at = torch.tensor([runner_client.key_slot(job, r, t) for t in range(keys)], dtype=torch.long)
        if end > first and keys >= end - first:
            one = q[None, first:end], k[at][None], v[at][None]
            if job.op == "softmax_attention":
                o, lse = model_of.softmax_attention(*one, p_dtype=torch.float32, with_lse=True)
                get(job, "lse")[first:end] = lse[0]
            else:
                o = asynct(job, *one)
            out[first:end] = o[0]
    put(job, "o", out)


def asynct(job, q, k, v):
    """P in f32, whatever the inputs are."""
    if not job.param["relu_pre"]:
        raise Unfit("the model has a ReLU before the filter")
    taps = get(job, "taps")
    if job.param["fir_form"] == 0:
        if job.param["edge"] or job.size["taps"] != model_of.WINDOW:
            raise Unfit("the model's window is 3, its edge zero")
        taps = model_of.taps_of(get(job, "sigma"))
    ends = (job.param["clip_min"], job.param["clip_max"])
    return model_of.asynct_attention(q, k, v, taps, get(job, "gamma"), ends, p_dtype=torch.float32)


def uclip(job, x, suffix="", beta="beta"):
    names = [n + suffix for n in ("alpha", "gamma")]
    return model_of.uclip_norm(x, *(get(job, n) for n in names), get(job, beta + suffix) if beta else None, job.param["lo"],
                               job.param["hi"])


def add_uclip(job):
    res = get(job, "x") + get(job, "res")
    put(job, "res_out", res)
    put(job, "y", uclip(job, res))


def peri(job):
    res = uclip(job, get(job, "a"), "_post") + get(job, "res")
    put(job, "res_out", res)
    put(job, "y", uclip(job, res, "_pre"))


def qk_uclip(job):
    for name in "qk":
        put(job, name + "_out", uclip(job, get(job, name), "_" + name, beta=""))


def rope(job):
    table = get(job, "cos_sin")
    if job.param["style"] or job.size["rot"] != job.size["d"] or table.dtype != torch.float32:
        raise Unfit("the model turns all channels, by halves, with an f32 table")
    own = torch.cat(model_of.rope_table(len(table), job.size["d"], job.param["base"]), 1)
    at = get(job, "positions").long()
    for name in "qk":
        put(job, name + "_out", model_of.rope(get(job, name), *own[at].chunk(2, 1)))


def add_rms(job):
    res = get(job, "x") + get(job, "res")
    put(job, "res_out", res)
    put(job, "y", model_of.rms_norm(res, get(job, "gamma"), job.param["eps"]))


FAMILIES = {"asynct_prefill": attention, "asynct_decode": attention, "softmax_prefill": attention, "softmax_decode": attention,
            "uclip_norm": lambda job: put(job, "y", uclip(job, get(job, "x"))), "add_uclip_norm": add_uclip,
            "post_attn_pre_mlp_uclip": peri, "qk_uclip_norm": qk_uclip, "rope": rope,
            "reglu": lambda job: put(job, "y", model_of.reglu(get(job, "gate_up"))),
            "silu_mul": lambda job: put(job, "y", model_of.silu_mul(get(job, "gate_up"))),
            "rms_norm": lambda job: put(job, "y", model_of.rms_norm(get(job, "x"), get(job, "gamma"), job.param["eps"])),
            "add_rms_norm": add_rms}


class Runner(runner_client.Runner):
    """The model's functions, one variant a family."""

    numerics = "free_order=1 qk_unit=f32 pv_unit=f32 gamma_on=output clamp=propagate pv_zero=multiplied batch_invariant=0"

    def hello(self):
        self.write(runner_client.make_line("hello", protocol=runner_client.PROTOCOL, name="asynct_decoder.py", device="PyTorch",
                                           transports="memfd,inline", variants=len(FAMILIES)))
        for i, family in enumerate(FAMILIES):
            self.write(runner_client.make_line("variant", index=i, family=family, name="71_model", sha256="", source="ours",
                                               path="datasets/activations/asynct_decoder.py", summary="PyTorch",
                                               numerics=self.numerics))
        self.write(b"ready\n")
        self.bad_variant = -1
        self.names = list(FAMILIES)
        for op in set(FAMILIES) | {"asynct_attention", "softmax_attention"}:
            runner_client.OPERATORS[op] = self.fitting

    def fitting(self, job):
        FAMILIES[self.names[job.variant]](job)

    def job(self, fields):
        try:
            return super().job(fields)
        except Unfit as reason:
            return self.write(runner_client.make_line("unsupported", id=dict(fields)["id"], reason=reason))


# ---- the test ----

OF_HEADS = "h=4 hk=2 sigma=1:0.5:-0.3:2 gamma=0.0625:1:-0.5:0.25"
CASES = ["asynct_prefill b=3 sq=17/40/1 sk=17/64/33 d=16 causal=1 dtype=f32,bf16 " + OF_HEADS,
         "asynct_prefill b=2 sq=70/9 d=128 causal=1 page=16 dtype=f32,f16 data=normal,sparse70 " + OF_HEADS,
         "asynct_prefill b=1 sq=40 d=32 causal=1 dtype=f32 taps=0.5:-0.25:-0.125:0.25 clip=0.1:0.8 h=3 hk=1",
         "asynct_decode b=3 sk=17/64/200 d=128 dtype=f32,bf16 hot=last_key " + OF_HEADS,
         "softmax_prefill b=3 sq=17/40/1 sk=17/64/33 d=16 causal=1 dtype=f32,bf16 h=4 hk=2",
         "softmax_decode b=3 sk=17/64/200 d=128 dtype=f32 h=4 hk=2", "uclip_norm tokens=9 channels=96 dtype=f32,bf16",
         "add_uclip_norm tokens=9 channels=96 dtype=f32,bf16", "post_attn_pre_mlp_uclip tokens=9 channels=96 dtype=f32,bf16",
         "qk_uclip_norm tokens=9 h=4 hk=2 d=32 gamma_per=tensor dtype=f32,bf16", "rope b=2 sq=9/17 prefix=5 h=4 hk=2 d=32 dtype=f32,bf16",
         "reglu tokens=9 channels=96 halves=together dtype=f32,bf16", "silu_mul tokens=9 channels=96 halves=together dtype=f32,bf16",
         "rms_norm tokens=9 channels=96 dtype=f32,bf16", "add_rms_norm tokens=9 channels=96 dtype=f32,bf16"]


def check(condition, message):
    if not condition:
        sys.exit("FAIL %s" % message)


def attest(*arguments, **environment):
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    done = subprocess.run([os.path.join(build, "attest"), *arguments], capture_output=True, text=True, check=False,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout + done.stderr


def verify(case, *more, **environment):
    runner = "%s %s --serve" % (sys.executable, os.path.abspath(__file__))
    return attest("verify", "--runner", runner, "--case", case, "--strict", "--jobs", "1", *more, **environment)


def check_operators():
    for case in CASES:
        code, said = verify(case)
        check(code == 0 and "PASS" in said, "%s: exit %d\n%s" % (case, code, said[-3000:]))


def pages():
    """This project's own pages as a text to learn: one in eight is held out."""
    found = sorted(glob.glob(os.path.join(ROOT, "**", "*.md"), recursive=True))
    texts = []
    for path in found:
        if "/build" not in path:
            with open(path, "rb") as page:
                texts.append(page.read() + b"\0")
    held_out = texts[::8]
    return b"".join(t for i, t in enumerate(texts) if i % 8), b"".join(held_out)


def train(folder, steps):
    with open(os.path.join(folder, "docs.xz"), "wb") as out:
        out.write(docs_corpus.pack(*pages(), [])[0])
    command = [sys.executable, os.path.join(SCRIPTS, "train_asynct.py"), "--corpus", os.path.join(folder, "docs.xz"), "--out",
               os.path.join(folder, "activations"), "--size", "tiny", "--device", "cpu", "--no-compile", "--seconds", "3600", "--reserve", "9",
               "--batch", "8", "--lr", "3e-3", "--windows", "8", "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, OMP_NUM_THREADS="1"))
    check(done.returncode == 0, "train_asynct.py: exit %d\n%s" % (done.returncode, (done.stdout + done.stderr)[-2000:]))
    with open(os.path.join(folder, "activations", "results.json"), encoding="utf-8") as results:
        return json.load(results)


def check_training(folder):
    said = train(folder, 220)
    unigram = said["about"]["unigram_nats_per_byte"]
    for kind, model in said["models"].items():
        loss = model["loss"]["attention"]["f32"]["nats_per_byte"]
        check(loss < unigram - 0.2, "%s: held-out loss %.3f, wanted below that of byte frequencies, %.3f" % (kind, loss, unigram))
        for name in ("record_error", "record_steps_error"):
            check(model[name] <= 2 ** -6, "%s: %s is %g: what was recorded is not what attention got" % (kind, name, model[name]))
    return said


def check_recording(folder, said):
    """attest counts what is recorded, zeros as the statistics do; and it judges the model's attention on recorded values."""
    for kind in said["models"]:
        for which in ("docs", "docs_steps"):
            path = os.path.join(folder, "activations", "%s_%s.safetensors" % (kind, which))
            code, text = attest("record", path, "--attention", kind, "--params", "causal=1", "--out", os.path.join(folder, "d.h5"))
            check(code == 0 and "2 layers, 2 and 1 heads" in text, "record %s %s: exit %d\n%s" % (kind, which, code, text))
    for n in range(2):  # a case has one sigma for all heads of a dataset
        case = "asynct_prefill dataset=asynct_docs layer=%d causal=1 dtype=%s sigma=1 gamma=0.0625" % (n, ("f32", "bf16")[n])
        code, text = verify(case, AT_DATASETS=folder)
        check(code == 0 and "PASS" in text, "%s: exit %d\n%s" % (case, code, text[-3000:]))


def main():
    if sys.argv[1:] == ["--serve"]:
        return Runner("memfd,inline", "", "").serve()
    check_operators()
    with tempfile.TemporaryDirectory() as folder:
        said = check_training(folder)
        check_recording(folder, said)
    print("%d lines of cases; trained: %s" % (len(CASES), ", ".join("%s %.3f" % (k, m["loss"]["attention"]["f32"]["nats_per_byte"])
                                                                for k, m in said["models"].items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
