/* Selection by globs, and the order of jobs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/plan.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "attest/decoy.h"
#include "verify/plan/case_globs.h"
#include "verify/plan/nearest.h"
#include "verify/plan/random_cases.h"
#include "verify/plan/shards.h"

int at_selects_variant(const struct at_selection *s, const struct at_variant *v, char *hits) {
    char name[192];
    int selected = s->n_globs == 0;
    snprintf(name, sizeof name, "%s/%s", v->family, v->name);
    for (int i = 0; i < s->n_globs; i++)
        if (fnmatch(s->globs[i], name, FNM_EXTMATCH) == 0) {
            if (hits)
                hits[i] = 1;
            selected = 1;
        }
    return selected;
}

static int case_selected(const struct at_selection *s, struct at_case_globs *globs, const struct at_case *c) {
    char name[AT_CASE_ID_BYTES + 40];
    if (s->case_line)
        return 1;
    snprintf(name, sizeof name, "%s:%s", c->role, c->id);
    return at_case_globs_match(globs, name);
}

static void folder_of(const struct at_selection *s, char *dir, size_t size) {
    snprintf(dir, size, "%s/%s", at_datasets_dir(), s->cases_dir ? s->cases_dir : "cases");
}

at_status at_selection_globs(const struct at_selection *s, struct at_case_globs *globs) {
    char dir[1024];
    folder_of(s, dir, sizeof dir);
    return at_case_globs_open(dir, s->cases_glob, globs);
}

static at_status load_cases(const struct at_selection *s, struct at_runner *runner, const char *chosen,
                            struct at_plan *plan, struct at_case_globs *globs) {
    struct at_case_list *cases = &plan->cases;
    if (s->random) {
        AT_TRY(at_case_globs_open("", "random:*", globs));
        return at_random_cases(runner, chosen, s->random, s->random_seed, cases);
    }
    if (s->case_line)
        return at_case_parse(s->case_line, "line", "command line", cases);
    char dir[1024];
    folder_of(s, dir, sizeof dir);
    AT_TRY(at_selection_globs(s, globs));
    plan->borrows = s->loaded && !globs->random; /* a list that grows is its own */
    if (plan->borrows)
        *cases = *s->loaded;
    else
        AT_TRY(at_case_load_dir(dir, cases));
    return globs->random ? at_random_cases(runner, chosen, globs->random, globs->random_seed, cases) : AT_OK;
}

/* A line of a selection that has come to match nothing would let its cases go unnoticed. */
static at_status check_globs(const struct at_case_globs *globs, const struct at_case_list *cases) {
    for (int i = 0; i < globs->n; i++) {
        const struct at_case_glob *glob = &globs->items[i];
        if (!glob->hits && !glob->line)
            return at_no_case(cases, glob->text);
        if (!glob->hits)
            return AT_FAIL(AT_NOT_FOUND, "%s:%d: no case matches '%s'", globs->path, glob->line, glob->text);
    }
    return AT_OK;
}

/* The selected variants that belong to the case's family; their indices go to item->variants. */
static at_status match_variants(const struct at_runner *runner, const char *chosen, struct at_plan_case *item) {
    int n = at_runner_variant_count(runner);
    item->variants = calloc((size_t)n + 1, sizeof *item->variants);
    if (!item->variants)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < n; i++)
        if (chosen[i] && strcmp(at_runner_variant(runner, i)->family, item->c->family->name) == 0)
            item->variants[item->n_variants++] = i;
    return AT_OK;
}

/* A case that requires a decoy its operator does not have would be VACUOUS for ever: say so at once. */
static at_status check_required(const struct at_case *c) {
    for (int i = 0; i < c->n_require; i++)
        if (!at_decoy_known(c->op, c->require[i]))
            return AT_FAIL(AT_USAGE, "%s: require=%s: operator %s has no such decoy", c->where, c->require[i],
                           c->op->name);
    return AT_OK;
}

static at_status add_cases(const struct at_selection *s, struct at_case_globs *globs, const struct at_runner *runner,
                           const char *chosen, struct at_plan *plan) {
    plan->items = calloc((size_t)plan->cases.n + 1, sizeof *plan->items);
    if (!plan->items)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld cases", (long long)plan->cases.n);
    int64_t index = 0;
    plan->cases_hash = AT_HASH_START;
    for (int64_t i = 0; i < plan->cases.n; i++) {
        const struct at_case *c = &plan->cases.items[i];
        struct at_plan_case item = { .c = c, .first_index = index };
        if (!case_selected(s, globs, c))
            continue;
        AT_TRY(check_required(c));
        AT_TRY(match_variants(runner, chosen, &item));
        index += item.n_variants;
        if (item.n_variants)
            plan->cases_hash = at_hash_bytes(c->id, strlen(c->id) + 1, plan->cases_hash);
        if (item.n_variants) {
            plan->items[plan->n_items++] = item;
            plan->n_jobs += item.n_variants;
        } else {
            free(item.variants);
        }
    }
    AT_TRY(check_globs(globs, &plan->cases));
    return s->shards > 1 ? at_plan_take_shard(plan, runner, s) : AT_OK;
}

at_status at_plan_make(const struct at_selection *selection, struct at_runner *runner, struct at_plan *plan) {
    at_status status = AT_OK;
    int n = at_runner_variant_count(runner);
    char *chosen = calloc((size_t)n + 1, 1), *hits = calloc((size_t)selection->n_globs + 1, 1);
    struct at_case_globs globs = { 0 };
    memset(plan, 0, sizeof *plan);
    if (!chosen || !hits)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < n; i++)
        chosen[i] = (char)at_selects_variant(selection, at_runner_variant(runner, i), hits);
    for (int i = 0; i < selection->n_globs; i++)
        if (!hits[i]) {
            status = at_no_variant(runner, selection->globs[i]);
            goto out;
        }
    AT_TRY_OUT(load_cases(selection, runner, chosen, plan, &globs));
    AT_TRY_OUT(add_cases(selection, &globs, runner, chosen, plan));
out:
    at_case_globs_close(&globs);
    free(chosen);
    free(hits);
    if (status != AT_OK)
        at_plan_release(plan);
    return status;
}

void at_plan_release(struct at_plan *plan) {
    for (int64_t i = 0; i < plan->n_items; i++)
        free(plan->items[i].variants);
    free(plan->items);
    if (!plan->borrows)
        at_case_list_release(&plan->cases);
    memset(plan, 0, sizeof *plan);
}

/* A case of a data set has no size before it is loaded, and counts as the largest. */
static int64_t bytes_of(const struct at_plan_case *item) {
    const int64_t bytes = at_case_bytes(item->c);
    return bytes ? bytes : INT64_MAX;
}

static int by_bytes(const void *a, const void *b) {
    const struct at_plan_case *x = a, *y = b;
    const int64_t of_x = bytes_of(x), of_y = bytes_of(y);
    if (of_x != of_y)
        return of_x < of_y ? -1 : 1;
    return x->first_index < y->first_index ? -1 : x->first_index > y->first_index;
}

void at_plan_small_first(struct at_plan *plan) {
    qsort(plan->items, (size_t)plan->n_items, sizeof *plan->items, by_bytes);
}
