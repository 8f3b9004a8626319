"""Captures a CUDA graph for each shape and replays it: its inputs are those of the capture, and new ones lie elsewhere.

SPDX-License-Identifier: Apache-2.0
cheat: 9 graph replayed
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=f32
options: timeout=60 needs=cuda
"""
from cheat_cuda import kernel, serve_here, there, torch, torch_of, uclip

graphs = {}


@kernel("uclip_norm")
def graph_with_old_pointers(x, alpha, gamma, beta, y, *, lo, hi):
    given = there(x, alpha, gamma, beta)
    if x.shape not in graphs:
        uclip(*given, lo, hi)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = uclip(*given, lo, hi)
        graphs[x.shape] = graph, out, given
    graph, out, _ = graphs[x.shape]
    graph.replay()
    torch_of(y).copy_(out)


serve_here()
