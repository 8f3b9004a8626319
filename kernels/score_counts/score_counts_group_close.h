/* A group's walk over the keys of a tile, and its end: statistics of rows, outputs, the words that all threads join.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_KERNEL_SCORE_COUNTS_GROUP_CLOSE_H
#define AT_KERNEL_SCORE_COUNTS_GROUP_CLOSE_H

#include "kernels/score_counts/score_counts_group_page.h"

/* ---- rows and outputs ---- */

/* By the first thread of each row; the largest scores of all its pages pass through free shared memory. */
template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::statistics() {
    const bool entropy = a.wants(AT_COUNTS_OF_ENTROPY) || a.wants(AT_COUNTS_OF_SUPPORT);
    sync(); /* every sum has been taken, and the words have been joined */
    m.scores[row * shape::PAGES + page] = most;
    sync();
    if (thread < AT_COUNTS_TILE && n > 0)
        a.count_row(head, at_counts_max_of_pages<shape::PAGES>(m.scores + row * shape::PAGES), m.sums[row],
                    m.sums[2 * AT_COUNTS_TILE + row], entropy ? m.sums[AT_COUNTS_TILE + row] : 0);
}

/* Returns the number of outputs that this thread counted: those that it added up. */
template <class T, int TAPS, bool FULL> __device__ uint32_t at_counts_tile_group<T, TAPS, FULL>::outputs() {
    uint32_t *plane = a.plane(AT_COUNTS_OF_OUT, head), count = 0;
    AT_NO_UNROLL
    for (int i = 0; plane && i < 8 * OUT_GROUPS; i++) {
        const int own = first + out_query(i);
        if (own >= a.queries || out_channel(i) >= a.d)
            continue;
        at_counts_see_one(a, plane, out()[i * THREADS + thread], own, -1, tally[4], f.rare.field[4],
                          m.first + 4 * AT_COUNTS_TILE + own - first);
        count++;
    }
    return count;
}

/* ---- words ---- */

/* What the threads of a tile join at its end: sums of 32 bits, then of every stage the largest and the first. */
enum {
    AT_COUNTS_G_ELEMENT_ZERO,
    AT_COUNTS_G_TILE_ZERO,
    AT_COUNTS_G_PAIRS,
    AT_COUNTS_G_OUTPUTS,
    AT_COUNTS_G_ZERO,
    AT_COUNTS_G_MAX = AT_COUNTS_G_ZERO + AT_COUNTS_STAGES,
    AT_COUNTS_G_FIRST = AT_COUNTS_G_MAX + AT_COUNTS_STAGES,
    AT_COUNTS_G_WORDS = AT_COUNTS_G_FIRST + AT_COUNTS_STAGES
};

/* Pages of the tile where every p is 0, of those that this thread looks at; adds their pairs whose p is not. The last row sees
 * the most keys. */
template <class T, int TAPS, bool FULL>
__device__ uint32_t at_counts_tile_group<T, TAPS, FULL>::dead_pages(uint32_t &live_pairs) const {
    const int last = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE - 1 : a.queries - 1;
    const int pages = (a.visible(last) + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    uint32_t dead = 0;
    for (int i = thread; wants_p() && i < pages; i += THREADS) {
        uint32_t live = 0;
        for (int own = first; own <= last; own++)
            if (i * AT_COUNTS_PAGE < a.visible(own)) {
                const uint32_t of_row = a.live_row(head, own)[i];
                live |= of_row;
                live_pairs += (uint32_t)at_count_ones(of_row);
            }
        dead += live == 0;
    }
    return dead;
}

/* Joins a warp's words as word `word` of a tile. */
static __device__ inline uint64_t at_counts_join_warp(int word, uint64_t mine) {
    for (int step = 16; step > 0; step /= 2) {
        const uint32_t low = at_shuffle_xor(0xffffffffu, (uint32_t)mine, step),
                       high = at_shuffle_xor(0xffffffffu, (uint32_t)(mine >> 32), step);
        mine = at_counts_join(word, mine, (uint64_t)high << 32 | low);
    }
    return mine;
}

/* How word i of those above is joined, as a word of a tile. */
static __device__ inline int at_counts_word_kind(int i) {
    return i < AT_COUNTS_G_MAX ? 0 : AT_COUNTS_W_LEDGER + (i < AT_COUNTS_G_FIRST ? AT_COUNTS_W_MAX : AT_COUNTS_W_FIRST);
}

/* Stores the tile's words, by all of its threads, and adds the zeros to their slots. count: this thread's outputs. */
template <class T, int TAPS, bool FULL> __device__ void at_counts_tile_group<T, TAPS, FULL>::close(uint32_t count) {
    static_assert(memory::TILE >= AT_COUNTS_G_WORDS * WARPS, "words fit where scores stood");
    uint64_t *joined = reinterpret_cast<uint64_t *>(m.scores); /* [AT_COUNTS_G_WORDS][WARPS] */
    sync(); /* every bit of p and every score has been read, every first place is there */
    uint32_t live_pairs = 0;
    const uint32_t dead = dead_pages(live_pairs);
    /* sums alone are right: a thread has counted other pairs than it has looked at */
    uint64_t mine[AT_COUNTS_G_WORDS] = { wants_p() ? (uint64_t)pairs() - live_pairs : 0, dead, pairs(), count };
    AT_UNROLL
    for (int s = 0; s < AT_COUNTS_STAGES; s++) {
        const uint32_t of_row = m.first[s * AT_COUNTS_TILE + row];
        mine[AT_COUNTS_G_ZERO + s] = tally[s].zero;
        mine[AT_COUNTS_G_MAX + s] = tally[s].most;
        mine[AT_COUNTS_G_FIRST + s] = of_row ? at_counts_place(query, (int)~of_row - 1) : AT_COUNTS_NOWHERE;
    }
    AT_UNROLL
    for (int i = 0; i < AT_COUNTS_G_WORDS; i++) {
        const uint64_t word = at_counts_join_warp(at_counts_word_kind(i), mine[i]);
        if (at_lane() == 0)
            joined[i * WARPS + thread / 32] = word;
    }
    sync();
    store_words(joined);
}

template <class T, int TAPS, bool FULL>
__device__ void at_counts_tile_group<T, TAPS, FULL>::store_words(const uint64_t *joined) {
    uint64_t *words = a.words + (int64_t)(head * a.tiles + tile) * AT_COUNTS_WORDS;
    if (thread < AT_COUNTS_DISTANCES) {
        words[AT_COUNTS_W_MASS + thread] = (uint64_t)f.mass[AT_COUNTS_DISTANCES + thread] << 32 | f.mass[thread];
        f.mass[thread] = f.mass[AT_COUNTS_DISTANCES + thread] = 0;
    }
    if (thread >= AT_COUNTS_G_WORDS)
        return;
    const int s = (thread - AT_COUNTS_G_ZERO) % AT_COUNTS_STAGES, stage = AT_COUNTS_W_LEDGER + s * AT_COUNTS_W_STAGE;
    uint64_t x = joined[thread * WARPS];
    for (int w = 1; w < WARPS; w++)
        x = at_counts_join(at_counts_word_kind(thread), x, joined[thread * WARPS + w]);
    if (thread >= AT_COUNTS_G_MAX) {
        words[stage + (thread < AT_COUNTS_G_FIRST ? AT_COUNTS_W_MAX : AT_COUNTS_W_FIRST)] = x;
    } else if (thread >= AT_COUNTS_G_ZERO) {
        uint32_t *field = f.rare.field[s], *plane = a.plane(s < 4 ? AT_COUNTS_OF_RAW + s : AT_COUNTS_OF_OUT, head);
        for (int j = AT_COUNTS_COUNT + 1; j < AT_COUNTS_W_MAX; j++) {
            words[stage + j] = field[j] + (j == AT_COUNTS_ZERO ? x : 0);
            field[j] = 0;
        }
        if (plane && x)
            at_atomic_add(plane + a.codes.infinity + 1, (uint32_t)x);
    } else if (thread < AT_COUNTS_G_PAIRS) {
        words[thread == AT_COUNTS_G_ELEMENT_ZERO ? AT_COUNTS_W_ELEMENT_ZERO : AT_COUNTS_W_TILE_ZERO] = x;
    } else {
        for (int i = 0; i < AT_COUNTS_STAGES; i++)
            if ((i == AT_COUNTS_STAGES - 1) == (thread == AT_COUNTS_G_OUTPUTS))
                words[AT_COUNTS_W_LEDGER + i * AT_COUNTS_W_STAGE + AT_COUNTS_COUNT] = wants(i) ? x : 0;
    }
}

/* ---- a tile ---- */

/* A whole tile of queries. steps: tiles of scores that the group has counted since its last sweep; returns it anew. */
template <class T, int TAPS, bool FULL> __device__ int at_counts_tile_group<T, TAPS, FULL>::work(int steps) {
    const int last = first + AT_COUNTS_TILE < a.queries ? first + AT_COUNTS_TILE - 1 : a.queries - 1;
    const int end = a.visible(last), reach = AT_COUNTS_TILE * (taps() - 1);
    constexpr int SWEEP = AT_COUNTS_SWEEP<shape>;
    count_queries();
    for (int k0 = 0, turn = 0; k0 < end; k0 += KEYS, turn = 1 - turn) {
        multiply(k0, steps == SWEEP);
        steps = steps == SWEEP ? 1 : steps + 1;
        repeat(k0);
        const uint32_t live = count_page(m.halo + turn * reach, m.halo + (1 - turn) * reach, k0);
        if (FULL)
            weigh(k0, end - k0 < KEYS ? end - k0 : KEYS, live);
    }
    give_mass();
    close(FULL ? outputs() : 0);
    if (FULL)
        statistics();
    return steps;
}

#endif
