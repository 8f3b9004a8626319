/* Opening a design, and asking who takes a case.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/design/design.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/language/case.h"
#include "verify/runner/launch.h"

/* What a row costs beside its multiply-adds, in such: the SIMT machine runs its threads whatever they do. */
static const double ROW_WORK = 1e4;

/* Keys per step, split or chunk that some variant of the family declares; below 16 they are no tile. */
static int granules_of(const struct at_design *design, int64_t *granules, int most) {
    int n = 0;
    for (int v = 0; v < design->n_variants; v++) {
        const struct at_numerics *x = &at_runner_variant(design->runner, design->variants[v])->numerics;
        const int64_t declared[] = { x->split, x->block, x->pv_chunk, x->pv_spread };
        for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
            int known = declared[i] < 16;
            for (int j = 0; j < n; j++)
                known |= granules[j] == declared[i];
            if (!known && n < most)
                granules[n++] = declared[i];
        }
    }
    return n;
}

at_status at_design_open(struct at_runner *runner, const struct at_family *family, int strength, uint64_t seed,
                         struct at_design *design) {
    int64_t granules[AT_DOMAIN_CLASSES];
    memset(design, 0, sizeof *design);
    design->runner = runner;
    design->strength = strength;
    design->draws.random = (struct at_random){ seed, at_random_stream(family->name, (uint64_t)strength) };
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        if (strcmp(at_runner_variant(runner, i)->family, family->name) != 0)
            continue;
        if (design->n_variants == AT_DESIGN_VARIANTS)
            return AT_FAIL(AT_UNSUPPORTED, "family %s has more than %d variants", family->name,
                           (int)AT_DESIGN_VARIANTS);
        design->variants[design->n_variants++] = i;
    }
    AT_TRY(at_domain_open(family, granules, granules_of(design, granules, AT_DOMAIN_CLASSES), &design->domain));
    return at_cover_open(design);
}

void at_design_release(struct at_design *design) {
    free(design->combinations);
    free(design->covered);
    free(design->impossible);
    free(design->rows);
    at_asked_release(&design->asked);
}

at_status at_design_draw(struct at_design *design, struct at_design_row *row, int *speaks) {
    struct at_case_list cases = { 0 };
    *speaks = 0;
    if (at_domain_line(&design->domain, row->classes, &design->draws, row->line, sizeof row->line) != AT_OK)
        return AT_OK; /* pieces that contradict each other */
    const at_status status = at_case_parse(row->line, "design", "design", &cases);
    at_case_list_release(&cases);
    *speaks = status == AT_OK;
    for (int f = 0; f < design->domain.n && *speaks; f++)
        for (int g = 0; g < design->domain.n; g++)
            design->speaks[f][row->classes[f]][g] |= 1u << row->classes[g];
    return status == AT_USAGE ? AT_OK : status;
}

static at_status ask_each(struct at_design *design, uint64_t who, const struct at_problem *problem,
                          struct at_design_row *row) {
    for (int64_t r = 0, rows = problem->op->rows(problem); r < rows; r++)
        row->work += ROW_WORK + problem->op->row_work(problem, r);
    AT_TRY(at_asked_takes(&design->asked, design->runner, design->variants, design->n_variants, problem, &row->takes));
    row->takes &= who;
    return AT_OK;
}

static at_status ask(struct at_design *design, uint64_t who, struct at_design_row *row) {
    struct at_case_list cases = { 0 };
    struct at_case_data data = { 0 };
    row->takes = 0;
    row->work = 0;
    if (!who)
        return AT_OK;
    at_status status = at_case_parse(row->line, "design", "design", &cases);
    if (status == AT_OK)
        status = at_case_outline(&cases.items[0], &data);
    if (status == AT_OK)
        status = cases.items[0].op->check(&data.problem);
    const int refused = status == AT_USAGE;
    if (status == AT_OK)
        status = ask_each(design, who, &data.problem, row);
    at_case_data_release(&data);
    at_case_list_release(&cases);
    return refused ? AT_OK : status;
}

at_status at_design_ask(struct at_design *design, uint64_t who, struct at_design_row *row) {
    AT_TRY(ask(design, who, row));
    for (int f = 0; f < design->domain.n; f++)
        design->takes[f][row->classes[f]] |= row->takes;
    for (int v = 0; v < design->n_variants; v++)
        if (row->takes >> v & 1 & ~(design->has_base >> v)) {
            design->base[v] = *row;
            design->has_base |= (uint64_t)1 << v;
        }
    return AT_OK;
}

at_status at_design_ask_line(struct at_design *design, struct at_design_row *row) {
    return ask(design, ~(uint64_t)0, row);
}
