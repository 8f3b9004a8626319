/* attest fit: the tightest declaration that a kernel's outputs satisfy, for whoever does not know its arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/cli/progress.h"
#include "verify/fit/show.h"
#include "verify/plan/nearest.h"

static const struct at_option options[] = {
    { "--runner", "R", "whose variants: cpu (default), cuda, or a command line that speaks the protocol" },
    { "--dtype", "F",
      "format of the inputs (default: all that it takes; sums and trees by the first of f16, bf16, f32, e4m3, e5m2)" },
    { "--check", NULL, "hold each variant's own declaration against its outputs; exit 1 when it does not fit" },
    { "--no-trees", NULL, "leave out the order of sums, which takes a large launch or two" },
    { "--json", NULL, "one JSON object a line: a variant" },
    { "--quiet", NULL, "no progress" },
    { NULL, NULL, NULL },
};

struct totals {
    int fits, none, free, wrong, declined;
};

static at_status read_options(const struct at_args *args, struct at_fit_options *o) {
    const char *dtype = at_args_get(args, "--dtype");
    *o = (struct at_fit_options){ .dtype = AT_FORMAT_COUNT,
                                  .check = at_args_has(args, "--check"),
                                  .trees = !at_args_has(args, "--no-trees") };
    return dtype ? at_format_parse(dtype, &o->dtype) : AT_OK;
}

/* chosen[i] = 1: variant i of the runner. */
static at_status choose(const struct at_args *args, const struct at_runner *runner, char *chosen, int *n) {
    const struct at_selection selection = { .globs = args->words, .n_globs = args->n_words, .shards = 1 };
    char *hits = calloc((size_t)args->n_words + 1, 1);
    at_status status = AT_OK;
    if (!hits)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d globs", args->n_words);
    for (int i = 0; i < at_runner_variant_count(runner); i++)
        *n += chosen[i] = (char)at_selects_variant(&selection, at_runner_variant(runner, i), hits);
    for (int i = 0; i < args->n_words && status == AT_OK; i++)
        if (!hits[i])
            status = at_no_variant(runner, args->words[i]);
    free(hits);
    return status;
}

static void count(enum at_fit_state state, struct totals *sum) {
    sum->fits += state == AT_FIT_FOUND;
    sum->none += state == AT_FIT_NONE;
    sum->free += state == AT_FIT_FREE;
    sum->wrong += state == AT_FIT_WRONG;
}

static at_status fit_one(const struct at_args *args, struct at_runner *runner, int i, const struct at_fit_options *o,
                         struct totals *sum) {
    struct at_fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a fit");
    at_status status = at_fit_variant(runner, i, o, fit);
    if (status == AT_OK) {
        (at_args_has(args, "--json") ? at_fit_put_json : at_fit_put_text)(fit);
        fflush(stdout);
        count(at_fit_state(fit), sum);
    } else if (status == AT_UNSUPPORTED) { /* of many variants some are no kernels of this kind */
        fprintf(stderr, "attest: %s\n", at_error_message());
        sum->declined++;
        status = AT_OK;
    }
    at_fit_release(fit);
    free(fit);
    return status;
}

static at_status fit_all(const struct at_args *args, struct at_runner *runner, const struct at_fit_options *o,
                         struct totals *sum) {
    const int all = at_runner_variant_count(runner);
    char *chosen = calloc((size_t)all + 1, 1);
    int n = 0;
    at_status status = AT_OK;
    struct at_progress progress;
    if (!chosen)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d variants", all);
    AT_TRY_OUT(choose(args, runner, chosen, &n));
    at_progress_start(&progress, "fitting", n);
    for (int i = 0; i < all && status == AT_OK; i++) {
        if (!chosen[i])
            continue;
        if (!at_args_has(args, "--quiet"))
            at_progress_step(&progress, 0, 0, at_runner_variant(runner, i)->name);
        status = fit_one(args, runner, i, o, sum);
        if (!at_args_has(args, "--quiet"))
            at_progress_step(&progress, 1, 0, at_runner_variant(runner, i)->name);
    }
    at_progress_end(&progress);
out:
    free(chosen);
    return status;
}

static int exit_code(const struct totals *sum) {
    if (sum->fits + sum->none + sum->free + sum->wrong == 0)
        return 4;
    return sum->none || sum->wrong;
}

static int run(const struct at_args *args) {
    struct at_fit_options o;
    struct at_runner *runner = NULL;
    struct totals sum = { 0 };
    const char *spec = at_args_get(args, "--runner");
    at_status status = read_options(args, &o);
    if (status == AT_OK)
        status = at_runner_open(spec ? spec : "cpu", &runner);
    if (status == AT_OK)
        status = fit_all(args, runner, &o, &sum);
    if (runner)
        at_runner_close(runner);
    if (status != AT_OK)
        return at_report_failure(status);
    const int all = sum.fits + sum.none + sum.free + sum.wrong + sum.declined;
    if (!at_args_has(args, "--json"))
        printf("%d variant%s: %d fit, %d that no declaration fits, %d without an order, %d declared wrongly; %d not "
               "probed\n",
               all, all == 1 ? "" : "s", sum.fits, sum.none, sum.free, sum.wrong, sum.declined);
    return exit_code(&sum);
}

const struct at_command at_command_fit = {
    .name = "fit",
    .synopsis = "fit [GLOB...] [options]",
    .summary = "the tightest declaration of its arithmetic that a kernel's outputs satisfy, and the order of its sums",
    .example = "attest fit 'softmax_prefill/02_fa2' --check",
    .options = options,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
