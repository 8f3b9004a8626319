/* Which declarations neighbour a declaration.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/neighbours.h"

#include <string.h>

/* Units that add term by term: tensor cores take the terms of a step from the runs of four threads. */
static int is_chain(int unit) {
    return unit == AT_UNIT_F64 || unit == AT_UNIT_F32 || unit == AT_UNIT_F32_FMA || unit == AT_UNIT_F16_FMA;
}

/* A lane of its own for all terms, or two, add up to the same however they are joined; one takes all terms in a run. */
static int means_the_same(const struct at_numerics *n, int field) {
    return (field == AT_FIELD_qk_tree && n->qk_lanes <= 2) ||
           (field == AT_FIELD_qk_run && n->qk_lanes == 1 && (is_chain(n->qk_unit) || n->qk_run == 0)) ||
           (field == AT_FIELD_l_tree && n->l_lanes <= 2) || (field == AT_FIELD_l_run && n->l_lanes <= 1);
}

static void add(const struct at_numerics *declared, const struct at_numerics *candidate, struct at_neighbours *out) {
    if (out->n == AT_MAX_NEIGHBOURS || memcmp(declared, candidate, sizeof *declared) == 0)
        return;
    for (int i = 0; i < out->n; i++)
        if (memcmp(&out->of[i], candidate, sizeof *candidate) == 0)
            return;
    out->of[out->n++] = *candidate;
}

/* The candidate as it is, or with the fields that its units govern at the first values that go with them. */
static void add_with_unit(const struct at_numerics *declared, struct at_numerics candidate, int field,
                          struct at_neighbours *out) {
    static const int chunks[] = { 1, 16, 32 };
    at_status status = at_numerics_check(&candidate);
    if (field == AT_FIELD_qk_unit && status != AT_OK) {
        candidate.qk_lanes = 1;
        candidate.qk_run = 0;
        candidate.qk_tree = AT_TREE_SEQUENTIAL;
        status = at_numerics_check(&candidate);
    }
    if (field == AT_FIELD_exp && status != AT_OK) { /* only ex2 takes its argument in another form */
        candidate.exp_arg = AT_EXP_ARG_DIFFERENCE;
        candidate.ex2_poly3 = 0;
        status = at_numerics_check(&candidate);
    }
    if ((field == AT_FIELD_qk_unit || field == AT_FIELD_pv_unit) && status != AT_OK) {
        candidate.guard = AT_GUARD_NONE;
        status = at_numerics_check(&candidate);
    }
    for (int i = 0; field == AT_FIELD_pv_unit && status != AT_OK && i < 3; i++) {
        candidate.pv_chunk = chunks[i];
        candidate.pv_zero = chunks[i] > 1 ? AT_PV_ZERO_MULTIPLIED : declared->pv_zero;
        status = at_numerics_check(&candidate);
    }
    if (status == AT_OK)
        add(declared, &candidate, out);
}

static void add_value(const struct at_numerics *declared, int field, int value, struct at_neighbours *out) {
    struct at_numerics candidate = *declared;
    at_numerics_set(&candidate, field, value);
    add_with_unit(declared, candidate, field, out);
}

static void add_numbers(const struct at_numerics *declared, int field, int value, struct at_neighbours *out) {
    /* 0 of these means "not cut at all" */
    const int may_be_none = field == AT_FIELD_split || field == AT_FIELD_block || field == AT_FIELD_qk_run ||
                            field == AT_FIELD_ex2_poly3 || field == AT_FIELD_pv_spread;
    static const int some_runs[] = { 1, 2, 4, 8 }, some_keys[] = { 64, 256, 1024, 32 }, some_chunks[] = { 8, 16, 32 };
    const int *some = field == AT_FIELD_qk_run || field == AT_FIELD_ex2_poly3 ? some_runs : some_keys;
    if (value > 0) {
        add_value(declared, field, value / 2, out);
        add_value(declared, field, value * 2, out);
        /* one unit: a chunk is the least by which a split or block can be longer */
        const int unit =
            field == AT_FIELD_split || field == AT_FIELD_block || field == AT_FIELD_pv_spread ? declared->pv_chunk : 1;
        add_value(declared, field, value + unit, out);
        if (value > unit)
            add_value(declared, field, value - unit, out);
    }
    if (may_be_none && value > 0)
        add_value(declared, field, 0, out);
    for (int i = 0; value == 0 && may_be_none && i < 4; i++)
        add_value(declared, field, some[i], out);
    for (int i = 0; field == AT_FIELD_pv_chunk && i < 3; i++)
        add_value(declared, field, some_chunks[i], out);
}

void at_neighbours(const struct at_numerics *declared, int field, struct at_neighbours *out) {
    const struct at_numerics_field f = at_numerics_field_at(field);
    const int value = at_numerics_get(declared, field);
    out->n = 0;
    if (means_the_same(declared, field))
        return;
    if (!f.words) {
        add_numbers(declared, field, value, out);
        return;
    }
    for (int i = 0; i < f.n_words; i++)
        if (field != AT_FIELD_p || (i != AT_F64 && i != AT_P_INPUT && at_format_info((enum at_format)i)->bytes >= 2))
            add_value(declared, field, i, out);
}
