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
    double z[4], weight[4];
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const double r0 = a.gate_input(s[i]);
        z[i] = filter(halo, k0, t + i, r0, r1, r2);
        weight[i] = a.clamp(z[i]);
        r2 = r1;
        r1 = r0;
        if (i < seen && weight[i] != 0)
            live |= 1u << (j + i);
        if (in_tile + i >= AT_COUNTS_KEYS - reach)
            next[row * reach + in_tile + i - (AT_COUNTS_KEYS - reach)] = x[i];
    }
    if (wants(2))
        at_counts_see_four(a, bins, 2, head, z, seen, query, t, tally[2], f.rare.field[2]);
    if (wants(3)) {
        at_counts_see_four(a, bins, 3, head, weight, seen, query, t, tally[3], f.rare.field[3]);
        AT_UNROLL
        for (int i = 0; i < 4; i++)
            if (live >> (j + i) & 1)
                add_mass(bin >= 0 ? bin : at_counts_distance(a.here + query - t - i), weight[i]);
    }
    AT_UNROLL
    for (int i = 0; FULL && i < 4; i++)
        if (i < seen) {
            m.weights[row * AT_COUNTS_ROW_STEP + in_tile + i] = weight[i];
            most = s[i] > most ? s[i] : most;
            has_nan = has_nan || s[i] != s[i];
        }
}

/* The page's scores, raw and scaled, its z and p; `next` gets the raw scores that the next tile needs. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::count_page(const double *halo, double *next, int k0) {
    const int begin = k0 + page * AT_COUNTS_PAGE;
    const double *own = m.scores + row * AT_COUNTS_ROW_STEP + page * AT_COUNTS_PAGE;
    double r1 = 0, r2 = 0;
    uint32_t live = 0;
    for (int j = FULL && n > begin ? n - begin : 0; FULL && j < AT_COUNTS_PAGE; j++)
        m.weights[row * AT_COUNTS_ROW_STEP + page * AT_COUNTS_PAGE + j] = 0;
    if (begin >= n)
        return;
    if (TAPS == 3 && filters() && begin > 0) {
        r1 = a.gate_input(a.scale * dot(halo, k0, begin - 1));
        r2 = a.gate_input(a.scale * dot(halo, k0, begin - 2));
    }
    const int seen = n - begin < AT_COUNTS_PAGE ? n - begin : AT_COUNTS_PAGE;
    const int bin = wants_p() ? page_distance(begin, seen) : 0;
    AT_NO_UNROLL
    for (int j = 0; j < seen; j += 4) {
        double x[4], s[4];
        AT_UNROLL
        for (int i = 0; i < 4; i++) {
            x[i] = own[j + i];
            s[i] = a.scale * x[i];
        }
        if (wants(0))
            at_counts_see_four(a, bins, 0, head, x, seen - j, query, begin + j, tally[0], f.rare.field[0]);
        if (wants(1))
            at_counts_see_four(a, bins, 1, head, s, seen - j, query, begin + j, tally[1], f.rare.field[1]);
        if (filters())
            filter_four(halo, next, k0, j, seen - j, x, s, r1, r2, bin, live);
    }
    pairs += (uint32_t)seen;
    if (!wants_p())
        return;
    element_zero += (uint32_t)(seen - at_count_ones(live));
    a.live_row(head, query)[begin / AT_COUNTS_PAGE] = (uint16_t)live;
}

/* ---- rows and outputs, in order ---- */

/* A warp has 8 queries, a lane the channels lane, lane + 32, ...; the products of p that is 0 are left out. */
template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::weigh_values(int k0, int end) {
    constexpr int AT_ONCE = 4; /* keys whose values are loaded together */
    const int own = thread / 32 * 8, lane = at_lane();
    const double gamma = (double)a.gamma[head];
    for (int t0 = 0; t0 < AT_COUNTS_KEYS && k0 + t0 < end; t0 += AT_ONCE) {
        T v[AT_ONCE][AT_COUNTS_CHANNELS_OUT];
        AT_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            AT_UNROLL
            for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
                v[u][j] =
                    k0 + t0 + u < end && lane + 32 * j < a.d ? a.v[a.key(k0 + t0 + u, kv_head) + lane + 32 * j] : T{};
        }
        AT_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            AT_UNROLL
            for (int r = 0; r < 8; r++) {
                const double weight = m.weights[(own + r) * AT_COUNTS_ROW_STEP + t0 + u];
                if (weight != 0) {
                    AT_UNROLL
                    for (int j = 0; j < AT_COUNTS_CHANNELS_OUT; j++)
                        o[FULL ? r : 0][j] += (gamma * weight) * at_counts_value(v[u][j]);
                }
            }
        }
    }
}

/* Sums in order by the threads of page 0; then p log2 p takes the place of p. */
template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::weigh(int k0, int end) {
    double *mine = m.weights + row * AT_COUNTS_ROW_STEP, *own = mine + page * AT_COUNTS_PAGE;
    sync(); /* every p has been written */
    if (page == 0) {
        weight0 = k0 == 0 ? mine[0] : weight0;
        for (int t = 0; t < AT_COUNTS_KEYS; t++)
            sum += mine[t]; /* 0 adds nothing */
    }
    if (a.wants(AT_COUNTS_OF_OUT))
        weigh_values(k0, end);
    if (!a.wants(AT_COUNTS_OF_ENTROPY) && !a.wants(AT_COUNTS_OF_SUPPORT))
        return;
    sync(); /* and has been read */
    for (int j = 0; j < AT_COUNTS_PAGE; j++)
        own[j] = own[j] == 0 ? 0.0 : own[j] * at_plain_log2(own[j]);
    sync();
    for (int t = 0; page == 0 && t < AT_COUNTS_KEYS; t++)
        terms += mine[t];
}

#endif
