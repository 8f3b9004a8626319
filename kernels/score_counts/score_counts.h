/* What kernels that count scores share: the view, slots of codes, rows of the ledger, partial sums of a tile.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block has a tile of 64 queries of one head. It adds to the planes of counts by atomics, stores a bit for every
 * visible p that is not 0, and stores its own sums as 64-bit words; the kernels of score_counts_close.h, which follow,
 * add up both. Only whole numbers are added, so that no order changes a result. */
#ifndef AT_KERNEL_SCORE_COUNTS_H
#define AT_KERNEL_SCORE_COUNTS_H

#include "attest/kernel.h"
#include "kernels/device/device.h"
#include "score_counts/score_counts.h"

#define AT_PLAIN static __host__ __device__ __forceinline__
#include "attest/plain_math.h"

constexpr int AT_COUNTS_THREADS = 128;

/* Words of a tile's sums. */
constexpr int AT_COUNTS_W_ELEMENT_ZERO = 0, AT_COUNTS_W_TILE_ZERO = 1, AT_COUNTS_W_MASS = 2,
              AT_COUNTS_W_LEDGER = AT_COUNTS_W_MASS + AT_COUNTS_DISTANCES;
/* Words of a stage of the ledger: counts, the bits of the largest magnitude, the first place or ~0. */
constexpr int AT_COUNTS_W_MAX = AT_COUNTS_FLUSHED + 1, AT_COUNTS_W_FIRST = AT_COUNTS_W_MAX + 1,
              AT_COUNTS_W_STAGE = AT_COUNTS_W_FIRST + 1;
constexpr int AT_COUNTS_WORDS = AT_COUNTS_W_LEDGER + AT_COUNTS_STAGES * AT_COUNTS_W_STAGE;
constexpr uint64_t AT_COUNTS_NOWHERE = ~(uint64_t)0;

/* ---- codes ---- */

/* A format of 16 bits as at_counts_slot() needs it. `upper`: of a double's upper 32 bits. */
struct at_counts_codes {
    int shift;       /* bits of the upper word behind the code's last one */
    uint32_t normal; /* upper word of the smallest normal number */
    uint32_t bias;   /* between a double's exponent and the code's, in place */
    int infinity;    /* its code */
    double lift;     /* added to a subnormal number, leaves its code in the lowest bits */

    static at_counts_codes of(int format) {
        return format == AT_F16 ? at_counts_codes{ 10, (uint32_t)(1023 - 14) << 20, 1008u << 10, 31 << 10, 0x1p28 }
                                : at_counts_codes{ 13, (uint32_t)(1023 - 126) << 20, 896u << 7, 255 << 7, 0x1p-81 };
    }
};

/* Slot of a value rounded once, ties to even. A double's lower word matters only as 0 or not: it may
 * stand in the lowest bit of the upper one, which is never kept. */
static __device__ __forceinline__ int at_counts_slot(const at_counts_codes &f, double x) {
    const uint64_t bits = (uint64_t)at_plain_bits(x);
    const uint32_t upper = (uint32_t)(bits >> 32) & 0x7fffffffu, sticky = upper | ((uint32_t)bits != 0);
    const uint32_t rounded = ((sticky + ((1u << (f.shift - 1)) - 1) + (sticky >> f.shift & 1)) >> f.shift) - f.bias;
    const double size = at_plain_from_bits((int64_t)(bits & 0x7fffffffffffffffu));
    const uint32_t low = (uint32_t)at_plain_bits(size + f.lift);
    const int code = (int)(upper < f.normal ? low : rounded), negative = (int)(bits >> 63);
    const int nan_slot = 2 * f.infinity + 2;
    if (code >= f.infinity) {
        if (sticky != 0x7ff00000u)
            return sticky > 0x7ff00000u ? nan_slot : nan_slot + 1 + negative;
        return negative ? 0 : nan_slot - 1;
    }
    return negative ? f.infinity - code : f.infinity + 1 + code;
}

/* ---- the ledger ---- */

static __device__ __forceinline__ uint64_t at_counts_place(int query, int key) {
    return (uint64_t)(uint32_t)query << 32 | (uint32_t)(key + 1);
}

/* What a thread has seen of a stage. */
struct at_counts_stage {
    uint32_t count = 0, zero = 0, nan = 0, inf = 0, above = 0, to_inf = 0, subnormal = 0, flushed = 0;
    uint64_t most = 0, first = AT_COUNTS_NOWHERE;

    __device__ __forceinline__ void note(double x, int query, int key) {
        const uint64_t size = (uint64_t)at_plain_bits(x) & 0x7fffffffffffffffu;
        count++;
        zero += size == 0;
        subnormal += size - 1 < 0x3f10000000000000u - 1; /* 0 < |x| < 2^-14 */
        flushed += size - 1 < 0x3e60000000000000u;       /* 0 < |x| <= 2^-25 */
        if (size > 0x40effc0000000000u)                  /* 65504 */
            note_large(size, query, key);
        else
            most = size > most ? size : most;
    }
    __device__ void note_large(uint64_t size, int query, int key) {
        const uint64_t infinity = 0x7ff0000000000000u, place = at_counts_place(query, key);
        nan += size > infinity;
        inf += size == infinity;
        above += size <= infinity;
        const bool rounds = size >= 0x40effe0000000000u; /* 65520 */
        to_inf += rounds && size <= infinity;
        if (size < infinity)
            most = size > most ? size : most;
        if (rounds && place < first)
            first = place;
    }
    /* Word of AT_COUNTS_W_STAGE. */
    __device__ uint64_t word(int i) const {
        switch (i) {
        case AT_COUNTS_COUNT:
            return count;
        case AT_COUNTS_ZERO:
            return zero;
        case AT_COUNTS_NAN:
            return nan;
        case AT_COUNTS_INF:
            return inf;
        case AT_COUNTS_ABOVE:
            return above;
        case AT_COUNTS_TO_INF:
            return to_inf;
        case AT_COUNTS_SUBNORMAL:
            return subnormal;
        case AT_COUNTS_FLUSHED:
            return flushed;
        case AT_COUNTS_W_MAX:
            return most;
        default:
            return first;
        }
    }
};

/* Joins two words of the same kind. */
static __device__ __forceinline__ uint64_t at_counts_join(int word, uint64_t a, uint64_t b) {
    const int field = word < AT_COUNTS_W_LEDGER ? 0 : (word - AT_COUNTS_W_LEDGER) % AT_COUNTS_W_STAGE;
    if (field == AT_COUNTS_W_MAX)
        return a > b ? a : b;
    if (field == AT_COUNTS_W_FIRST)
        return a < b ? a : b;
    return a + b;
}

/* ---- the problem ---- */

/* Every pointer in device memory. */
template <class T> struct at_counts_view {
    const T *q, *k, *v;
    const float *sigma, *taps, *gamma;
    uint32_t *counts, *kv_counts; /* outputs, i32 there */
    double *sums, *kv_sums;
    double *out; /* [blocks][64 128] sums of outputs while scores are counted; nullptr: in shared memory */
    uint64_t *words, *kv_words;        /* [h tiles AT_COUNTS_WORDS], [hk tiles 2] */
    int *q_span, *k_span, *v_span;     /* [h queries], [hk keys]: at_counts_norm_span(); of kernels that ask for them */
    uint16_t *live;                    /* [h queries pages] bit t % 16: p of key t is not 0; hidden keys have none */
    int h, hk, d, queries, keys, here; /* query i stands at key here + i */
    int tiles, pages, causal, softmax, what, quantities, kv_quantities;
    int n_taps, relu_pre, pooled, shrink;
    double scale, clip_min, clip_max;
    at_counts_codes codes;
    int place[AT_COUNTS_QUANTITIES]; /* among the planes; -1: not counted */

    static int64_t words_bytes(const struct at_problem *p) {
        return (p->sizes.h * AT_COUNTS_WORDS + p->sizes.hk * AT_KV_SUMS) * tiles_of(p) * (int64_t)sizeof(uint64_t);
    }
    static int64_t spans_bytes(const struct at_problem *p) {
        return (p->sizes.h * p->sizes.tokens + 2 * p->sizes.hk * p->sizes.slots) * (int64_t)sizeof(int);
    }
    static int64_t tiles_of(const struct at_problem *p) {
        return (p->sizes.tokens + AT_COUNTS_TILE - 1) / AT_COUNTS_TILE;
    }
    static int64_t pages_of(const struct at_problem *p) {
        return (p->sizes.slots + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    }
    static int64_t workspace(const struct at_problem *p) {
        return words_bytes(p) + spans_bytes(p) + p->sizes.h * p->sizes.tokens * pages_of(p) * (int64_t)sizeof(uint16_t);
    }

    static at_counts_view of(const struct at_launch *launch) {
        const struct at_problem *p = launch->problem;
        const struct at_tensor *t = p->tensors;
        const struct at_sizes *z = &p->sizes;
        at_counts_view a{};
        a.q = static_cast<const T *>(t[AT_ATTN_Q].data);
        a.k = static_cast<const T *>(t[AT_ATTN_K].data);
        a.v = static_cast<const T *>(t[AT_ATTN_V].data);
        a.sigma = static_cast<const float *>(t[AT_COUNTS_SIGMA].data);
        a.taps = static_cast<const float *>(t[AT_COUNTS_TAPS].data);
        a.gamma = static_cast<const float *>(t[AT_COUNTS_GAMMA].data);
        a.counts = static_cast<uint32_t *>(t[AT_COUNTS_COUNTS].data);
        a.kv_counts = static_cast<uint32_t *>(t[AT_COUNTS_KV_COUNTS].data);
        a.sums = static_cast<double *>(t[AT_COUNTS_SUMS].data);
        a.kv_sums = static_cast<double *>(t[AT_COUNTS_KV_SUMS].data);
        a.tiles = (int)tiles_of(p);
        a.pages = (int)pages_of(p);
        a.words = static_cast<uint64_t *>(launch->workspace);
        a.kv_words = a.words + z->h * a.tiles * AT_COUNTS_WORDS;
        a.q_span = reinterpret_cast<int *>(a.kv_words + z->hk * a.tiles * AT_KV_SUMS);
        a.k_span = a.q_span + z->h * z->tokens;
        a.v_span = a.k_span + z->hk * z->slots;
        a.live = reinterpret_cast<uint16_t *>(a.v_span + z->hk * z->slots);
        a.h = (int)z->h;
        a.hk = (int)z->hk;
        a.d = (int)z->d;
        a.queries = (int)z->tokens;
        a.keys = (int)z->slots;
        a.here = (int)(z->slots - z->tokens - at_counts_own_of(p).behind);
        a.causal = p->params.causal;
        a.softmax = at_counts_own_of(p).softmax;
        a.what = at_counts_own_of(p).what;
        a.quantities = (int)at_counts_own_of(p).quantities;
        a.kv_quantities = (int)at_counts_own_of(p).kv_quantities;
        a.n_taps = (int)z->taps;
        a.relu_pre = p->params.relu_pre;
        a.pooled = p->params.fir_form == AT_FIR_POOLED;
        a.shrink = p->params.edge == AT_EDGE_SHRINK;
        a.scale = (double)p->params.scale;
        a.clip_min = (double)p->params.clip_min;
        a.clip_max = (double)p->params.clip_max;
        a.codes = at_counts_codes::of(at_counts_own_of(p).bins);
        for (int i = 0; i < AT_COUNTS_QUANTITIES; i++)
            a.place[i] = at_counts_plane(a.what, i);
        return a;
    }

    __device__ bool wants(int quantity) const { return what >> quantity & 1; }
    /* Plane of a quantity of a head; nullptr: not counted. */
    __device__ uint32_t *plane(int quantity, int head) const {
        if (place[quantity] < 0)
            return nullptr;
        if (AT_COUNTS_KV_BITS >> quantity & 1)
            return kv_counts + (int64_t)(head * kv_quantities + place[quantity]) * AT_CODE_SLOTS;
        return counts + (int64_t)(head * quantities + place[quantity]) * AT_CODE_SLOTS;
    }
    __device__ int visible(int i) const {
        const int n = here + i + 1;
        return !causal ? keys : n < 0 ? 0 : n;
    }
    __device__ const T *query(int i, int head) const { return q + ((int64_t)i * h + head) * d; }
    __device__ int64_t key(int t, int kv_head) const { return ((int64_t)t * hk + kv_head) * d; }
    __device__ uint16_t *live_row(int head, int i) const { return live + ((int64_t)head * queries + i) * pages; }
    /* The input of the FIR from a scaled score; p from the result of the FIR. */
    __device__ double gate_input(double s) const {
        if (((uint64_t)at_plain_bits(s) >> 52 & 0x7ff) == 0x7ff)
            return at_plain_from_bits(0x7ff8000000000000);
        return relu_pre && s < 0 ? 0.0 : s;
    }
    __device__ double clamp(double z) const {
        if (z != z)
            return z;
        double x = z > 0 ? z : 0.0;
        x = x < clip_max ? x : clip_max;
        return x > clip_min ? x : clip_min;
    }
    __device__ void count(uint32_t *to, double x) const {
        if (to)
            at_atomic_add(to + at_counts_slot(codes, x), 1u);
    }
    /* Counts the statistics of a row that sees a key. weight0: p of key 0; terms: the sum of p log2 p. */
    __device__ void count_row(int head, double max, double sum, double weight0, double terms) const {
        count(plane(AT_COUNTS_OF_ROW_MAX, head), max);
        count(plane(AT_COUNTS_OF_ROW_SUM, head), sum);
        if (sum == 0)
            return;
        count(plane(AT_COUNTS_OF_SHARE0, head), weight0 / sum);
        double entropy = at_plain_log2(sum) - terms / sum;
        entropy = entropy < 0 ? 0.0 : entropy;
        count(plane(AT_COUNTS_OF_ENTROPY, head), entropy);
        count(plane(AT_COUNTS_OF_SUPPORT, head), at_plain_exp2(entropy));
    }
};

template <class T> __device__ __forceinline__ double at_counts_value(T x) { return (double)at_float(x); }

/* Bin of a distance: 0 for 0, else one more than its exponent. */
static __device__ __forceinline__ int at_counts_distance(int distance) {
    const int exponent = (int)(at_plain_bits((double)distance) >> 52 & 0x7ff);
    return distance ? exponent - 1022 : 0;
}

/* Adds to a sum of 64 bits in two words: the thread whose addition wraps the lower word carries. */
static __device__ __forceinline__ void at_counts_add(uint32_t *low, uint32_t *high, uint64_t x) {
    const uint32_t before = at_atomic_add(low, (uint32_t)x);
    const uint32_t carry = (uint32_t)(x >> 32) + (before + (uint32_t)x < before);
    if (carry)
        at_atomic_add(high, carry);
}

/* |p| in units of 2^-24, rounded, ties to even; what is not finite has none. p < 2^39 (the operator's check). */
static __device__ __forceinline__ uint64_t at_counts_mass(double p) {
    const double size = at_plain_from_bits(at_plain_bits(p) & 0x7fffffffffffffff) * 0x1p24;
    if (!(size < 0x1p63))
        return 0;
    /* from 2^52 on every double is whole */
    return size < 0x1p52 ? (uint64_t)at_plain_bits(size + 0x1p52) & 0xfffffffffffffu : (uint64_t)size;
}

/* ---- a block ---- */

/* Joins the threads' words by a tree; `buffer`: free shared memory, a word a thread. */
static __device__ inline uint64_t at_counts_reduce(uint64_t *buffer, int word, uint64_t mine) {
    const int thread = (int)threadIdx.x;
    at_sync();
    buffer[thread] = mine;
    at_sync();
    for (int step = (int)blockDim.x / 2; step > 0; step /= 2) {
        if (thread < step)
            buffer[thread] = at_counts_join(word, buffer[thread], buffer[thread + step]);
        at_sync();
    }
    return buffer[0];
}

/* Stores all words of the tile; the mass comes from shared memory, low and high words of 64 bins. */
template <class T>
__device__ void at_counts_store_words(const at_counts_view<T> &a, int head, int tile, uint64_t *buffer,
                                      const uint32_t *mass, uint32_t element_zero, uint32_t tile_zero,
                                      const at_counts_stage (&stages)[AT_COUNTS_STAGES]) {
    uint64_t *out = a.words + (int64_t)(head * a.tiles + tile) * AT_COUNTS_WORDS;
    const int thread = (int)threadIdx.x;
    const uint64_t zeros = at_counts_reduce(buffer, AT_COUNTS_W_ELEMENT_ZERO, element_zero);
    if (thread == 0)
        out[AT_COUNTS_W_ELEMENT_ZERO] = zeros;
    const uint64_t dead = at_counts_reduce(buffer, AT_COUNTS_W_TILE_ZERO, tile_zero);
    if (thread == 0)
        out[AT_COUNTS_W_TILE_ZERO] = dead;
    if (thread < AT_COUNTS_DISTANCES)
        out[AT_COUNTS_W_MASS + thread] = (uint64_t)mass[AT_COUNTS_DISTANCES + thread] << 32 | mass[thread];
    AT_UNROLL
    for (int s = 0; s < AT_COUNTS_STAGES; s++)
        for (int i = 0; i < AT_COUNTS_W_STAGE; i++) {
            const int word = AT_COUNTS_W_LEDGER + s * AT_COUNTS_W_STAGE + i;
            const uint64_t joined = at_counts_reduce(buffer, word, stages[s].word(i));
            if (thread == 0)
                out[word] = joined;
        }
}

/* What every kernel here declares: double, in order, each operation rounded, those of outputs as fma. */
#define AT_COUNTS_NUMERICS \
    { \
        .qk_unit = AT_UNIT_F64, .qk_lanes = 1, .p = AT_F32, .clamp = AT_CLAMP_PROPAGATE, .pv_unit = AT_UNIT_F64, \
        .pv_chunk = 1, .repeats = 1, .pv_zero = AT_PV_ZERO_SKIPPED, \
    }

#endif
