/* Drawing random cases, and asking who takes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/random_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/design/domain_draw.h"
#include "datasets/language/case_keys.h"
#include "verify/runner/launch.h"

enum { MAX_FAMILIES = 64, MAX_DRAWS = 1000, FAR_ONE_IN = 10, ORDINARY_ONE_IN = 4 };

struct lottery {
    struct at_runner *runner;
    const char *chosen;
    struct at_domain *domains; /* of families that have a chosen variant */
    int n, tickets;            /* a family has one for each of its factors: more to choose, more cases */
};

static at_status open_family(struct lottery *lottery, const struct at_family *family) {
    int some = 0;
    for (int v = 0; v < at_runner_variant_count(lottery->runner); v++)
        some |= lottery->chosen[v] && strcmp(at_runner_variant(lottery->runner, v)->family, family->name) == 0;
    if (!some || lottery->n == MAX_FAMILIES || !at_op_find(family->op)->domain)
        return AT_OK;
    struct at_domain *domain = &lottery->domains[lottery->n];
    AT_TRY(at_domain_open(family, NULL, 0, domain));
    lottery->tickets += domain->n;
    lottery->n++;
    return AT_OK;
}

static const struct at_domain *draw_family(const struct lottery *lottery, struct at_draws *draws) {
    int64_t ticket = at_draw_below(draws, lottery->tickets);
    for (int i = 0; i < lottery->n; i++) {
        if (ticket < lottery->domains[i].n)
            return &lottery->domains[i];
        ticket -= lottery->domains[i].n;
    }
    return NULL;
}

/* A class of each factor, or a third of the time, where the factor says what lies between its classes, that. One case in four
 * has the first class, the most ordinary, of half of its factors: kernels for the values that a model has take little else. */
static void draw_classes(const struct at_domain *domain, struct at_draws *draws, int *classes) {
    const int far = at_draw_below(draws, FAR_ONE_IN) == 0, ordinary = at_draw_below(draws, ORDINARY_ONE_IN) == 0;
    for (int f = 0; f < domain->n; f++) {
        const struct at_family_factor *factor = &domain->factors[f];
        classes[f] = (int)at_draw_below(draws, factor->n);
        if (factor->factor->any && at_draw_below(draws, 3) == 0)
            classes[f] = AT_DOMAIN_ANY;
        if (ordinary && at_draw_below(draws, 2) == 0)
            classes[f] = 0;
    }
    for (int i = 0; i < 32 && far; i++) { /* one factor alone: two far ones would make a long case */
        const int f = (int)at_draw_below(draws, domain->n);
        const struct at_family_factor *factor = &domain->factors[f];
        if (factor->n_far == 0)
            continue;
        classes[f] = factor->n + (int)at_draw_below(draws, factor->n_far);
        return;
    }
}

/* Does a chosen variant take it? */
static at_status ask(const struct lottery *lottery, const struct at_case *c, int *takes) {
    struct at_case_data data = { 0 };
    at_status status = at_case_outline(c, &data);
    *takes = 0;
    for (int v = 0; status == AT_OK && !*takes && v < at_runner_variant_count(lottery->runner); v++)
        if (lottery->chosen[v] && strcmp(at_runner_variant(lottery->runner, v)->family, c->family->name) == 0)
            status = at_ask(lottery->runner, v, &data.problem, takes);
    at_case_data_release(&data);
    return status;
}

static int is_new(const struct at_case_list *list) {
    const struct at_case *last = &list->items[list->n - 1];
    for (int64_t i = 0; i < list->n - 1; i++)
        if (list->items[i].hash == last->hash && strcmp(list->items[i].id, last->id) == 0)
            return 0;
    return 1;
}

static void drop_last(struct at_case_list *list) { free(list->items[--list->n].keys); }

/* One draw; *taken 0 when it makes no case that somebody takes, or one that is there already. */
static at_status draw_case(const struct lottery *lottery, struct at_draws *draws, const char *where,
                           struct at_case_list *list, int *taken) {
    const struct at_domain *domain = draw_family(lottery, draws);
    int classes[AT_DOMAIN_FACTORS];
    char line[AT_DOMAIN_LINE];
    *taken = 0;
    draw_classes(domain, draws, classes);
    if (at_domain_line(domain, classes, draws, line, sizeof line) != AT_OK)
        return AT_OK;
    if (at_key_index(domain->op, "seed") >= 0)
        snprintf(line + strlen(line), sizeof line - strlen(line), " seed=%lld",
                 (long long)at_draw_below(draws, 1 << 20));
    const at_status parsed = at_case_parse(line, "random", where, list);
    if (parsed != AT_OK)
        return parsed == AT_USAGE ? AT_OK : parsed;
    at_status status = AT_OK;
    if (is_new(list))
        status = ask(lottery, &list->items[list->n - 1], taken);
    if (!*taken)
        drop_last(list);
    return status;
}

static at_status draw_cases(const struct lottery *lottery, int64_t n, uint64_t seed, struct at_case_list *list) {
    for (int64_t i = 0; i < n; i++) {
        struct at_draws draws = { .random = { seed, at_random_stream("random case", (uint64_t)i) } };
        char where[64];
        int taken = 0;
        snprintf(where, sizeof where, "random case %lld of seed %llu", (long long)i, (unsigned long long)seed);
        for (int tries = 0; tries < MAX_DRAWS && !taken; tries++)
            AT_TRY(draw_case(lottery, &draws, where, list, &taken));
        if (!taken)
            return AT_FAIL(AT_NOT_FOUND, "%s: no selected variant takes one of %d draws", where, (int)MAX_DRAWS);
    }
    return AT_OK;
}

at_status at_random_cases(struct at_runner *runner, const char *chosen, int64_t n, uint64_t seed,
                          struct at_case_list *list) {
    struct lottery lottery = { .runner = runner, .chosen = chosen };
    at_status status = AT_OK;
    lottery.domains = calloc(MAX_FAMILIES, sizeof *lottery.domains);
    if (!lottery.domains)
        return AT_FAIL(AT_NO_MEMORY, "no memory for domains");
    for (int i = 0; i < at_family_count(); i++)
        AT_TRY_OUT(open_family(&lottery, at_family_at(i)));
    if (lottery.n == 0)
        AT_FAIL_OUT(AT_NOT_FOUND, "no selected variant belongs to an operator that declares a domain");
    AT_TRY_OUT(draw_cases(&lottery, n, seed, list));
out:
    free(lottery.domains);
    return status;
}
