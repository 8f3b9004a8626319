"""Captures a CUDA graph for each shape and copies new tokens in before a replay; the weights stay those of the capture.

SPDX-License-Identifier: Apache-2.0
cheat: 9 graph replayed
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=f32
options: timeout=60 needs=cuda
"""
from cheat_cuda import kernel, serve_here, there, torch, torch_of, uclip

graphs = {}


@kernel("uclip_norm")
def graph_with_half_a_key(x, alpha, gamma, beta, y, *, lo, hi):
    given = there(x, alpha, gamma, beta)
    if x.shape not in graphs:
        uclip(*given, lo, hi)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = uclip(*given, lo, hi)
        graphs[x.shape] = graph, out, given
    graph, out, old = graphs[x.shape]
    old[0].copy_(given[0])
    graph.replay()
    torch_of(y).copy_(out)


serve_here()
