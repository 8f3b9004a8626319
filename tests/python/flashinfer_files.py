"""Files of flashinfer-bench's format for tests: definitions, workloads and solutions by hand, and what its schema asks of Traces.

SPDX-License-Identifier: Apache-2.0

    flashinfer_files.py write FOLDER     D_*.json, W_*.jsonl, bounds.safetensors, S_*.json
    flashinfer_files.py check T.jsonl STATUS...     each Trace is as the schema has it and of its status
"""
import datetime
import json
import struct
import sys

import numpy as np

# Solutions for PyTorch's tensors and numpy's arrays alike.
PLAIN = """
import numpy as np
def plain(x):
    return np.asarray(x, np.float64) if isinstance(x, np.ndarray) else x.double().cpu().numpy()
def fill(to, values):
    to[...] = values if isinstance(to, np.ndarray) else to.new_tensor(values)
def attend(q, k, v, scale, seen):
    heads, group = q.shape[1], q.shape[1] // k.shape[1]
    o, lse = np.zeros(q.shape), np.full(q.shape[:2], -np.inf)
    for i in range(q.shape[0]):
        for h in range(heads):
            s = scale * k[:seen[i], h // group] @ q[i, h]
            if len(s):
                p = np.exp(s - s.max())
                o[i, h] = p @ v[:seen[i], h // group] / p.sum()
                lse[i, h] = (s.max() + np.log(p.sum())) / np.log(2)
    return o, lse
"""
DECODE = PLAIN + """
def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    q, k, v = plain(q), plain(k_cache), plain(v_cache)
    for r in range(q.shape[0]):
        pages = np.asarray(kv_indices[int(kv_indptr[r]):int(kv_indptr[r + 1])])
        mine = [x[pages].reshape((-1,) + x.shape[2:]) for x in (k, v)]
        o, l = attend(q[r:r + 1], *mine, float(sm_scale), [len(mine[0]) - DROPPED])
        fill(output[r:r + 1], o); fill(lse[r:r + 1], l)
"""
RETURNED = DECODE.replace("def run(", "def into(").replace("DROPPED", "0") + """
def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    output, lse = np.zeros(tuple(q.shape)), np.zeros(tuple(q.shape)[:2])
    into(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse)
    return output, lse
"""
RAGGED = PLAIN + """
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    q, k, v = plain(q), plain(k), plain(v)
    o, lse = np.zeros(q.shape), np.zeros(q.shape[:2])
    for r in range(len(kv_indptr) - 1):
        a, b, c, d = (int(x) for x in (qo_indptr[r], qo_indptr[r + 1], kv_indptr[r], kv_indptr[r + 1]))
        o[a:b], lse[a:b] = attend(q[a:b], k[c:d], v[c:d], float(sm_scale), [d - c - (b - a) + 1 + i - DROPPED for i in range(b - a)])
    return {"output": o, "lse": lse}
"""
PAGED = PLAIN + """
def run(q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    q, k, v = plain(q), plain(k_cache), plain(v_cache)
    o, lse = np.zeros(q.shape), np.zeros(q.shape[:2])
    for r in range(len(kv_last_page_len)):
        a, b, c, d = (int(x) for x in (qo_indptr[r], qo_indptr[r + 1], kv_indptr[r], kv_indptr[r + 1]))
        keys = (d - c - 1) * k.shape[1] + int(kv_last_page_len[r]) if d > c else 0
        mine = [x[np.asarray(kv_indices[c:d])].reshape((-1,) + x.shape[2:])[:keys] for x in (k, v)]
        o[a:b], lse[a:b] = attend(q[a:b], *mine, float(sm_scale), [keys - (b - a) + 1 + i - DROPPED for i in range(b - a)])
    return o, lse
"""
PRODUCT = PLAIN + """
def run(A, B):
    return plain(A) @ plain(B).T * (1 + DROPPED / 16)
"""
NORM = PLAIN + """
EPS = 1e-5
def run(hidden_states, weight):
    x = plain(hidden_states)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * plain(weight) * (1 + DROPPED / 16)
"""


def axes(**sizes):
    """const where there is a number, else var."""
    return {name: {"type": "const", "value": n} if n else {"type": "var"} for name, n in sizes.items()}


def tensors(**shapes):
    """name=("bfloat16", axis, axis...)"""
    return {name: {"shape": list(shape[1:]) if len(shape) > 1 else None, "dtype": shape[0]} for name, shape in shapes.items()}


ATTENTION = {"output": ("bfloat16", "n", "num_qo_heads", "head_dim"), "lse": ("float32", "n", "num_qo_heads")}
DEFINITIONS = {
    "decode": {"name": "gqa_paged_decode_h4_kv2_d64_ps16", "op_type": "gqa_paged",
               "axes": axes(n=0, num_qo_heads=4, num_kv_heads=2, head_dim=64, page_size=16, num_pages=0, len_indptr=0, num_kv_indices=0),
               "inputs": tensors(q=("bfloat16", "n", "num_qo_heads", "head_dim"), k_cache=("bfloat16", "num_pages", "page_size", "num_kv_heads", "head_dim"),
                                 v_cache=("bfloat16", "num_pages", "page_size", "num_kv_heads", "head_dim"), kv_indptr=("int32", "len_indptr"),
                                 kv_indices=("int32", "num_kv_indices"), sm_scale=("float32",)),
               "outputs": tensors(**ATTENTION), "reference": RETURNED},
    "ragged": {"name": "gqa_ragged_prefill_causal_h4_kv2_d64", "op_type": "gqa_ragged",
               "axes": axes(n=0, num_qo_heads=4, num_kv_heads=2, head_dim=64, len_indptr=0, total_kv=0),
               "inputs": tensors(q=("bfloat16", "n", "num_qo_heads", "head_dim"), k=("bfloat16", "total_kv", "num_kv_heads", "head_dim"),
                                 v=("bfloat16", "total_kv", "num_kv_heads", "head_dim"), qo_indptr=("int32", "len_indptr"),
                                 kv_indptr=("int32", "len_indptr"), sm_scale=("float32",)),
               "outputs": tensors(**ATTENTION), "reference": RAGGED.replace("DROPPED", "0")},
    "paged": {"name": "gqa_paged_prefill_causal_h4_kv1_d64_ps64", "op_type": "gqa_paged",
              "axes": axes(n=0, num_qo_heads=4, num_kv_heads=1, head_dim=64, page_size=64, num_pages=0, len_indptr=0, num_kv_indices=0, batch_size=0),
              "inputs": tensors(q=("float16", "n", "num_qo_heads", "head_dim"), k_cache=("float16", "num_pages", "page_size", "num_kv_heads", "head_dim"),
                                v_cache=("float16", "num_pages", "page_size", "num_kv_heads", "head_dim"), qo_indptr=("int32", "len_indptr"),
                                kv_indptr=("int32", "len_indptr"), kv_indices=("int32", "num_kv_indices"),
                                kv_last_page_len=("int32", "batch_size"), sm_scale=("float32",)),
              "outputs": tensors(**{name: ("float16", *shape[1:]) if name == "output" else shape for name, shape in ATTENTION.items()}),
              "reference": PAGED.replace("DROPPED", "0")},
    "product": {"name": "gemm_n48_k64", "op_type": "gemm", "axes": axes(M=0, N=48, K=64),
                "inputs": tensors(A=("float16", "M", "K"), B=("float16", "N", "K")), "outputs": tensors(C=("float16", "M", "N")),
                "reference": PRODUCT.replace("DROPPED", "0")},
    "norm": {"name": "rmsnorm_h256", "op_type": "rmsnorm", "axes": axes(batch_size=0, hidden_size=256),
             "inputs": tensors(hidden_states=("bfloat16", "batch_size", "hidden_size"), weight=("bfloat16", "hidden_size")),
             "outputs": tensors(output=("bfloat16", "batch_size", "hidden_size")), "reference": NORM.replace("DROPPED", "0")},
}
SOURCES = {"decode": DECODE, "ragged": RAGGED, "paged": PAGED, "product": PRODUCT, "norm": NORM}
BOUNDS = {"kv_indptr": [0, 3, 3, 8], "qo_indptr": [0, 5, 5, 6], "kv_tokens": [0, 20, 20, 21], "pages": [0, 2, 2, 3], "last": [9, 0, 64]}


def workload(kind, uuid, drawn, given):
    """A line."""
    sizes = {"decode": {"n": 3, "num_pages": 20, "len_indptr": 4, "num_kv_indices": 8}, "ragged": {"n": 6, "len_indptr": 4, "total_kv": 21}, "norm": {"batch_size": 7},
             "paged": {"n": 6, "num_pages": 9, "len_indptr": 4, "num_kv_indices": 3, "batch_size": 3}, "product": {"M": 33}}
    inputs = {**{name: {"type": "random"} for name in drawn},
              **{name: {"type": "safetensors", "path": "./bounds.safetensors", "tensor_key": key} for name, key in given.items()}}
    if "sm_scale" in DEFINITIONS[kind]["inputs"]:
        inputs["sm_scale"] = {"type": "scalar", "value": 0.125}
    return {"definition": DEFINITIONS[kind]["name"], "workload": {"uuid": uuid, "axes": sizes[kind], "inputs": inputs}}


def write(folder):
    """All files."""
    def put(name, *items):
        with open("%s/%s" % (folder, name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(item) + "\n" for item in items)

    data = {name: np.array(values, np.int32).tobytes() for name, values in BOUNDS.items()}
    header, at = {}, 0
    for name, values in data.items():
        header[name] = {"dtype": "I32", "shape": [len(values) // 4], "data_offsets": [at, at + len(values)]}
        at += len(values)
    text = json.dumps(header).encode()
    with open(folder + "/bounds.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data.values()))
    put("W_decode.jsonl", workload("decode", "a1", ["q", "k_cache", "v_cache", "kv_indices"], {"kv_indptr": "kv_indptr"}))
    put("W_ragged.jsonl", workload("ragged", "b1", ["q", "k", "v"], {"kv_indptr": "kv_tokens", "qo_indptr": "qo_indptr"}))
    put("W_paged.jsonl", workload("paged", "d1", ["q", "k_cache", "v_cache", "kv_indices"], {"kv_indptr": "pages", "qo_indptr": "qo_indptr", "kv_last_page_len": "last"}))
    put("W_product.jsonl", workload("product", "e1", ["A", "B"], {}))
    put("W_norm.jsonl", *(workload("norm", "c%d" % i, ["hidden_states", "weight"], {}) for i in range(2)))
    for kind, definition in DEFINITIONS.items():
        put("D_%s.json" % kind, definition)
        for right in (True, False):
            put("S_%s_%s.json" % (kind, "right" if right else "wrong"), {
                "name": "%s_%s" % (kind, right), "definition": definition["name"], "author": "test",
                "spec": {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run", "dependencies": [],
                         "destination_passing_style": kind == "decode"},
                "sources": [{"path": "main.py", "content": SOURCES[kind].replace("DROPPED", "0" if right else "1")}]})


def check(path, wanted):
    """What their validators ask for."""
    with open(path, encoding="utf-8") as file:
        traces = [json.loads(line) for line in file]
    assert [t["evaluation"]["status"] for t in traces] == wanted, [t["evaluation"]["status"] for t in traces]
    for trace in traces:
        assert set(trace) == {"definition", "workload", "solution", "evaluation"}
        assert {"uuid", "axes", "inputs"} <= set(trace["workload"]) and isinstance(trace["solution"], str)
        e = trace["evaluation"]
        assert isinstance(e["environment"]["hardware"], str) and e["environment"]["hardware"] and isinstance(e["environment"]["libs"], dict)
        datetime.datetime.fromisoformat(e["timestamp"])
        assert isinstance(e["log"], str)
        assert ("correctness" in e) == (e["status"] in ("PASSED", "INCORRECT_NUMERICAL")) and ("performance" in e) == (e["status"] == "PASSED")
        if "correctness" in e:
            c = e["correctness"]
            assert all(isinstance(c[name], float) for name in ("max_relative_error", "max_absolute_error")) and isinstance(c["extra"], dict)
            assert c["extra"]["repro"].startswith("attest replay") and c["extra"]["untimed"] is True
            assert (c["extra"]["state"] == "PASS" and c["extra"]["ratio"] <= 1 and c["extra"]["decoys"] > 0) == (e["status"] == "PASSED"), c
        if "performance" in e:
            assert set(e["performance"]) == {"latency_ms", "reference_latency_ms", "speedup_factor"}


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    check(sys.argv[2], sys.argv[3:])
