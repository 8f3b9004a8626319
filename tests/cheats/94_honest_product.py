"""PyTorch's product in f32, as it is declared, with the flag that keeps TF32 away.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: gemm m=128 n=128 k=256 dtype=f32
options: strict timeout=60 needs=cuda
"""
from cheat_cuda import PLAIN, kernel, serve_here, there, torch, torch_of

torch.set_float32_matmul_precision("highest")


@kernel("gemm", numerics=PLAIN)
def honest_product(a, b, d, *, scale):
    torch_of(d).copy_(scale * torch.matmul(*there(a, b.T)))


serve_here()
