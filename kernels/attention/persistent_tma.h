/* Attention by persistent blocks with warp roles: a producer warp that takes tiles of queries and loads them, their keys
 * and values by TMA, and two consumer warpgroups that stay with it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * On attention_tma.h, whose stages go on from one tile of queries to the next: at_tma_span counts the tiles of keys that
 * they held. The producer alone asks the scheduler (persistent.h, stream_k.h); what it takes travels with q: it writes
 * the tile's number beside q before it arrives at the barrier that consumers wait for. q is given back by an mbarrier of
 * its own, when the last of its scores are done: while consumers store what they have, the next tiles are on their way. */
#ifndef AT_PERSISTENT_TMA_H
#define AT_PERSISTENT_TMA_H

#include "kernels/attention/persistent.h"
#include "kernels/attention/tma_launch.h"

/* Blocks at a time: one a multiprocessor, two do not fit. */
static inline uint32_t at_tma_blocks() { return at_multiprocessors(); }

/* What a block works on: a tile of queries and a head as at_mma_work numbers them; which range of keys. */
struct at_tma_piece {
    uint32_t item;
    int range;
};

/* The room of attention_tma.h, then the mbarrier of q given back and what was taken. */
template <class T, int D> struct at_tma_work_room : at_tma_room<T, D> {
    using words = uint32_t[2];

    __device__ at_mbarrier *q_empty() const { return this->barriers() + 1 + 4 * AT_TMA_STAGES; }
    __device__ at_tma_piece *piece() const { return reinterpret_cast<at_tma_piece *>(q_empty() + 1); }
    /* For schedulers of blocks, which use them where all threads ask. */
    __device__ words &taken() const { return *reinterpret_cast<words *>(piece() + 1); }

    static constexpr int64_t bytes() {
        return at_tma_room<T, D>::bytes() + (int64_t)(sizeof(at_mbarrier) + sizeof(at_tma_piece) + sizeof(words));
    }
};

/* Initialises the mbarriers; ends with a barrier of the block. Both warpgroups give everything back, also where one has
 * no queries. */
template <class T, int D> __device__ void at_tma_begin_work(const at_tma_work_room<T, D> &room) {
    if (threadIdx.x == 0)
        at_mbarrier_init(room.q_empty(), AT_TMA_WARPS);
    at_tma_begin(room, AT_TMA_WARPS);
}

/* The tiles of keys of a piece. RANGE: keys that a range has; 0: there is one, which has all. */
template <int RANGE> __device__ at_tma_span at_tma_span_of(int tiles, int range, int before) {
    if (RANGE == 0)
        return { 0, tiles, before };
    const int first = range * (RANGE / AT_TMA_KEYS), last = first + RANGE / AT_TMA_KEYS;
    return { first, last < tiles ? last : tiles, before };
}

/* The producer, one thread: loads every piece that next(piece) gives, and tells the consumers when there is none left. */
template <int RANGE, class T, int D, class Next>
__device__ void at_tma_produce_pieces(const at_attention_view<T> &a, const at_tensor_map &q_map,
                                      const at_tensor_map &k_map, const at_tensor_map &v_map, const at_mma_work &work,
                                      int rows, int slots, const at_tma_work_room<T, D> &room, Next next) {
    int before = 0;
    uint32_t parity = 1;
    const auto tell = [&](const at_tma_piece &piece) {
        at_mbarrier_wait(room.q_empty(), parity);
        *room.piece() = piece;
        parity ^= 1;
    };
    for (at_tma_piece piece{ 0, 0 }; next(piece);) {
        const at_tma_queries<T> queries(a, work.request(piece.item), work.head(piece.item), work.tile(piece.item));
        if (queries.empty())
            continue;
        const at_tma_span span = at_tma_span_of<RANGE>(queries.tiles(), piece.range, before);
        tell(piece);
        at_tma_produce(a, q_map, k_map, v_map, queries.first, queries.keys, span, rows, slots, room);
        before += span.last - span.first;
    }
    tell({ work.items, 0 });
    at_mbarrier_arrive(room.q_full());
}

/* A warpgroup without queries in a piece gives back each stage when it has been filled: not before, or it would count
 * for a later tile. */
template <class T, int D> __device__ void at_tma_stand_by(const at_tma_work_room<T, D> &room, const at_tma_span &span) {
    for (int i = span.first; i < span.last; i++) {
        const at_tma_turn now = span.turn(i);
        at_mbarrier_wait(room.k_full(now.stage), now.parity);
        at_tma_release(room.k_empty(now.stage));
        at_mbarrier_wait(room.v_full(now.stage), now.parity);
        at_tma_release(room.v_empty(now.stage));
    }
    at_tma_release(room.q_empty());
}

/* The consumers: walk(block, span, range) for every piece, by the warpgroups that have queries in it; it ends with
 * give_back(). */
template <int RANGE, class T, int D, class Walk>
__device__ void at_tma_consume_pieces(const at_attention_view<T> &a, const at_mma_work &work,
                                      const at_tma_work_room<T, D> &room, Walk walk) {
    int before = 0;
    for (uint32_t parity = 0;; parity ^= 1) {
        at_mbarrier_wait(room.q_full(), parity);
        const at_tma_piece piece = *room.piece();
        if (piece.item >= work.items)
            return;
        const at_tma_block<T> block(a, work.request(piece.item), work.head(piece.item), work.tile(piece.item));
        const at_tma_span span = at_tma_span_of<RANGE>(block.tiles(), piece.range, before);
        if (block.idle())
            at_tma_stand_by(room, span);
        else
            walk(block, span, piece.range);
        before += span.last - span.first;
    }
}

#endif
