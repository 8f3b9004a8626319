/* attest study ways: which kernel each variant takes for each case.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A dispatcher that is right on every case may still send hardly a token to the kernel it was built for. It says what it takes where
 * it takes it, in launches that are dry: of a CUDA kernel nothing runs on the SIMT machine, so full lengths cost little. */
#include "verify/study/ways/study_ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/op.h"
#include "verify/cli/commands.h"
#include "verify/cli/progress.h"
#include "verify/plan/plan.h"
#include "verify/runner/launch.h"

at_status at_ways_add(struct at_ways *ways, const char *name, int64_t requests, int64_t tokens) {
    int i = 0;
    while (i < ways->n && strcmp(ways->items[i].name, name) != 0)
        i++;
    if (i == AT_WAYS_MAX)
        return AT_FAIL(AT_UNSUPPORTED,
                       "study ways: '%.31s' is one kernel more than the %d that a variant may choose among", name,
                       AT_WAYS_MAX);
    struct at_way *way = &ways->items[i];
    if (i == ways->n) {
        *way = (struct at_way){ 0 };
        snprintf(way->name, sizeof way->name, "%s", name);
        ways->n++;
    }
    way->cases++;
    way->requests += requests;
    way->tokens += tokens;
    return AT_OK;
}

static int by_tokens(const void *a, const void *b) {
    const struct at_way *x = a, *y = b;
    return x->tokens != y->tokens ? (x->tokens < y->tokens) - (x->tokens > y->tokens) : strcmp(x->name, y->name);
}

void at_ways_sort(struct at_ways *ways) { qsort(ways->items, (size_t)ways->n, sizeof *ways->items, by_tokens); }

/* Sizes that an operator does not have are 0: a product of matrices has neither requests nor tokens, but rows. */
static int64_t tokens_of(const struct at_problem *p) { return p->sizes.tokens ? p->sizes.tokens : p->op->rows(p); }

static at_status count_case(struct at_runner *runner, const struct at_plan_case *at, struct at_ways *of_variant) {
    struct at_case_data data;
    at_status status = AT_OK;
    AT_TRY(at_case_outline(at->c, &data));
    for (int i = 0; i < at->n_variants && status == AT_OK; i++) {
        struct at_ways *ways = &of_variant[at->variants[i]];
        struct at_run_reply reply;
        AT_TRY_OUT(at_dry_launch(runner, at->variants[i], &data.problem, &reply));
        if (reply.outcome == AT_RUN_UNSUPPORTED)
            ways->declined++;
        else if (reply.outcome != AT_RAN)
            AT_FAIL_OUT(AT_CRASHED, "study ways: %s: %.300s", at_runner_variant(runner, at->variants[i])->name,
                        reply.reason);
        else if (reply.way[0])
            status = at_ways_add(ways, reply.way, data.problem.sizes.b, tokens_of(&data.problem));
    }
out:
    at_case_data_release(&data);
    return status;
}

static void print(const struct at_variant *v, struct at_ways *ways) {
    int64_t tokens = 0;
    at_ways_sort(ways);
    for (int i = 0; i < ways->n; i++)
        tokens += ways->items[i].tokens;
    printf("%s/%s: %" PRId64 " tokens, %" PRId64 " cases declined\n", v->family, v->name, tokens, ways->declined);
    for (int i = 0; i < ways->n; i++) {
        const struct at_way *w = &ways->items[i];
        printf("  %-22s %8" PRId64 " cases %8" PRId64 " requests %10" PRId64 " tokens  %6.2f %%\n", w->name, w->cases,
               w->requests, w->tokens, tokens ? 100 * (double)w->tokens / (double)tokens : 0);
    }
}

static at_status count(struct at_runner *runner, const struct at_plan *plan, struct at_ways *of_variant) {
    struct at_progress progress;
    at_status status = AT_OK;
    at_progress_start(&progress, "study ways", plan->n_items);
    for (int64_t i = 0; i < plan->n_items && status == AT_OK; i++) {
        status = count_case(runner, &plan->items[i], of_variant);
        at_progress_step(&progress, 1, 0, plan->items[i].c->id);
    }
    at_progress_end(&progress);
    return status;
}

static at_status study(const struct at_args *args) {
    const char *variants = at_args_get(args, "--variants"), *cases = at_args_get(args, "--cases"),
               *spec = at_args_get(args, "--runner"), *line = at_args_get(args, "--case");
    const struct at_selection selection = {
        .globs = &variants, .n_globs = 1, .cases_glob = cases ? cases : "smoke:*", .case_line = line, .shards = 1
    };
    struct at_runner *runner = NULL;
    struct at_plan plan = { 0 };
    struct at_ways *of_variant = NULL;
    at_status status = AT_OK;
    int n = 0, choosing = 0;
    if (!variants)
        return AT_FAIL(AT_USAGE, "study ways: wanted --variants GLOB");
    if (line && cases)
        return AT_FAIL(AT_USAGE, "study ways: --case and --cases exclude each other");
    AT_TRY(at_runner_open(spec ? spec : "cpu", &runner));
    AT_TRY_OUT(at_plan_make(&selection, runner, &plan));
    n = at_runner_variant_count(runner);
    of_variant = calloc((size_t)n + 1, sizeof *of_variant);
    if (!of_variant)
        AT_FAIL_OUT(AT_NO_MEMORY, "study ways: no memory for %d variants", n);
    AT_TRY_OUT(count(runner, &plan, of_variant));
    for (int i = 0; i < n; i++)
        if (of_variant[i].n) {
            print(at_runner_variant(runner, i), &of_variant[i]);
            choosing++;
        }
    if (!choosing)
        AT_FAIL_OUT(
            AT_NOT_FOUND,
            "study ways: no variant of '%.100s' that took a case of '%.100s' says that it chooses among kernels",
            variants, line ? line : selection.cases_glob);
out:
    free(of_variant);
    at_plan_release(&plan);
    at_runner_close(runner);
    return status;
}

static int run_ways(const struct at_args *args) {
    const at_status status = study(args);
    return status != AT_OK ? at_report_failure(status) : 0;
}

const struct at_study at_study_ways = { .name = "ways", .run = run_ways };
