/* The warps of the persistent prefill kernels that load and store.
 * SPDX-License-Identifier: Apache-2.0
 *
 * K and V lie in shared memory by groups of 8 BJ keys: a row 8 j + 2 q + e of a group is a column of q.k and a line of V;
 * which key it holds is the order's affair. Contiguous keys, and pages of whole groups of 64, have BJ = 8, other pages
 * BJ = 2. One copy loads a group, of a map of five dimensions: channels, e, q, parts of a row, j. Its strides overlap, so the
 * map does not know where the tensor ends: a group that reaches over the end, and every group where pages are no multiple of
 * 16, is copied pair by pair of keys, or key by key where pages are odd. */
#ifndef AT_ATTENTION_PREFILL_LOAD_H
#define AT_ATTENTION_PREFILL_LOAD_H

#include "kernels/attention/prefill_items.h"
#include "kernels/device/dependent.h"

/* The tensor maps of a kernel: k and v by groups, k_rows and v_rows by keys. */
struct at_prefill_maps {
    at_tensor_map q, o, k, v, k_rows, v_rows;
};
struct at_prefill_layout {
    int slots; /* rows of K and V */
    int rows;  /* that a copy by keys has */
    int whole; /* groups lie in a row */
};

/* The row of K and V that holds key t of a request. */
template <class View> __device__ int at_prefill_slot(const View &a, int request, int t) {
    const int column = a.page_of(t);
    return a.rows[request * a.row_stride + column] * (a.page ? a.page : 1) + t - column * a.page;
}

/* Orders of keys in a group of 8 BJ: which key a row holds. AFTER_Q, AFTER_J: keys from a q, from a j, to the next; Q: how
 * many q a map has, so that a group may begin at any key.
 *
 * By runs: lane q of a quad, whose columns are 2 q and 2 q + 1 of every eight, has 2 BJ keys in a row. */
template <int GROUP> struct at_prefill_runs {
    static constexpr int BJ = GROUP, AFTER_Q = 2 * BJ, AFTER_J = 2, Q = 4;
    __device__ static int row(int key) { return key % AFTER_Q / 2 * 8 + key / AFTER_Q * 2 + key % 2; }
    /* The key, counted from the tile's first, of column n of fragment J. */
    __device__ static int key(int J, int n) { return J / BJ * 8 * BJ + n / 2 * AFTER_Q + 2 * (J % BJ) + n % 2; }
};
/* One after the other. */
template <int GROUP> struct at_prefill_ascending {
    static constexpr int BJ = GROUP, AFTER_Q = 2, AFTER_J = 8, Q = 7;
    __device__ static int row(int key) { return key; }
    __device__ static int key(int J, int n) { return 8 * J + n; }
};

/* A lane's group of a tile: the keys of a request from `key` on, the first in row `slot`; slot < 0: past its last key. */
struct at_prefill_group {
    int key, slot, request, kv_head, keys; /* keys: of the request */
};

/* One lane loads a group of K or V to `to`. */
template <class Kind>
__device__ void at_prefill_load_group(const typename Kind::view &a, const at_tensor_map &groups,
                                      const at_tensor_map &by_rows, const at_prefill_layout &layout,
                                      const at_prefill_group &group, typename Kind::T *to, at_mbarrier *full) {
    using order = typename Kind::order;
    constexpr int PARTS = Kind::D / AT_PREFILL_CHANNELS, ATOM = 8 * AT_PREFILL_CHANNELS, KEYS = 8 * order::BJ;
    if (group.slot < 0) { /* past every element: zeros */
        at_tensor_load(to, groups, { 0, 0, 0, 0, layout.slots }, full);
    } else if (layout.whole && group.slot + KEYS <= layout.slots) {
        at_tensor_load(to, groups,
                       { 0, group.slot % 2, group.slot % order::AFTER_J / order::AFTER_Q, group.kv_head * PARTS,
                         group.slot / order::AFTER_J },
                       full);
    } else {
        for (int i = 0; i < KEYS; i += layout.rows) {
            const int t = group.key + i, row = order::row(i);
            const int slot = t < group.keys ? at_prefill_slot(a, group.request, t) : layout.slots;
            for (int part = 0; part < PARTS; part++)
                at_tensor_load(to + (row / 8 * PARTS + part) * ATOM + row % 8 * AT_PREFILL_CHANNELS, by_rows,
                               { part * AT_PREFILL_CHANNELS, group.kv_head, slot }, full);
        }
    }
}

/* Asks for the lines in which the block's first item is looked up. */
template <class View> __device__ void at_prefill_ask(const View &a, const at_prefill_work &work) {
    at_prefill_place first;
    first.locate(work, blockIdx.x);
    at_prefetch_l2(a.query_start + first.request);
    at_prefetch_l2(a.seq_lens + first.request);
    at_prefetch_l2(a.rows + first.request * a.row_stride);
}

/* A walk over the block's items. */
template <class Kind> struct at_prefill_walk {
    const typename Kind::view &a;
    at_prefill_place item{};
    uint32_t round = 0;

    __device__ explicit at_prefill_walk(const typename Kind::view &view) : a(view) {}
    /* Finds the block's next item; false: there is none. `located`: what is read of the problem when it is known where the item
     * lies, not behind what measure() waits for. */
    template <class Located> __device__ bool find(const at_prefill_work &work, Located located) {
        for (; !work.over(round); round++) {
            uint32_t number;
            if (!work.turn(round, number))
                continue;
            item.locate(work, number);
            located();
            if (item.measure(a)) {
                round++;
                return true;
            }
        }
        return false;
    }
};

/* The warp that loads keys: for every item its tiles in the order in which consumers want them, K of a tile before V of the
 * one before it. Each lane loads a group of a tile. It waits for nobody but for stages, so that K of an item may be on its way
 * before there is room for its q. */
template <class Kind> struct at_prefill_keys : at_prefill_walk<Kind> {
    using T = typename Kind::T;
    using walk = at_prefill_walk<Kind>;
    static constexpr int D = Kind::D, BJ = Kind::order::BJ;
    using walk::a;
    using walk::item;
    const at_prefill_maps &maps;
    const at_prefill_layout &layout;
    at_prefill_room<Kind> &room;
    at_prefill_turn turn;
    int first_row = 0; /* row_of(0) */

    __device__ at_prefill_keys(const typename Kind::view &view, const at_prefill_maps &of,
                               const at_prefill_layout &place, at_prefill_room<Kind> &in)
        : walk(view), maps(of), layout(place), room(in) {}
    __device__ bool find(const at_prefill_work &work) {
        return walk::find(work, [this] { first_row = row_of(0); });
    }
    /* The lane's entry of the table of pages, or of first rows, for a tile; 0 where there is none. */
    __device__ int row_of(int tile) const {
        const int column = a.page_of(tile * AT_PREFILL_KEYS + at_lane() * 8 * BJ);
        return column < a.row_stride ? a.rows[item.request * a.row_stride + column] : 0;
    }
    __device__ at_prefill_group group_of(int tile, int row) const {
        const int key = tile * AT_PREFILL_KEYS + at_lane() * 8 * BJ;
        const int slot = row * (a.page ? a.page : 1) + key - a.page_of(key) * a.page;
        return { key, key < item.keys ? slot : -1, item.request, item.kv_head, item.keys };
    }
    __device__ void load(const at_tensor_map &groups, const at_tensor_map &by_rows, const at_prefill_group &group,
                         int keys) {
        at_mbarrier *full = &room.full[turn.stage];
        at_mbarrier_wait(&room.empty[turn.stage], turn.parity ^ 1);
        if (at_lane() == 0)
            at_mbarrier_arrive_expect(full, (uint32_t)(keys * D * (int)sizeof(T)));
        if (at_lane() * 8 * BJ < keys) /* a copy may end before it is expected: the phase wants the arrival of lane 0 */
            at_prefill_load_group<Kind>(a, groups, by_rows, layout, group,
                                        room.stages[turn.stage] + at_lane() * 8 * BJ * D, full);
        turn.next();
    }
    /* `more`: the first item has been found, before anything could be loaded. */
    __device__ void run(const at_prefill_work &work, bool more) {
        at_prefill_group waiting{};
        int waiting_keys = 0; /* of the tile whose V is still to be loaded */
        for (; more; more = find(work)) {
            const int halves = item.halves(a.causal), tiles = (halves + 1) / 2;
            at_prefill_group group = group_of(0, first_row);
            for (int tile = 0; tile < tiles; tile++) {
                const int keys = 2 * tile + 2 <= halves ? AT_PREFILL_KEYS : AT_PREFILL_HALF;
                load(maps.k, maps.k_rows, group, keys);
                const int row = row_of(tile + 1); /* read while the next stage is waited for */
                if (waiting_keys)
                    load(maps.v, maps.v_rows, waiting, waiting_keys);
                waiting = group;
                waiting_keys = keys;
                group = group_of(tile + 1, row);
            }
        }
        if (waiting_keys)
            load(maps.v, maps.v_rows, waiting, waiting_keys);
    }
};

/* The warp that loads q of every item and tells the consumers, and the warp that stores, of it: a lane for q, one for each
 * part. */
template <class Kind> struct at_prefill_queries : at_prefill_walk<Kind> {
    using T = typename Kind::T;
    using walk = at_prefill_walk<Kind>;
    using walk::a;
    using walk::item;
    const at_prefill_maps &maps;
    at_prefill_room<Kind> &room;

    __device__ at_prefill_queries(const typename Kind::view &view, const at_prefill_maps &of, at_prefill_room<Kind> &in)
        : walk(view), maps(of), room(in) {}
    __device__ bool find(const at_prefill_work &work) {
        return walk::find(work, [] {});
    }
    __device__ void tell(uint32_t m) {
        const int buffer = at_prefill_buffer(m), lane = at_lane();
        at_mbarrier *full = &room.q_full[buffer];
        at_mbarrier_wait(&room.q_empty[buffer], at_prefill_parity(m) ^ 1);
        if (lane == 0) {
            room.items[buffer].tiles = (item.halves(a.causal) + 1) / 2;
            at_mbarrier_arrive_expect(full, (uint32_t)(2 * AT_PREFILL_QUERIES * Kind::D * (int)sizeof(T)));
            for (int i = 0; i < 2; i++) {
                const at_prefill_part part = item.rows(a.causal, i);
                at_tensor_load(room.buffers[buffer][i], maps.q, { 0, part.token, part.head * room.PARTS }, full);
            }
        } else if (lane < 3) {
            room.items[buffer].part[lane - 1] = Kind::weights::tell(a, item.rows(a.causal, lane - 1));
            at_mbarrier_arrive(full);
        }
    }
    __device__ void end(uint32_t m) {
        const int buffer = at_prefill_buffer(m);
        at_mbarrier_wait(&room.q_empty[buffer], at_prefill_parity(m) ^ 1);
        if (at_lane() == 0)
            room.items[buffer].tiles = 0;
        if (at_lane() < 3)
            at_mbarrier_arrive(&room.q_full[buffer]);
    }
    __device__ void run(const at_prefill_work &work, bool more) {
        uint32_t m = 0;
        for (; more; more = find(work))
            tell(m++);
        end(m);
    }
};

/* Rows of a part that are fewer than a box, by 16 bytes. */
template <class Kind>
__device__ void at_prefill_store_rows(const typename Kind::view &a, const at_prefill_part &part,
                                      const typename Kind::T *from) {
    using T = typename Kind::T;
    constexpr int D = Kind::D;
    constexpr int EACH = 8, CHUNKS = D / EACH;
    for (int i = at_lane(); i < part.rows * CHUNKS; i += 32) {
        const int row = i / CHUNKS, channel = i % CHUNKS * EACH;
        const int byte = row * AT_PREFILL_ROW + channel % AT_PREFILL_CHANNELS * (int)sizeof(T);
        T x[EACH];
        at_load16(from + channel / AT_PREFILL_CHANNELS * AT_PREFILL_QUERIES * AT_PREFILL_CHANNELS +
                      at_swizzle<AT_PREFILL_ROW>(byte) / (int)sizeof(T),
                  x);
        at_store16(a.o + ((int64_t)(part.token + row) * a.h + part.head) * D + channel, x);
    }
}

/* The warp that stores: o of every item from the buffer in which q was, which it gives back. */
template <class Kind>
__device__ void at_prefill_store(const typename Kind::view &a, const at_prefill_maps &maps,
                                 at_prefill_room<Kind> &room) {
    for (uint32_t m = 0;; m++) {
        const int buffer = at_prefill_buffer(m);
        at_mbarrier_wait(&room.q_full[buffer], at_prefill_parity(m));
        const auto &item = room.items[buffer];
        if (item.tiles == 0)
            break;
        at_mbarrier_wait(&room.o_full[buffer], at_prefill_parity(m));
        for (int i = 0; i < 2; i++) {
            const at_prefill_part &part = item.part[i];
            if (part.rows < AT_PREFILL_QUERIES)
                at_prefill_store_rows<Kind>(a, part, room.buffers[buffer][i]);
            else if (at_lane() == 0)
                at_tensor_store(maps.o, { 0, part.token, part.head * room.PARTS }, room.buffers[buffer][i]);
        }
        if (at_lane() == 0) {
            at_bulk_commit();
            at_bulk_wait_read<0>();
        }
        at_sync_warp();
        if (at_lane() == 0)
            at_mbarrier_arrive(&room.q_empty[buffer]);
    }
    if (at_lane() == 0)
        at_bulk_wait<0>();
}

#endif
