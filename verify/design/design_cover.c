/* Which tuples of classes the rows of a design hold, for whom.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/design/design.h"

/* Factors that tuples are made of. */
static int chosen_factors(const struct at_design *design, int *chosen) {
    int n = 0;
    for (int f = 0; f < design->domain.n; f++)
        if (design->strength < 3 || design->domain.factors[f].factor->flags & AT_FACTOR_TRIPLES)
            chosen[n++] = f;
    return n;
}

/* The next ascending choice of k out of n. */
static int next_choice(int *choice, int k, int n) {
    for (int i = k - 1; i >= 0; i--)
        if (choice[i] < n - k + i) {
            choice[i]++;
            for (int j = i + 1; j < k; j++)
                choice[j] = choice[j - 1] + 1;
            return 1;
        }
    return 0;
}

at_status at_cover_open(struct at_design *design) {
    int chosen[AT_DOMAIN_FACTORS] = { 0 }, choice[AT_DESIGN_STRENGTH] = { 0 };
    const int n = chosen_factors(design, chosen), k = design->strength < n ? design->strength : n;
    if (design->strength == 3 && n < 3)
        return AT_FAIL(AT_UNSUPPORTED, "operator %s marks %d factors that meet in kernels, wanted 3 for triples",
                       design->domain.op->name, n);
    design->strength = k;
    for (int i = 0; i < k; i++)
        choice[i] = i;
    do {
        struct at_design_combination *grown =
            realloc(design->combinations, (size_t)(design->n_combinations + 1) * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for a design");
        design->combinations = grown;
        struct at_design_combination *c = &grown[design->n_combinations++];
        *c = (struct at_design_combination){ .first = design->n_tuples, .n = 1 };
        for (int i = 0; i < k; i++) {
            c->factors[i] = chosen[choice[i]];
            c->n *= design->domain.factors[c->factors[i]].n;
        }
        design->n_tuples += c->n;
    } while (next_choice(choice, k, n));
    design->covered = calloc((size_t)design->n_tuples, sizeof *design->covered);
    design->impossible = calloc((size_t)design->n_tuples, sizeof *design->impossible);
    return design->covered && design->impossible ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for a design");
}

int64_t at_cover_tuple(const struct at_design *design, const struct at_design_combination *c, const int *classes) {
    int64_t tuple = 0;
    for (int i = 0; i < design->strength; i++) {
        const int class = classes[c->factors[i]], n = design->domain.factors[c->factors[i]].n;
        if (class < 0 || class >= n)
            return -1; /* not chosen yet, or far */
        tuple = tuple * n + class;
    }
    return c->first + tuple;
}

int64_t at_cover_row(struct at_design *design, const struct at_design_row *row, int add) {
    int64_t n = 0;
    for (int64_t i = 0; i < design->n_combinations; i++) {
        const int64_t tuple = at_cover_tuple(design, &design->combinations[i], row->classes);
        if (tuple < 0)
            continue;
        n += __builtin_popcountll(row->takes & ~design->covered[tuple]);
        if (add)
            design->covered[tuple] |= row->takes;
    }
    return n;
}

void at_cover_counts(const struct at_design *design, int64_t *all, int64_t *had, int64_t *impossible) {
    *all = *had = *impossible = 0;
    for (int64_t t = 0; t < design->n_tuples; t++) {
        *all += __builtin_popcountll(design->has_base);
        *had += __builtin_popcountll(design->covered[t]);
        *impossible += __builtin_popcountll(design->impossible[t] & ~design->covered[t]);
    }
}
