/* Attention in the shape of FlashAttention 3: a producer warp loads tiles by TMA, two consumer warpgroups take turns at
 * the tensor cores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block has 128 queries of one head. Shared memory holds their q and two stages of K and of V, each stage with a full
 * and an empty mbarrier; all in rows of 64 channels, swizzled as TMA writes and wgmma reads them. A consumer warpgroup
 * has 64 queries. It issues the scores of a tile of keys by wgmma and, while they are computed, multiplies the weights
 * of the tile before by its V: weights from registers, V in rows of keys, as it lies. Named barriers let one warpgroup
 * issue products while the other turns scores into weights. How scores become weights is the operator's class; each
 * warp has one:
 *   Weights(view, queries)              at the beginning; it keeps no reference to `queries`
 *   take<MASKED>(queries, begin, sums)  turns scores of a tile into weights; not MASKED: every query sees all its keys
 *   put(o, p)                           rescales the sums so far and packs the weights as the next product's operand
 *   store(queries, o)                   the epilogue
 *
 * Keys that a query does not see: as in kernels/attention/attention_mma.h. Rows past the last key of the block are
 * zeros, or other rows of the same page: where V holds an infinity or a NaN in such a row, or in one that is hidden
 * from some query, P V of the tile is computed for one query at a time. */
#ifndef AT_ATTENTION_TMA_H
#define AT_ATTENTION_TMA_H

#include "kernels/attention/attention_mma.h"
#include "kernels/device/tma.h"
#include "kernels/device/warp_roles.h"

constexpr int AT_TMA_QUERIES = 128, AT_TMA_KEYS = 64, AT_TMA_STAGES = 2, AT_TMA_THREADS = 384, AT_TMA_CHANNELS = 64;
constexpr int AT_TMA_ROW = 2 * AT_TMA_CHANNELS, AT_TMA_GROUP_THREADS = 128, AT_TMA_GROUP_QUERIES = 64;
constexpr int AT_TMA_WARPS = AT_TMA_QUERIES / AT_MMA_ROWS, AT_TMA_GROUP_WARPS = AT_TMA_WARPS / 2; /* consumers */
constexpr int AT_TMA_TURN = 1; /* the first of two named barriers */

/* The layout of shared memory in elements: q, then K and V of each stage, then the mbarriers. */
template <class T, int D> struct at_tma_room {
    static constexpr int PARTS = D / AT_TMA_CHANNELS, Q = AT_TMA_QUERIES * D, TILE = AT_TMA_KEYS * D;
    static constexpr int Q_PART = AT_TMA_QUERIES * AT_TMA_CHANNELS, PART = AT_TMA_KEYS * AT_TMA_CHANNELS;
    T *memory;

    __device__ T *q() const { return memory; }
    __device__ T *k(int stage) const { return memory + Q + 2 * stage * TILE; }
    __device__ T *v(int stage) const { return k(stage) + TILE; }
    __device__ at_mbarrier *barriers() const { return reinterpret_cast<at_mbarrier *>(k(AT_TMA_STAGES)); }
    __device__ at_mbarrier *q_full() const { return barriers(); }
    __device__ at_mbarrier *k_full(int stage) const { return barriers() + 1 + 4 * stage; }
    __device__ at_mbarrier *k_empty(int stage) const { return k_full(stage) + 1; }
    __device__ at_mbarrier *v_full(int stage) const { return k_full(stage) + 2; }
    __device__ at_mbarrier *v_empty(int stage) const { return k_full(stage) + 3; }

    static constexpr int64_t bytes() {
        return (int64_t)sizeof(T) * (Q + 2 * AT_TMA_STAGES * TILE) +
               (int64_t)sizeof(at_mbarrier) * (1 + 4 * AT_TMA_STAGES);
    }
};

/* A tile of keys: its stage, and the parity of the phase that its full barriers complete. */
struct at_tma_turn {
    int stage;
    uint32_t parity;
    __device__ explicit at_tma_turn(int tile)
        : stage(tile % AT_TMA_STAGES), parity((uint32_t)(tile / AT_TMA_STAGES % 2)) {}
};

/* The tiles of keys [first, last) of a walk; `before`: how many the stages held before it. */
struct at_tma_span {
    int first, last, before;
    __device__ at_tma_turn turn(int tile) const { return at_tma_turn(before + tile - first); }
};

/* ---- the block and its roles ---- */

/* The 128 queries of a block. */
template <class T> struct at_tma_queries {
    const int tile;                        /* of 16 queries, the block's first */
    const at_mma_queries<T> first, second; /* the first 16 of each consumer warpgroup */
    const int keys;                        /* that some query of the block sees */
    const bool alone;                      /* the second consumer warpgroup has no queries */

    __device__ at_tma_queries(const at_attention_view<T> &a, int request, int head, int of)
        : tile(of * AT_TMA_WARPS), first(a, request, head, tile), second(a, request, head, tile + AT_TMA_GROUP_WARPS),
          keys(at_mma_queries<T>(a, request, head, tile + AT_TMA_WARPS - 1).visible(AT_MMA_ROWS - 1)),
          alone(second.first >= second.end) {}
    __device__ bool empty() const { return first.first >= first.end; }
    __device__ int consumers() const { return alone ? AT_TMA_GROUP_WARPS : AT_TMA_WARPS; } /* warps */
    __device__ int tiles() const { return (keys + AT_TMA_KEYS - 1) / AT_TMA_KEYS; }
};

/* The same and a warp's role. Warpgroup -1 produces; warpgroups 0 and 1 consume, with 64 queries each. */
template <class T> struct at_tma_block : at_tma_queries<T> {
    const int warp, group;

    __device__ at_tma_block(const at_attention_view<T> &a, int request, int head, int of)
        : at_tma_queries<T>(a, request, head, of),
          /* From a lane of its own: the compiler then knows that it is the same for a warp. */
          warp(at_shuffle(0xffffffffu, (int)threadIdx.x / 32, 0)), group(warp / AT_TMA_GROUP_WARPS - 1) {}
    /* The tile of a grid (query heads, requests, tiles). */
    __device__ explicit at_tma_block(const at_attention_view<T> &a)
        : at_tma_block(a, (int)blockIdx.y, (int)blockIdx.x, (int)blockIdx.z) {}
    __device__ bool produces() const { return group < 0; }
    __device__ bool idle() const { return group == 1 && this->alone; }
};

/* Initialises the mbarriers; ends with a barrier of the block. `consumers`: warps that empty a stage. */
template <class T, int D> __device__ void at_tma_begin(const at_tma_room<T, D> &room, int consumers) {
    if (threadIdx.x == 0) {
        at_mbarrier_init(room.q_full(), 1);
        for (int stage = 0; stage < AT_TMA_STAGES; stage++) {
            at_mbarrier_init(room.k_full(stage), 1);
            at_mbarrier_init(room.v_full(stage), 1);
            at_mbarrier_init(room.k_empty(stage), (uint32_t)consumers);
            at_mbarrier_init(room.v_empty(stage), (uint32_t)consumers);
        }
        at_proxy_fence(); /* TMA uses the barriers, too */
    }
    at_sync();
}

/* ---- the producer, one thread ---- */

/* The row of K and V that holds key t of a request. */
template <class T> __device__ int at_tma_slot(const at_attention_view<T> &a, int request, int t) {
    const int column = a.page_of(t);
    return a.rows[request * a.row_stride + column] * (a.page ? a.page : 1) + t - column * a.page;
}

/* Loads a tile of K or of V, `rows` keys a copy. A copy whose first key lies past `keys` is from row `slots`, one past
 * the tensor: TMA fills it with zeros. */
template <class T, int D>
__device__ void at_tma_load_tile(const at_attention_view<T> &a, const at_tensor_map &map, int request, int kv_head,
                                 int begin, int keys, int rows, int slots, T *tile, at_mbarrier *full) {
    using room = at_tma_room<T, D>;
    at_mbarrier_arrive_expect(full, room::TILE * (uint32_t)sizeof(T));
    for (int t = begin; t < begin + AT_TMA_KEYS; t += rows) {
        const int slot = t < keys ? at_tma_slot(a, request, t) : slots;
        for (int part = 0; part < room::PARTS; part++)
            at_tensor_load(tile + part * room::PART + (t - begin) * AT_TMA_CHANNELS, map,
                           { part * AT_TMA_CHANNELS, kv_head, slot }, full);
    }
}

/* Loads q once and then each tile of K and V into its stage as soon as the consumers have emptied it. */
template <class T, int D>
__device__ void at_tma_produce(const at_attention_view<T> &a, const at_tensor_map &q_map, const at_tensor_map &k_map,
                               const at_tensor_map &v_map, const at_mma_queries<T> &first, int keys,
                               const at_tma_span &span, int rows, int slots, const at_tma_room<T, D> &room) {
    const int token = a.query_start[first.request] + first.first;
    at_mbarrier_arrive_expect(room.q_full(), room.Q * (uint32_t)sizeof(T));
    for (int part = 0; part < room.PARTS; part++)
        at_tensor_load(room.q() + part * room.Q_PART, q_map, { part * AT_TMA_CHANNELS, first.head, token },
                       room.q_full());
    for (int i = span.first; i < span.last; i++) {
        const at_tma_turn turn = span.turn(i);
        at_mbarrier_wait(room.k_empty(turn.stage), turn.parity ^ 1);
        at_tma_load_tile<T, D>(a, k_map, first.request, first.kv_head, i * AT_TMA_KEYS, keys, rows, slots,
                               room.k(turn.stage), room.k_full(turn.stage));
        at_mbarrier_wait(room.v_empty(turn.stage), turn.parity ^ 1);
        at_tma_load_tile<T, D>(a, v_map, first.request, first.kv_head, i * AT_TMA_KEYS, keys, rows, slots,
                               room.v(turn.stage), room.v_full(turn.stage));
    }
}
/* All tiles of keys, by a block that walks once. */
template <class T, int D>
__device__ void at_tma_produce(const at_attention_view<T> &a, const at_tensor_map &q_map, const at_tensor_map &k_map,
                               const at_tensor_map &v_map, const at_mma_queries<T> &first, int keys, int rows,
                               int slots, const at_tma_room<T, D> &room) {
    const at_tma_span all{ 0, (keys + AT_TMA_KEYS - 1) / AT_TMA_KEYS, 0 };
    at_tma_produce(a, q_map, k_map, v_map, first, keys, all, rows, slots, room);
}

/* ---- the consumers, two warpgroups ---- */

/* Sums as the registers of a product. */
template <int N> __device__ float (&at_wgmma_registers(at_sum_f32 (&s)[N]))[N][4] {
    return reinterpret_cast<float(&)[N][4]>(s);
}
template <int N, int GUARD> __device__ uint32_t (&at_wgmma_registers(at_sum_f16<GUARD> (&s)[N]))[N][2] {
    return reinterpret_cast<uint32_t(&)[N][2]>(s);
}
/* Sums with a guard are waited for and guarded after every step of 16 products. */
template <class Sum> constexpr bool at_wgmma_guarded = false;
template <> constexpr bool at_wgmma_guarded<at_sum_f16<AT_GUARD_ISINF>> = true;
template <class Sum, int N> __device__ void at_wgmma_guard(Sum (&s)[N]) {
    if constexpr (at_wgmma_guarded<Sum>) {
        at_wgmma_commit();
        at_wgmma_wait<0>(at_wgmma_registers(s));
        for (int n = 0; n < N; n++)
            for (int i = 0; i < 2; i++)
                s[n].x[i] = Sum::guarded(s[n].x[i] & 0xffffu) | Sum::guarded(s[n].x[i] >> 16) << 16;
        at_wgmma_fence(at_wgmma_registers(s));
    }
}

/* Whether V holds an infinity or a NaN from row `from` on, or anywhere when that is negative: the same for all warps
 * that ask for the same rows. */
template <class T, int D> __device__ bool at_tma_not_finite(const T *v, int from) {
    constexpr int EACH = 8, CHUNKS = AT_TMA_CHANNELS / EACH;
    bool found = false;
    from = from > 0 ? from : 0;
    for (int i = at_lane(); i < (AT_TMA_KEYS - from) * CHUNKS * (D / AT_TMA_CHANNELS); i += 32) {
        const int rows = AT_TMA_KEYS - from, row = from + i / CHUNKS % rows, part = i / CHUNKS / rows;
        T x[EACH];
        at_load16(v + part * at_tma_room<T, D>::PART + row * AT_TMA_CHANNELS + i % CHUNKS * EACH, x);
        for (int j = 0; j < EACH; j++) {
            const float y = at_float(x[j]);
            found |= !(y - y == 0.0f);
        }
    }
    return at_ballot(0xffffffffu, found) != 0;
}

/* o += P V of the 16 keys from `key` of a tile on, by mma.sync, hidden rows of V replaced by zeros: once for each
 * number of these keys that some query sees. */
template <int D, class T, class Sum>
__device__ void at_tma_values_by_query(const at_mma_queries<T> &queries, int begin, int key, const uint32_t (&p)[4],
                                       const T *v, Sum (&o)[D / 8]) {
    const auto seen_by = [&](int row) {
        const int seen = queries.visible(row) - begin - key;
        return seen < 0 ? 0 : seen < 16 ? seen : 16;
    };
    const int line = key + at_lane() / 8 % 2 * 8 + at_lane() % 8;
    const int own[2] = { seen_by(at_lane() / 4), seen_by(at_lane() / 4 + 8) };
    int last = 0; /* rows that see none of these keys contribute nothing */
    for (int row = 0; row < AT_MMA_ROWS; row++) {
        const int seen = seen_by(row);
        if (seen == last)
            continue; /* visible() does not fall */
        last = seen;
        AT_UNROLL
        for (int i = 0; i < D / 8; i += 2) {
            const int channel = 8 * i + at_lane() / 16 * 8;
            const int place = at_swizzle<AT_TMA_ROW>(line * AT_TMA_ROW + channel % AT_TMA_CHANNELS * (int)sizeof(T));
            uint32_t r[4];
            at_ldmatrix_x4_trans(r, v + channel / AT_TMA_CHANNELS * at_tma_room<T, D>::PART + place / (int)sizeof(T));
            AT_UNROLL
            for (int n = 0; n < 2; n++) {
                uint32_t b[2] = { r[2 * n], r[2 * n + 1] };
                Sum sum = o[i + n];
                at_mma_hide(b, seen);
                sum.template add<T>(p, b);
                AT_UNROLL
                for (int half = 0; half < 2; half++)
                    if (own[half] == seen)
                        o[i + n].take(sum, half);
            }
        }
    }
}

/* Gives a stage back to the producer: every lane of the warp has read what it wanted of the tile. */
__device__ inline void at_tma_release(at_mbarrier *empty) {
    at_sync_warp();
    if (at_lane() == 0)
        at_mbarrier_arrive(empty);
}

/* A warp of a consumer warpgroup: the steps of its walk over the tiles. */
template <class T, int D, class Sum, class Weights> struct at_tma_consumer {
    static constexpr int STEPS = AT_TMA_KEYS / 16;
    static constexpr bool GUARDED = at_wgmma_guarded<Sum>; /* every step has been waited for */
    const at_mma_queries<T> queries;
    const at_tma_room<T, D> &room;
    const at_tma_span span;
    const int group, least; /* least: keys that all queries of the warpgroup see */
    const bool alone;       /* the other warpgroup has no queries */
    Weights weights;
    Sum o[D / 8] = {};
    uint32_t p[STEPS][4];

    template <class View>
    __device__ at_tma_consumer(const View &view, const at_tma_block<T> &block, const at_tma_room<T, D> &of)
        : at_tma_consumer(view, block, of, { 0, block.tiles(), 0 }) {}
    template <class View>
    __device__ at_tma_consumer(const View &view, const at_tma_block<T> &block, const at_tma_room<T, D> &of,
                               const at_tma_span &tiles)
        : queries(view, block.first.request, block.first.head, block.tile + block.warp - AT_TMA_GROUP_WARPS), room(of),
          span(tiles), group(block.group), least(group ? block.second.least : block.first.least), alone(block.alone),
          weights(view, queries) {}

    /* Waits for the warpgroup's turn to issue products; gives the turn to the other one. */
    __device__ void turn() const {
        if (!alone)
            at_barrier(AT_TMA_TURN + group, 2 * AT_TMA_GROUP_THREADS);
    }
    __device__ void pass(int tile, int tiles) const {
        if (!alone && (group == 0 || tile + 1 < tiles)) /* nobody waits for the end of the second's last turn */
            at_barrier_arrive(AT_TMA_TURN + 1 - group, 2 * AT_TMA_GROUP_THREADS);
    }
    __device__ static void release(at_mbarrier *empty) { at_tma_release(empty); }
    __device__ void issue_scores(int stage, Sum (&sums)[AT_TMA_KEYS / 8]) const {
        const T *q = room.q() + group * AT_TMA_GROUP_QUERIES * AT_TMA_CHANNELS, *k = room.k(stage);
        AT_UNROLL
        for (int i = 0; i < D / 16; i++) {
            const int part = 16 * i / AT_TMA_CHANNELS, within = 16 * i % AT_TMA_CHANNELS * (int)sizeof(T);
            at_wgmma(at_wgmma_registers(sums),
                     at_matrix::swizzled<AT_TMA_ROW>(q + part * room.Q_PART, 8 * AT_TMA_ROW).moved(within),
                     at_matrix::swizzled<AT_TMA_ROW>(k + part * room.PART, 8 * AT_TMA_ROW).moved(within), T{}, T{});
            at_wgmma_guard(sums);
        }
        if (!GUARDED)
            at_wgmma_commit();
    }
    __device__ void issue_values(const T *v) {
        AT_UNROLL
        for (int i = 0; i < STEPS; i++) {
            at_wgmma(at_wgmma_registers(o), p[i],
                     at_matrix_mn::swizzled<AT_TMA_ROW>(v, room.PART * (int)sizeof(T), 8 * AT_TMA_ROW)
                         .moved(16 * i * AT_TMA_ROW),
                     T{}, T{});
            at_wgmma_guard(o);
        }
        if (!GUARDED)
            at_wgmma_commit();
    }
    /* Issues the scores of a tile once its K has been loaded and it is the warpgroup's turn. */
    __device__ void begin_tile(const at_tma_turn &now, Sum (&sums)[AT_TMA_KEYS / 8]) {
        at_mbarrier_wait(room.k_full(now.stage), now.parity);
        turn();
        at_wgmma_fence(at_wgmma_registers(sums), at_wgmma_registers(o), p);
        issue_scores(now.stage, sums);
    }
    /* P V of a tile with nothing overlapped. */
    __device__ void values_alone(const at_tma_turn &now) {
        at_wgmma_fence(at_wgmma_registers(o), p);
        issue_values(room.v(now.stage));
        if (!GUARDED)
            at_wgmma_wait<0>(at_wgmma_registers(o));
    }

    /* Tiles before whole(), every key of which all queries of the warpgroup see, need no mask: P V of one tile overlaps
     * the scores of the next. */
    __device__ int whole() const {
        const int n = least / AT_TMA_KEYS;
        return n < span.first ? span.first : n < span.last ? n : span.last;
    }
    __device__ void walk_whole(int tiles) {
        const int n = whole();
        if (n <= span.first)
            return;
        first_tile(tiles);
        for (int i = span.first + 1; i < n; i++) {
            const at_tma_turn now = span.turn(i), before = span.turn(i - 1);
            Sum sums[AT_TMA_KEYS / 8] = {};
            begin_tile(now, sums);
            at_mbarrier_wait(room.v_full(before.stage), before.parity);
            issue_values(room.v(before.stage));
            pass(i, tiles);
            if (!GUARDED)
                at_wgmma_wait<1>(at_wgmma_registers(sums));
            release(room.k_empty(now.stage));
            weights.template take<false>(queries, i * AT_TMA_KEYS, sums);
            if (!GUARDED)
                at_wgmma_wait<0>(at_wgmma_registers(o));
            release(room.v_empty(before.stage));
            weights.put(o, p);
        }
        last_values(n - 1);
    }
    __device__ void first_tile(int tiles) {
        const at_tma_turn now = span.turn(span.first);
        Sum sums[AT_TMA_KEYS / 8] = {};
        begin_tile(now, sums);
        pass(span.first, tiles);
        if (!GUARDED)
            at_wgmma_wait<0>(at_wgmma_registers(sums));
        release(room.k_empty(now.stage));
        weights.template take<false>(queries, span.first * AT_TMA_KEYS, sums);
        weights.put(o, p);
    }
    /* P V of the last of them, with no scores beside it. */
    __device__ void last_values(int tile) {
        const at_tma_turn last = span.turn(tile);
        at_mbarrier_wait(room.v_full(last.stage), last.parity);
        values_alone(last);
        release(room.v_empty(last.stage));
    }
    /* The other tiles, each with a key that some query does not see: one after the other, masked. */
    __device__ void walk_masked(int tiles) {
        for (int i = whole(); i < tiles; i++) {
            const at_tma_turn now = span.turn(i);
            const int begin = i * AT_TMA_KEYS;
            Sum sums[AT_TMA_KEYS / 8] = {};
            begin_tile(now, sums);
            pass(i, tiles);
            if (!GUARDED)
                at_wgmma_wait<0>(at_wgmma_registers(sums));
            release(room.k_empty(now.stage));
            weights.template take<true>(queries, begin, sums);
            weights.put(o, p);
            at_mbarrier_wait(room.v_full(now.stage), now.parity);
            if (at_tma_not_finite<T, D>(room.v(now.stage), least - begin)) {
                AT_UNROLL
                for (int k = 0; k < STEPS; k++)
                    at_tma_values_by_query<D>(queries, begin, 16 * k, p[k], room.v(now.stage), o);
            } else {
                values_alone(now);
            }
            release(room.v_empty(now.stage));
        }
    }
    /* The first turn is the first warpgroup's. */
    __device__ void first_turn() const {
        if (!alone && group == 1)
            at_barrier_arrive(AT_TMA_TURN, 2 * AT_TMA_GROUP_THREADS);
    }
    /* For a block that walks once: both warpgroups wait for q. */
    __device__ void begin() const {
        first_turn();
        at_mbarrier_wait(room.q_full(), 0);
    }
};

#endif
