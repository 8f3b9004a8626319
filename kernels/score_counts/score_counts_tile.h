/* Tiles of 64 queries by 64 or 128 keys: products of doubles by tensor cores, exact where the spans of both rows allow it
 * and by the compensated sum elsewhere; and counting that is short for ordinary values.
 * SPDX-License-Identifier: Apache-2.0
 *
 * q and k are staged 32 channels at a time as doubles, channel by channel. A warp has the products of 16 queries by 32
 * keys. */
#ifndef AT_SCORE_COUNTS_TILE_H
#define AT_SCORE_COUNTS_TILE_H

#include "kernels/device/instances.h"
#include "kernels/device/mma_f64.h"
#include "kernels/score_counts/score_counts_close.h"

constexpr int AT_COUNTS_BLOCK = 256, AT_COUNTS_CHANNELS = 32;
constexpr int AT_COUNTS_NOT_FINITE = 1 << 20;
constexpr int AT_COUNTS_CHANNELS_OUT = 128; /* outputs of a row at most */

/* How a kernel of TAPS taps (0: any number), with values of rows and outputs if FULL, divides its work: GROUPS of a block, of
 * THREADS, each with a page of 16 keys of one query of a tile. Sums of outputs leave no shared memory for a second group, so
 * theirs has twice the threads; not with long filters, which need scores where p would stand. */
template <int TAPS, bool FULL> struct at_counts_shape {
    static constexpr bool IN_PLACE = TAPS == 3 && FULL; /* p replace scores */
    static constexpr int GROUPS = TAPS == 3 && !FULL ? 2 : 1,
                         THREADS = IN_PLACE ? 2 * AT_COUNTS_BLOCK : AT_COUNTS_BLOCK, WARPS = THREADS / 32,
                         PAGES = THREADS / AT_COUNTS_TILE, KEYS = PAGES * AT_COUNTS_PAGE;
    /* Doubles from one key of scores to the next, and from one channel of q and of k: 4 more than a multiple of 16, so that
     * the lanes of a fragment meet all banks. */
    static constexpr int KEY_STEP = AT_COUNTS_TILE + 4, Q_STEP = AT_COUNTS_TILE + 4, K_STEP = KEYS + 4;
    /* A warp has the outputs of 32 queries and of so many groups of 8 channels. */
    static constexpr int OUT_GROUPS = AT_COUNTS_CHANNELS_OUT / 8 / (WARPS / 2);
};

/* ---- which products are exact ---- */

/* Of a double's bits that are not 0. Values of 16-bit formats have none in the lower word. */
static __device__ inline int at_counts_lowest_bit(uint64_t x) {
    const uint32_t high = (uint32_t)(x >> 32);
    return 32 + at_count_ones((high & (0u - high)) - 1);
}

/* The product of two rows by the compensated sum, where the order of additions matters. */
template <class T> __device__ double at_counts_compensated(const T *q, const T *k, int d, bool finite) {
    double sum = 0, rest = 0;
    for (int c = 0; c < d; c++) {
        const double product = at_counts_value(q[c]) * at_counts_value(k[c]), next = sum + product, part = next - sum;
        if (finite)
            rest += (sum - (next - part)) + (product - part);
        sum = next;
    }
    return finite ? sum + rest : sum;
}

/* Replaces the score of a pair, query * KEYS + key of the tile, by that. */
template <class SHAPE, class T>
__device__ void at_counts_sum_again(const at_counts_view<T> &a, int head, int kv_head, int first, int k0, int pair,
                                    double *scores) {
    const int own = pair / SHAPE::KEYS, t = pair % SHAPE::KEYS;
    const int spans = a.q_span[(int64_t)head * a.queries + first + own] + a.k_span[(int64_t)kv_head * a.keys + k0 + t];
    scores[t * SHAPE::KEY_STEP + own] = at_counts_compensated(a.query(first + own, head), a.k + a.key(k0 + t, kv_head),
                                                              a.d, spans < AT_COUNTS_NOT_FINITE);
}

/* ---- shared memory ---- */

/* In shared memory: the fields of every stage of the ledger that ordinary values do not change. */
struct at_counts_rare {
    uint32_t field[AT_COUNTS_STAGES][AT_COUNTS_W_MAX];
};

/* ---- products ---- */

/* A step of 32 channels: 16 queries from q on by 32 keys from k on. Whatever the order, nothing is rounded where the
 * result is used. */
template <class SHAPE>
static __device__ __forceinline__ void at_counts_multiply(const double *q, const double *k, double (&sums)[4][4]) {
    const int down = at_lane() / 4, across = at_lane() % 4;
    /* two at a time: the loads of more would want more registers than there are */
    AT_NO_UNROLL
    for (int two = 0; two < AT_COUNTS_CHANNELS; two += 8)
        AT_UNROLL
    for (int c = two; c < two + 8; c += 4) {
        const double *of_q = q + (c + across) * SHAPE::Q_STEP + down, *of_k = k + (c + across) * SHAPE::K_STEP + down;
        const double a[2] = { of_q[0], of_q[8] };
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            at_mma_1684(sums[i], a, of_k[8 * i], sums[i]);
    }
}

/* The largest of a row's pages, NaN where one is. */
template <int PAGES> static __device__ __forceinline__ double at_counts_max_of_pages(const double *of_pages) {
    double most = of_pages[0];
    for (int i = 1; i < PAGES; i++)
        most = of_pages[i] > most || of_pages[i] != of_pages[i] ? of_pages[i] : most;
    return most;
}

/* ---- counting ---- */

/* What a thread keeps of a stage in registers; the rest is rare and in shared memory. */
struct at_counts_light {
    uint32_t zero = 0; /* +0 */
    uint64_t most = 0, first = AT_COUNTS_NOWHERE;
};

/* A value that is 0, subnormal in f16, beyond f16, infinite or NaN. */
template <class T>
__device__ void at_counts_see_rare(const at_counts_view<T> &a, uint32_t *plane, double x, uint64_t place,
                                   at_counts_light &light, uint32_t *field) {
    at_counts_stage one;
    one.note(x, (int)(place >> 32), (int)(uint32_t)place - 1);
    for (int i = AT_COUNTS_ZERO; i < AT_COUNTS_W_MAX; i++)
        if (one.word(i))
            at_atomic_add(field + i, 1u);
    light.most = one.most > light.most ? one.most : light.most;
    light.first = one.first < light.first ? one.first : light.first;
    at_atomic_add(plane + at_counts_slot(a.codes, x), 1u);
}

/* Counts one value of a stage in its slot and in the ledger. Threads count +0 for themselves: it is frequent, and
 * atomic additions to one slot would be serialised. From 2^-14 on and below 65504 both formats are normal and
 * finite. */
template <class T>
__device__ __forceinline__ void at_counts_see(const at_counts_view<T> &a, uint32_t *plane, double x, int query, int key,
                                              at_counts_light &light, uint32_t *field) {
    const uint64_t bits = (uint64_t)at_plain_bits(x), size = bits & 0x7fffffffffffffffu;
    const uint32_t upper = (uint32_t)(size >> 32);
    if (bits == 0) {
        light.zero++;
        return;
    }
    if (upper - 0x3f100000u >= 0x40effc00u - 0x3f100000u) {
        at_counts_see_rare(a, plane, x, at_counts_place(query, key), light, field);
        return;
    }
    const int shift = a.codes.shift;
    const uint32_t sticky = upper | ((uint32_t)bits != 0);
    const int code = (int)(((sticky + ((1u << (shift - 1)) - 1) + (sticky >> shift & 1)) >> shift) - a.codes.bias);
    light.most = size; /* the caller's is of this value alone */
    at_atomic_add(plane + (bits >> 63 ? a.codes.infinity - code : a.codes.infinity + 1 + code), 1u);
}

/* ---- launch ---- */

/* What a kernel of tiles is compiled for: three taps or any number (0); with values of rows and outputs, or without. */
template <int TAPS, bool FULL> struct at_counts_kind {};

template <class T, class F> int at_counts_launch_kinds(const struct at_launch *launch, F put) {
    constexpr int FULL = 1 << AT_COUNTS_OF_OUT | 1 << AT_COUNTS_OF_ROW_MAX | 1 << AT_COUNTS_OF_ROW_SUM |
                         1 << AT_COUNTS_OF_ENTROPY | 1 << AT_COUNTS_OF_SUPPORT | 1 << AT_COUNTS_OF_SHARE0;
    return at_counts_launch<T>(launch, [put](const at_counts_view<T> &a) {
        if (a.n_taps == 3)
            return a.what & FULL ? put(a, at_counts_kind<3, true>{}) : put(a, at_counts_kind<3, false>{});
        return a.what & FULL ? put(a, at_counts_kind<0, true>{}) : put(a, at_counts_kind<0, false>{});
    });
}

/* Launches all kernels; put(view, kind) launches the one that counts scores. */
template <class F> int at_counts_launch_tiles(const struct at_launch *launch, F put) {
    if constexpr (AT_ALL_INSTANCES)
        if (launch->problem->dtype == AT_BF16)
            return at_counts_launch_kinds<at_bf16>(launch, put);
    return at_counts_launch_kinds<at_f16>(launch, put);
}

static inline const char *at_counts_tiles_decline(const struct at_problem *p) {
    if (p->dtype != AT_F16 && p->dtype != AT_BF16)
        return "queries and keys are f16 or bf16";
    if (!AT_ALL_INSTANCES && p->dtype != AT_F16)
        return AT_LEFT_OUT;
    if (at_counts_own_of(p).softmax)
        return "softmax needs a row's maximum first";
    if (at_counts_own_of(p).what >> AT_COUNTS_OF_OUT & 1 && p->sizes.d > AT_COUNTS_CHANNELS_OUT)
        return "outputs of more than 128 channels";
    return at_counts_declines(p);
}

#endif
