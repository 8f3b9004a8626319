/* The search for rows: a (variant, tuple) that is not covered is fixed, the other factors are chosen one by one for what
 * they cover beside it, and the best of a few such cases becomes a row.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The greedy choice of one row at a time is that of AETG (Cohen, Dalal, Fredman, Patton 1997), over variants beside tuples:
 * a class that a variant does not take leaves it out of everything that the row covers. */
#include <stdlib.h>
#include <string.h>

#include "verify/design/design.h"

/* Candidates for a row; tries before a tuple is taken for impossible: in the first round, and in the later ones, which try
 * only what nothing known speaks against. */
enum { CANDIDATES = 10, TRIES = 32, MORE_TRIES = 96, ROUNDS = 3 };

double at_design_cost(const struct at_design_row *row) {
    return (double)__builtin_popcountll(row->takes) * (row->work + 2e5);
}

static uint64_t open_of(const struct at_design *design, int64_t tuple) {
    return ~(design->covered[tuple] | design->impossible[tuple]);
}

/* What class c of factor f would cover with the classes chosen so far. */
static int64_t worth(const struct at_design *design, int *classes, int f, int c, uint64_t who) {
    int64_t n = 0;
    const int before = classes[f];
    classes[f] = c;
    for (int64_t i = 0; i < design->n_combinations; i++) {
        const struct at_design_combination *combination = &design->combinations[i];
        int member = 0;
        for (int k = 0; k < design->strength; k++)
            member |= combination->factors[k] == f;
        const int64_t tuple = member ? at_cover_tuple(design, combination, classes) : -1;
        if (tuple >= 0)
            n += __builtin_popcountll(open_of(design, tuple) & who);
    }
    classes[f] = before;
    return n;
}

/* Does the case language take class c of factor f beside each class chosen so far? */
static int speaks(const struct at_design *design, const int *classes, int f, int c) {
    for (int g = 0; g < design->domain.n; g++)
        if (classes[g] >= 0 && !(design->speaks[f][c][g] >> classes[g] & 1))
            return 0;
    return 1;
}

/* The class of factor f that covers most for `who`, of those that leave somebody of `target`; *who are those that are
 * left. -1: none. */
static int best_class(struct at_design *design, int *classes, int f, uint64_t target, uint64_t *who) {
    int best = -1, ties = 0;
    int64_t most = -1;
    for (int c = 0; c < design->domain.factors[f].n; c++) {
        const uint64_t left = *who & design->takes[f][c];
        if (!(left & target) || !speaks(design, classes, f, c))
            continue;
        const int64_t n = worth(design, classes, f, c, left);
        ties = n == most ? ties + 1 : 1;
        if (n > most || (n == most && at_draw_below(&design->draws, ties) == 0))
            best = c;
        most = n > most ? n : most;
    }
    if (best >= 0)
        *who &= design->takes[f][best];
    return best;
}

static void shuffle(struct at_draws *draws, int *order, int n) {
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)at_draw_below(draws, i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
}

/* Chooses the factors that are -1. 0: no variant of `target` takes the ones that are fixed. */
static int choose_rest(struct at_design *design, int *classes, uint64_t target, uint64_t *who) {
    int order[AT_DOMAIN_FACTORS] = { 0 }, fixed[AT_DOMAIN_FACTORS];
    memcpy(fixed, classes, sizeof fixed);
    shuffle(&design->draws, order, design->domain.n);
    *who = ~(uint64_t)0;
    for (int f = 0; f < design->domain.n; f++)
        if (fixed[f] >= 0) {
            *who &= design->takes[f][fixed[f]];
            if (!speaks(design, fixed, f, fixed[f]))
                return 0;
        }
    if (!(*who & target))
        return 0;
    for (int i = 0; i < design->domain.n; i++) {
        const int f = order[i];
        if (classes[f] < 0 && (classes[f] = best_class(design, classes, f, target & *who, who)) < 0)
            return 0;
    }
    return 1;
}

/* The rest from a case that a variant of `target` takes. */
static void rest_of_base(struct at_design *design, int *classes, uint64_t target, uint64_t *who) {
    int v = 0;
    for (int64_t skip = at_draw_below(&design->draws, __builtin_popcountll(target)); skip >= 0; v++)
        skip -= (int64_t)(target >> v & 1);
    v--;
    *who = ~(uint64_t)0;
    for (int f = 0; f < design->domain.n; f++) {
        if (classes[f] < 0)
            classes[f] = design->base[v].classes[f];
        *who &= design->takes[f][classes[f]];
    }
}

static at_status ask_line(struct at_design *design, uint64_t who, struct at_design_row *row) {
    int speaks;
    row->takes = 0;
    AT_TRY(at_design_draw(design, row, &speaks));
    return speaks ? at_design_ask(design, who, row) : AT_OK;
}

static at_status add_row(struct at_design *design, const struct at_design_row *row) {
    struct at_design_row *grown = realloc(design->rows, (size_t)(design->n_rows + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a design");
    design->rows = grown;
    grown[design->n_rows++] = *row;
    at_cover_row(design, row, 1);
    for (int f = 0; f < design->domain.n; f++)
        design->far_done[f][row->classes[f]] |= row->takes;
    return AT_OK;
}

/* The best row that has the classes `fixed` (-1: free) and that somebody of `target` takes; *found 0 without one. */
static at_status find_row(struct at_design *design, const int *fixed, uint64_t target, int is_far, int tries,
                          struct at_design_row *best, int *found) {
    double most = 0;
    *found = 0;
    for (int i = 0, taken = 0; i < tries && taken < CANDIDATES; i++) {
        struct at_design_row row;
        uint64_t who;
        memcpy(row.classes, fixed, sizeof row.classes);
        if (i % 8 == 7 || (is_far && i % 2))
            rest_of_base(design, row.classes, target & design->has_base, &who);
        else if (!choose_rest(design, row.classes, target, &who))
            continue;
        AT_TRY(ask_line(design, who, &row));
        if (!(row.takes & target))
            continue;
        taken++;
        const double worth =
            (double)(is_far ? __builtin_popcountll(row.takes & target) : 1 + at_cover_row(design, &row, 0)) /
            at_design_cost(&row);
        if (worth > most) {
            most = worth;
            *best = row;
            *found = 1;
        }
    }
    return AT_OK;
}

/* The tuple that most variants lack; -1: none is open. */
static int64_t widest_tuple(const struct at_design *design, uint64_t all, const struct at_design_combination **of) {
    int64_t widest = -1;
    int most = 0;
    for (int64_t i = 0; i < design->n_combinations; i++)
        for (int64_t t = design->combinations[i].first; t < design->combinations[i].first + design->combinations[i].n;
             t++)
            if (__builtin_popcountll(open_of(design, t) & all) > most) {
                most = __builtin_popcountll(open_of(design, t) & all);
                widest = t;
                *of = &design->combinations[i];
            }
    return widest;
}

static void classes_of(const struct at_design *design, const struct at_design_combination *c, int64_t tuple,
                       int *classes) {
    for (int f = 0; f < AT_DOMAIN_FACTORS; f++)
        classes[f] = f < design->domain.n ? -1 : 0;
    tuple -= c->first;
    for (int i = design->strength - 1; i >= 0; i--) {
        const int n = design->domain.factors[c->factors[i]].n;
        classes[c->factors[i]] = (int)(tuple % n);
        tuple /= n;
    }
}

/* Far classes are not paired: one case each for whoever takes it, the cheapest of a few. */
static at_status add_far(struct at_design *design, int f, int class) {
    int fixed[AT_DOMAIN_FACTORS], found = 1;
    struct at_design_row row;
    for (int i = 0; i < AT_DOMAIN_FACTORS; i++)
        fixed[i] = i < design->domain.n ? -1 : 0;
    fixed[f] = class;
    for (uint64_t target; found && (target = design->takes[f][class] & ~design->far_done[f][class]) != 0;) {
        AT_TRY(find_row(design, fixed, target, 1, TRIES, &row, &found));
        if (found)
            AT_TRY(add_row(design, &row));
    }
    return AT_OK;
}

/* Those of `target` that take each of these classes, 0 where the case language refuses two of them. */
static uint64_t hopeful(const struct at_design *design, const int *fixed, uint64_t target) {
    for (int f = 0; f < design->domain.n; f++)
        if (fixed[f] >= 0)
            target = speaks(design, fixed, f, fixed[f]) ? target & design->takes[f][fixed[f]] : 0;
    return target;
}

static int64_t open_tuples(const struct at_design *design, uint64_t all) {
    int64_t n = 0;
    for (int64_t t = 0; t < design->n_tuples; t++)
        n += __builtin_popcountll(open_of(design, t) & all);
    return n;
}

static at_status cover_tuples(struct at_design *design, int round) {
    const uint64_t all = design->has_base;
    const struct at_design_combination *of = NULL;
    int fixed[AT_DOMAIN_FACTORS], found;
    struct at_design_row row = { 0 };
    int64_t left = open_tuples(design, all);
    for (int64_t tuple; (tuple = widest_tuple(design, all, &of)) >= 0;) {
        const uint64_t target = open_of(design, tuple) & all;
        classes_of(design, of, tuple, fixed);
        const uint64_t wanted = round ? hopeful(design, fixed, target) : target;
        found = 0;
        if (wanted)
            AT_TRY(find_row(design, fixed, wanted, 0, round ? MORE_TRIES : TRIES, &row, &found));
        if (found)
            AT_TRY(add_row(design, &row));
        else
            design->impossible[tuple] |= target;
        const int64_t now = open_tuples(design, all);
        at_progress_step(&design->progress, round ? 0 : left - now, 0, row.line);
        left = now;
    }
    return AT_OK;
}

static at_status search(struct at_design *design) {
    /* Far classes are in no tuple: arrays of pairs have them. */
    for (int f = 0; f < design->domain.n && design->strength < 3; f++)
        for (int c = 0; c < design->domain.factors[f].n_far; c++)
            AT_TRY(add_far(design, f, design->domain.factors[f].n + c));
    /* What a search has not found, a second one may: its cases are other ones. */
    for (int64_t before = -1, round = 0; round < ROUNDS; round++) {
        if (design->n_rows == before && !(round == 1 && design->thorough))
            break;
        before = design->n_rows;
        memset(design->impossible, 0, (size_t)design->n_tuples * sizeof *design->impossible);
        if (round == 1)
            AT_TRY(at_design_learn_again(design));
        AT_TRY(cover_tuples(design, (int)round));
    }
    return at_design_thin(design);
}

at_status at_design_search(struct at_design *design) {
    at_progress_start(&design->progress, "covering what a variant takes", open_tuples(design, design->has_base));
    const at_status status = search(design);
    at_progress_end(&design->progress);
    return status;
}
