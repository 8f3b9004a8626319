/* Rows whose sums became NaN, once more, with values of keys that a query does not see replaced by zeros.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A key that a query does not see has p = 0, but 0 times an infinity or a NaN in V is NaN: in a row past the last key of a
 * request, or in one that later queries see. Nobody looks for those beforehand. Where a sum is NaN, for this or another
 * reason, the warp computes its rows of all items of the block again when all are stored: straight from global memory, by
 * mma.sync, in the same order, so that all other sums keep their bits. Sums are in shared memory, which is free by then, so
 * that this code, which hardly ever runs, is short. */
#ifndef AT_ASYNCT_PREFILL_REDO_H
#define AT_ASYNCT_PREFILL_REDO_H

#include "kernels/asynct_prefill/asynct_prefill_gate.h"

/* A warp's 16 rows, from `row` on, of a part. */
template <class T, int D, int BJ> struct at_prefill_rows {
    const at_asynct_view<T> &a;
    const at_prefill_place &item;
    const at_prefill_part part;
    const int row;
    float (*const o)[32][4]; /* [eight channels][lane] */
    uint32_t p[AT_PREFILL_HALF / 16][4];

    __device__ int seen(int i, int begin) const {
        const int keys = part.visible(row + i) - begin;
        return keys < 0 ? 0 : keys < AT_PREFILL_HALF ? keys : AT_PREFILL_HALF;
    }
    __device__ const T *query(int i) const {
        const int there = row + i < part.rows ? row + i : part.rows - 1;
        return a.q + ((int64_t)(part.token + there) * a.h + part.head) * D;
    }
    /* First element of a key, of the last one where there is none. */
    __device__ int64_t element(int key) const {
        return a.key(item.request, key < item.keys ? key : item.keys - 1, item.kv_head);
    }
    __device__ void scores(int begin, float (&s)[AT_PREFILL_HALF / 8][4]) const {
        const int g = at_lane() / 4, t = at_lane() % 4;
        AT_NO_UNROLL
        for (int i = 0; i < D / 16; i++) {
            const int channel = 16 * i + 2 * t;
            const uint32_t q[4] = { at_load32(query(g) + channel), at_load32(query(g + 8) + channel),
                                    at_load32(query(g) + channel + 8), at_load32(query(g + 8) + channel + 8) };
            AT_UNROLL
            for (int J = 0; J < AT_PREFILL_HALF / 8; J++) {
                const T *k = a.k + element(begin + at_prefill_gate<BJ>::key(J, g)) + channel;
                const uint32_t b[2] = { at_load32(k), at_load32(k + 8) };
                at_mma_16816(s[J], q, b, s[J], T{});
            }
        }
    }
    /* Adds the 64 keys from `begin` on, once for each number of them that some row sees. */
    __device__ void values(int begin) {
        constexpr int STEPS = AT_PREFILL_HALF / 16;
        const int g = at_lane() / 4, t = at_lane() % 4, own[2] = { seen(g, begin), seen(g + 8, begin) };
        int64_t at[STEPS][4]; /* the lane's keys of a step: two for each register of an operand */
        int key[STEPS][4];
        AT_UNROLL
        for (int i = 0; i < 4 * STEPS; i++) {
            key[i / 4][i % 4] = at_prefill_gate<BJ>::key(i / 2, 2 * t + i % 2);
            at[i / 4][i % 4] = element(begin + key[i / 4][i % 4]) + g;
        }
        int last = 0;
        for (int i = 0; i < 16; i++) {
            const int keys = seen(i, begin);
            if (keys == last)
                continue; /* seen() does not fall */
            last = keys;
            AT_NO_UNROLL
            for (int n = 0; n < D / 8; n++) {
                float *const sums = o[n][at_lane()];
                at_sum_f32 sum{ { sums[0], sums[1], sums[2], sums[3] } };
                AT_UNROLL
                for (int step = 0; step < STEPS; step++) {
                    T v[4];
                    AT_UNROLL
                    for (int j = 0; j < 4; j++)
                        v[j] = key[step][j] < keys ? a.v[at[step][j] + 8 * n] : T{};
                    const uint32_t b[2] = { at_pair(v[0], v[1]), at_pair(v[2], v[3]) };
                    sum.add<T>(p[step], b);
                }
                AT_UNROLL
                for (int half = 0; half < 2; half++)
                    if (own[half] == keys) {
                        sums[2 * half] = sum[2 * half];
                        sums[2 * half + 1] = sum[2 * half + 1];
                    }
            }
        }
    }
    __device__ void run() {
        const int g = at_lane() / 4, t = at_lane() % 4;
        at_prefill_gate<BJ> gate;
        gate.begin(part);
        for (int i = 0; i < D / 8 * 4; i++)
            o[i / 4][at_lane()][i % 4] = 0.0f;
        for (int begin = 0; begin < part.visible(row + 15) && begin < item.keys; begin += AT_PREFILL_HALF) {
            float s[AT_PREFILL_HALF / 8][4] = {};
            const int keys[2] = { part.visible(row + g) - begin, part.visible(row + g + 8) - begin };
            scores(begin, s);
            gate.template take<AT_PREFILL_HALF / 8>(s);
            gate.template pack<T, AT_PREFILL_HALF / 16>(s, p);
            gate.hide(keys, p);
            values(begin);
        }
        for (int half = 0; half < 2 && row + g + 8 * half < part.rows; half++)
            for (int n = 0; n < D / 8; n++) {
                const float *sums = o[n][at_lane()] + 2 * half;
                at_store32(a.o + ((int64_t)(part.token + row + g + 8 * half) * a.h + part.head) * D + 8 * n + 2 * t,
                           at_pack<T>(part.gamma * sums[0], part.gamma * sums[1]));
            }
    }
};

/* The rows of a warp of a part of all the block's items; `sums`: D floats for each of its rows. */
template <class T, int D, int BJ>
__device__ void at_prefill_redo(const at_asynct_view<T> &a, const at_prefill_work &work, int part, int row,
                                float (*sums)[32][4]) {
    at_prefill_place item;
    for (uint32_t round = 0; !work.over(round); round++) {
        uint32_t number;
        if (!work.turn(round, number))
            continue;
        item.locate(work, number);
        if (!item.measure(a))
            continue;
        at_prefill_rows<T, D, BJ> rows{ a, item, item.part(a, part), row, sums, {} };
        if (row < rows.part.rows)
            rows.run();
    }
}

#endif
