/* Rows whose sums became NaN, once more, with values of keys that a query does not see replaced by zeros.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A key that a query does not see has p = 0, but 0 times an infinity or a NaN in V is NaN: in a row past the last key of a
 * request, or in one that later queries see. Nobody looks for those beforehand. Where a sum is NaN, for this or another
 * reason, the warp computes its rows of all items of the block again when all are stored: straight from global memory, by
 * mma.sync, in the same order, so that all other sums keep their bits. Sums and P are in shared memory, free by then, so
 * that this code, which hardly ever runs, is short. */
#ifndef AT_ATTENTION_PREFILL_REDO_H
#define AT_ATTENTION_PREFILL_REDO_H

#include "kernels/attention/prefill_consume.h"
#include "kernels/attention/prefill_load.h"

/* A warp's 16 rows, from `row` on, of a part. */
template <class Kind> struct at_prefill_rows {
    using T = typename Kind::T;
    using order = typename Kind::order;
    static constexpr int D = Kind::D, STEPS = AT_PREFILL_KEYS / 16, HALF_STEPS = STEPS / 2;
    const typename Kind::view &a;
    const at_prefill_place &item;
    const typename Kind::weights::told part;
    const int row;
    float (*const o)[32][4];    /* sums: [eight channels][lane] */
    uint32_t (*const p)[32][4]; /* P of a tile: [step][lane] */

    static constexpr int SHARED = D / 8 + STEPS; /* of [32][4], of each warp */

    __device__ at_prefill_rows(const typename Kind::view &view, const at_prefill_place &place, int of_part, int first,
                               float (*shared)[32][4])
        : a(view), item(place), part(Kind::weights::tell(view, place.rows(view.causal, of_part))), row(first),
          o(shared), p(reinterpret_cast<uint32_t (*)[32][4]>(shared + D / 8)) {}

    __device__ int seen(int i, int begin) const {
        const int keys = part.visible(row + i) - begin;
        return keys < 0 ? 0 : keys < AT_PREFILL_HALF ? keys : AT_PREFILL_HALF;
    }
    __device__ const T *query(int i) const {
        const int there = row + i < part.rows ? row + i : part.rows - 1;
        return a.q + ((int64_t)(part.token + there) * a.h + part.head) * D;
    }
    /* The row of K and V of a key, of the last one where there is none; its first element. */
    __device__ int slot(int key) const {
        return at_prefill_slot(a, item.request, key < item.keys ? key : item.keys - 1);
    }
    __device__ int64_t element(int slot) const { return ((int64_t)slot * a.hk + item.kv_head) * D; }
    __device__ void scores(int begin, float (&s)[AT_PREFILL_KEYS / 8][4]) const {
        const int g = at_lane() / 4, t = at_lane() % 4;
        AT_NO_UNROLL
        for (int i = 0; i < D / 16; i++) {
            const int channel = 16 * i + 2 * t;
            const uint32_t q[4] = { at_load32(query(g) + channel), at_load32(query(g + 8) + channel),
                                    at_load32(query(g) + channel + 8), at_load32(query(g + 8) + channel + 8) };
            AT_UNROLL
            for (int J = 0; J < AT_PREFILL_KEYS / 8; J++) {
                const T *k = a.k + element(slot(begin + order::key(J, g))) + channel;
                const uint32_t b[2] = { at_load32(k), at_load32(k + 8) };
                at_mma_16816(s[J], q, b, s[J], T{});
            }
        }
    }
    /* Adds the 16 keys of a step of the tile from `begin` on, once for each number of keys that some row sees. */
    __device__ void values(int begin, int step) {
        const int g = at_lane() / 4, t = at_lane() % 4, half = begin + step / HALF_STEPS * AT_PREFILL_HALF;
        const int own[2] = { seen(g, half), seen(g + 8, half) };
        int key[4]; /* the lane's keys, two for each register of an operand; from the half on */
        int64_t at[4];
        uint32_t weights[4];
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            const int of_tile = order::key(2 * step + j / 2, 2 * t + j % 2);
            key[j] = begin + of_tile - half;
            at[j] = element(slot(begin + of_tile)) + g;
        }
        at_load16(p[step][at_lane()], weights);
        int last = 0;
        AT_NO_UNROLL
        for (int i = 0; i < 16; i++) {
            const int keys = seen(i, half);
            if (keys == last)
                continue; /* seen() does not fall */
            last = keys;
            AT_NO_UNROLL
            for (int n = 0; n < D / 8; n++) {
                float *const sums = o[n][at_lane()];
                at_sum_f32 sum{ { sums[0], sums[1], sums[2], sums[3] } };
                T v[4];
                AT_UNROLL
                for (int j = 0; j < 4; j++)
                    v[j] = key[j] < keys ? a.v[at[j] + 8 * n] : T{};
                const uint32_t b[2] = { at_pair(v[0], v[1]), at_pair(v[2], v[3]) };
                sum.add<T>(weights, b);
                AT_UNROLL
                for (int row = 0; row < 2; row++)
                    if (own[row] == keys) {
                        sums[2 * row] = sum[2 * row];
                        sums[2 * row + 1] = sum[2 * row + 1];
                    }
            }
        }
    }
    /* P of a tile, hidden keys zeros, to shared memory. */
    __device__ void put(const typename Kind::weights &weights, const float (&s)[AT_PREFILL_KEYS / 8][4],
                        const int (&keys)[2]) {
        uint32_t packed[STEPS][4];
        at_prefill_pack<T>(s, packed);
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            const int left[2] = { keys[0] - half * AT_PREFILL_HALF, keys[1] - half * AT_PREFILL_HALF };
            weights.hide(left, packed + half * HALF_STEPS);
        }
        AT_UNROLL
        for (int step = 0; step < STEPS; step++)
            at_store16(p[step][at_lane()], packed[step]);
    }
    __device__ void run() {
        const int g = at_lane() / 4, t = at_lane() % 4;
        typename Kind::weights weights(a);
        weights.begin(part);
        for (int i = 0; i < D / 8 * 4; i++)
            o[i / 4][at_lane()][i % 4] = 0.0f;
        for (int begin = 0; begin < part.visible(row + 15) && begin < item.keys; begin += AT_PREFILL_KEYS) {
            float s[AT_PREFILL_KEYS / 8][4] = {};
            const int keys[2] = { part.visible(row + g) - begin, part.visible(row + g + 8) - begin };
            scores(begin, s);
            weights.template take<AT_PREFILL_KEYS / 8, true>(s, keys);
            if constexpr (Kind::weights::ONLINE) {
                AT_NO_UNROLL
                for (int n = 0; n < D / 8; n++)
                    weights.rescale(o[n][at_lane()]);
            }
            put(weights, s, keys);
            AT_NO_UNROLL
            for (int step = 0; step < STEPS; step++)
                values(begin, step);
        }
        const typename Kind::weights::result result = weights.end(part, row);
        AT_UNROLL
        for (int half = 0; half < 2 && row + g + 8 * half < part.rows; half++) {
            AT_NO_UNROLL
            for (int n = 0; n < D / 8; n++) {
                const float *sums = o[n][at_lane()] + 2 * half;
                at_store32(a.o + ((int64_t)(part.token + row + g + 8 * half) * a.h + part.head) * D + 8 * n + 2 * t,
                           at_pack<T>(result.of(sums[0], half), result.of(sums[1], half)));
            }
        }
    }
};

/* A warp's rows of all the block's items; `shared`: at_prefill_rows::SHARED for each warp of the consumers. Where the warp
 * belongs is found anew, lest it occupies registers from the beginning of the kernel on. */
template <class Kind>
__device__ void at_prefill_redo(const typename Kind::view &a, const at_prefill_work &work, float (*shared)[32][4]) {
    const int warp = (int)threadIdx.x / 32 - AT_PREFILL_GROUP_WARPS; /* of the consumers */
    const int part = warp / AT_PREFILL_GROUP_WARPS, row = warp % AT_PREFILL_GROUP_WARPS * 16;
    at_prefill_place item;
    for (uint32_t round = 0; !work.over(round); round++) {
        uint32_t number;
        if (!work.turn(round, number))
            continue;
        item.locate(work, number);
        if (!item.measure(a))
            continue;
        at_prefill_rows<Kind> rows(a, item, part, row, shared + warp * at_prefill_rows<Kind>::SHARED);
        if (row < rows.part.rows)
            rows.run();
    }
}

#endif
