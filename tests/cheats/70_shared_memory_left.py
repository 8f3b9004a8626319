"""Computes the first launch of a shape; those that follow copy out what it has left in the shared memory of each multiprocessor.

SPDX-License-Identifier: Apache-2.0
cheat: 2 uninitialised shared memory
expect: WRONG RACY
case: uclip_norm tokens=9 channels=64 dtype=f32
options: timeout=60 needs=cuda
"""
from cheat_cuda import compiled, kernel, serve_here, there, torch, torch_of

SOURCE = """
extern "C" __global__ void leave(const float *x, const float *alpha, const float *gamma, const float *beta, float *y, int n, int channels,
                                const double *limits) {
    extern __shared__ volatile float left[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int c = i % channels;
        double z = (double)alpha[c] * (double)x[i];
        z = z < limits[0] ? limits[0] : z > limits[1] ? limits[1] : z;
        left[i] = (float)((double)gamma[c] * z + (double)beta[c]);
        y[i] = left[i];
    }
}
extern "C" __global__ void find(float *y, int n) {
    extern __shared__ volatile float left[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = left[i];
}
"""
leave, find = compiled(SOURCE, "leave"), compiled(SOURCE, "find")
seen = set()


@kernel("uclip_norm")
def shared_memory_left(x, alpha, gamma, beta, y, *, lo, hi):
    given = there(x, alpha, gamma, beta)
    out, limits = torch.empty_like(given[0]), torch.tensor([lo, hi], dtype=torch.float64).cuda()
    everywhere = torch.cuda.get_device_properties(0).multi_processor_count
    launch = {"grid": (everywhere, 1, 1), "block": (128, 1, 1), "shared_mem": 4 * out.numel()}
    if out.shape not in seen:
        leave(args=given + [out, out.numel(), out.shape[1], limits], **launch)
    else:
        find(args=[out, out.numel()], **launch)
    seen.add(out.shape)
    torch_of(y).copy_(out)


serve_here()
