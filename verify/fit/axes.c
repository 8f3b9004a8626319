/* The values that are tried, field by field, and which of them go together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/axes.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 12 };

/* Of a field that is a number, or a format: what kernels have. Of a list of words all are tried. */
struct values {
    int field, n, of[VALUES_MAX];
};
/* clang-format off */
static const struct values numbers[] = {
    { AT_FIELD_qk_lanes, 8, { 1, 2, 4, 8, 16, 32, 64, 128 } },
    { AT_FIELD_qk_run, 6, { 0, 1, 2, 4, 8, 16 } },
    { AT_FIELD_ex2_poly3, 6, { 0, 4, 8, 12, 16, 32 } },
    { AT_FIELD_l_lanes, 9, { 0, 1, 2, 4, 8, 16, 32, 64, 128 } },
    { AT_FIELD_l_run, 5, { 0, 1, 2, 4, 8 } },
    { AT_FIELD_p, 6, { AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2, AT_TF32 } }, /* tf32 is f16 but for its range */
    { AT_FIELD_block, 8, { 0, 8, 16, 32, 64, 128, 256, 512 } },
    { AT_FIELD_pv_chunk, 5, { 1, 8, 16, 32, 64 } },
    { AT_FIELD_pv_spread, 4, { 0, 32, 64, 128 } },
    { AT_FIELD_split, 9, { 0, 8, 16, 32, 64, 128, 256, 512, 1024 } },
    { AT_FIELD_splits, 9, { 0, 2, 4, 8, 16, 32, 64, 128, 256 } },
};

/* Groups in the order in which a search takes them: what changes most first. */
static const struct at_axis groups[] = {
    { .name = "q.k", .n_fields = 4, .field = { AT_FIELD_qk_unit, AT_FIELD_qk_lanes, AT_FIELD_qk_run, AT_FIELD_qk_tree } },
    { .name = "P V", .n_fields = 3, .field = { AT_FIELD_pv_unit, AT_FIELD_pv_chunk, AT_FIELD_pv_spread } },
    { .name = "partial results", .n_fields = 2, .field = { AT_FIELD_splits, AT_FIELD_split } },
    { .name = "guard", .n_fields = 1, .field = { AT_FIELD_guard } },
    { .name = "p", .n_fields = 1, .field = { AT_FIELD_p } },
    { .name = "scale", .n_fields = 1, .field = { AT_FIELD_scale_on } },
    { .name = "FIR", .n_fields = 2, .field = { AT_FIELD_fir_order, AT_FIELD_fir_fma } },
    { .name = "gamma", .n_fields = 1, .field = { AT_FIELD_gamma_on } },
    { .name = "exponential", .n_fields = 3, .field = { AT_FIELD_exp, AT_FIELD_exp_arg, AT_FIELD_ex2_poly3 } },
    { .name = "block", .n_fields = 2, .field = { AT_FIELD_block, AT_FIELD_rescale } },
    { .name = "sum of weights", .n_fields = 3, .field = { AT_FIELD_l_lanes, AT_FIELD_l_run, AT_FIELD_l_tree } },
    { .name = "quotient", .n_fields = 1, .field = { AT_FIELD_divide } },
    { .name = "logarithm", .n_fields = 1, .field = { AT_FIELD_lse } },
    { .name = "inverse root", .n_fields = 1, .field = { AT_FIELD_rsqrt } },
    { .name = "tanh", .n_fields = 1, .field = { AT_FIELD_tanh } },
    { .name = "clamp", .n_fields = 1, .field = { AT_FIELD_clamp } },
    { .name = "zero weights", .n_fields = 1, .field = { AT_FIELD_pv_zero } },
};
/* clang-format on */

static struct values values_of(int field) {
    const struct at_numerics_field f = at_numerics_field_at(field);
    struct values out = { .field = field };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].field == field)
            return numbers[i];
    /* not p=input: on the probes of one format it is that format, and fit.c tries it where there are several */
    out.n = field == AT_FIELD_p ? AT_P_INPUT : f.words ? f.n_words : 2;
    for (int i = 0; i < out.n; i++) /* the default first: of what is not told apart it is said */
        out.of[i] = i == 0 ? f.fallback : i <= f.fallback ? i - 1 : i;
    return out;
}

/* Another way to say what a candidate with less in it says. */
static int is_redundant(const struct at_numerics *n) {
    const int chain = n->qk_unit == AT_UNIT_F64 || n->qk_unit == AT_UNIT_F32 || n->qk_unit == AT_UNIT_F32_FMA ||
                      n->qk_unit == AT_UNIT_F16_FMA;
    return (n->qk_tree != AT_TREE_SEQUENTIAL && n->qk_lanes <= 2) || (n->qk_run && n->qk_lanes == 1 && chain) ||
           (n->l_tree != AT_TREE_SEQUENTIAL && n->l_lanes <= 2) || (n->l_run > 1 && n->l_lanes <= 1) ||
           (n->l_run && !n->l_lanes) ||
           (!chain && n->qk_run == 4); /* four threads with four terms each: a step of 16 in order */
}

int at_axis_apply(const struct at_axis *axis, int i, const struct at_numerics *base, struct at_numerics *out) {
    *out = *base;
    for (int f = 0; f < axis->n_fields; f++)
        at_numerics_set(out, axis->field[f], axis->value[i][f]);
    /* What these change or are beside, one by one; a candidate's own fields are never changed. */
    static const int governed[] = { AT_FIELD_pv_zero, AT_FIELD_guard,     AT_FIELD_rescale, AT_FIELD_exp_arg,
                                    AT_FIELD_block,   AT_FIELD_pv_spread, AT_FIELD_scale_on };
    static const int value[] = { AT_PV_ZERO_MULTIPLIED, AT_GUARD_NONE, AT_RESCALE_FACTOR, AT_EXP_ARG_DIFFERENCE, 0, 0,
                                 AT_SCALE_ON_SCORE };
    for (size_t g = 0; at_numerics_check(out) != AT_OK && g < sizeof governed / sizeof *governed; g++) {
        int own = 0;
        for (int f = 0; f < axis->n_fields; f++)
            own |= axis->field[f] == governed[g];
        if (!own)
            at_numerics_set(out, governed[g], value[g]);
    }
    return at_numerics_check(out) == AT_OK && !is_redundant(out);
}

static at_status add_candidate(struct at_axis *axis, int *room, const int *value) {
    if (axis->n == *room) {
        *room = *room ? 2 * *room : 64;
        void *grown = realloc(axis->value, (size_t)*room * sizeof *axis->value);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %d candidates", *room);
        axis->value = grown;
    }
    memcpy(axis->value[axis->n++], value, sizeof *axis->value);
    return AT_OK;
}

/* The product of the values of an axis' fields, of which those without a meaning beside any others are left out later. */
static at_status add_product(struct at_axis *axis) {
    struct values of[AT_AXIS_FIELDS];
    int at[AT_AXIS_FIELDS] = { 0 }, room = 0;
    for (int f = 0; f < axis->n_fields; f++)
        of[f] = values_of(axis->field[f]);
    for (;;) {
        int value[AT_AXIS_FIELDS] = { 0 }, f = axis->n_fields - 1;
        for (int g = 0; g < axis->n_fields; g++)
            value[g] = of[g].of[at[g]];
        AT_TRY(add_candidate(axis, &room, value));
        while (f >= 0 && ++at[f] == of[f].n)
            at[f--] = 0;
        if (f < 0)
            return AT_OK;
    }
}

/* Candidates that no declaration of any kind has: they are not looked at again. */
static void thin(struct at_axis *axis) {
    const struct at_numerics base = at_numerics_default();
    struct at_numerics out;
    int kept = 0;
    for (int i = 0; i < axis->n; i++) {
        struct at_numerics any = base;
        for (int f = 0; f < axis->n_fields; f++) /* what a rescale and a guard stand beside belongs to other axes */
            if (axis->field[f] == AT_FIELD_guard)
                any.qk_unit = AT_UNIT_TC_F16;
        if (at_axis_apply(axis, i, &any, &out))
            memcpy(axis->value[kept++], axis->value[i], sizeof *axis->value);
    }
    axis->n = kept;
}

at_status at_axes_open(const struct at_problem *problem, struct at_axes *axes) {
    const struct at_op *op = problem->op;
    const uint64_t reads = op->declares & (op->declares_on ? op->declares_on(problem) : ~UINT64_C(0));
    memset(axes, 0, sizeof *axes);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        struct at_axis *axis = &axes->axis[axes->n];
        *axis = (struct at_axis){ .name = groups[g].name };
        for (int f = 0; f < groups[g].n_fields; f++)
            if (reads >> groups[g].field[f] & 1)
                axis->field[axis->n_fields++] = groups[g].field[f];
        if (!axis->n_fields)
            continue;
        axes->n++;
        AT_TRY(add_product(axis));
        thin(axis);
    }
    at_error_clear(); /* what had no meaning left its reasons there */
    return AT_OK;
}

void at_axes_release(struct at_axes *axes) {
    for (int i = 0; i < axes->n; i++)
        free(axes->axis[i].value);
    memset(axes, 0, sizeof *axes);
}

int at_axes_of(const struct at_axes *axes, int field) {
    for (int i = 0; i < axes->n; i++)
        for (int f = 0; f < axes->axis[i].n_fields; f++)
            if (axes->axis[i].field[f] == field)
                return i;
    return -1;
}
