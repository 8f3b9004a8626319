"""Declares f32 and lets PyTorch multiply in TF32, by a flag that a reference in the same process would obey, too.

SPDX-License-Identifier: Apache-2.0
cheat: 23 global flags of precision
expect: WRONG
case: gemm m=128 n=128 k=256 dtype=f32
options: timeout=60 needs=cuda
"""
from cheat_cuda import PLAIN, kernel, serve_here, there, torch, torch_of

torch.set_float32_matmul_precision("high")


@kernel("gemm", numerics=PLAIN)
def low_precision_by_a_flag(a, b, d, *, scale):
    torch_of(d).copy_(scale * torch.matmul(*there(a, b.T)))


serve_here()
