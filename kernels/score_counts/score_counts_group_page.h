/* How a group counts a tile of scores, and what it adds up for rows and outputs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A thread walks along one query's page: raw and scaled scores, the FIR in registers, p. The scores that the FIR of the
 * next tile needs are stored in the halo. Sums of rows and outputs are taken in order, tile by tile. */
#ifndef AT_KERNEL_SCORE_COUNTS_GROUP_PAGE_H
#define AT_KERNEL_SCORE_COUNTS_GROUP_PAGE_H

#include "kernels/score_counts/score_counts_group.h"

/* ---- counting ---- */

template <class T, int TAPS, bool FULL>
__device__ double at_counts_tile_group<T, TAPS, FULL>::filter(const double *halo, int k0, int t, double r0, double r1,
                                                              double r2) const {
    double z = 0.0;
    if (TAPS == 3) { /* keys before the first are 0 and add nothing */
        z += a.pooled ? r0 : b.tap[0] * r0;
        z += a.pooled ? r1 : b.tap[1] * r1;
        z += a.pooled ? r2 : b.tap[2] * r2;
    } else {
        AT_NO_UNROLL
        for (int j = 0; j < a.n_taps && j <= t; j++) {
            const double r = j ? a.gate_input(a.scale * dot(halo, k0, t - j)) : r0;
            z += a.pooled ? r : b.tap[j] * r;
        }
    }
    if (!a.pooled)
        return z;
    return r0 - (a.shrink && t + 1 < a.n_taps ? b.sigma / (double)(t + 1) : b.share) * z;
}

template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::give_mass() {
    if (mass)
        at_counts_add(&f.mass[mass_bin], &f.mass[AT_COUNTS_DISTANCES + mass_bin], mass);
    mass = 0;
}

template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::add_mass(int bin, double weight) {
    if (bin != mass_bin)
        give_mass();
    mass_bin = bin;
    mass += at_counts_mass(weight);
}

/* The bin of all distances of the page, -1 when they have several. */
template <class T, int TAPS, bool FULL>
__device__ int at_counts_tile_group<T, TAPS, FULL>::page_distance(int begin, int seen) const {
    const int most = a.here + query - begin, least = most - (seen - 1);
    const int bin = at_counts_distance(most);
    return (least < 0) == (most < 0) && bin == at_counts_distance(least) ? bin : -1;
}

/* The FIR and p of keys j to j + 3 of the thread's page, `seen` of them visible. bin: page_distance(). */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void
at_counts_tile_group<T, TAPS, FULL>::filter_four(const double *halo, double *next, int k0, int j, int seen,
                                                 const double (&x)[4], const double (&s)[4], double &r1, double &r2,
                                                 int bin, uint32_t &live) {
    const int in_tile = page * AT_COUNTS_PAGE + j, t = k0 + in_tile, reach = a.n_taps - 1;
    constexpr int N = 4;
    double z[N], weight[N];
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        const double r0 = a.gate_input(s[i]);
        z[i] = filter(halo, k0, t + i, r0, r1, r2);
        r2 = r1;
        r1 = r0;
        if (in_tile + i >= KEYS - reach)
            next[row * reach + in_tile + i - (KEYS - reach)] = x[i];
    }
    if (wants(2))
        at_counts_see_four(a, bins, 2, head, z, seen, query, t, tally[2], f.rare.field[2]);
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        weight[i] = a.clamp(z[i]);
        if (i < seen && weight[i] != 0)
            live |= 1u << (j + i);
        if (FULL && i < seen)
            m.weights[row * shape::ROW_STEP + in_tile + i] = weight[i];
    }
    if (!wants(3))
        return;
    at_counts_see_four(a, bins, 3, head, weight, seen, query, t, tally[3], f.rare.field[3]);
    AT_UNROLL
    for (int i = 0; i < N; i++)
        if (live >> (j + i) & 1)
            add_mass(bin >= 0 ? bin : at_counts_distance(a.here + query - t - i), weight[i]);
}

/* The page's scores, raw and scaled, its z and p; `next` gets the raw scores that the next tile needs. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::count_page(const double *halo, double *next, int k0) {
    constexpr int N = 4; /* keys at once */
    const int begin = k0 + page * AT_COUNTS_PAGE;
    const double *own = m.scores + row * shape::ROW_STEP + page * AT_COUNTS_PAGE;
    double r1 = 0, r2 = 0;
    uint32_t live = 0;
    if (TAPS == 3 && filters() && begin > 0 && begin < n) {
        r1 = a.gate_input(a.scale * dot(halo, k0, begin - 1));
        r2 = a.gate_input(a.scale * dot(halo, k0, begin - 2));
    }
    for (int j = FULL && n > begin ? n - begin : 0; FULL && j < AT_COUNTS_PAGE; j++)
        m.weights[row * shape::ROW_STEP + page * AT_COUNTS_PAGE + j] = 0;
    if (begin >= n)
        return;
    const int seen = n - begin < AT_COUNTS_PAGE ? n - begin : AT_COUNTS_PAGE;
    const int bin = wants_p() ? page_distance(begin, seen) : 0;
    AT_NO_UNROLL
    for (int j = 0; j < seen; j += N) {
        double x[N], s[N];
        AT_UNROLL
        for (int i = 0; i < N; i++) {
            x[i] = own[j + i];
            s[i] = a.scale * x[i];
            if (FULL && i < seen - j)
                most = s[i] > most || s[i] != s[i] ? s[i] : most;
        }
        if (wants(0))
            at_counts_see_four(a, bins, 0, head, x, seen - j, query, begin + j, tally[0], f.rare.field[0]);
        if (wants(1))
            at_counts_see_four(a, bins, 1, head, s, seen - j, query, begin + j, tally[1], f.rare.field[1]);
        if (filters())
            filter_four(halo, next, k0, j, seen - j, x, s, r1, r2, bin, live);
    }
    if (!wants_p())
        return;
    live_pairs += (uint32_t)at_count_ones(live);
    a.live_row(head, query)[begin / AT_COUNTS_PAGE] = (uint16_t)live;
}

/* ---- rows and outputs, in order ---- */

/* Puts the p of each of the warp's rows that are not 0 side by side, in order, with their keys. Lane r gets the number of
 * those of row r, and the row's first p. */
template <class T, int TAPS, bool FULL> __device__ int at_counts_tile_group<T, TAPS, FULL>::list_live(int k0) {
    const int lane = at_lane();
    const uint32_t before = (1u << lane) - 1;
    int live = 0;
    AT_NO_UNROLL
    for (int r = 0; r < ROWS; r++) {
        double *row_list = list(r), weights[KEYS / 32];
        int n = 0;
        AT_UNROLL
        for (int j = 0; j < KEYS / 32; j++)
            weights[j] = row_list[lane + 32 * j];
        if (k0 == 0 && lane == r)
            row_sum(2) = row_list[0];
        at_sync_warp(); /* the row has been read */
        AT_UNROLL
        for (int j = 0; j < KEYS / 32; j++) {
            const uint32_t lanes = at_ballot(0xffffffffu, weights[j] != 0);
            if (weights[j] != 0) {
                const int to = n + at_count_ones(lanes & before);
                row_list[to] = weights[j];
                list_keys(r)[to] = (uint16_t)(lane + 32 * j);
            }
            n += at_count_ones(lanes);
        }
        live = lane == r ? n : live;
    }
    at_sync_warp(); /* the lists are there */
    return live;
}

/* Adds the products of N p of a list with their values to the outputs of one row. values: those of the tile's first key in
 * the lane's channels, of channel 0 instead of those past the last, whose sums nobody reads; step: to the next key's. PAIRS:
 * neighbours are loaded together. */
template <class T, int TAPS, bool FULL>
template <bool PAIRS, int N>
__device__ __forceinline__ void
at_counts_tile_group<T, TAPS, FULL>::add_values(const T *const (&values)[AT_COUNTS_CHANNELS_OUT], int step,
                                                const double *weights, const uint16_t *keys, double gamma,
                                                double (&out)[AT_COUNTS_CHANNELS_OUT]) const {
    float v[N][AT_COUNTS_CHANNELS_OUT];
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        const int64_t there = (int64_t)keys[i] * step;
        AT_UNROLL
        for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j += PAIRS ? 2 : 1)
            if constexpr (PAIRS)
                at_load_pair(values[j] + there, v[i][j], v[i][j + 1]);
            else
                v[i][j] = at_float(values[j][there]);
    }
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        const double weight = gamma * weights[i];
        AT_UNROLL
        for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
            out[j] += weight * (double)v[i][j];
    }
}

/* live: as weigh() has it. */
template <class T, int TAPS, bool FULL>
template <bool PAIRS>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::weigh_values(int k0, int live) {
    constexpr int AT_ONCE = 4; /* keys whose values are loaded together */
    const double gamma = (double)a.gamma[head];
    const int step = a.hk * a.d;
    const T *values[AT_COUNTS_CHANNELS_OUT];
    AT_UNROLL
    for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
        values[j] = a.v + a.key(k0, kv_head) + (channel(j) < a.d ? channel(j) : 0);
    AT_UNROLL
    for (int r = 0; r < (FULL ? ROWS : 0); r++) {
        const int n = (int)at_shuffle(0xffffffffu, (uint32_t)live, r);
        int i = 0;
        AT_NO_UNROLL
        for (; i + AT_ONCE <= n; i += AT_ONCE)
            add_values<PAIRS, AT_ONCE>(values, step, list(r) + i, list_keys(r) + i, gamma, o[r]);
        AT_NO_UNROLL
        for (; i < n; i++)
            add_values<PAIRS, 1>(values, step, list(r) + i, list_keys(r) + i, gamma, o[r]);
    }
}

/* p log2 p takes the place of p in the lists; the terms of the entropy are their sums in order. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::add_logarithms(int k0, int live) {
    at_sync_warp(); /* p has been read */
    AT_NO_UNROLL
    for (int r = 0; r < ROWS; r++) {
        const int n = (int)at_shuffle(0xffffffffu, (uint32_t)live, r);
        for (int i = at_lane(); i < n; i += 32)
            list(r)[i] = list(r)[i] * at_plain_log2(list(r)[i]);
    }
    at_sync_warp();
    double terms = at_lane() < ROWS && k0 > 0 ? row_sum(1) : 0;
    for (int i = 0; i < live; i++)
        terms += list(at_lane())[i];
    if (at_lane() < ROWS)
        row_sum(1) = terms;
}

/* Each warp adds up its rows by itself. live: of the row of this lane; 0 where it has none. Sums leave out p that are 0, which
 * add nothing. */
template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::weigh(int k0) {
    sync(); /* every p has been written */
    const int live = list_live(k0);
    double sum = at_lane() < ROWS && k0 > 0 ? row_sum(0) : 0;
    for (int i = 0; i < live; i++)
        sum += list(at_lane())[i];
    if (at_lane() < ROWS)
        row_sum(0) = sum;
    if (a.wants(AT_COUNTS_OF_OUT) && a.d % 2 == 0)
        weigh_values<true>(k0, live);
    else if (a.wants(AT_COUNTS_OF_OUT))
        weigh_values<false>(k0, live);
    if (a.wants(AT_COUNTS_OF_ENTROPY) || a.wants(AT_COUNTS_OF_SUPPORT))
        add_logarithms(k0, live);
}

#endif
