/* A head's state and the vectors of a step in shared memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LIGHTNING_TILE_H
#define AT_LIGHTNING_TILE_H

#include "kernels/lightning_decode/lightning.h"

/* Bytes of a tile whose rows are `pad` floats longer than the state's. */
static inline int64_t at_lightning_tile_bytes(const struct at_problem *p, int64_t pad) {
    const int64_t d = p->sizes.d, e = at_lightning_own_of(p).e;
    return d * (e + pad) * 4 + (2 * d + e) * (int64_t)at_format_info(p->dtype)->bytes;
}

/* Why a problem is not taken whose tile is that large; NULL: it is. */
static inline const char *at_lightning_tile_declines(const struct at_problem *p, int64_t pad) {
    return at_lightning_tile_bytes(p, pad) > 227 * 1024 ? "a state does not fit shared memory" : nullptr;
}

/* Each function is for all threads of the block; barriers between them are the caller's. */
template <class T> struct at_lightning_tile {
    const at_lightning_block<T> &head;
    int stride; /* floats from row to row */
    float *state;
    T *q, *k, *v;

    __device__ at_lightning_tile(const at_lightning_block<T> &of, float *memory, int row)
        : head(of), stride(row), state(memory), q(reinterpret_cast<T *>(memory + of.d * row)), k(q + of.d),
          v(k + of.d) {}

    __device__ void stage(int step) const {
        for (int i = (int)threadIdx.x; i < head.d; i += AT_LIGHTNING_THREADS) {
            q[i] = head.q[step * head.d + i];
            k[i] = head.k[step * head.d + i];
        }
        for (int j = (int)threadIdx.x; j < head.e; j += AT_LIGHTNING_THREADS)
            v[j] = head.v[step * head.e + j];
    }
    /* A thread a row: the first step reads the state from global memory, rows apart. */
    __device__ void update(int step) const {
        for (int i = (int)threadIdx.x; i < head.d; i += AT_LIGHTNING_THREADS) {
            const float *from = step ? state + i * stride : head.kv + i * head.e;
            for (int j = 0; j < head.e; j++)
                state[i * stride + j] = head.updated(from[j], at_float(k[i]), at_float(v[j]));
        }
    }
    /* A thread a column of o. */
    __device__ void answer(int step) const {
        for (int j = (int)threadIdx.x; j < head.e; j += AT_LIGHTNING_THREADS) {
            float sum = 0.0f;
            for (int i = 0; i < head.d; i++)
                sum = fmaf(at_float(q[i]), state[i * stride + j], sum);
            head.o[step * head.e + j] = at_round_to<T>(sum);
        }
    }
    /* All steps; the state stays in the tile. */
    __device__ void decode() const {
        for (int step = 0; step < head.steps; step++) {
            stage(step);
            at_sync();
            update(step);
            at_sync();
            answer(step);
            at_sync(); /* before the vectors and the state of the next step */
        }
    }
    /* To global memory: a thread a row, */
    __device__ void write_rows() const {
        for (int i = (int)threadIdx.x; i < head.d; i += AT_LIGHTNING_THREADS)
            for (int j = 0; j < head.e; j++)
                head.kv[i * head.e + j] = state[i * stride + j];
    }
    /* or neighbouring threads to neighbouring elements. */
    __device__ void write_coalesced() const {
        for (int i = (int)threadIdx.x; i < head.d * head.e; i += AT_LIGHTNING_THREADS)
            head.kv[i] = state[i / head.e * stride + i % head.e];
    }
};

#endif
