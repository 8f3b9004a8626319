/* Coordinate descent over groups of fields. Sums come first, on probes that show them alone: which units survive depends on
 * nothing else, so the first two groups are right before any rounding is looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/search.h"

#include <math.h>

enum { ROUNDS = 6 };

at_status at_search_distance(struct at_search *s, const struct at_numerics *numerics, unsigned probes, double enough,
                             struct at_distance *distance) {
    *distance = (struct at_distance){ 0 };
    s->tried++;
    for (int i = 0; i < s->n_probes && distance->far <= enough; i++)
        if (probes >> i & 1)
            AT_TRY(at_probe_distance(&s->probe[i], numerics, enough, distance));
    return AT_OK;
}

/* Nearer, or as near with a model that is one value everywhere. */
static int is_better(const struct at_distance *a, const struct at_distance *b) {
    return a->far < b->far || (!(a->far > b->far) && b->width > 0 && !(a->width > 0));
}

/* The best candidate of an axis, the others as they are; *best and *distance stay where none is better. */
static at_status sweep(struct at_search *s, int axis, unsigned probes, struct at_numerics *best,
                       struct at_distance *distance) {
    const struct at_numerics base = *best;
    for (int i = 0; i < s->axes.axis[axis].n; i++) {
        struct at_numerics candidate;
        struct at_distance found;
        if (!at_axis_apply(&s->axes.axis[axis], i, &base, &candidate))
            continue;
        AT_TRY(at_search_distance(s, &candidate, probes, distance->far, &found));
        if (is_better(&found, distance)) {
            *best = candidate;
            *distance = found;
        }
    }
    return AT_OK;
}

/* The same with all candidates of a second axis beside each, until one fits; `exact`: until one fits with one value. */
static at_status sweep_two(struct at_search *s, int one, int two, unsigned probes, int exact, struct at_numerics *best,
                           struct at_distance *distance) {
    const struct at_numerics base = *best;
    for (int i = 0; i < s->axes.axis[one].n && (distance->far > 0 || (exact && distance->width > 0)); i++) {
        struct at_numerics candidate;
        struct at_distance found = *distance;
        if (!at_axis_apply(&s->axes.axis[one], i, &base, &candidate))
            continue;
        AT_TRY(sweep(s, two, probes, &candidate, &found));
        if (is_better(&found, distance)) {
            *best = candidate;
            *distance = found;
        }
    }
    return AT_OK;
}

static unsigned of_kind(const struct at_search *s, enum at_probe_kind kind) {
    unsigned probes = 0;
    for (int i = 0; i < s->n_probes; i++)
        probes |= (unsigned)(s->probe[i].kind == kind) << i;
    return probes;
}

/* An axis by the probes of a kind alone; where it comes to nothing, with all candidates of another. */
static at_status settle(struct at_search *s, int field, int other, enum at_probe_kind kind, struct at_numerics *best) {
    const int axis = at_axes_of(&s->axes, field), two = at_axes_of(&s->axes, other);
    const unsigned probes = of_kind(s, kind);
    struct at_distance distance = { .far = INFINITY };
    if (axis < 0 || !probes)
        return AT_OK;
    AT_TRY(sweep(s, axis, probes, best, &distance));
    return two >= 0 && two != axis && kind != AT_PROBE_QK ? sweep_two(s, two, axis, probes, 0, best, &distance) : AT_OK;
}

/* All but those whose sums overflow: what an overflow does is one field's, and hides the others. */
static unsigned ordinary(const struct at_search *s) { return ~of_kind(s, AT_PROBE_LARGE); }

/* Pairs of axes of which neither may be seen while the other is wrong. */
static at_status sweep_pairs(struct at_search *s, struct at_numerics *best, struct at_distance *distance) {
    static const int pairs[][2] = { { AT_FIELD_p, AT_FIELD_block },          { AT_FIELD_exp, AT_FIELD_block },
                                    { AT_FIELD_exp, AT_FIELD_l_lanes },      { AT_FIELD_scale_on, AT_FIELD_qk_unit },
                                    { AT_FIELD_divide, AT_FIELD_exp },       { AT_FIELD_block, AT_FIELD_l_lanes },
                                    { AT_FIELD_scale_on, AT_FIELD_fir_fma }, { AT_FIELD_rsqrt, AT_FIELD_qk_unit },
                                    { AT_FIELD_exp, AT_FIELD_qk_unit } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && distance->far > 0; i++) {
        const int one = at_axes_of(&s->axes, pairs[i][0]), two = at_axes_of(&s->axes, pairs[i][1]);
        if (one >= 0 && two >= 0 && one != two)
            AT_TRY(sweep_two(s, one, two, ordinary(s), 0, best, distance));
    }
    return AT_OK;
}

/* A C library's functions are known to some ulps: beside them hardly a field of the sum of weights shows, and any values of them
 * fit. A declaration whose model is one value says more, if there is one: with each logarithm, the rest anew. */
static at_status tighten(struct at_search *s, struct at_numerics *best, struct at_distance *distance) {
    const int lse = at_axes_of(&s->axes, AT_FIELD_lse), exp = at_axes_of(&s->axes, AT_FIELD_exp);
    const int sum = at_axes_of(&s->axes, AT_FIELD_l_lanes);
    for (int i = 0; lse >= 0 && i < s->axes.axis[lse].n && !(distance->far > 0) && distance->width > 0; i++) {
        struct at_numerics candidate;
        struct at_distance found = *distance;
        if (!at_axis_apply(&s->axes.axis[lse], i, best, &candidate))
            continue;
        AT_TRY(sweep_two(s, exp, sum, ordinary(s), 1, &candidate, &found));
        if (is_better(&found, distance)) {
            *best = candidate;
            *distance = found;
        }
    }
    return AT_OK;
}

/* Of candidates that fit alike the first, which is nearest to the defaults. */
static at_status simplify(struct at_search *s, struct at_numerics *best, struct at_distance *distance) {
    for (int axis = 0; axis < s->axes.n && !(distance->far > 0); axis++)
        for (int i = 0; i < s->axes.axis[axis].n; i++) {
            struct at_numerics candidate;
            struct at_distance found;
            if (!at_axis_apply(&s->axes.axis[axis], i, best, &candidate))
                continue;
            AT_TRY(at_search_distance(s, &candidate, ~0u, 0, &found));
            if (found.far > 0 || (found.width > 0 && !(distance->width > 0)))
                continue;
            *best = candidate;
            *distance = found;
            break;
        }
    return AT_OK;
}

static int is_of_sums(const struct at_search *s, int axis) {
    return axis == at_axes_of(&s->axes, AT_FIELD_qk_unit) || axis == at_axes_of(&s->axes, AT_FIELD_pv_unit) ||
           axis == at_axes_of(&s->axes, AT_FIELD_split);
}

at_status at_search_run(struct at_search *s, struct at_numerics *best, struct at_distance *distance) {
    *best = at_numerics_default();
    const int is_product = s->probe[0].data.problem.op->kind == AT_KIND_PRODUCT;
    AT_TRY(settle(s, AT_FIELD_qk_unit, AT_FIELD_split, is_product ? AT_PROBE_PRODUCT : AT_PROBE_QK, best));
    /* Weights of 1 are in every format; tensor cores take those of the inputs' alone. */
    if (at_axes_of(&s->axes, AT_FIELD_p) >= 0 && s->probe[0].data.problem.dtype != AT_F32)
        best->p = (int)s->probe[0].data.problem.dtype;
    AT_TRY(settle(s, AT_FIELD_pv_unit, AT_FIELD_split, AT_PROBE_PV, best));
    AT_TRY(settle(s, AT_FIELD_split, AT_FIELD_split, AT_PROBE_PARTS, best));
    *distance = (struct at_distance){ .far = INFINITY };
    for (int round = 0; round < ROUNDS; round++) {
        const struct at_distance before = *distance;
        for (int axis = 0; axis < s->axes.n; axis++)
            if (round > 0 || !is_of_sums(s, axis))
                AT_TRY(sweep(s, axis, ordinary(s), best, distance));
        if (round > 0 && !is_better(distance, &before) && distance->far > 0)
            AT_TRY(sweep_pairs(s, best, distance));
        if (round > 0 && !is_better(distance, &before))
            AT_TRY(tighten(s, best, distance));
        if (round > 0 && !is_better(distance, &before))
            break;
    }
    AT_TRY(at_search_distance(s, best, ~0u, INFINITY, distance));
    if (at_axes_of(&s->axes, AT_FIELD_guard) >= 0)
        AT_TRY(sweep(s, at_axes_of(&s->axes, AT_FIELD_guard), ~0u, best, distance));
    AT_TRY(simplify(s, best, distance));
    at_error_clear();
    return AT_OK;
}

at_status at_search_one_change(struct at_search *s, const struct at_numerics *from, const struct at_distance *off,
                               int *axis, struct at_numerics *better, struct at_distance *distance) {
    *axis = -1;
    *distance = *off;
    *better = *from;
    for (int a = 0; a < s->axes.n; a++) {
        struct at_numerics found = *from;
        struct at_distance far = *distance;
        AT_TRY(sweep(s, a, ~0u, &found, &far));
        if (far.far < distance->far) {
            *axis = a;
            *better = found;
            *distance = far;
        }
    }
    at_error_clear();
    return AT_OK;
}
