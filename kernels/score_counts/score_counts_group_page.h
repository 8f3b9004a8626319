/* How a group counts a tile of scores, and what it adds up for rows and outputs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A thread walks along one query's page: raw and scaled scores, the FIR in registers, p. The scores that the FIR of the
 * next tile needs are stored in the halo. Then the group adds up rows and outputs, in order of keys. */
#ifndef AT_KERNEL_SCORE_COUNTS_GROUP_PAGE_H
#define AT_KERNEL_SCORE_COUNTS_GROUP_PAGE_H

#include "kernels/score_counts/score_counts_group.h"

/* ---- counting ---- */

/* What the FIR makes of the inputs r of key t and the two before, and of the next three; keys before the first are 0 and add
 * nothing. */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::filter_three(int t, const double (&r)[6],
                                                                                  double (&z)[4]) const {
    if (!a.pooled) {
        const double tap[3] = { b.tap[0], b.tap[1], b.tap[2] };
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            z[i] = ((0.0 + tap[0] * r[i + 2]) + tap[1] * r[i + 1]) + tap[2] * r[i];
        return;
    }
    const double share = b.share;
    AT_UNROLL
    for (int i = 0; i < 4; i++)
        z[i] = ((0.0 + r[i + 2]) + r[i + 1]) + r[i];
    if (a.shrink && t < 2) {
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            z[i] = r[i + 2] - (t + i < 2 ? b.sigma / (double)(t + i + 1) : share) * z[i];
        return;
    }
    AT_UNROLL
    for (int i = 0; i < 4; i++)
        z[i] = r[i + 2] - share * z[i];
}

template <class T, int TAPS, bool FULL>
__device__ double at_counts_tile_group<T, TAPS, FULL>::filter_any(const double *halo, int k0, int t, double r0) const {
    double z = 0.0;
    AT_NO_UNROLL
    for (int j = 0; j < taps() && j <= t; j++) {
        const double r = j ? a.gate_input(a.scale * dot(halo, k0, t - j)) : r0;
        z += a.pooled ? r : b.tap[j] * r;
    }
    if (!a.pooled)
        return z;
    return r0 - (a.shrink && t + 1 < taps() ? b.sigma / (double)(t + 1) : b.share) * z;
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

/* The FIR and p of keys j to j + 3 of the thread's page, `seen` of them visible. r1, r2: inputs of the two keys before. bin:
 * page_distance(). */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void
at_counts_tile_group<T, TAPS, FULL>::filter_four(const double *halo, int k0, int j, int seen, const double (&s)[4],
                                                 double &r1, double &r2, int bin, uint32_t &live) {
    const int in_tile = page * AT_COUNTS_PAGE + j, t = k0 + in_tile;
    double z[4], weight[4], r[6] = { r2, r1 };
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        r[i + 2] = a.gate_input(s[i]);
        if (TAPS != 3)
            z[i] = filter_any(halo, k0, t + i, r[i + 2]);
    }
    if (TAPS == 3)
        filter_three(t, r, z);
    r2 = r[4];
    r1 = r[5];
    if (wants(2))
        at_counts_see_four(a, bins, 2, head, z, seen, query, t, tally[2], f.rare.field[2],
                           m.first + 2 * AT_COUNTS_TILE + row);
    AT_UNROLL
    for (int i = 0; i < 4; i++)
        weight[i] = a.clamp(z[i]);
    if (seen < 4) {
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            weight[i] = i < seen ? weight[i] : 0.0;
    }
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        live |= weight[i] != 0 ? 1u << (j + i) : 0u;
        if (FULL)
            m.weights[(in_tile + i) * shape::KEY_STEP + row] = weight[i];
    }
    if (FULL && t == 0)
        m.sums[2 * AT_COUNTS_TILE + row] = weight[0];
    if (!wants(3))
        return;
    at_counts_see_four(a, bins, 3, head, weight, seen, query, t, tally[3], f.rare.field[3],
                       m.first + 3 * AT_COUNTS_TILE + row);
    AT_UNROLL
    for (int i = 0; i < 4; i++)
        if (live >> (j + i) & 1)
            add_mass(bin >= 0 ? bin : at_counts_distance(a.here + query - t - i), weight[i]);
}

/* The page's scores, raw and scaled, its z and p; `next` gets the raw scores that the next tile needs. Returns bits of the p
 * that are not 0. */
template <class T, int TAPS, bool FULL>
__device__ uint32_t at_counts_tile_group<T, TAPS, FULL>::count_page(const double *halo, double *next, int k0) {
    const int begin = k0 + page * AT_COUNTS_PAGE;
    const double *own = m.scores + page * AT_COUNTS_PAGE * shape::KEY_STEP + row;
    const int reach = taps() - 1;
    double r1 = 0, r2 = 0;
    uint32_t live = 0;
    if (TAPS == 3 && filters() && begin > 0 && begin < n) {
        r1 = a.gate_input(a.scale * dot(halo, k0, begin - 1));
        r2 = a.gate_input(a.scale * dot(halo, k0, begin - 2));
    }
    if (shape::IN_PLACE)
        sync(); /* scores of the page before have been read */
    for (int j = FULL && n > begin ? n - begin : 0; FULL && j < AT_COUNTS_PAGE; j++)
        m.weights[(page * AT_COUNTS_PAGE + j) * shape::KEY_STEP + row] = 0;
    if (begin >= n)
        return 0;
    const int seen = n - begin < AT_COUNTS_PAGE ? n - begin : AT_COUNTS_PAGE;
    const int bin = wants_p() ? page_distance(begin, seen) : 0;
    AT_NO_UNROLL
    for (int j = 0; j < seen; j += 4) {
        double x[4], s[4];
        AT_UNROLL
        for (int i = 0; i < 4; i++) {
            x[i] = own[(j + i) * shape::KEY_STEP];
            s[i] = a.scale * x[i];
            const int in_halo = page * AT_COUNTS_PAGE + j + i - (KEYS - reach);
            if (filters() && in_halo >= 0)
                next[row * reach + in_halo] = x[i];
            if (FULL && i < seen - j)
                most = s[i] > most || s[i] != s[i] ? s[i] : most;
        }
        if (wants(0))
            at_counts_see_four(a, bins, 0, head, x, seen - j, query, begin + j, tally[0], f.rare.field[0],
                               m.first + row);
        if (wants(1))
            at_counts_see_four(a, bins, 1, head, s, seen - j, query, begin + j, tally[1], f.rare.field[1],
                               m.first + AT_COUNTS_TILE + row);
        if (filters())
            filter_four(halo, k0, j, seen - j, s, r1, r2, bin, live);
    }
    if (wants_p())
        a.live_row(head, query)[begin / AT_COUNTS_PAGE] = (uint16_t)live;
    return live;
}

/* ---- rows and outputs, in order ---- */

/* This lane's channels of a key, in pairs: 0 past the last of either. */
template <class T, int TAPS, bool FULL>
__device__ __forceinline__ void at_counts_tile_group<T, TAPS, FULL>::load_values(const T *values, int key,
                                                                                 uint32_t (&v)[OUT_GROUPS / 2]) const {
    const bool there = key < a.keys;
    AT_UNROLL
    for (int j = 0; j < OUT_GROUPS / 2; j++) {
        const int left = a.d - out_channel() - 16 * j - 2 * (at_lane() / 4);
        v[j] = 0;
        if (a.d % 2 == 0) {
            if (there && left > 0)
                v[j] = at_load32(values + 16 * j);
        } else if (there && left > 0) {
            v[j] = (uint32_t)values[16 * j].bits;
            if (left > 1)
                v[j] |= (uint32_t)values[16 * j + 1].bits << 16;
        }
    }
}

/* Adds the products of p and values to the outputs: fma in ascending order, as the definition has them, by tensor cores. A p that
 * is 0 adds nothing as long as its value is finite, as gamma is. keys: that the tile's last query sees. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::add_outputs(int k0, int keys) {
    const int own = out_query(), c = out_channel(), lane = at_lane();
    const double gamma = (double)a.gamma[head];
    const int64_t step = (int64_t)a.hk * a.d;
    const T *values = a.v + a.key(k0 + lane % 4, kv_head) + c + 2 * (lane / 4);
    double o[2][OUT_GROUPS][4];
    double *sums = out();
    uint32_t v[2][OUT_GROUPS / 2];
    if (c >= a.d)
        return;
    AT_UNROLL
    for (int i = 0; i < 2; i++)
        load_values(values + 4 * i * step, k0 + 4 * i + lane % 4, v[i]);
    AT_UNROLL
    for (int i = 0; i < 8 * OUT_GROUPS; i++)
        o[i / (4 * OUT_GROUPS)][i / 4 % OUT_GROUPS][i % 4] = sums[i * THREADS + thread];
    AT_NO_UNROLL
    for (int t = 0; t < keys; t += 4) {
        double w[2][2], value[OUT_GROUPS];
        AT_UNROLL
        for (int j = 0; j < OUT_GROUPS; j++)
            value[j] = at_counts_value(T{ (uint16_t)(v[0][j / 2] >> j % 2 * 16) });
        AT_UNROLL
        for (int j = 0; j < OUT_GROUPS / 2; j++)
            v[0][j] = v[1][j];
        values += 4 * step;
        load_values(values + 4 * step, k0 + t + 8 + lane % 4, v[1]); /* two steps ahead */
        AT_UNROLL
        for (int i = 0; i < 2; i++) {
            load_weights(own + 16 * i, t, w[i]);
            AT_UNROLL
            for (int j = 0; j < 2; j++)
                w[i][j] *= gamma;
        }
        AT_UNROLL
        for (int j = 0; j < OUT_GROUPS; j++) {
            at_mma_1684(o[0][j], w[0], value[j], o[0][j]);
            at_mma_1684(o[1][j], w[1], value[j], o[1][j]);
        }
    }
    AT_UNROLL
    for (int i = 0; i < 8 * OUT_GROUPS; i++)
        sums[i * THREADS + thread] = o[i / (4 * OUT_GROUPS)][i / 4 % OUT_GROUPS][i % 4];
}

/* The same where values are not finite, which a p of 0 must leave out. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::add_outputs_one_by_one(int k0, int keys) {
    double *sums = out();
    const double gamma = (double)a.gamma[head];
    AT_NO_UNROLL
    for (int i = 0; i < 8 * OUT_GROUPS; i++) {
        const int own = out_query(i), channel = out_channel(i);
        double sum = sums[i * THREADS + thread];
        AT_NO_UNROLL
        for (int t = 0; t < keys && channel < a.d; t++) {
            const double weight = m.weights[t * shape::KEY_STEP + own];
            if (weight != 0)
                sum = fma(gamma * weight, at_counts_value(a.v[a.key(k0 + t, kv_head) + channel]), sum);
        }
        sums[i * THREADS + thread] = sum;
    }
}

/* Adds the tile's weights to sum `which` of each row: products with 1 round as sums do. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::add_rows(int k0, int keys, int which) {
    const int own = thread / 32 * 16, lane = at_lane();
    double *sums = m.sums + which * AT_COUNTS_TILE + own + lane / 4, s[4] = {};
    if (own >= AT_COUNTS_TILE)
        return;
    if (k0 > 0) {
        s[0] = sums[0];
        s[2] = sums[8];
    }
    AT_NO_UNROLL
    for (int t = 0; t < keys; t += 4) {
        double w[2];
        load_weights(own, t, w);
        at_mma_1684(s, w, 1.0, s);
    }
    at_sync_warp(); /* every lane has read the sums so far */
    if (lane % 4 == 0) {
        sums[0] = s[0];
        sums[8] = s[2];
    }
}

/* p log2 p takes the place of each p that is not 0. Those of a warp's pages are listed first, so that its lanes share them. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::take_logarithms(uint32_t live) {
    uint16_t *list = m.again + thread / 32 * 32 * AT_COUNTS_PAGE;
    const uint32_t before = (1u << at_lane()) - 1;
    int n = 0;
    AT_NO_UNROLL
    for (int j = 0; j < AT_COUNTS_PAGE; j++) {
        const uint32_t lanes = at_ballot(0xffffffffu, live >> j & 1);
        if (live >> j & 1)
            list[n + at_count_ones(lanes & before)] = (uint16_t)((page * AT_COUNTS_PAGE + j) * shape::KEY_STEP + row);
        n += at_count_ones(lanes);
    }
    at_sync_warp(); /* the list is there */
    AT_NO_UNROLL
    for (int i = at_lane(); i < n; i += 32) {
        double &weight = m.weights[list[i]];
        /* a numerator of 0 sends the whole warp through the division's long way, and p are often clipped to 1 */
        weight = weight == 1 ? 0.0 : weight * at_plain_log2(weight);
    }
}

/* live: bits of the thread's p that are not 0. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::weigh(int k0, int keys, uint32_t live) {
    sync(); /* every p has been written */
    if (a.wants(AT_COUNTS_OF_OUT) && f.n_odd)
        add_outputs_one_by_one(k0, keys);
    else if (a.wants(AT_COUNTS_OF_OUT))
        add_outputs(k0, keys);
    add_rows(k0, keys, 0);
    if (!a.wants(AT_COUNTS_OF_ENTROPY) && !a.wants(AT_COUNTS_OF_SUPPORT))
        return;
    sync(); /* every p has been read */
    take_logarithms(live);
    sync(); /* logarithms are there */
    add_rows(k0, keys, 1);
}

#endif
