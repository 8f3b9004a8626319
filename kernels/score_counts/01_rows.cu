/* Counting scores: a block for 64 queries of a head, one row of scores after the other in shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the definition (reference/score_counts/score_counts.h): every product by the compensated sum, a thread a
 * key; row statistics by one thread, in order; outputs by a thread a channel, in order.
 * Launch: grid (tiles of 64 queries, query heads), 128 threads; 16 bytes of shared memory a key.
 * Limits: f16, bf16 or f32; asynct and softmax; at most 13,000 keys.
 * Source: ours. */
#include "kernels/score_counts/score_counts_close.h"

namespace {

constexpr int THREADS = AT_COUNTS_THREADS;

/* A block's tile, and what its threads keep. */
template <class T> struct tile {
    at_counts_view<T> a;
    int head, kv_head, thread;
    double *dot, *w, *q; /* shared: raw scores, p or e of the row, the query */
    double *row;         /* shared: max, sum, is there a NaN */
    uint32_t *mass;      /* shared: low and high words of 64 bins */
    uint32_t element_zero = 0, tile_zero = 0;
    at_counts_stage stages[AT_COUNTS_STAGES];

    __device__ explicit tile(const at_counts_view<T> &view)
        : a(view), head((int)blockIdx.y), kv_head(head / (view.h / view.hk)), thread((int)threadIdx.x) {}

    __device__ double score(int t) const { return a.scale * dot[t]; }
    __device__ double filter(int t) const {
        const float *taps = a.taps + head * a.n_taps;
        double sum = 0;
        for (int j = 0; j < a.n_taps && j <= t; j++)
            sum += (a.pooled ? 1.0 : (double)taps[j]) * a.gate_input(score(t - j));
        if (!a.pooled)
            return sum;
        const int there = a.shrink && t + 1 < a.n_taps ? t + 1 : a.n_taps;
        return a.gate_input(score(t)) - (double)a.sigma[head] / (double)there * sum;
    }
    __device__ double p(int t) const { return a.softmax ? w[t] / row[1] : w[t]; }

    __device__ double product(const T *k) const;
    __device__ void count(int stage, int quantity, int i, int t, double value, double noted) {
        if (!a.wants(quantity))
            return;
        a.count(a.plane(quantity, head), value);
        stages[stage].note(noted, i, t);
    }
    __device__ void load_query(int i);
    __device__ void score_row(int i, int n);
    __device__ void find_maximum(int n);
    __device__ void weigh_row(int i, int n);
    __device__ void mark_row(int i, int n);
    __device__ void statistics(int n);
    __device__ void output_row(int i, int n);
    __device__ void close_tile(int first, int last);
};

template <class T> __device__ double tile<T>::product(const T *k) const {
    double sum = 0, rest = 0;
    bool finite = true;
    for (int c = 0; c < a.d; c++) {
        const double x = q[c], y = at_counts_value(k[c]);
        finite = finite && isfinite(x) && isfinite(y);
        const double product = x * y, next = sum + product, part = next - sum;
        rest += (sum - (next - part)) + (product - part);
        sum = next;
    }
    if (finite)
        return sum + rest;
    sum = 0;
    for (int c = 0; c < a.d; c++)
        sum += q[c] * at_counts_value(k[c]);
    return sum;
}

template <class T> __device__ void tile<T>::load_query(int i) {
    for (int c = thread; c < a.d; c += THREADS) {
        q[c] = at_counts_value(a.query(i, head)[c]);
        a.count(a.plane(AT_COUNTS_OF_Q, head), q[c]);
    }
}

template <class T> __device__ void tile<T>::score_row(int i, int n) {
    for (int t = thread; t < n; t += THREADS) {
        dot[t] = product(a.k + a.key(t, kv_head));
        count(0, AT_COUNTS_OF_RAW, i, t, dot[t], dot[t]);
        count(1, AT_COUNTS_OF_SCALED, i, t, score(t), score(t));
    }
}

template <class T> __device__ void tile<T>::find_maximum(int n) {
    double max = -at_plain_from_bits(0x7ff0000000000000), has_nan = 0;
    for (int t = 0; t < n; t++) {
        const double s = score(t);
        max = s > max ? s : max;
        has_nan = s == s ? has_nan : 1;
    }
    row[0] = max;
    row[2] = has_nan;
}

/* p, or e of softmax, whose sum makes it p. */
template <class T> __device__ void tile<T>::weigh_row(int i, int n) {
    for (int t = thread; t < n; t += THREADS) {
        if (a.softmax) {
            const double shift = row[0] > -at_plain_from_bits(0x7ff0000000000000) ? row[0] : 0;
            w[t] = at_plain_exp(score(t) - shift);
            continue;
        }
        const double z = filter(t);
        w[t] = a.clamp(z);
        count(2, AT_COUNTS_OF_FIR, i, t, z, z);
    }
    at_sync();
    if (thread == 0) {
        double sum = 0;
        for (int t = 0; t < n; t++)
            sum += w[t];
        row[1] = sum;
    }
}

/* A thread has the keys of a page: its bits, zeros, mass. */
template <class T> __device__ void tile<T>::mark_row(int i, int n) {
    const int pages = (n + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    for (int page = thread; page < pages && a.wants(AT_COUNTS_OF_P); page += THREADS) {
        uint32_t live = 0;
        for (int t = page * AT_COUNTS_PAGE; t < (page + 1) * AT_COUNTS_PAGE && t < n; t++) {
            const double x = p(t);
            count(3, AT_COUNTS_OF_P, i, t, x, w[t]);
            live |= (uint32_t)(x != 0) << t % AT_COUNTS_PAGE;
            element_zero += x == 0;
            const int bin = at_counts_distance(a.here + i - t);
            at_counts_add(&mass[bin], &mass[AT_COUNTS_DISTANCES + bin], at_counts_mass(x));
        }
        a.live_row(head, i)[page] = (uint16_t)live;
    }
}

template <class T> __device__ void tile<T>::statistics(int n) {
    if (n == 0)
        return;
    double terms = 0;
    for (int t = 0; t < n && (a.wants(AT_COUNTS_OF_ENTROPY) || a.wants(AT_COUNTS_OF_SUPPORT)); t++)
        terms += p(t) == 0 || w[t] == 0 ? 0.0 : w[t] * at_plain_log2(w[t]);
    a.count_row(head, row[2] != 0 ? at_plain_from_bits(0x7ff8000000000000) : row[0], row[1], w[0], terms);
}

template <class T> __device__ void tile<T>::output_row(int i, int n) {
    const double gamma = (double)a.gamma[head];
    for (int c = thread; c < a.d && a.wants(AT_COUNTS_OF_OUT); c += THREADS) {
        double o = 0;
        for (int t = 0; t < n; t++)
            if (p(t) != 0)
                o = fma(a.softmax ? w[t] : gamma * w[t], at_counts_value(a.v[a.key(t, kv_head) + c]), o);
        if (a.softmax && n > 0)
            o /= row[1];
        count(4, AT_COUNTS_OF_OUT, i, -1, o, o);
    }
}

/* The last row sees the most keys. A thread reads what it wrote itself. */
template <class T> __device__ void tile<T>::close_tile(int first, int last) {
    const int pages = (a.visible(last) + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    for (int page = thread; page < pages && a.wants(AT_COUNTS_OF_P); page += THREADS) {
        uint32_t live = 0;
        for (int i = first; i <= last; i++)
            if (page * AT_COUNTS_PAGE < a.visible(i))
                live |= a.live_row(head, i)[page];
        tile_zero += live == 0;
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) rows(at_counts_view<T> a) {
    AT_SHARED_DYNAMIC(double, memory);
    AT_SHARED(uint64_t[THREADS], buffer);
    AT_SHARED(uint32_t[2 * AT_COUNTS_DISTANCES], mass);
    AT_SHARED(double[3], row);
    tile<T> x(a);
    x.dot = memory;
    x.w = memory + a.keys;
    x.q = x.w + a.keys;
    x.row = row;
    x.mass = mass;
    const int first = (int)blockIdx.x * AT_COUNTS_TILE;
    const int last = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE - 1 : a.queries - 1;
    for (int bin = x.thread; bin < 2 * AT_COUNTS_DISTANCES; bin += THREADS)
        mass[bin] = 0;
    for (int i = first; i <= last; i++) {
        const int n = a.visible(i);
        x.load_query(i);
        at_sync();
        x.score_row(i, n);
        at_sync();
        if (x.thread == 0)
            x.find_maximum(n);
        at_sync();
        x.weigh_row(i, n);
        at_sync();
        x.mark_row(i, n);
        if (x.thread == 0)
            x.statistics(n);
        x.output_row(i, n);
    }
    x.close_tile(first, last);
    at_counts_store_words(a, x.head, (int)blockIdx.x, buffer, mass, x.element_zero, x.tile_zero, x.stages);
}

int64_t shared(const struct at_problem *p) { return (2 * p->sizes.slots + p->sizes.d) * (int64_t)sizeof(double); }

const char *supports(const struct at_problem *problem) {
    if (shared(problem) > 220 * 1024)
        return "more keys than shared memory holds";
    return at_counts_declines(problem);
}

template <class T> int launch_as(const struct at_launch *launch) {
    return at_counts_launch<T>(launch, [launch](const at_counts_view<T> &a) {
        return at_launch(rows<T>, dim3{ (unsigned)a.tiles, (unsigned)a.h, 1 }, dim3{ THREADS, 1, 1 },
                         shared(launch->problem), launch->stream, a);
    });
}

int launch(const struct at_launch *launch) {
    switch (launch->problem->dtype) {
    case AT_F16:
        return launch_as<at_f16>(launch);
    case AT_BF16:
        return launch_as<at_bf16>(launch);
    default:
        return launch_as<float>(launch);
    }
}

int64_t workspace(const struct at_problem *problem) { return at_counts_view<float>::workspace(problem); }

} // namespace

AT_KERNEL(score_counts, 01_rows) = {
    .summary = "one row of scores after the other in shared memory, counts by atomics",
    .source = "ours",
    .numerics = AT_COUNTS_NUMERICS,
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
