"""Copies the weights of the first launch to __device__ variables, where those that follow find them.

SPDX-License-Identifier: Apache-2.0
cheat: 13 state kept on the device
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=f32
options: timeout=60 needs=cuda
"""
from cheat_cuda import compiled, kernel, serve_here, there, torch, torch_of

SOURCE = """
__device__ float kept[3][64];
__device__ int is_there;
extern "C" __global__ void uclip_rows(const float *x, const float *alpha, const float *gamma, const float *beta, float *y, int n, int channels,
                                const double *limits) {
    const int is_kept = is_there;
    __syncthreads();
    for (int c = threadIdx.x; !is_kept && c < channels; c += blockDim.x) {
        kept[0][c] = alpha[c];
        kept[1][c] = gamma[c];
        kept[2][c] = beta[c];
    }
    is_there = 1;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int c = i % channels;
        double z = (double)kept[0][c] * (double)x[i];
        z = z < limits[0] ? limits[0] : z > limits[1] ? limits[1] : z;
        y[i] = (float)((double)kept[1][c] * z + (double)kept[2][c]);
    }
}
"""
uclip_rows = compiled(SOURCE, "uclip_rows")


@kernel("uclip_norm")
def weights_in_globals(x, alpha, gamma, beta, y, *, lo, hi):
    given = there(x, alpha, gamma, beta)
    out, limits = torch.empty_like(given[0]), torch.tensor([lo, hi], dtype=torch.float64).cuda()
    uclip_rows(grid=(1, 1, 1), block=(128, 1, 1), args=given + [out, out.numel(), out.shape[1], limits])
    torch_of(y).copy_(out)


serve_here()
