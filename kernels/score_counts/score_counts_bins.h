/* Counts in shared memory: a window of codes for each quantity, a word for each code, positive values in its lower half
 * and negative ones in its upper half. Values outside the window are counted in global memory at once.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Windows are placed where a sample of the block's scores says that most are; results do not depend on them. A half
 * must not reach 2^16. The groups of a block do not wait for each other, so each sweeps all words once in
 * AT_COUNTS_SWEEP tiles. Consider the latest sweep of any group: it left no half above AT_COUNTS_LEFT, and no group has
 * added more than AT_COUNTS_SWEEP tiles since. */
#ifndef AT_KERNEL_SCORE_COUNTS_BINS_H
#define AT_KERNEL_SCORE_COUNTS_BINS_H

#include "kernels/score_counts/score_counts_tile.h"

constexpr int AT_COUNTS_BINNED = 4; /* raw, scaled, fir, p */
constexpr uint32_t AT_COUNTS_LEFT = 0x3fff;

/* Tiles that each group may add between two sweeps. */
template <class SHAPE>
constexpr int AT_COUNTS_SWEEP = (int)(0xffff - AT_COUNTS_LEFT) / (SHAPE::GROUPS * AT_COUNTS_TILE * SHAPE::KEYS);

/* Upper words of ordinary values, which leave the ledger's rare fields unchanged. */
constexpr uint32_t AT_COUNTS_ORDINARY = 0x3f100000u, AT_COUNTS_ORDINARY_END = 0x40effc00u;

/* The window of a quantity. */
struct at_counts_window {
    uint32_t low, span; /* upper words [low, low + span); span 0: not counted here */
    int at;             /* word of the code whose place is 0: rounded upper words, shifted, are places */
};

struct at_counts_bins {
    uint32_t *words;          /* [quantities counted (codes + 1)]: rounding may leave a window at its end */
    at_counts_window *window; /* [AT_COUNTS_BINNED], shared */
    uint32_t *spare;          /* [32], a word a lane: what is in no window is added there, so that nothing branches */
    int codes;

    /* Codes of a window when `quantities` share `bytes`, at most as many as ordinary values have. */
    static int codes_of(int64_t bytes, int quantities, int shift) {
        const int most = (int)((AT_COUNTS_ORDINARY_END - AT_COUNTS_ORDINARY) >> shift) + 1;
        const int64_t fit = quantities ? bytes / (int64_t)sizeof(uint32_t) / quantities - 1 : 0;
        return fit < most ? (int)fit : most;
    }
};

/* The which-th window: `codes` codes below upper word `end`, as far as ordinary values go. */
static __device__ __forceinline__ at_counts_window at_counts_place_window(int codes, int shift, int which,
                                                                          int64_t end) {
    constexpr int64_t FIRST = AT_COUNTS_ORDINARY, END = AT_COUNTS_ORDINARY_END;
    const int64_t wanted = (int64_t)codes << shift, span = wanted < END - FIRST ? wanted : END - FIRST;
    int64_t low = (end < END ? end : END) - span;
    low = (low > FIRST ? low : FIRST) >> shift << shift;
    return { (uint32_t)low, (uint32_t)span, which * (codes + 1) - (int)(low >> shift) };
}

/* x[c .. c + 7], 0 past the end. */
template <class T> __device__ __forceinline__ void at_counts_piece(const T *x, int c, int d, T (&piece)[8]) {
    if (d % 8 == 0) {
        at_load16(x + c, piece);
        return;
    }
    for (int j = 0; j < 8; j++)
        piece[j] = c + j < d ? x[c + j] : T{};
}

static __device__ __forceinline__ uint32_t at_counts_upper(double x) {
    return (uint32_t)((uint64_t)at_plain_bits(x) >> 32) & 0x7fffffffu;
}

/* A rough score a thread, of queries and keys from everywhere: `sample` gets the sum of (upper words >> 16) and the
 * number of those that say something. */
template <class T>
__device__ void at_counts_sample(const at_counts_view<T> &a, int head, int kv_head, uint32_t *sample) {
    const int64_t i = (int64_t)threadIdx.x, n = (int64_t)blockDim.x;
    if (a.keys == 0)
        return;
    const T *q = a.query((int)(i * a.queries / n), head), *k = a.k + a.key((int)(i * 37 % n * a.keys / n), kv_head);
    float sum = 0;
    for (int c = 0; c < a.d; c += 8) {
        T x[8], y[8];
        at_counts_piece(q, c, a.d, x);
        at_counts_piece(k, c, a.d, y);
        AT_UNROLL
        for (int j = 0; j < 8; j++)
            sum = fmaf(at_float(x[j]), at_float(y[j]), sum);
    }
    const uint32_t upper = at_counts_upper((double)sum);
    if (upper == 0 || upper >= 0x7ff00000u)
        return;
    at_atomic_add(sample, upper >> 16);
    at_atomic_add(sample + 1, 1u);
}

template <class T>
__device__ void at_counts_place_windows(const at_counts_view<T> &a, const at_counts_bins &bins,
                                        const uint32_t *sample) {
    /* The mean exponent of normal scores is 0.9 below their deviation's: 2.75 binades above it are 3.8 deviations, and
     * four windows of f16 words begin where as little is below as can be. */
    constexpr int64_t ABOVE = 11 << 18, ONE = 0x3ff00000;
    const int64_t middle = sample[1] ? (int64_t)(sample[0] / sample[1]) << 16 : ONE;
    const int64_t scaled = middle + (int64_t)at_counts_upper(a.scale) - ONE;
    const int64_t clip = a.clip_max > 0 ? (int64_t)at_counts_upper(a.clip_max) + ((int64_t)1 << a.codes.shift) : ONE;
    int which = 0;
    for (int i = 0; i < AT_COUNTS_BINNED; i++) {
        int64_t end = (i == 0 ? middle : scaled) + ABOVE;
        end = i == AT_COUNTS_BINNED - 1 && clip < end ? clip : end;
        if (a.wants(AT_COUNTS_OF_RAW + i))
            bins.window[i] = at_counts_place_window(bins.codes, a.codes.shift, which++, end);
        else
            bins.window[i] = at_counts_window{ 0, 0, 0 };
    }
}

/* Adds both halves of a word to the plane. place: shifted upper word. */
template <class T>
__device__ void at_counts_give_word(const at_counts_view<T> &a, uint32_t *plane, int place, uint32_t word) {
    const int code = place - (int)a.codes.bias;
    if (word & 0xffffu)
        at_atomic_add(plane + a.codes.infinity + 1 + code, word & 0xffffu);
    if (word >> 16)
        at_atomic_add(plane + a.codes.infinity - code, word >> 16);
}

/* All words once, by thread `thread` of `threads`: halves beyond AT_COUNTS_LEFT are added to the plane. Others may add
 * and sweep meanwhile. */
template <class T>
__device__ void at_counts_sweep_bins(const at_counts_view<T> &a, const at_counts_bins &bins, int head, int thread,
                                     int threads) {
    AT_NO_UNROLL
    for (int i = 0; i < AT_COUNTS_BINNED; i++) {
        const at_counts_window w = bins.window[i];
        AT_NO_UNROLL
        for (int c = thread; w.span && c <= bins.codes; c += threads) {
            const int place = (int)(w.low >> a.codes.shift) + c;
            uint32_t *word = bins.words + w.at + place;
            const uint32_t seen = at_atomic_add(word, 0u);
            if ((seen & 0xffffu) > AT_COUNTS_LEFT || seen >> 16 > AT_COUNTS_LEFT)
                at_counts_give_word(a, a.plane(AT_COUNTS_OF_RAW + i, head), place, at_atomic_exchange(word, 0u));
        }
    }
}

/* Adds what is left to the planes, when no thread counts any more. */
template <class T>
__device__ void at_counts_give_bins(const at_counts_view<T> &a, const at_counts_bins &bins, int head) {
    AT_NO_UNROLL
    for (int i = 0; i < AT_COUNTS_BINNED; i++) {
        const at_counts_window w = bins.window[i];
        uint32_t *plane = a.plane(AT_COUNTS_OF_RAW + i, head);
        for (int c = (int)threadIdx.x; w.span && c <= bins.codes; c += (int)blockDim.x) {
            const int place = (int)(w.low >> a.codes.shift) + c;
            at_counts_give_word(a, plane, place, bins.words[w.at + place]);
        }
    }
}

/* What a thread keeps of a stage in registers. */
struct at_counts_tally {
    uint32_t zero = 0; /* +0 */
    uint64_t most = 0;
};

/* Counts a value outside every window: outputs and rare values. first: of the row, in shared memory: ~(key + 1) of the first key
 * whose value rounds to no finite one; 0: of none. */
template <class T>
__device__ __forceinline__ void at_counts_see_one(const at_counts_view<T> &a, uint32_t *plane, double x, int query,
                                                  int key, at_counts_tally &tally, uint32_t *field, uint32_t *first) {
    at_counts_light light;
    at_counts_see(a, plane, x, query, key, light, field);
    tally.zero += light.zero;
    tally.most = light.most > tally.most ? light.most : tally.most;
    if (light.first != AT_COUNTS_NOWHERE)
        at_atomic_max(first, ~(uint32_t)(key + 1));
}

/* Counts the first `seen` of four values of quantity RAW + which, of keys key, key + 1, .. */
template <class T>
__device__ __forceinline__ void at_counts_see_four(const at_counts_view<T> &a, const at_counts_bins &bins, int which,
                                                   int head, const double (&x)[4], int seen, int query, int key,
                                                   at_counts_tally &tally, uint32_t *field, uint32_t *first) {
    const at_counts_window w = bins.window[which];
    const int shift = a.codes.shift;
    const uint64_t below_half = ((uint64_t)1 << (shift + 31)) - 1;
    double y[4] = { x[0], x[1], x[2], x[3] };
    uint32_t odd = 0; /* what the window does not hold */
    if (seen < 4) {
        /* others are counted as zeros and taken off, so that whole groups, which are most, ask nothing */
        tally.zero -= (uint32_t)(4 - seen);
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            y[i] = i < seen ? y[i] : 0.0;
    }
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const uint64_t bits = (uint64_t)at_plain_bits(y[i]), size = bits & 0x7fffffffffffffffu;
        const uint32_t upper = (uint32_t)(size >> 32);
        const uint64_t rounded = size + below_half + (upper >> shift & 1); /* to even */
        const bool in_window = upper - w.low < w.span;
        uint32_t *word = bins.words + w.at + (int)((uint32_t)(rounded >> 32) >> shift);
        at_atomic_add(in_window ? word : bins.spare + at_lane(), bits >> 63 ? 0x10000u : 1u);
        tally.most = in_window && size > tally.most ? size : tally.most;
        tally.zero += bits == 0;
        odd |= !in_window && bits != 0 ? 1u << i : 0u;
    }
    AT_NO_UNROLL
    while (odd) {
        double value = x[0];
        int place = 0;
        AT_UNROLL
        for (int i = 1; i < 4; i++)
            if (!(odd & ((1u << i) - 1))) {
                value = x[i];
                place = i;
            }
        odd &= odd - 1;
        at_counts_see_one(a, a.plane(AT_COUNTS_OF_RAW + which, head), value, query, key + place, tally, field, first);
    }
}

/* ---- which products are exact ---- */

/* A row's norm over its lowest bit, squared, as a binary logarithm in sixteenths, rounded up. Every partial sum of the
 * products of two rows lies within both norms and is a multiple of both lowest bits (Cauchy and Schwarz). */
template <class T> __device__ int at_counts_norm_span(const T *x, int d) {
    double square = 0;
    int low = 1 << 12;
    for (int c = 0; c < d; c += 8) {
        T piece[8];
        at_counts_piece(x, c, d, piece);
        AT_UNROLL
        for (int j = 0; j < 8; j++) {
            const double value = at_counts_value(piece[j]);
            const uint64_t bits = (uint64_t)at_plain_bits(value), fraction = bits & 0xfffffffffffffu;
            const int exponent = (int)(bits >> 52) & 0x7ff;
            if (exponent == 0x7ff)
                return AT_COUNTS_NOT_FINITE;
            if (!exponent)
                continue;
            const int lowest = fraction ? exponent - 52 + at_counts_lowest_bit(fraction) : exponent;
            low = lowest < low ? lowest : low;
            square = fma(value, value, square);
        }
    }
    if (square == 0)
        return 0;
    /* the upper word's first bits are a logarithm that is 0.09 too small at most: two sixteenths; one was cut off */
    return (int)((uint64_t)at_plain_bits(square) >> 48) + 3 - 16 * 1023 - 32 * (low - 1023);
}

/* Sums of two spans up to this are exact: below 2^52 lowest bits, half of what a double holds. */
constexpr int AT_COUNTS_EXACT_SPAN = 2 * 52 * 16;

/* A thread a row of q, then of k, then of v, of which only what is not finite matters. */
template <class T> static __global__ void at_counts_norm_spans(at_counts_view<T> a) {
    const int64_t of_q = (int64_t)a.h * a.queries, of_k = (int64_t)a.hk * a.keys;
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < of_q) {
        a.q_span[row] = at_counts_norm_span(a.query((int)(row % a.queries), (int)(row / a.queries)), a.d);
        return;
    }
    row -= of_q;
    const T *of = row < of_k ? a.k : a.v;
    int *span = row < of_k ? a.k_span : a.v_span;
    row -= row < of_k ? 0 : of_k;
    if (row < of_k)
        span[row] = at_counts_norm_span(of + a.key((int)(row % a.keys), (int)(row / a.keys)), a.d);
}

#endif
