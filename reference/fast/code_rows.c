/* Rows of values to slots of a histogram of 16-bit codes, and to rows of the ledger.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rounding is integer arithmetic on a double's bits: in the normal range of the format half a last place is added below
 * the kept bits (less one where the last kept bit is 0: ties to even); below it, adding a power of two whose last place
 * is the format's smallest subnormal lets the addition itself round. Both are computed, and one is taken. */
#include <math.h>
#include <string.h>

#include "attest/plain_math.h"
#include "fast/score_rows.h"
#include "fast/vector.h"

static const int64_t double_infinity = 0x7ff0000000000000;

void at_fast_codes_init(enum at_format format, struct at_fast_codes *codes) {
    const struct at_format_info *info = at_format_info(format);
    codes->shift = 53 - info->precision;
    codes->normal = (int64_t)(1023 + info->emin) << 52;
    codes->bias = (int64_t)(1022 + info->emin) << 52;
    codes->infinity = (int64_t)(info->emax - info->emin + 2) << (info->precision - 1);
    codes->lift = ldexp(1.0, info->emin - info->precision + 53);
    codes->magic = at_plain_bits(codes->lift);
    codes->bins = (uint16_t)(2 * codes->infinity + 2);
}

/* a where the condition (0 or 1) holds, without the branch that a compiler makes of ?: here. */
static inline int64_t take(int64_t condition, int64_t a, int64_t b) { return b ^ ((a ^ b) & -condition); }

AT_CLONES
void at_fast_slots(const struct at_fast_codes *codes, int64_t n, const double *restrict x, uint32_t *restrict slots) {
    const int64_t bias = codes->bias, normal = codes->normal, top = codes->infinity, magic = codes->magic;
    const uint64_t half = ((uint64_t)1 << (codes->shift - 1)) - 1;
    const int64_t inf = double_infinity;
    const int64_t nan_slot = codes->bins, plus_slot = nan_slot + 1, minus_slot = nan_slot + 2;
    const double lift = codes->lift;
    const int shift = codes->shift;
    for (int64_t t = 0; t < n; t++) {
        const int64_t bits = at_plain_bits(x[t]), low = at_plain_bits(fabs(x[t]) + lift);
        const int64_t size = bits & 0x7fffffffffffffff;
        const uint64_t above = (uint64_t)(size - bias); /* of no use where the size is less */
        const int64_t rounded = (int64_t)((above + half + (above >> shift & 1)) >> shift);
        const int64_t code = take(size < normal, low - magic, rounded);
        const int64_t at_top = code >= top, finite = size < inf;
        const int64_t held = take(at_top, top, code);
        const int64_t plus = take(at_top & finite, plus_slot, top + 1 + held);
        const int64_t minus = take(at_top & finite, minus_slot, top - held);
        const int64_t slot = take(size > inf, nan_slot, take(bits < 0, minus, plus));
        slots[t] = (uint32_t)slot;
    }
}

void at_fast_count(int64_t n, const uint32_t *slots, uint32_t *counts) {
    int64_t t = 0;
    for (; t + 4 <= n; t += 4) {
        counts[slots[t]]++;
        counts[slots[t + 1]]++;
        counts[slots[t + 2]]++;
        counts[slots[t + 3]]++;
    }
    for (; t < n; t++)
        counts[slots[t]]++;
}

/* What a row without anything near the end of the range adds. */
struct quiet {
    int64_t zero, subnormal, flushed, most;
};

AT_CLONES
static void survey(int64_t n, const double *restrict x, struct quiet *q) {
    const int64_t normal_min = (int64_t)(1023 - 14) << 52, to_zero = (int64_t)(1023 - 25) << 52;
    int64_t zero = 0, below = 0, flushed = 0, most = 0;
    for (int64_t t = 0; t < n; t++) {
        int64_t bits;
        memcpy(&bits, &x[t], sizeof bits);
        bits &= 0x7fffffffffffffff;
        zero += bits == 0;
        below += bits < normal_min;
        flushed += bits <= to_zero;
        most = bits > most ? bits : most;
    }
    *q = (struct quiet){ zero, below - zero, flushed - zero, most };
}

static void note_each(int64_t n, const double *x, const struct at_place *first, int step_k, struct at_ledger_row *row) {
    struct at_ledger ledger, so_far;
    at_ledger_init(&ledger);
    at_ledger_init(&so_far);
    for (int64_t t = 0; t < n; t++) {
        struct at_place place = *first;
        place.k += step_k ? t : 0;
        at_ledger_note(&ledger, AT_STAGE_score, x[t], &place);
    }
    so_far.stage[AT_STAGE_score] = *row;
    at_ledger_merge(&so_far, &ledger);
    *row = so_far.stage[AT_STAGE_score];
}

void at_fast_ledger_row(int64_t n, const double *x, const struct at_place *first, int step_k,
                        struct at_ledger_row *row) {
    struct quiet q;
    double most;
    survey(n, x, &q);
    memcpy(&most, &q.most, sizeof most);
    if (!(most <= 65504)) { /* NaN's bits are the largest */
        note_each(n, x, first, step_k, row);
        return;
    }
    row->count += (uint64_t)n;
    row->zero += (uint64_t)q.zero;
    row->subnormal += (uint64_t)q.subnormal;
    row->flushed += (uint64_t)q.flushed;
    if (most > row->max_abs)
        row->max_abs = most;
}
