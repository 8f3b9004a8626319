/* Which classes a variant takes at all, by asking: a search that knows does not try the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/design/design.h"

#include <string.h>

/* Cases tried to find one that a variant takes, and to find one with a class. The second time is hard: rotary kernels that load
 * 16 bytes take rows of 12 channels, not of 2 or 6, in f32 alone and with neighbours as pairs. */
enum { TRIES_FIRST = 600, TRIES_AGAIN = 400, TRIES_PAIR = 24 };

static uint64_t everybody(const struct at_design *design) {
    return design->n_variants == 64 ? ~(uint64_t)0 : ((uint64_t)1 << design->n_variants) - 1;
}

static at_status try_classes(struct at_design *design, uint64_t who, struct at_design_row *row) {
    int speaks;
    row->takes = 0;
    AT_TRY(at_design_draw(design, row, &speaks));
    return speaks ? at_design_ask(design, who, row) : AT_OK;
}

/* Half of the other classes are ordinary ones. */
static at_status learn_pair(struct at_design *design, int f, int c, int g, int d) {
    int speaks;
    for (int i = 0; i < TRIES_PAIR && !(design->speaks[f][c][g] >> d & 1); i++) {
        struct at_design_row row = { 0 };
        for (int k = 0; k < design->domain.n && i > 0; k++)
            if (at_draw_below(&design->draws, 2))
                row.classes[k] = (int)at_draw_below(&design->draws, design->domain.factors[k].n);
        row.classes[f] = c;
        row.classes[g] = d;
        AT_TRY(at_design_draw(design, &row, &speaks));
    }
    return AT_OK;
}

/* Which pairs of classes the case language takes. */
static at_status learn_pairs(struct at_design *design) {
    const struct at_family_factor *factors = design->domain.factors;
    for (int f = 0; f < design->domain.n; f++)
        for (int g = 0; g < f; g++)
            for (int c = 0; c < factors[f].n + factors[f].n_far; c++) {
                for (int d = 0; d < factors[g].n + factors[g].n_far; d++)
                    AT_TRY(learn_pair(design, f, c, g, d));
                at_progress_step(&design->progress, 1, 0, "pairs of classes");
            }
    return AT_OK;
}

/* Half of the classes are ordinary ones, which most variants take. */
static at_status find_bases(struct at_design *design) {
    const uint64_t all = everybody(design);
    for (int i = 0; i < TRIES_FIRST && design->has_base != all; i++) {
        struct at_design_row row = { 0 };
        for (int f = 0; f < design->domain.n && i > 0; f++)
            if (at_draw_below(&design->draws, 2))
                row.classes[f] = (int)at_draw_below(&design->draws, design->domain.factors[f].n);
        AT_TRY(try_classes(design, all & ~design->has_base, &row));
    }
    return AT_OK;
}

/* Class c of factor f beside class d of factor g, the rest as in a case that variant v takes. */
static at_status learn_beside(struct at_design *design, int v, int f, int c, int g, int d) {
    struct at_design_row row = design->base[v];
    row.classes[g] = d;
    row.classes[f] = c;
    return try_classes(design, everybody(design) & ~design->takes[f][c], &row);
}

/* One class into cases that variants are known to take; then with each class of each other factor in turn, one of which may
 * have been in the way. */
static at_status learn_class(struct at_design *design, int f, int class) {
    for (int v = 0; v < design->n_variants; v++) {
        if (!(design->has_base >> v & 1) || design->takes[f][class] >> v & 1)
            continue;
        AT_TRY(learn_beside(design, v, f, class, f, class));
        for (int g = 0; g < design->domain.n; g++)
            for (int d = 0; d < design->domain.factors[g].n && !(design->takes[f][class] >> v & 1); d++)
                if (g != f && d != design->base[v].classes[g])
                    AT_TRY(learn_beside(design, v, f, class, g, d));
    }
    return AT_OK;
}

/* The same with more of the other factors changed: what several of a base's classes are in the way of. */
static at_status learn_class_again(struct at_design *design, int f, int class) {
    for (int v = 0; v < design->n_variants; v++)
        for (int i = 0; i < TRIES_AGAIN && design->has_base >> v & 1 && !(design->takes[f][class] >> v & 1); i++) {
            struct at_design_row row = design->base[v];
            for (int g = 0; g < design->domain.n; g++)
                if (at_draw_below(&design->draws, 4) == 0)
                    row.classes[g] = (int)at_draw_below(&design->draws, design->domain.factors[g].n);
            row.classes[f] = class;
            AT_TRY(try_classes(design, everybody(design) & ~design->takes[f][class], &row));
        }
    return AT_OK;
}

at_status at_design_learn_again(struct at_design *design) {
    for (int f = 0; f < design->domain.n; f++)
        for (int c = 0; c < design->domain.factors[f].n; c++) {
            AT_TRY(learn_class_again(design, f, c));
            at_progress_step(&design->progress, 0, 0, "classes of variants");
        }
    return AT_OK;
}

static at_status learn_all(struct at_design *design) {
    AT_TRY(learn_pairs(design));
    AT_TRY(find_bases(design));
    for (int f = 0; f < design->domain.n; f++)
        for (int c = 0; c < design->domain.factors[f].n + design->domain.factors[f].n_far; c++) {
            AT_TRY(learn_class(design, f, c));
            at_progress_step(&design->progress, 1, 0, "classes of variants");
        }
    return AT_OK;
}

at_status at_design_learn(struct at_design *design) {
    int64_t steps = 0;
    for (int f = 0; f < design->domain.n; f++)
        steps += (int64_t)(design->domain.factors[f].n + design->domain.factors[f].n_far) * (f + 1);
    at_progress_start(&design->progress, "asking what is taken", steps);
    const at_status status = learn_all(design);
    at_progress_end(&design->progress);
    return status;
}
