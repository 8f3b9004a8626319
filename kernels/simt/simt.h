/* The SIMT machine as kernels/device sees it: launches, warp and block operations, shared memory. C and C++.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every thread of a launch is a fiber. All blocks of a launch run on one OS thread: up to `resident` of them at a time,
 * their warps in an order that a seed decides. A thread runs until it reaches an operation that needs others. What it
 * reads and writes comes in through at_mem_* (the compiler's thread-sanitizer calls, renamed), so races, reads of what
 * nobody wrote and accesses outside every tensor are seen. The first finding ends the launch. */
#ifndef AT_SIMT_H
#define AT_SIMT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct at_dim3 {
    uint32_t x, y, z;
};

/* What a thread may ask of itself; the machine's own part of a thread lies behind it. */
struct at_simt_self {
    struct at_dim3 thread, block, threads, blocks; /* threadIdx, blockIdx, blockDim, gridDim */
};
extern struct at_simt_self *at_simt_current;

/* A place in a kernel's source, for messages. */
struct at_simt_place {
    const char *file;
    int line;
};

/* Runs entry(arguments) once for every thread of the grid. A stream other than the job's is a finding: its work would
 * have no order with that of the others. 0, or a CUDA error number when the launch cannot be made
 * (cudaErrorInvalidConfiguration 9: no or too many threads; cudaErrorInvalidValue 1: too much shared memory). A finding
 * does not change the return value; it is asked for with at_simt_finding. Later launches of a job with a finding do
 * nothing. */
int at_simt_launch(void (*entry)(void *), void *arguments, int64_t arguments_bytes, struct at_dim3 grid,
                   struct at_dim3 block, int64_t dynamic_shared, const void *stream);

/* A call from the host that can fail begins: 0, or the CUDA error number that it has to return (at_simt_call_fails). */
int at_simt_host_call(void);

/* The block's copy of one shared variable; the same address for all its threads. `key` tells variables apart. */
void *at_simt_shared(const void *key, int64_t bytes, int64_t align);
void *at_simt_shared_dynamic(void);

/* Waits until every thread of the block that has not left is here; all must come by the same place. */
void at_simt_barrier(struct at_simt_place place);
/* Warp operations: every lane named in `mask` takes part, at the same place and with the same mask. */
enum at_simt_warp_kind {
    AT_SIMT_SYNCWARP,
    AT_SIMT_SHUFFLE,
    AT_SIMT_BALLOT,
    AT_SIMT_MMA,
    AT_SIMT_MATRIX,
    AT_SIMT_MATRIX_STORE,
    AT_SIMT_REGISTERS,
    AT_SIMT_NAMED_ARRIVE,
    AT_SIMT_WGMMA,
    AT_SIMT_WGMMA_FENCE,
    AT_SIMT_WGMMA_COMMIT,
    AT_SIMT_WGMMA_WAIT
};
/* Shuffle: the value of lane `from` (0..31), which must be in the mask. Ballot: bit i is set when lane i's value is
 * not 0. Syncwarp: 0, and orders memory between its lanes, which the other two do not. */
uint64_t at_simt_warp(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from, struct at_simt_place place);
int at_simt_lane(void);

/* d = a b + c by one tensor-core instruction of sm_90, all 32 lanes of the warp together: mma.sync m16n8 of
 * K_OPERAND_SUM. Fragments in 32-bit registers as kernels/device/device.h lays them out; d may be c. */
enum at_simt_mma_kind {
    AT_SIMT_MMA_K16_F16_F32,
    AT_SIMT_MMA_K16_BF16_F32,
    AT_SIMT_MMA_K16_F16_F16,
    AT_SIMT_MMA_K8_F16_F32,
    AT_SIMT_MMA_K8_BF16_F32,
    AT_SIMT_MMA_K8_F16_F16,
    AT_SIMT_MMA_K8_TF32_F32,
    AT_SIMT_MMA_K32_E4M3_F32,
    AT_SIMT_MMA_K32_E4M3_F16,
    AT_SIMT_MMA_K32_E5M2_F32,
    AT_SIMT_MMA_K32_E5M2_F16,
    /* wgmma: at_simt_wgmma */
    AT_SIMT_WGMMA_K16_F16_F32,
    AT_SIMT_WGMMA_K16_BF16_F32,
    AT_SIMT_WGMMA_K16_F16_F16,
    AT_SIMT_WGMMA_K8_TF32_F32,
    AT_SIMT_WGMMA_K32_E4M3_F32,
    AT_SIMT_WGMMA_K32_E4M3_F16,
    AT_SIMT_WGMMA_K32_E4M3_E5M2_F32,
    AT_SIMT_WGMMA_K32_E4M3_E5M2_F16,
    AT_SIMT_WGMMA_K32_E5M2_E4M3_F32,
    AT_SIMT_WGMMA_K32_E5M2_E4M3_F16,
    AT_SIMT_WGMMA_K32_E5M2_F32,
    AT_SIMT_WGMMA_K32_E5M2_F16,
    AT_SIMT_MMA_KINDS
};
void at_simt_mma(enum at_simt_mma_kind kind, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d,
                 struct at_simt_place place);

/* ldmatrix: `count` (1, 2, 4) matrices of 8 x 8 elements of 16 bits from shared memory to a register each, all 32 lanes
 * together; lane 8 m + i gives the address of row i of matrix m, 16 bytes, aligned. */
void at_simt_load_matrix(int count, int transposed, const void *row, uint32_t *out, struct at_simt_place place);

/* A copy of 4, 8 or 16 bytes from global to shared memory, which lands no earlier than the wait for its group: all
 * that this thread has copied since the commit before. Waits for all groups but the last `but`. */
void at_simt_copy(void *to, const void *from, int bytes, struct at_simt_place place);
void at_simt_copy_commit(struct at_simt_place place);
void at_simt_copy_wait(int but, struct at_simt_place place);

/* Makes all writes to shared memory that happen before this call, this thread's and others', visible to those wgmma and
 * bulk copies that are ordered after it. */
void at_simt_proxy_fence(struct at_simt_place place);

/* A matrix in shared memory, K-major: chunk c of 16 bytes of row r lies at
 *   swizzle 0:            (r / 8) stride + c leading + (r % 8) 16
 *   swizzle 32, 64, 128:  (r / 8) stride + (r % 8) swizzle + 16 c, then bits 4 and up of the place in shared memory
 *                         xor bits 7 and up: 1, 2 or 3 of them.
 * Or MN-major, of 16-bit elements: chunk c holds rows 8 c to 8 c + 7 of one k; that of k lies at
 *   swizzle 0:            c stride + (k / 8) leading + (k % 8) 16
 *   swizzle 32, 64, 128:  (c / n) leading + (k / 8) stride + (k % 8) swizzle + 16 (c % n), n = swizzle / 16, then xor
 */
struct at_simt_matrix {
    const void *at; /* a multiple of 16 */
    int leading, stride, swizzle, mn_major;
};
/* d += a b: 64 rows, a warp of the four 16 of them, by `columns` columns. a: registers as for mma, or NULL and a_at;
 * rows of b_at are columns of b. d, a fragment of 16 x 8 for each 8 columns, is not touched before the wait. */
struct at_simt_wgmma {
    enum at_simt_mma_kind kind;
    int columns;
    const uint32_t *a;
    struct at_simt_matrix a_at, b_at;
    uint32_t *d;
    int fresh; /* what d holds does not count */
};
void at_simt_wgmma(const struct at_simt_wgmma *operation, struct at_simt_place place);
/* Registers that a thread has touched are put in order before the next wgmma that takes them. */
void at_simt_wgmma_fence(struct at_simt_place place);
/* The group of all wgmma since the commit before; waits for all groups but the last `but`. */
void at_simt_wgmma_commit(struct at_simt_place place);
void at_simt_wgmma_wait(int but, struct at_simt_place place);

/* A barrier of `threads` threads, whole warps; ids 1 to 15. */
void at_simt_named_barrier(int id, int threads, struct at_simt_place place);

/* Barriers in shared memory, 8 bytes: a phase is complete when `count` threads have arrived. Waits for the phase of
 * that parity; the first one's is 0. */
void at_simt_mbarrier_init(void *at, uint32_t count, struct at_simt_place place);
void at_simt_mbarrier_arrive(void *at, struct at_simt_place place);
void at_simt_mbarrier_wait(void *at, uint32_t parity, struct at_simt_place place);

/* 32-bit atomics on shared or global memory: the value before. f32 in global memory: subnormal terms and sums count as a zero
 * of their sign, as the units beside the L2 cache have it (PTX, `atom`; seen on an H100); in shared memory they do not. */
uint32_t at_simt_atomic_add_u32(uint32_t *address, uint32_t value);
float at_simt_atomic_add_f32(float *address, float value);
uint32_t at_simt_atomic_exchange_u32(uint32_t *address, uint32_t value);
uint32_t at_simt_atomic_max_u32(uint32_t *address, uint32_t value);
/* Accesses of 16 bytes, checked as one; the address must be a multiple of 16. */
void at_simt_load16(const void *address, void *out);
void at_simt_store16(void *address, const void *value);

#ifdef __cplusplus
}
#endif
#endif
