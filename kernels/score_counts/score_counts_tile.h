/* Tiles of scores: products in registers, exact where the spans of both rows allow it, else by the compensated sum; and
 * counting that is short for ordinary values.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block of 256 threads has 64 queries by 64 keys. q and k come 32 channels at a time as doubles, channel by channel;
 * thread (y, x) has queries 2 y, 2 y + 1, 32 + 2 y, 33 + 2 y and the same of x for keys, so that neighbours read
 * neighbouring 16 bytes. */
#ifndef AT_DEVICE_SCORE_COUNTS_TILE_H
#define AT_DEVICE_SCORE_COUNTS_TILE_H

#include "kernels/score_counts/score_counts_close.h"

constexpr int AT_COUNTS_BLOCK = 256, AT_COUNTS_KEYS = 64, AT_COUNTS_CHANNELS = 32;
/* Doubles from one channel, and from one row of scores, to the next. */
constexpr int AT_COUNTS_STAGE_STEP = AT_COUNTS_TILE + 2, AT_COUNTS_ROW_STEP = AT_COUNTS_KEYS + 1;
constexpr int AT_COUNTS_NOT_FINITE = 1 << 20;
constexpr int AT_COUNTS_CHANNELS_OUT = 4; /* of a lane, 32 apart */

/* ---- which products are exact ---- */

static __device__ inline int at_counts_lowest_bit(uint64_t x) { /* of a word that is not 0 */
    const uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
    return low ? at_count_ones((low & (0u - low)) - 1) : 32 + at_count_ones((high & (0u - high)) - 1);
}

/* Largest exponent less the lowest set bit of the elements that are not 0: each is m 2^l with |m| < 2^(span + 1). */
template <class T> __device__ int at_counts_span(const T *x, int d) {
    int top = 0, low = 1 << 12;
    for (int c = 0; c < d; c++) {
        const uint64_t bits = (uint64_t)at_plain_bits(at_counts_value(x[c])), fraction = bits & 0xfffffffffffffu;
        const int exponent = (int)(bits >> 52) & 0x7ff;
        if (exponent == 0x7ff)
            return AT_COUNTS_NOT_FINITE;
        if (!exponent) /* 0: formats of 32 bits and less have no other */
            continue;
        const int lowest = fraction ? exponent - 52 + at_counts_lowest_bit(fraction) : exponent;
        top = exponent > top ? exponent : top;
        low = lowest < low ? lowest : low;
    }
    return top ? top - low : 0;
}

/* A thread a row of q, then of k. */
template <class T> static __global__ void at_counts_spans(at_counts_view<T> a) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, of_q = (int64_t)a.h * a.queries;
    if (row < of_q)
        a.q_span[row] = at_counts_span(a.query((int)(row % a.queries), (int)(row / a.queries)), a.d);
    else if (row < of_q + (int64_t)a.hk * a.keys)
        a.k_span[row - of_q] =
            at_counts_span(a.k + a.key((int)((row - of_q) % a.keys), (int)((row - of_q) / a.keys)), a.d);
}

/* Sums of d products of rows whose spans add up to no more lie within 53 bits, partial ones too. */
static __device__ inline int at_counts_exact_span(int d) {
    int bits = 0;
    while (1 << bits < d)
        bits++;
    return 51 - bits;
}

/* The product where order and errors count. */
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

/* The score of a pair, query * 64 + key of the tile, by that. */
template <class T>
__device__ void at_counts_sum_again(const at_counts_view<T> &a, int head, int kv_head, int first, int k0, int pair,
                                    double *scores) {
    const int own = pair / AT_COUNTS_KEYS, t = pair % AT_COUNTS_KEYS;
    const int spans = a.q_span[(int64_t)head * a.queries + first + own] + a.k_span[(int64_t)kv_head * a.keys + k0 + t];
    scores[own * AT_COUNTS_ROW_STEP + t] = at_counts_compensated(
        a.query(first + own, head), a.k + a.key(k0 + t, kv_head), a.d, spans < AT_COUNTS_NOT_FINITE);
}

/* ---- shared memory ---- */

/* Shared: fields of the ledger of every stage that ordinary values do not touch. */
struct at_counts_rare {
    uint32_t field[AT_COUNTS_STAGES][AT_COUNTS_W_MOST];
};

struct at_counts_memory {
    double *q, *k;    /* [32 STAGE_STEP] channels of the tiles; `again` and `buffer` lie there between products */
    double *scores;   /* [64 ROW_STEP] raw */
    double *halo;     /* [2 64 taps - 1] raw scores of the last keys of the tile before and of this one, in turn */
    double *weights;  /* [64 ROW_STEP] p, 0 where the key is hidden; of kernels with rows and outputs alone */
    uint16_t *again;  /* [4096] pairs to be summed with care: query * 64 + key */
    uint64_t *buffer; /* a word a thread */
    uint32_t *mass, *n_again;
    at_counts_rare *rare;

    __device__ at_counts_memory(double *base, int taps, uint32_t *masses, uint32_t *count, at_counts_rare *fields)
        : q(base), k(q + AT_COUNTS_CHANNELS * AT_COUNTS_STAGE_STEP),
          scores(k + AT_COUNTS_CHANNELS * AT_COUNTS_STAGE_STEP), halo(scores + AT_COUNTS_TILE * AT_COUNTS_ROW_STEP),
          weights(halo + 2 * AT_COUNTS_TILE * (taps - 1)), again(reinterpret_cast<uint16_t *>(base)),
          buffer(reinterpret_cast<uint64_t *>(base)), mass(masses), n_again(count), rare(fields) {}

    static int64_t bytes(int64_t taps, bool with_weights) {
        return (2 * AT_COUNTS_CHANNELS * AT_COUNTS_STAGE_STEP +
                (with_weights ? 2 : 1) * AT_COUNTS_TILE * AT_COUNTS_ROW_STEP + 2 * AT_COUNTS_TILE * (taps - 1)) *
               (int64_t)sizeof(double);
    }
};

/* ---- products ---- */

/* 64 rows of d values from row `first` of one head, channels [c0, c0 + 32): zeros where there are none. */
template <class T>
__device__ void at_counts_load(const T *rows, int64_t row_step, int first, int n, int d, int c0, double *out) {
    constexpr int EACH = 16 / (int)sizeof(T);
    static_assert(EACH * 4 == AT_COUNTS_CHANNELS, "a piece a thread");
    const int row = (int)threadIdx.x % AT_COUNTS_TILE, part = (int)threadIdx.x / AT_COUNTS_TILE, c = c0 + part * EACH;
    const T *from = rows + (int64_t)(first + row) * row_step + c;
    T x[EACH];
    for (int j = 0; j < EACH; j++)
        x[j] = T{};
    if (first + row < n && c < d) {
        if (d % EACH == 0) {
            at_load16(from, x);
        } else {
            for (int j = 0; j < EACH; j++)
                if (c + j < d)
                    x[j] = from[j];
        }
    }
    AT_UNROLL
    for (int j = 0; j < EACH; j++)
        out[(part * EACH + j) * AT_COUNTS_STAGE_STEP + row] = at_counts_value(x[j]);
}

/* Place of the thread's r-th query (of y) or key (of x). */
static __device__ __forceinline__ int at_counts_own(int y, int r) { return r / 2 * 32 + 2 * y + r % 2; }

/* One step of 32 channels. fma: where the result counts nothing is rounded. */
static __device__ __forceinline__ void at_counts_multiply(const double *q, const double *k, int y, int x,
                                                          double (&sum)[4][4]) {
    AT_UNROLL
    for (int c = 0; c < AT_COUNTS_CHANNELS; c++) {
        double a[4], b[4], two[2];
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            at_load16(q + c * AT_COUNTS_STAGE_STEP + half * 32 + 2 * y, two);
            a[2 * half] = two[0], a[2 * half + 1] = two[1];
            at_load16(k + c * AT_COUNTS_STAGE_STEP + half * 32 + 2 * x, two);
            b[2 * half] = two[0], b[2 * half + 1] = two[1];
        }
        AT_UNROLL
        for (int i = 0; i < 4; i++) {
            AT_UNROLL
            for (int j = 0; j < 4; j++)
                sum[i][j] = fma(a[i], b[j], sum[i][j]);
        }
    }
}

/* The largest of a row's four pages, NaN where one is. */
static __device__ __forceinline__ double at_counts_most_of_pages(const double *of_pages) {
    double most = of_pages[0];
    for (int i = 1; i < 4; i++)
        most = of_pages[i] > most || of_pages[i] != of_pages[i] ? of_pages[i] : most;
    return most;
}

/* ---- counting ---- */

/* What a thread keeps of a stage; the rest is rare, and stands in shared memory. */
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
    for (int i = AT_COUNTS_ZERO; i < AT_COUNTS_W_MOST; i++)
        if (one.word(i))
            at_atomic_add(field + i, 1u);
    light.most = one.most > light.most ? one.most : light.most;
    light.first = one.first < light.first ? one.first : light.first;
    at_atomic_add(plane + at_counts_slot(a.codes, x), 1u);
}

/* One value of a stage: to its slot and its ledger. +0 is only remembered: many are, and one place would have to count
 * them all. From 2^-14 on and below 65504 both formats are normal and finite. */
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
    light.most = size > light.most ? size : light.most;
    at_atomic_add(plane + (bits >> 63 ? a.codes.infinity - code : a.codes.infinity + 1 + code), 1u);
}

/* The tile's words, all threads together. pairs: visible scores, outputs: of the last stage. */
template <class T>
__device__ void at_counts_store_light(const at_counts_view<T> &a, int head, int tile, uint64_t *buffer,
                                      const uint32_t *mass, const at_counts_rare *rare, uint32_t element_zero,
                                      uint32_t tile_zero, uint32_t pairs, uint32_t outputs,
                                      const at_counts_light (&light)[AT_COUNTS_STAGES], int noted) {
    uint64_t *out = a.words + (int64_t)(head * a.tiles + tile) * AT_COUNTS_WORDS;
    const int thread = (int)threadIdx.x;
    const uint64_t zeros = at_counts_reduce(buffer, AT_COUNTS_W_ELEMENT_ZERO, element_zero);
    const uint64_t dead = at_counts_reduce(buffer, AT_COUNTS_W_TILE_ZERO, tile_zero);
    const uint64_t seen = at_counts_reduce(buffer, 0, pairs), put = at_counts_reduce(buffer, 0, outputs);
    if (thread == 0) {
        out[AT_COUNTS_W_ELEMENT_ZERO] = zeros;
        out[AT_COUNTS_W_TILE_ZERO] = dead;
    }
    if (thread < AT_COUNTS_DISTANCES)
        out[AT_COUNTS_W_MASS + thread] = (uint64_t)mass[AT_COUNTS_DISTANCES + thread] << 32 | mass[thread];
    AT_UNROLL
    for (int s = 0; s < AT_COUNTS_STAGES; s++) {
        const int word = AT_COUNTS_W_LEDGER + s * AT_COUNTS_W_STAGE;
        const uint64_t zero = at_counts_reduce(buffer, 0, light[s].zero);
        const uint64_t most = at_counts_reduce(buffer, word + AT_COUNTS_W_MOST, light[s].most);
        const uint64_t first = at_counts_reduce(buffer, word + AT_COUNTS_W_FIRST, light[s].first);
        if (thread < AT_COUNTS_W_MOST)
            out[word + thread] = rare->field[s][thread] + (thread == AT_COUNTS_ZERO ? zero : 0);
        if (thread == AT_COUNTS_COUNT)
            out[word] = noted >> s & 1 ? (s == AT_COUNTS_STAGES - 1 ? put : seen) : 0;
        if (thread == 0) {
            out[word + AT_COUNTS_W_MOST] = most;
            out[word + AT_COUNTS_W_FIRST] = first;
        }
    }
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

/* All kernels of a launch; put(view, kind) puts the one that counts scores. */
template <class F> int at_counts_launch_tiles(const struct at_launch *launch, F put) {
    return launch->problem->dtype == AT_F16 ? at_counts_launch_kinds<at_f16>(launch, put)
                                            : at_counts_launch_kinds<at_bf16>(launch, put);
}

static inline const char *at_counts_tiles_decline(const struct at_problem *p) {
    if (p->dtype != AT_F16 && p->dtype != AT_BF16)
        return "queries and keys are f16 or bf16";
    if (at_counts_own_of(p).softmax)
        return "softmax needs a row's maximum first";
    if (at_counts_own_of(p).what >> AT_COUNTS_OF_OUT & 1 && p->sizes.d > 32 * AT_COUNTS_CHANNELS_OUT)
        return "outputs of more than 128 channels";
    return at_counts_declines(p);
}

#endif
