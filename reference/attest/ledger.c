/* The overflow ledger: counting, merging, reading.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/ledger.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Ends of FP16's range, and of what rounds into it (ties to even). */
static const double f16_max = 65504.0;
static const double f16_to_inf = 65520.0; /* midpoint of 65504 and 65536: the tie goes to Inf */
static const double f16_normal_min = 0x1p-14;
static const double f16_to_zero = 0x1p-25; /* half the smallest subnormal: the tie goes to 0 */

static const struct {
    const char *name, *meaning;
} stages[AT_STAGE_COUNT] = {
#define X(name, meaning) { #name, meaning },
    AT_STAGE_LIST(X)
#undef X
};

const char *at_stage_name(enum at_stage stage) {
    return (unsigned)stage < AT_STAGE_COUNT ? stages[stage].name : "unknown";
}

const char *at_stage_meaning(enum at_stage stage) {
    return (unsigned)stage < AT_STAGE_COUNT ? stages[stage].meaning : "not a stage of attest";
}

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

int at_place_compare(const struct at_place *a, const struct at_place *b) {
    int by_field[] = { order(a->b, b->b), order(a->h, b->h), order(a->q, b->q), order(a->k, b->k),
                       order(a->step, b->step) };
    for (size_t i = 0; i < sizeof by_field / sizeof by_field[0]; i++)
        if (by_field[i])
            return by_field[i];
    return 0;
}

void at_ledger_init(struct at_ledger *ledger) { memset(ledger, 0, sizeof *ledger); }

/* Keeps the earlier of the two places. The order of notes must not matter: threads see any order. */
static void keep_first(int *has, struct at_place *first, const struct at_place *place) {
    if (!*has || at_place_compare(place, first) < 0) {
        *has = 1;
        *first = *place;
    }
}

void at_ledger_note(struct at_ledger *ledger, enum at_stage stage, double value, const struct at_place *place) {
    struct at_ledger_row *row = &ledger->stage[stage];
    double size = fabs(value);
    if (at_ledger_note_usual(ledger, stage, value))
        return;
    row->count++;
    if (isnan(value)) {
        row->nan++;
        keep_first(&row->has_first, &row->first, place);
        return;
    }
    row->zero += size == 0;
    row->inf += isinf(value) != 0;
    row->above_65504 += size > f16_max;
    row->to_inf += size >= f16_to_inf;
    row->subnormal += size > 0 && size < f16_normal_min;
    row->flushed += size > 0 && size <= f16_to_zero;
    if (isfinite(value) && size > row->max_abs)
        row->max_abs = size;
    if (size >= f16_to_inf)
        keep_first(&row->has_first, &row->first, place);
}

static void merge_row(struct at_ledger_row *into, const struct at_ledger_row *from) {
    into->count += from->count;
    into->zero += from->zero;
    into->nan += from->nan;
    into->inf += from->inf;
    into->above_65504 += from->above_65504;
    into->to_inf += from->to_inf;
    into->subnormal += from->subnormal;
    into->flushed += from->flushed;
    if (from->max_abs > into->max_abs)
        into->max_abs = from->max_abs;
    if (from->has_first)
        keep_first(&into->has_first, &into->first, &from->first);
}

void at_ledger_merge(struct at_ledger *into, const struct at_ledger *from) {
    for (int i = 0; i < AT_STAGE_COUNT; i++)
        merge_row(&into->stage[i], &from->stage[i]);
    into->inf_made += from->inf_made;
    into->inf_cancelled += from->inf_cancelled;
    into->clamped_low += from->clamped_low;
    into->clamped_high += from->clamped_high;
    into->laundered += from->laundered;
    if (from->has_laundered)
        keep_first(&into->has_laundered, &into->first_laundered, &from->first_laundered);
}

double at_ledger_headroom(const struct at_ledger_row *row) {
    if (row->nan + row->inf >= row->count)
        return NAN;
    return row->max_abs > 0 ? log2(f16_max / row->max_abs) : INFINITY;
}
