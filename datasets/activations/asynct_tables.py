"""Writes the figures of train_asynct.py's results.json into README.md, between its markers: no figure is typed by hand.
SPDX-License-Identifier: Apache-2.0

    python3 asynct_tables.py results.json README.md      replaces what stands between the markers
    python3 asynct_tables.py results.json                prints it
The loss curve is read from results.csv beside it, or from curve.csv, as the run names it.
"""
import csv
import json
import math
import os
import sys

BEGIN, END = "<!-- asynct figures: begin -->", "<!-- asynct figures: end -->"
ARITHMETIC = {"p_bf16": "P rounded to bf16", "p_f16": "P rounded to f16", "bf16": "q, k, v and P in bf16", "f16": "q, k, v and P in f16",
              "f16_qk_sum": "the same, scores summed in f16", "f16_pv_sum": "the same, outputs summed in f16",
              "f16_sums": "the same, both summed in f16"}
FORMATS = {"bf16": "whole model in bf16", "f16": "whole model in f16", "f16_with_f16_sums": "whole model in f16, attention summed in f16"}
KINDS = ("asynct", "softmax")
SHARES = (("P = 0", "p_zero"), ("keys", "key_zero"), ("pages", "page_zero"), ("tiles", "tile_zero"), ("P = 1", "p_one"),
          ("FFN = 0", "ffn_zero"), ("1 x 16", "ffn_zero_1x16"), ("16 x 16", "ffn_zero_16x16"))
LARGEST = ("q", "k", "v", "score", "scaled_score", "pv_sum", "attention_out", "o_proj", "res", "gate", "up", "act", "down")


def rows(head, body):
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in body]


def loss(entry):
    """Nats a byte; of what is no number how many windows."""
    n = entry["nats_per_byte"]
    return "%.5f" % n if math.isfinite(n) else "%d of %d windows not finite" % (entry["windows_not_finite"], entry["windows"])


def difference(entry):
    d, e = entry["difference"], entry["standard_error"]
    return "%+.1e (%.1e)" % (d, e) if math.isfinite(d) else loss(entry)


def losses(models):
    body = [["attention in f32"] + [loss(models[k]["loss"]["attention"]["f32"]) for k in KINDS]]
    body += [[words] + [difference(models[k]["loss"]["attention"][name]) for k in KINDS] for name, words in ARITHMETIC.items()]
    body += [[words] + [difference(models[k]["loss"]["model"][name]) for k in KINDS] for name, words in FORMATS.items()]
    return rows(["held-out loss, nats a byte", "AsyncT", "softmax"], body)


def unequal(models):
    """How far the attention's arithmetic moved the loss at most."""
    there = [abs(entry["difference"]) for k in KINDS for name, entry in models[k]["loss"]["attention"].items()
             if name in ARITHMETIC and math.isfinite(entry["difference"])]
    return "Of the attention's arithmetic no entry is further from the first line than %.1e." % max(there) if there else ""


def on_the_way(path):
    """Held-out losses that the run noted while it trained, and whether the last is the least."""
    beside = [os.path.splitext(path)[0] + ".csv", os.path.join(os.path.dirname(path), "curve.csv")]
    found = next((name for name in beside if os.path.exists(name)), None)
    if not found:
        return ""
    with open(found, encoding="utf-8", newline="") as file:
        noted = [row for row in csv.DictReader(file) if row["asynct_held_out"]]
    said = ["Held-out loss while it trained, on fewer windows than the table below:"]
    said.append("; ".join("step %s AsyncT %s, softmax %s" % (row["step"], *(row[k + "_held_out"] for k in KINDS)) for row in noted) + ".")
    for kind, words in zip(KINDS, ("AsyncT", "softmax")):
        losses_noted = [float(row[kind + "_held_out"]) for row in noted]
        least = min(range(len(noted)), key=losses_noted.__getitem__)
        if least == len(noted) - 1:
            said.append("That of %s was still falling at the end." % words)
        else:
            said.append("That of %s was least at step %s and had risen by %.4f at the end." %
                        (words, noted[least]["step"], losses_noted[-1] - losses_noted[least]))
    return " ".join(said)


def shares(model):
    if not any(round(100 * layer["share"].get(name, 0), 2) for layer in model["layers"] for _, name in SHARES):
        return ["none of these shares reaches 0.005 % in any layer."]
    body = [[n] + ["%.2f" % (100 * layer["share"][name]) if name in layer["share"] else "" for _, name in SHARES]
            for n, layer in enumerate(model["layers"])]
    return rows(["layer"] + [words for words, _ in SHARES], body)


def largest(model):
    body = [[n] + ["%.3g" % layer["largest"][name] for name in LARGEST] for n, layer in enumerate(model["layers"])]
    bits = [min(layer["headroom_bits"][name] if layer["headroom_bits"][name] is not None else -math.inf for layer in model["layers"])
            for name in LARGEST]
    body.append(["least headroom, bits"] + ["%.1f" % x for x in bits])
    return rows(["layer"] + ["`%s`" % name for name in LARGEST], body)


def text(said, path):
    about, training, models = said["about"], said["training"], said["models"]
    lines = ["Run of %s on %s: commit %s, PyTorch %s, seed %d. %d steps of %d windows of %d bytes, %.1f million bytes, %.1f times "
             "the text's %.1f million, %d parameters each, %.0f s. Byte frequencies alone reach %.4f nats a byte on the held-out text."
             % (about["date"], about["device"], about["commit"], about["torch"], about["options"]["seed"], training["steps"],
                training["batch"], said["config"]["context"], training["bytes"] / 1e6, training["bytes"] / about["corpus"]["train_bytes"],
                about["corpus"]["train_bytes"] / 1e6,
                models["asynct"]["parameters"], training["seconds"], about["unigram_nats_per_byte"]), ""]
    lines += [on_the_way(path), ""] if on_the_way(path) else []
    lines += losses(models)
    windows = models["asynct"]["loss"]["attention"]["f32"]["windows"]
    lines += ["", "Below the first line: differences from it, and in brackets the standard error of the difference over %d windows of "
              "%d bytes. %s" % (windows, said["config"]["context"], unequal(models)), ""]
    for kind, words in zip(KINDS, ("AsyncT", "softmax")):
        lines += ["%s, zeros in %% by layer:" % words, ""] + shares(models[kind]) + [""]
    for kind, words in zip(KINDS, ("AsyncT", "softmax")):
        lines += ["%s, largest values by layer, and what is left to 65504 in powers of two:" % words, ""] + largest(models[kind]) + [""]
    ranges = {name: (min(map(min, models["asynct"][name])), max(map(max, models["asynct"][name]))) for name in ("sigma", "gamma")}
    lines += ["Trained sigma lies between %.3f and %.3f (it began as 1), gamma between %.4f and %.4f (it began as 1/32)."
              % (*ranges["sigma"], *ranges["gamma"])]
    return "\n".join(lines) + "\n"


def main(argv):
    if len(argv) not in (1, 2):
        sys.exit(__doc__)
    with open(argv[0], encoding="utf-8") as file:
        made = text(json.load(file), argv[0])
    if len(argv) == 1:
        print(made, end="")
        return
    with open(argv[1], encoding="utf-8") as file:
        page = file.read()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit("%s: wanted one %s and one %s" % (argv[1], BEGIN, END))
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    with open(argv[1], "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + made + END + after)


if __name__ == "__main__":
    main(sys.argv[1:])
