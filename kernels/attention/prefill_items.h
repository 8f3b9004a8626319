/* Work of the persistent prefill kernels: items of 128 rows of one kv head, and the shared memory in which they travel.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An item has two parts, one for each consumer warpgroup, of 64 queries each: those of two query heads of one kv head, or,
 * where a kv head has an odd number of query heads, two neighbouring blocks of queries of one head. Both parts read the
 * same keys. Blocks take items by their numbers, back and forth, so that the block with the longest of a round has the
 * shortest of the next; numbers begin with the queries that see most keys. AT_PREFILL_UNITS heads (or pairs of heads) are
 * neighbours: their K and V stay in L2 while all their queries pass.
 *
 * The two warps that load derive items from the problem. What consumers and the warp that stores want to know travels beside
 * q.
 *
 * Kind is what a variant is made for:
 *
 *   T, D, view   format of activations; head size, 64 or 128; the operator's view of a problem
 *   order        how keys lie in a tile (prefill_load.h)
 *   weights      how scores become P (prefill_consume.h); weights::told is a part with what that takes
 *   VALUES_FIRST a step issues P V before q.k: faster where loads are slow
 *   EARLY        products of a step that are issued when the turn has been passed on already */
#ifndef AT_ATTENTION_PREFILL_ITEMS_H
#define AT_ATTENTION_PREFILL_ITEMS_H

#include "kernels/attention/attention.h"
#include "kernels/device/mma.h"
#include "kernels/device/tma.h"
#include "kernels/device/warp_roles.h"

/* Keys of a tile and of half a tile, which the last one may be; stages of the ring; buffers of q, then of o: with two, q of an
 * item would wait for o of the one before last to be stored, which takes as long as a short item. */
constexpr int AT_PREFILL_KEYS = 128, AT_PREFILL_HALF = 64, AT_PREFILL_STAGES = 4, AT_PREFILL_BUFFERS = 3;
/* Queries and warps of a part; elements and bytes of a swizzled row. */
constexpr int AT_PREFILL_QUERIES = 64, AT_PREFILL_GROUP_WARPS = 4, AT_PREFILL_CHANNELS = 64, AT_PREFILL_ROW = 128;
/* A warpgroup whose warp 0 loads K and V, 1 stores o and 2 loads q, and two that consume. One block a multiprocessor. */
constexpr int AT_PREFILL_THREADS = 384, AT_PREFILL_CONSUMERS = 8, AT_PREFILL_UNITS = 22;

/* The queries of a consumer warpgroup. */
struct at_prefill_part {
    int head, token, rows; /* query head; its first row of q and o; how many of the 64 there are */
    int sees, grows;       /* row i sees the first sees + grows * i keys, none where that is negative */

    __device__ int visible(int row) const { return sees + grows * row; }
    /* Half tiles of keys that some row sees; one at least. */
    __device__ int halves() const {
        const int most = rows > 0 ? visible(rows - 1) : 0;
        return most > 0 ? (most + AT_PREFILL_HALF - 1) / AT_PREFILL_HALF : 1;
    }
};
/* What consumers are told. */
template <class Told> struct at_prefill_item {
    int tiles; /* of keys; 0: there is no more work */
    Told part[2];
};

/* Division by a number that the host knows, of what is less than 2^22: short code, which a block waits for first of all. */
struct at_prefill_divisor {
    int by;
    float inverse;

    static at_prefill_divisor of(int64_t by) { return { (int)by, by ? 1.0f / (float)by : 0.0f }; }
    __device__ int divide(int n, int &rest) const {
        const int q =
            (int)((float)n * inverse); /* one less, perhaps; one more only where n * 2^-23 is more than a half */
        rest = n - q * by;
        const int off = rest >= by ? 1 : 0;
        rest -= off * by;
        return q + off;
    }
};

/* Numbers of items. */
struct at_prefill_work {
    at_prefill_divisor run, near, last; /* items and units of a run of neighbours; units of the last run */
    at_prefill_divisor each, shared;    /* units of a request; units that share a kv head */
    int units, paired;                  /* heads, or pairs of heads, of all requests; whether they are pairs */
    uint32_t items;

    static at_prefill_work of(const struct at_sizes *z) {
        const int paired = z->h / z->hk % 2 == 0, each = (int)z->h / (paired ? 2 : 1);
        const int queries = paired ? AT_PREFILL_QUERIES : 2 * AT_PREFILL_QUERIES;
        const int units = z->tokens ? each * (int)z->b : 0, tiles = (int)((z->max_sq + queries - 1) / queries);
        const int group = (int)(z->h / z->hk), left = units % AT_PREFILL_UNITS;
        return { at_prefill_divisor::of((int64_t)AT_PREFILL_UNITS * tiles),
                 at_prefill_divisor::of(AT_PREFILL_UNITS),
                 at_prefill_divisor::of(left),
                 at_prefill_divisor::of(each),
                 at_prefill_divisor::of(paired ? group / 2 : group),
                 units,
                 paired,
                 (uint32_t)units * (uint32_t)tiles };
    }
    /* The item that the block takes in a round; false: none. */
    __device__ bool turn(uint32_t round, uint32_t &number) const {
        number = round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
        return number < items;
    }
    __device__ bool over(uint32_t round) const { return round * gridDim.x >= items; }
};

/* Where an item lies in the problem. */
struct at_prefill_place {
    int request, head, kv_head, token, keys; /* its first row of q; keys of the request */
    int left;                                /* queries of the request from its first on */
    int apart, ahead;                        /* heads, and queries, from its first part to its second */

    int back; /* items of the request behind it */

    /* The item of a number. Items of a request are counted from its last queries. */
    __device__ void locate(const at_prefill_work &work, uint32_t number) {
        int within, unit, in_request, unused;
        const int near = work.run.divide((int)number, within) * AT_PREFILL_UNITS;
        back = (work.units - near < AT_PREFILL_UNITS ? work.last : work.near).divide(within, unit);
        request = work.each.divide(near + unit, in_request);
        kv_head = work.shared.divide(in_request, unused);
        head = in_request << work.paired;
        apart = work.paired;
        ahead = work.paired ? 0 : AT_PREFILL_QUERIES;
    }
    /* What the device alone knows of it; false: it has no queries. */
    template <class View> __device__ bool measure(const View &a) {
        const int start = a.query_start[request], end = a.query_start[request + 1];
        keys = a.seq_lens[request];
        const int of_item = AT_PREFILL_QUERIES + ahead;
        const int last = (end - start - 1) & -of_item; /* the first query of the request's last item */
        token = start + last - back * of_item;
        left = end - token;
        return token >= start; /* a request without queries has its last item before its start */
    }
    /* Rows of a part, and what they see. */
    __device__ at_prefill_part rows(int causal, int i) const {
        const int left = this->left - i * ahead;
        at_prefill_part p{};
        p.head = head + i * apart;
        p.token = token + i * ahead;
        p.rows = left < 0 ? 0 : left < AT_PREFILL_QUERIES ? left : AT_PREFILL_QUERIES;
        p.sees = p.rows == 0 ? 0 : causal ? keys - (left - 1) : keys;
        p.grows = p.rows > 0 && causal;
        return p;
    }
    __device__ int halves(int causal) const {
        const int one = rows(causal, 0).halves(), other = rows(causal, 1).halves();
        return one > other ? one : other;
    }
};

/* Shared memory. All but the items and the barriers begins at a multiple of 1024. */
template <class Kind> struct at_prefill_room {
    using T = typename Kind::T;
    static constexpr int D = Kind::D;
    static constexpr int PARTS = D / AT_PREFILL_CHANNELS; /* of a row of channels */
    T stages[AT_PREFILL_STAGES][AT_PREFILL_KEYS * D];
    T buffers[AT_PREFILL_BUFFERS][2][AT_PREFILL_QUERIES * D]; /* [part of the item][part of a row][row][channel] */
    at_prefill_item<typename Kind::weights::told> items[AT_PREFILL_BUFFERS];
    at_mbarrier full[AT_PREFILL_STAGES], empty[AT_PREFILL_STAGES];
    at_mbarrier q_full[AT_PREFILL_BUFFERS], o_full[AT_PREFILL_BUFFERS], q_empty[AT_PREFILL_BUFFERS];

    /* By warp 1, which does not look for items meanwhile; ends with a barrier of the block. */
    __device__ void begin() {
        if (threadIdx.x == 32) {
            for (int i = 0; i < AT_PREFILL_STAGES; i++) {
                at_mbarrier_init(&full[i], 1);
                at_mbarrier_init(&empty[i], AT_PREFILL_CONSUMERS);
            }
            for (int i = 0; i < AT_PREFILL_BUFFERS; i++) {
                at_mbarrier_init(&q_full[i], 3);
                at_mbarrier_init(&o_full[i], AT_PREFILL_CONSUMERS);
                at_mbarrier_init(&q_empty[i], 1);
            }
            at_proxy_fence(); /* TMA uses the barriers, too */
        }
        at_sync();
    }
};

/* Where a thread is in the ring: a stage, and the parity of the phase that its full barrier completes. */
struct at_prefill_turn {
    int stage = 0;
    uint32_t parity = 0;

    __device__ void next() {
        stage = stage + 1 == AT_PREFILL_STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
    }
};
/* The same for item number m of the block and its buffer. */
__device__ inline int at_prefill_buffer(uint32_t m) { return (int)(m % AT_PREFILL_BUFFERS); }
__device__ inline uint32_t at_prefill_parity(uint32_t m) { return m / AT_PREFILL_BUFFERS % 2; }

#endif
