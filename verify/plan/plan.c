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

/* The globs of a selection's cases, and those whose lines `only` hold for them: mostly the same. */
struct chooser {
    struct at_case_globs globs, whole;
    int has_whole;
};

static struct at_case_globs *restricting(struct chooser *by) { return by->has_whole ? &by->whole : &by->globs; }

static int case_selected(const struct at_selection *s, struct chooser *by, const struct at_case *c) {
    char name[AT_CASE_ID_BYTES + 40];
    if (s->case_line)
        return 1;
    snprintf(name, sizeof name, "%s:%s", c->role, c->id);
    if (by->has_whole)
        at_case_globs_match(&by->whole, name);
    return at_case_globs_match(&by->globs, name);
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
                            struct at_plan *plan, struct chooser *by) {
    struct at_case_list *cases = &plan->cases;
    struct at_case_globs *globs = &by->globs;
    if (s->random) {
        AT_TRY(at_case_globs_open("", "random:*", globs));
        return at_random_cases(runner, chosen, s->random, s->random_seed, cases);
    }
    if (s->case_line)
        return at_case_parse(s->case_line, "line", "command line", cases);
    char dir[1024];
    folder_of(s, dir, sizeof dir);
    AT_TRY(at_selection_globs(s, globs));
    if (s->line_of)
        AT_TRY(at_case_globs_open(dir, s->line_of, &by->whole));
    by->has_whole = s->line_of != NULL;
    plan->borrows = s->loaded && !globs->random; /* a list that grows is its own */
    if (plan->borrows)
        *cases = *s->loaded;
    else
        AT_TRY(at_case_load_dir(dir, cases));
    return globs->random ? at_random_cases(runner, chosen, globs->random, globs->random_seed, cases) : AT_OK;
}

/* A line of a selection that has come to match nothing would let its cases go unnoticed; a line `only` that has, would let
 * them be judged by all variants again. attest-cpu has all of the variants that a line can mean; others have some. */
static at_status check_globs(const struct at_case_globs *globs, const struct at_case_list *cases,
                             const struct at_runner *runner) {
    const int has_all = strcmp(at_runner_spec(runner), "cpu") == 0;
    for (int i = 0; i < globs->n; i++) {
        const struct at_case_glob *glob = &globs->items[i];
        if (!glob->hits && !glob->line)
            return at_no_case(cases, glob->text);
        if (!glob->hits)
            return AT_FAIL(AT_NOT_FOUND, "%s:%d: no case matches '%s'", globs->path, glob->line, glob->text);
        if (glob->only && !glob->variants && has_all)
            return AT_FAIL(AT_NOT_FOUND, "%s:%d: no variant that is judged on '%s' matches '%s'", globs->path,
                           glob->line, glob->text, glob->only);
    }
    return AT_OK;
}

/* Lines `only` are for kernels of this project, which its runners have by name, and any runner when AT_OURS is set. Another's
 * could call its kernels what a line lets pass, or mutants, and would choose what they are judged on. */
static int is_ours(const struct at_runner *runner) {
    static const char *const specs[] = { "cpu", "cuda", "coverage", "mutants" };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (strcmp(at_runner_spec(runner), specs[i]) == 0)
            return 1;
    return getenv("AT_OURS") != NULL;
}

/* May a variant of the runner be judged on the case that was matched last, by lines `only`? allowed[i] for variant i. A mutant
 * may where its original may: what it gets says what is seen of the original. */
static void allow(const struct at_runner *runner, const char *family, struct at_case_globs *globs, char *allowed) {
    const int n = at_runner_variant_count(runner);
    int some = 0;
    for (int i = 0; i < n; i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        char name[192];
        snprintf(name, sizeof name, "%s/%s", v->family, v->name);
        allowed[i] =
            (char)(strcmp(v->family, family) == 0 && at_case_globs_allow(globs, v->mutant_of[0] ? v->mutant_of : name));
        some |= allowed[i] && !v->mutant_of[0];
    }
    for (int i = 0; !some && i < n; i++)
        if (!at_runner_variant(runner, i)->mutant_of[0])
            allowed[i] = 1;
}

/* The selected variants that belong to the case's family; their indices go to item->variants. */
static at_status match_variants(const struct at_runner *runner, const char *chosen, const char *allowed,
                                struct at_plan_case *item) {
    int n = at_runner_variant_count(runner);
    item->variants = calloc((size_t)n + 1, sizeof *item->variants);
    if (!item->variants)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < n; i++)
        if (chosen[i] && allowed[i] && strcmp(at_runner_variant(runner, i)->family, item->c->family->name) == 0)
            item->variants[item->n_variants++] = i;
    return AT_OK;
}

/* Plan indices depend on which variants a case has, so those of a case that not all have count, too. */
static uint64_t hash_of(const struct at_plan_case *item, const struct at_runner *runner, int restricted,
                        uint64_t before) {
    uint64_t hash = at_hash_bytes(item->c->id, strlen(item->c->id) + 1, before);
    for (int i = 0; restricted && i < item->n_variants; i++) {
        const char *name = at_runner_variant(runner, item->variants[i])->name;
        hash = at_hash_bytes(name, strlen(name) + 1, hash);
    }
    return hash;
}

/* A case that requires a decoy its operator does not have would be VACUOUS for ever: say so at once. */
static at_status check_required(const struct at_case *c) {
    for (int i = 0; i < c->n_require; i++)
        if (!at_decoy_known(c->op, c->require[i]))
            return AT_FAIL(AT_USAGE, "%s: require=%s: operator %s has no such decoy", c->where, c->require[i],
                           c->op->name);
    return AT_OK;
}

static at_status add_cases(const struct at_selection *s, struct chooser *by, const struct at_runner *runner,
                           const char *chosen, struct at_plan *plan) {
    const size_t n = (size_t)at_runner_variant_count(runner) + 1;
    const int ours = is_ours(runner);
    at_status status = AT_OK;
    char *allowed = malloc(n);
    plan->items = calloc((size_t)plan->cases.n + 1, sizeof *plan->items);
    if (!plan->items || !allowed)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %lld cases", (long long)plan->cases.n);
    int64_t index = 0;
    plan->cases_hash = AT_HASH_START;
    for (int64_t i = 0; i < plan->cases.n; i++) {
        const struct at_case *c = &plan->cases.items[i];
        struct at_plan_case item = { .c = c, .first_index = index };
        if (!case_selected(s, by, c))
            continue;
        const int restricted = ours && at_case_globs_restrict(restricting(by));
        memset(allowed, 1, n);
        if (restricted)
            allow(runner, c->family->name, restricting(by), allowed);
        AT_TRY_OUT(check_required(c));
        AT_TRY_OUT(match_variants(runner, chosen, allowed, &item));
        index += item.n_variants;
        if (item.n_variants) {
            plan->cases_hash = hash_of(&item, runner, restricted, plan->cases_hash);
            plan->items[plan->n_items++] = item;
            plan->n_jobs += item.n_variants;
        } else {
            free(item.variants);
        }
    }
    AT_TRY_OUT(check_globs(&by->globs, &plan->cases, runner));
    if (s->shards > 1)
        status = at_plan_take_shard(plan, runner, s);
out:
    free(allowed);
    return status;
}

at_status at_plan_make(const struct at_selection *selection, struct at_runner *runner, struct at_plan *plan) {
    at_status status = AT_OK;
    int n = at_runner_variant_count(runner);
    char *chosen = calloc((size_t)n + 1, 1), *hits = calloc((size_t)selection->n_globs + 1, 1);
    struct chooser by = { 0 };
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
    AT_TRY_OUT(load_cases(selection, runner, chosen, plan, &by));
    AT_TRY_OUT(add_cases(selection, &by, runner, chosen, plan));
out:
    at_case_globs_close(&by.globs);
    at_case_globs_close(&by.whole);
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
