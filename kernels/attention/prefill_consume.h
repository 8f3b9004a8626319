/* The consumers of the persistent prefill kernels: two warpgroups that take turns at the tensor cores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All tiles of all items of a block are one sequence. A step issues q.k of a tile and P V of the tile before it, gives the
 * turn to the other warpgroup, makes weights of the scores meanwhile, and packs P when the products with the tile before
 * are over: until then those occupy the registers of the operand. A kind may have P V issued first; weights are then made
 * behind both products. Where the tile is the first of an item, P V of the step ended the item before: its sums leave, while
 * the other warpgroup multiplies. What a step multiplies is compiled in, a branch between products would serialise them;
 * masks are applied to the packed P, when nothing is in flight, or by an online softmax to its scores.
 *
 * Weights: a class with the state of a lane's two rows, 16 warp + lane / 4 and that + 8, of the item at hand. Its members:
 *
 *   told, tell(a, part)       what a warpgroup is told of its part, by the warp that loads q
 *   begin(told)               an item begins
 *   take<N, MASKED>(s, keys)  scores of the next N fragments become weights; the rows see the first keys[] of them, which
 *                             matters, if at all, where MASKED
 *   ONLINE, rescale(o)        the sums so far are relative to something that take() has changed
 *   hide(keys, p)             in four steps of packed P, those of keys that a row does not see become 0
 *   result end(told, row)     the item is over; result.of(sum, half) is o. `row`: the warp's first */
#ifndef AT_ATTENTION_PREFILL_CONSUME_H
#define AT_ATTENTION_PREFILL_CONSUME_H

#include "kernels/attention/prefill_items.h"
#include "kernels/device/mma.h"
#include "kernels/device/store_matrix.h"

/* Named barriers: two for turns; everything is stored. */
constexpr int AT_PREFILL_TURN = 1, AT_PREFILL_STORED = 3;

/* P of N steps of 16 keys as operands. */
template <class T, int N>
__device__ __forceinline__ void at_prefill_pack(const float (&s)[2 * N][4], uint32_t (&p)[N][4]) {
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        AT_UNROLL
        for (int r = 0; r < 4; r++) {
            const float(&x)[4] = s[2 * i + r / 2];
            p[i][r] = at_pack<T>(x[2 * (r % 2)], x[2 * (r % 2) + 1]);
        }
    }
}

template <class Kind> struct at_prefill_consumer {
    using T = typename Kind::T;
    static constexpr int D = Kind::D, EARLY = Kind::EARLY;
    static constexpr int PARTS = D / AT_PREFILL_CHANNELS, ATOM = 8 * AT_PREFILL_ROW; /* bytes of 8 swizzled rows */
    static constexpr int FRAGMENTS = AT_PREFILL_KEYS / 8, STEPS = AT_PREFILL_KEYS / 16;
    at_prefill_room<Kind> &room;
    const int group, warp; /* warpgroup; warp of it */
    bool nan = false;      /* of this lane's sums of any item */
    at_prefill_turn turn;
    const typename Kind::weights::told *part = nullptr; /* of the item at hand */
    typename Kind::weights weights;
    float s[FRAGMENTS][4], o[D / 8][4];
    uint32_t p[STEPS][4];

    __device__ at_prefill_consumer(const typename Kind::view &a, at_prefill_room<Kind> &of, int of_group, int of_warp)
        : room(of), group(of_group), warp(of_warp), weights(a), s{}, o{}, p{} {}

    __device__ void release(int stage) const {
        if (at_lane() == 0)
            at_mbarrier_arrive(&room.empty[stage]);
    }
    /* Whose turn it is to issue products. */
    __device__ void wait_turn() const { at_barrier(AT_PREFILL_TURN + group, 256); }
    __device__ void pass_turn() const { at_barrier_arrive(AT_PREFILL_TURN + 1 - group, 256); }

    /* The first fragments of the scores, of 64 or of 128 keys. */
    template <int KEYS> __device__ __forceinline__ float (&scores())[KEYS / 8][4] {
        return reinterpret_cast<float(&)[KEYS / 8][4]>(s);
    }
    /* Passes the turn before product i of n, or behind the last. */
    __device__ __forceinline__ void pass_turn_at(int i, int n, bool passes) const {
        if (i == n - EARLY && passes)
            pass_turn();
    }
    template <int KEYS> __device__ __forceinline__ void issue_scores(const T *q, const T *k, bool passes) {
        AT_UNROLL
        for (int i = 0; i < D / 16; i++) {
            pass_turn_at(i, D / 16, passes);
            const int channel = 16 * i, chunk = channel / AT_PREFILL_CHANNELS;
            const int within = channel % AT_PREFILL_CHANNELS * (int)sizeof(T);
            const at_matrix a =
                at_matrix::swizzled<AT_PREFILL_ROW>(q + chunk * AT_PREFILL_QUERIES * AT_PREFILL_CHANNELS, ATOM)
                    .moved(within);
            const at_matrix b =
                at_matrix::swizzled<AT_PREFILL_ROW>(k + chunk * ATOM / (int)sizeof(T), PARTS * ATOM).moved(within);
            if (i == 0)
                at_wgmma_first(scores<KEYS>(), a, b, T{}, T{});
            else
                at_wgmma(scores<KEYS>(), a, b, T{}, T{});
        }
        at_wgmma_commit();
        pass_turn_at(D / 16, D / 16, passes);
    }
    template <int KEYS> __device__ __forceinline__ void issue_values(const T *v, bool passes) {
        AT_UNROLL
        for (int i = 0; i < KEYS / 16; i++) {
            pass_turn_at(i, KEYS / 16, passes);
            at_wgmma(o, p[i], at_matrix_mn::swizzled<AT_PREFILL_ROW>(v, ATOM, PARTS * ATOM).moved(2 * i * PARTS * ATOM),
                     T{}, T{});
        }
        at_wgmma_commit();
        pass_turn_at(KEYS / 16, KEYS / 16, passes);
    }

    /* Keys from `begin` on that the lane's rows see. */
    __device__ __forceinline__ void seen(int begin, int (&keys)[2]) const {
        const int row = 16 * warp + at_lane() / 4;
        keys[0] = part->visible(row) - begin;
        keys[1] = part->visible(row + 8) - begin;
    }
    /* A step: q.k of the KEYS keys from `begin` on, 0 behind the last tile, and P V of the BEFORE keys of the tile before, 0
     * at the first. */
    template <int KEYS, int BEFORE, bool MASKED> __device__ __forceinline__ void step(const T *q, int begin) {
        constexpr bool V_FIRST = Kind::VALUES_FIRST && KEYS > 0 && BEFORE > 0;
        const at_prefill_turn k = turn;
        if constexpr (KEYS > 0) {
            turn.next();
            at_mbarrier_wait(&room.full[k.stage], k.parity);
        }
        const at_prefill_turn v = turn;
        if constexpr (BEFORE > 0)
            turn.next();
        if constexpr (V_FIRST)
            at_mbarrier_wait(&room.full[v.stage], v.parity);
        wait_turn();
        if constexpr (V_FIRST) {
            at_wgmma_fence(o, p);
            issue_values<BEFORE>(room.stages[v.stage], false);
        }
        at_wgmma_fence(s);
        if constexpr (KEYS > 0)
            issue_scores<KEYS>(q, room.stages[k.stage], V_FIRST || BEFORE == 0);
        if constexpr (BEFORE > 0 && !V_FIRST) {
            at_mbarrier_wait(&room.full[v.stage], v.parity);
            at_wgmma_fence(o, p);
            issue_values<BEFORE>(room.stages[v.stage],
                                 KEYS > 0 || group == 0); /* nobody waits after the second's last */
        }
        if constexpr (KEYS > 0) {
            if constexpr (V_FIRST)
                at_wgmma_wait<1>(o); /* ptxas serialises all products where one wait is for both */
            at_wgmma_wait<(BEFORE > 0 && !V_FIRST)>(s);
            release(k.stage);
            if constexpr (V_FIRST)
                release(v.stage); /* the warp that loads asks for k's first */
            int keys[2];
            seen(begin, keys);
            weights.template take<KEYS / 8, MASKED>(s, keys);
        }
        if constexpr (BEFORE > 0 && !V_FIRST) {
            if constexpr (KEYS > 0)
                at_wgmma_wait<0>(o, scores<KEYS>());
            else
                at_wgmma_wait<0>(o);
            release(v.stage);
        }
    }
    __device__ __forceinline__ void whole_step(const T *q, int begin) {
        constexpr int KEYS = AT_PREFILL_KEYS;
        if constexpr (Kind::weights::ONLINE)
            if (begin + KEYS <= part->sees) {
                step<KEYS, KEYS, false>(q, begin);
                return;
            }
        step<KEYS, KEYS, true>(q, begin);
    }
    __device__ __forceinline__ void step_of(int keys, int before, const T *q, int begin) {
        constexpr int WHOLE = AT_PREFILL_KEYS, HALF = AT_PREFILL_HALF;
        if (keys == WHOLE && before == WHOLE)
            whole_step(q, begin);
        else if (keys == HALF && before == WHOLE)
            step<HALF, WHOLE, true>(q, begin);
        else if (keys == WHOLE && before == HALF)
            step<WHOLE, HALF, true>(q, begin);
        else if (keys == HALF && before == HALF)
            step<HALF, HALF, true>(q, begin);
        else if (keys == WHOLE)
            step<WHOLE, 0, true>(q, begin);
        else if (keys == HALF)
            step<HALF, 0, true>(q, begin);
        else if (before == WHOLE)
            step<0, WHOLE, true>(q, begin);
        else
            step<0, HALF, true>(q, begin);
    }

    /* P of the tile from `begin` on as operands. */
    __device__ __forceinline__ void pack(int begin) {
        at_prefill_pack<T>(s, p);
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            const int from = begin + half * AT_PREFILL_HALF;
            if (from + AT_PREFILL_HALF <= part->sees) /* all rows see all of them */
                continue;
            int keys[2];
            seen(from, keys);
            weights.hide(keys, p + half * STEPS / 2);
        }
    }

    /* The sums of an item, as results, to its buffer; sums begin anew. */
    __device__ __forceinline__ void leave(const typename Kind::weights::result &result, uint32_t m) {
        T *to = room.buffers[at_prefill_buffer(m)][group];
        const int row = 16 * warp + at_lane() % 16,
                  chunk = at_lane() / 16; /* of the four matrices that one store has */
        AT_UNROLL
        for (int i = 0; i < D / 8; i += 2) {
            uint32_t r[4];
            AT_UNROLL
            for (int n = 0; n < 4; n++) {
                const float(&x)[4] = o[i + n / 2];
                const float low = result.of(x[2 * (n % 2)], n % 2), high = result.of(x[2 * (n % 2) + 1], n % 2);
                nan |= low != low || high != high;
                r[n] = at_pack<T>(low, high);
            }
            const int column = 8 * i % AT_PREFILL_CHANNELS / 8 + chunk;
            at_stmatrix_x4(to + 8 * i / AT_PREFILL_CHANNELS * AT_PREFILL_QUERIES * AT_PREFILL_CHANNELS +
                               at_swizzle<AT_PREFILL_ROW>(row * AT_PREFILL_ROW + column * 16) / (int)sizeof(T),
                           r);
        }
        at_proxy_fence(); /* TMA reads it */
        at_sync_warp();
        if (at_lane() == 0)
            at_mbarrier_arrive(&room.o_full[at_prefill_buffer(m)]);
        AT_UNROLL
        for (int i = 0; i < D / 8; i++)
            for (int j = 0; j < 4; j++)
                o[i][j] = 0.0f;
    }

    __device__ void run() {
        int before = 0; /* keys of the tile before */
        uint32_t m = 0;
        typename Kind::weights::result result{};
        for (;; m++) {
            const int buffer = at_prefill_buffer(m);
            at_mbarrier_wait(&room.q_full[buffer], at_prefill_parity(m));
            const int tiles = room.items[buffer].tiles;
            if (tiles == 0)
                break;
            if (m == 0 && group == 1)
                pass_turn(); /* the first turn is the first warpgroup's */
            part = &room.items[buffer].part[group];
            weights.begin(*part);
            const bool half = part->halves() < 2 * tiles;
            for (int tile = 0; tile < tiles; tile++) {
                const int keys = half && tile + 1 == tiles ? AT_PREFILL_HALF : AT_PREFILL_KEYS;
                step_of(keys, before, room.buffers[buffer][group], tile * AT_PREFILL_KEYS);
                if (tile == 0 && before)
                    leave(result, m - 1);
                if constexpr (Kind::weights::ONLINE) {
                    AT_UNROLL
                    for (int i = 0; i < D / 8; i++)
                        weights.rescale(o[i]);
                }
                pack(tile * AT_PREFILL_KEYS);
                before = keys;
            }
            result = weights.end(*part, 16 * warp);
        }
        if (before) {
            step_of(0, before, nullptr, 0);
            leave(result, m - 1);
        }
    }
};

#endif
