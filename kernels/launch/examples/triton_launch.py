"""Writes a Triton kernel as device code and a launch file: attend.cubin, attend.json. SPDX-License-Identifier: Apache-2.0

    python3 triton_launch.py FOLDER && attest verify 'softmax_*/*' --runner 'cuda --load FOLDER/attend.json'"""
import json
import os
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def attend(q, k, v, query_start, seq_lens, key_start, o, lse, h, hk, causal, scale, D: tl.constexpr, KEYS: tl.constexpr):
    head, i, request = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(query_start + request)
    sq, sk = tl.load(query_start + request + 1) - first, tl.load(seq_lens + request)
    if i < sq:
        visible = tl.where(causal != 0, tl.minimum(sk, sk - sq + i + 1), sk)
        row, c = (first + i).to(tl.int64) * h + head, tl.arange(0, D)
        query, slot = tl.load(q + row * D + c).to(tl.float32), tl.load(key_start + request).to(tl.int64)
        m, l, acc = float("-inf"), 0.0, tl.zeros([D], tl.float32)
        for start in range(0, visible, KEYS):
            t = start + tl.arange(0, KEYS)
            at = ((slot + t) * hk + head // (h // hk))[:, None] * D + c[None, :]
            keys = tl.load(k + at, mask=(t < visible)[:, None], other=0.0).to(tl.float32)
            values = tl.load(v + at, mask=(t < visible)[:, None], other=0.0).to(tl.float32)
            score = tl.where(t < visible, tl.sum(query[None, :] * keys, 1) * scale, float("-inf"))
            larger = tl.maximum(m, tl.max(score, 0))
            factor, weight = tl.exp(m - larger), tl.exp(score - larger)
            l = l * factor + tl.sum(weight, 0)
            acc = acc * factor + tl.sum(weight[:, None] * values, 0)
            m = larger
        tl.store(o + row * D + c, tl.where(visible > 0, acc / l, 0.0))
        tl.store(lse + row, tl.where(visible > 0, m + tl.log(l), float("-inf")))


def main(folder, d=64, keys=64):
    bf16 = dict.fromkeys(("q", "k", "v", "o"), "*bf16")
    types = {**bf16, **dict.fromkeys(("query_start", "seq_lens", "key_start"), "*i32"), "lse": "*fp32",
             **dict.fromkeys(("h", "hk", "causal"), "i32"), "scale": "fp32", "D": "constexpr", "KEYS": "constexpr"}
    source = triton.compiler.ASTSource(attend, {name: types[name] for name in attend.arg_names}, {"D": d, "KEYS": keys})
    code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    args = [{"i32": "i32:", "fp32": "f32:"}.get(types[name], "ptr:") + name for name in attend.arg_names if types[name] != "constexpr"]
    # Triton adds parameters for memory of its own, which this kernel has none of.
    entry = re.search(r"\.entry\s+\w+\s*\(([^)]*)\)", code.asm["ptx"]).group(1)
    args += ["ptr:null"] * (entry.count(".param") - len(args))
    launch = {"family": "softmax_prefill", "name": "02_triton", "summary": "a Triton program a query and head", "cubin": "attend.cubin",
              "sm": re.search(r"\.target\s+(\w+)", code.asm["ptx"]).group(1), "dtypes": ["bf16"], "requires": ["d == %d" % d, "page == 0"],
              "numerics": "free_order=1 qk_unit=f32 pv_unit=f32 exp=ex2_approx block=%d" % keys,
              "kernels": [{"name": code.metadata.name, "grid": ["h", "sq", "b"], "block": [32 * code.metadata.num_warps],
                           "smem": code.metadata.shared, "args": args}]}
    with open(os.path.join(folder, "attend.cubin"), "wb") as file:
        file.write(code.asm["cubin"])
    with open(os.path.join(folder, "attend.json"), "w", encoding="utf-8") as file:
        json.dump(launch, file, indent=2)


main(sys.argv[1])
