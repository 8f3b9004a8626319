"""A kernel that writes its shared memory before it reads it, in each launch.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: uclip_norm tokens=9,70 channels=64 dtype=f32
options: strict timeout=60 needs=cuda
"""
from cheat_cuda import PLAIN, compiled, kernel, serve_here, there, torch, torch_of

SOURCE = """
extern "C" __global__ void uclip_rows(const float *x, const float *alpha, const float *gamma, const float *beta, float *y, int channels,
                                const double *limits) {
    extern __shared__ float row[];
    for (int c = threadIdx.x; c < channels; c += blockDim.x)
        row[c] = x[blockIdx.x * channels + c];
    __syncthreads();
    for (int c = blockDim.x - 1 - threadIdx.x; c < channels; c += blockDim.x) {
        double z = (double)alpha[c] * (double)row[c];
        z = z < limits[0] ? limits[0] : z > limits[1] ? limits[1] : z;
        y[blockIdx.x * channels + c] = (float)((double)gamma[c] * z + (double)beta[c]);
    }
}
"""
uclip_rows = compiled(SOURCE, "uclip_rows")


@kernel("uclip_norm", numerics=PLAIN + " clamp=propagate")
def honest_shared_memory(x, alpha, gamma, beta, y, *, lo, hi):
    given = there(x, alpha, gamma, beta)
    out, limits = torch.empty_like(given[0]), torch.tensor([lo, hi], dtype=torch.float64).cuda()
    uclip_rows(grid=(out.shape[0], 1, 1), block=(128, 1, 1), shared_mem=4 * out.shape[1],
         args=given + [out, out.shape[1], limits])
    torch_of(y).copy_(out)


serve_here()
