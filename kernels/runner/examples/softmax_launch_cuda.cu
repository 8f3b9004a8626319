/* The kernel of kernels/launch/examples/softmax_rows.cu, launched by host code of its own: a library for a GPU.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC -I PREFIX/include -I kernels/launch/examples softmax_launch_cuda.cu -o libmine.so
 *     attest verify --runner 'attest-so-cuda ./libmine.so' --cases 'smoke:softmax_prefill*' */
#include "attest_launch.h"

#include "softmax_rows.cu"

ATTEST_DECLARATION(
    "[softmax_prefill/01_rows]\n"
    "launch = softmax\n"
    "supports = softmax_takes\n"
    "dtypes = bf16\n"
    "graph = 1\n"
    "numerics = free_order=1 qk_unit=f32_fma pv_unit=f32_fma exp=libm block=1 repeats=1 batch_invariant=1\n"
    "summary = a warp for each query and head, one key after the other\n");

ATTEST_EXPORT const char *softmax_takes(const struct attest_launch *launch) {
    const int64_t d = attest_int(launch, "d");
    return d > 256 || d % 32 ? "head sizes that are multiples of 32, up to 256"
           : attest_real(launch, "softcap") != 0 || attest_real(launch, "alibi") != 0 ? "no softcap, no ALiBi"
                                                                                      : NULL;
}

/* The memory of a tensor; NULL where this problem has none. */
template <class T> static T *memory(const struct attest_launch *launch, const char *name) {
    const struct attest_tensor *t = attest_find_tensor(launch, name);
    return t ? static_cast<T *>(t->data) : nullptr;
}

ATTEST_EXPORT int softmax(const struct attest_launch *launch) {
    const dim3 grid((unsigned)attest_int(launch, "h"), (unsigned)attest_int(launch, "max_sq"),
                    (unsigned)attest_int(launch, "b"));
    if (!memory<void>(launch, "o") || grid.y == 0) /* a problem without queries has nothing to write */
        return 0;
    softmax_rows<<<grid, 32, 0, static_cast<cudaStream_t>(launch->stream)>>>(
        memory<__nv_bfloat16>(launch, "q"), memory<__nv_bfloat16>(launch, "k"), memory<__nv_bfloat16>(launch, "v"),
        memory<int>(launch, "query_start"), memory<int>(launch, "seq_lens"), memory<int>(launch, "key_start"),
        memory<int>(launch, "block_table"), memory<__nv_bfloat16>(launch, "o"), memory<float>(launch, "lse"),
        (int)attest_int(launch, "h"), (int)attest_int(launch, "hk"), (int)attest_int(launch, "d"),
        (int)attest_int(launch, "page"), (int)attest_int(launch, "max_pages"), (int)attest_int(launch, "causal"),
        (float)attest_real(launch, "scale"));
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : attest_fail(launch, cudaGetErrorString(error));
}
