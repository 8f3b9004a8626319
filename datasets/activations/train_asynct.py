"""Trains a decoder with AsyncT attention and its softmax twin on the manuals of Python and PostgreSQL, measures both, records both.
SPDX-License-Identifier: Apache-2.0

    python3 docs_corpus.py build/docs
    python3 train_asynct.py --corpus build/docs/docs.xz --out OUT --seconds 520

Needs torch and numpy; a GPU for the size that is meant (12 layers, hidden 512, context 1024, bytes). Both models see the same
batches in the same order, a step of one after a step of the other. f32 weights and AdamW moments; activations in bf16.
--seconds is for everything: start, training, measuring (--reserve) and recording; the number of steps is what fits, is fixed once
the pace is known, and is in the results: --steps N makes a run of N steps again. The learning rate rises over 100 steps and falls
as a cosine to a tenth. What is random follows --seed and the step's number, so that --resume goes on as an uninterrupted run would.

Into --out: results.json (written anew after each part, so that a run that is killed leaves what it had), curve.csv (loss of
both on the last batches and on held-out text), KIND_docs.safetensors (q, k, v of prompts) and KIND_docs_steps.safetensors (decode
steps behind two of them), KIND = asynct, softmax; with --stack-windows KIND_stack.npz (stack_values.py). Into --work, once a minute: checkpoint.pt, all that --resume needs; it is large.
"""
import argparse
import csv
import datetime
import json
import math
import os
import sys
import time

START = time.monotonic()

import numpy
import torch
from torch.nn import functional

import asynct_measure as measure
import asynct_decoder as model_of
import docs_corpus
import stack_values

KINDS = ("asynct", "softmax")
TINY = {"layers": 2, "hidden": 32, "h": 2, "hk": 1, "d": 16, "inter": 48, "context": 64}
SMALL = {"layers": 4, "hidden": 256, "h": 4, "hk": 2, "d": 64, "inter": 512, "context": 256}  # minutes without a GPU
WARM_UP, PACE_FROM, PACE_STEPS, SAY_EVERY = 100, 30, 30, 50
PROMPTS, STEPS_BEHIND = (17, 48, 200), (0, 2, 1)  # tokens of a prompt, and decode steps behind it


def elapsed():
    return time.monotonic() - START


def say(text):
    print("%6.1f s  %s" % (elapsed(), text), flush=True)


def write_whole(path, text):
    """Replaces a file in one step."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".new", path)


class Results:
    """results.json: what is known so far."""

    def __init__(self, path):
        self.path, self.said = path, {}

    def put(self, name, value):
        self.said[name] = value
        write_whole(self.path, json.dumps(self.said, indent=1, sort_keys=True) + "\n")


def unigram_loss(train, text):
    """Nats a byte of a text under the byte frequencies of the training text: what a model that sees nothing reaches."""
    count = numpy.bincount(numpy.frombuffer(train, numpy.uint8), minlength=256) + 1.0
    return float(-numpy.log(count / count.sum())[numpy.frombuffer(text, numpy.uint8)].mean())


class Trainer:
    """Both models, their optimizers, and where they are."""

    def __init__(self, options, train, held_out, results):
        sizes = {"tiny": TINY, "small": SMALL, "full": {}}[options.size]
        self.options, self.results, self.device = options, results, torch.device(options.device)
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.text = torch.from_numpy(numpy.frombuffer(train, numpy.uint8).copy()).to(self.device)
        self.models, self.optimizers, self.run = {}, {}, {}
        for kind in KINDS:
            model = model_of.Model(model_of.Config(kind, **sizes), options.seed).to(self.device)
            matrices = [p for p in model.parameters() if p.dim() == 2]
            others = [p for p in model.parameters() if p.dim() != 2]
            self.models[kind] = model
            self.optimizers[kind] = torch.optim.AdamW(
                [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=options.lr,
                betas=(0.9, 0.95), fused=self.device.type == "cuda")
            self.run[kind] = torch.compile(model_of.layer, dynamic=False) if options.compile else None
        self.c = self.models["asynct"].c
        self.held_out = measure.windows_of(held_out, self.c.context, 32, self.device)
        self.step, self.steps, self.seconds_before, self.curve = 0, options.steps, 0.0, []

    # ---- a step ----

    def rate(self):
        last = self.steps or 10 ** 6
        if self.step < WARM_UP:
            return self.options.lr * (self.step + 1) / WARM_UP
        share = min(1.0, (self.step - WARM_UP) / max(1, last - WARM_UP))
        return self.options.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * share)))

    def batch(self):
        c, options = self.c, self.options
        starts = numpy.random.default_rng([options.seed, self.step]).integers(0, len(self.text) - c.context - 1, options.batch)
        at = torch.from_numpy(starts).to(self.device)[:, None] + torch.arange(c.context + 1, device=self.device)
        return self.text[at].long()

    def learn(self, kind, ids):
        model, optimizer = self.models[kind], self.optimizers[kind]
        for part in optimizer.param_groups:
            part["lr"] = self.rate()
        torch.manual_seed(self.options.seed * 1000003 + self.step)  # of dropout
        try:
            logits = model(ids[:, :-1], self.dtype, run=self.run[kind], drop=self.options.dropout)
            loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
        except Exception as error:  # whatever a compiler may raise
            if self.run[kind] is None:
                raise
            say("%s: not compiled, goes on without: %s" % (kind, str(error)[:300]))
            self.run[kind] = None
            optimizer.zero_grad(set_to_none=True)
            return self.learn(kind, ids)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def held_out_losses(self):
        said = {}
        for kind, model in self.models.items():
            said[kind] = float(measure.loss_by_window(model, self.held_out, self.dtype, model_of.own_attention, 8).mean())
        return said

    # ---- checkpoints ----

    def save(self):
        path = os.path.join(self.options.work, "checkpoint.pt")
        state = {"step": self.step, "steps": self.steps, "seconds": self.seconds_before + elapsed(), "curve": self.curve,
                 "models": {k: m.state_dict() for k, m in self.models.items()},
                 "optimizers": {k: o.state_dict() for k, o in self.optimizers.items()}}
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)

    def load(self):
        path = os.path.join(self.options.work, "checkpoint.pt")
        if not os.path.exists(path):
            say("no checkpoint in %s: from the beginning" % self.options.work)
            return
        state = torch.load(path, map_location=self.device, weights_only=False)
        self.step, self.curve, self.seconds_before = state["step"], state["curve"], state["seconds"]
        self.steps = self.options.steps or state["steps"]
        for kind in KINDS:
            self.models[kind].load_state_dict(state["models"][kind])
            self.optimizers[kind].load_state_dict(state["optimizers"][kind])
        say("goes on from step %d of %s" % (self.step, self.steps))

    # ---- training ----

    def write_curve(self):
        with open(os.path.join(self.options.out, "curve.csv"), "w", encoding="utf-8", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["step", "seconds", "bytes"] + ["%s_%s" % (k, w) for w in ("train", "held_out") for k in KINDS])
            rows.writerows(self.curve)

    def note(self, recent, with_held_out):
        """A row of the curve: the mean over the steps since the last one."""
        seconds = round(self.seconds_before + elapsed(), 1)
        means = [float(torch.stack(recent[k]).mean()) for k in KINDS]
        held_out = self.held_out_losses() if with_held_out else {}
        row = [self.step, seconds, self.step * self.options.batch * self.c.context] + ["%.5f" % x for x in means]
        row += ["%.5f" % held_out[k] if k in held_out else "" for k in KINDS]
        self.curve.append(row)
        self.write_curve()
        say("step %d of %s: train %s%s" % (self.step, self.steps or "?", " ".join("%s %.4f" % x for x in zip(KINDS, means)),
                                           " held out " + " ".join("%s %.4f" % x for x in held_out.items()) if held_out else ""))
        if not all(map(math.isfinite, means)):
            sys.exit("train_asynct.py: a loss is not finite")

    def pace(self, began):
        """How many steps fit, once some have been timed."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        each = (time.monotonic() - began) / PACE_STEPS
        left = self.options.seconds - self.options.reserve - elapsed()
        self.steps = min(self.options.most_steps, self.step + max(0, int(left / each * 0.94)))  # 0.94: checkpoints, held-out text
        say("%.1f ms a step of both: %d steps" % (1000 * each, self.steps))

    def train(self):
        recent, saved, began = {k: [] for k in KINDS}, elapsed(), None
        first, end = self.step, self.options.seconds - self.options.reserve
        while self.steps is None or self.step < self.steps:
            if elapsed() > end:
                say("time is up at step %d of %s" % (self.step, self.steps))
                break
            ids = self.batch()
            for kind in KINDS:
                recent[kind].append(self.learn(kind, ids))
            self.step += 1
            if self.step == first + 1:
                say("the first step is done")
            if self.steps is None and self.step - first == PACE_FROM:
                if self.device.type == "cuda":
                    torch.cuda.synchronize()
                began = time.monotonic()
            if self.steps is None and self.step - first == PACE_FROM + PACE_STEPS:
                self.pace(began)
            due = elapsed() - saved > self.options.save_every
            if self.step % SAY_EVERY == 0 or due or self.step == self.steps:
                self.note(recent, due or self.step == self.steps)
                recent = {k: [] for k in KINDS}
            if due:
                self.save()
                saved = elapsed()
                say("checkpoint")
        self.save()


# ---- after training ----

def prompts_of(text, context):
    """A prompt of each length: beginnings of held-out pages, evenly spaced. Shorter where the context is."""
    pages = [p for p in text.split(b"\0") if len(p) >= max(PROMPTS)]
    chosen = [pages[i * len(pages) // len(PROMPTS)] for i in range(len(PROMPTS))]
    return [list(page[:min(n, context - max(STEPS_BEHIND))]) for n, page in zip(PROMPTS, chosen)]


def measure_and_record(trainer, held_out, facts):
    options, results, device = trainer.options, trainer.results, trainer.device
    windows = measure.windows_of(held_out, trainer.c.context, options.windows, device)
    prompts, found = prompts_of(held_out, trainer.c.context), {k: {} for k in KINDS}
    metadata = {"made_by": "datasets/activations/train_asynct.py", "corpus_sha256": facts["corpus_sha256"],
                "scale": repr(1 / math.sqrt(trainer.c.d)), "causal": "1", "captured_at": "attention", "torch": torch.__version__,
                "text": "pages of Python's and PostgreSQL's manuals (PSF and PostgreSQL licences), token_ids are its bytes",
                "trained_steps": str(trainer.step), "commit": options.commit}
    for kind, model in trainer.models.items():
        model.eval()
        metadata = dict(metadata, model="%s decoder of asynct_decoder.py" % kind)
        path = os.path.join(options.out, kind + "_docs%s.safetensors")
        behind = [(ids, steps) for ids, steps in zip(prompts, STEPS_BEHIND) if steps]
        found[kind]["record_error"] = measure.record(model, prompts, [0] * len(prompts), path % "", metadata)
        found[kind]["record_steps_error"] = measure.record(model, *zip(*behind), path % "_steps", metadata)
        results.put("models", found)
        say("%s: recorded" % kind)
    for kind, model in trainer.models.items():
        found[kind]["layers"] = measure.statistics(model, windows, options.measure_batch)
        found[kind]["parameters"] = sum(p.numel() for p in model.parameters())
        if kind == "asynct":
            found[kind]["sigma"] = [w["sigma"].tolist() for w in model.layers]
            found[kind]["gamma"] = [w["gamma"].tolist() for w in model.layers]
        results.put("models", found)
        say("%s: statistics" % kind)
    for kind, model in trainer.models.items():
        found[kind]["loss"] = measure.losses_by_arithmetic(model, windows, options.measure_batch)
        results.put("models", found)
        say("%s: losses %s" % (kind, json.dumps({n: x["nats_per_byte"] for n, x in found[kind]["loss"]["attention"].items()})))


def write_stacks(trainer, held_out):
    """KIND_stack.npz: the trained models and the first held-out windows that losses are measured on."""
    windows = measure.windows_of(held_out, trainer.c.context, trainer.options.windows, "cpu")[:trainer.options.stack_windows]
    for kind, model in trainer.models.items():
        plain = {name: x.detach().cpu().float().numpy() for name, x in model.named_parameters()}
        layers = [{name.split(".", 2)[2]: x for name, x in plain.items() if name.startswith("layers.%d." % n)}
                  for n in range(trainer.c.layers)]
        final = {name.split(".", 1)[1]: x for name, x in plain.items() if name.startswith("final.")}
        stack_values.write(os.path.join(trainer.options.out, kind + "_stack.npz"),
                           stack_values.stack_values(kind, plain["embedding"], layers, final, plain["head"], windows.numpy()))
        say("%s: written for attest stack" % kind)


def about(options, facts, train, held_out):
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    return {"device": device, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "commit": options.commit,
            "torch": torch.__version__, "python": sys.version.split()[0], "corpus": facts,
            "unigram_nats_per_byte": unigram_loss(train, held_out), "options": {k: v for k, v in vars(options).items()
                                                                                if k not in ("out", "work", "corpus")}}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--corpus", required=True, help="docs.xz of docs_corpus.py")
    parser.add_argument("--out", required=True)
    parser.add_argument("--work", help="where checkpoints go (default: --out)")
    parser.add_argument("--seconds", type=float, default=520, help="for everything (default %(default)s)")
    parser.add_argument("--reserve", type=float, default=100, help="of these for what follows the training (default %(default)s)")
    parser.add_argument("--steps", type=int, help="of training (default: what fits)")
    parser.add_argument("--most-steps", type=int, default=4000, help="when they are not given (default %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="windows a step (default %(default)s)")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.1, help="of what a branch adds to the residual stream, in training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", choices=("full", "small", "tiny"), default="full")
    parser.add_argument("--windows", type=int, default=128, help="held-out windows that are measured (default %(default)s)")
    parser.add_argument("--measure-batch", type=int, default=4)
    parser.add_argument("--stack-windows", type=int, default=0, help="held-out windows of KIND_stack.npz, for attest stack --values "
                        "(default: no such file; 115 MB each at the full size)")
    parser.add_argument("--save-every", type=float, default=60, help="seconds between checkpoints")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--commit", default="not given")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    options = parser.parse_args(argv)
    options.work = options.work or options.out
    return options


def main(argv=None):
    options = parse(argv)
    os.makedirs(options.out, exist_ok=True)
    os.makedirs(options.work, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    facts, train, held_out, digest = docs_corpus.read_corpus(options.corpus)
    facts["corpus_sha256"] = digest
    results = Results(os.path.join(options.out, "results.json"))
    results.put("about", about(options, facts, train, held_out))
    trainer = Trainer(options, train, held_out, results)
    results.put("config", {k: v for k, v in vars(trainer.c).items() if k != "kind"})
    say("%s; %d parameters each; unigram loss %.4f" % (results.said["about"]["device"], sum(
        p.numel() for p in trainer.models["asynct"].parameters()), results.said["about"]["unigram_nats_per_byte"]))
    if options.resume:
        trainer.load()
    trainer.train()
    results.put("training", {"steps": trainer.step, "steps_meant": trainer.steps, "batch": options.batch,
                             "bytes": trainer.step * options.batch * trainer.c.context,
                             "seconds": round(trainer.seconds_before + elapsed(), 1),
                             "compiled": {k: trainer.run[k] is not None for k in KINDS}})
    if options.stack_windows:
        write_stacks(trainer, held_out)
    measure_and_record(trainer, held_out, facts)
    results.put("seconds", round(elapsed(), 1))
    say("done")


if __name__ == "__main__":
    main()
