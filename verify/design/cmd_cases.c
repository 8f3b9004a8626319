/* attest cases: covering arrays of an operator's domain, and what a case file lacks of one.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/design/design.h"

static const struct at_option options[] = {
    { "--design", "OP", "cases of this operator, or of one family" },
    { "--strength", "T", "2 (default): every pair of classes; 3: every triple of the factors that meet in kernels" },
    { "--runner", "R", "whose variants are asked (default cpu)" },
    { "--seed", "S", "of the choice among equals (default 1)" },
    { "--count", "FILE",
      "say what FILE has of the design instead, and the cases that it lacks; exit code 1 when it lacks any" },
    { "--stated", NULL, "with --count: only whether FILE has as much as it says itself; quick" },
    { "--keep", "FILE", "write FILE's cases as they are, then what they lack: for a variant or a class that is new" },
    { NULL, NULL, NULL },
};

/* What a search adds to a file that has all of a family is nothing. */
static at_status report_missing(const struct at_design *design, int *missing) {
    at_design_print_impossible(design, stdout);
    for (int64_t i = 0; i < design->n_rows; i++)
        printf("missing: %s\n", design->rows[i].line);
    *missing += design->n_rows > 0;
    return AT_OK;
}

/* A line that was taken out took with it what it was there for. A line may have more than it was made for: with h=1 a sigma
 * for each head is one for all. */
static at_status compare_stated(struct at_design *design, const char *file, int *missing) {
    int64_t cases, stated, all, had, impossible;
    AT_TRY(at_design_stated(design, file, &cases, &stated));
    AT_TRY(at_design_load(design, file, NULL));
    at_cover_counts(design, &all, &had, &impossible);
    const int lacks = design->n_loaded != cases || had < stated;
    printf("%s: %lld cases have %lld; the file says %lld and %lld%s\n", design->domain.family->name,
           (long long)design->n_loaded, (long long)had, (long long)cases, (long long)stated,
           lacks ? ": it lacks what it was made with" : "");
    *missing += lacks;
    return AT_OK;
}

/* The command that makes such a file: an array that was added to says the same of itself as one that was made at once. */
static void print_head(const struct at_args *args) {
    const char *strength = at_args_get(args, "--strength");
    struct at_args made = *args;
    for (int i = 0; options[i].name; i++)
        if (strcmp(options[i].name, "--keep") == 0)
            made.values[i] = NULL;
    printf("# Cases by design: every %s that a variant takes. Made by:\n# ",
           !strength || strcmp(strength, "2") == 0 ? "pair of classes"
           : strcmp(strength, "3") == 0            ? "triple of classes of the factors that meet in kernels"
                                                   : "class");
    at_args_put(&at_command_cases, &made, "", stdout);
    printf("# SPDX-License-Identifier: Apache-2.0\n\n");
}

static at_status make_design(struct at_design *design, const struct at_args *args, int first, int *missing) {
    const char *count = at_args_get(args, "--count"), *keep = at_args_get(args, "--keep");
    AT_TRY(at_design_learn(design));
    if (!count && first)
        print_head(args);
    if (count || keep)
        AT_TRY(at_design_load(design, count ? count : keep, count ? NULL : stdout));
    design->thorough = !count;
    AT_TRY(at_design_search(design));
    if (count)
        return report_missing(design, missing);
    at_design_print(design, stdout);
    at_design_print_impossible(design, stdout);
    return AT_OK;
}

static at_status design_family(struct at_runner *runner, const struct at_family *family, const struct at_args *args,
                               int first, int *missing) {
    const char *file = at_args_get(args, "--count");
    int64_t strength, seed;
    struct at_design *design = calloc(1, sizeof *design);
    at_status status = AT_OK;
    if (!design)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a design");
    AT_TRY_OUT(at_args_int(args, "--strength", 1, AT_DESIGN_STRENGTH, 2, &strength));
    AT_TRY_OUT(at_args_int(args, "--seed", 0, INT64_MAX, 1, &seed));
    AT_TRY_OUT(at_design_open(runner, family, (int)strength, (uint64_t)seed, design));
    AT_TRY_OUT(at_args_has(args, "--stated") ? compare_stated(design, file, missing)
                                             : make_design(design, args, first, missing));
out:
    at_design_release(design);
    free(design);
    return status;
}

static at_status design_cases(const struct at_args *args, int *missing) {
    const char *op = at_args_get(args, "--design"), *spec = at_args_get(args, "--runner");
    struct at_runner *runner;
    int known = 0;
    if (!op)
        return AT_FAIL(AT_USAGE, "cases: wanted --design OP");
    if (at_args_has(args, "--stated") && !at_args_has(args, "--count"))
        return AT_FAIL(AT_USAGE, "cases: --stated goes with --count FILE");
    if (at_args_has(args, "--keep") && at_args_has(args, "--count"))
        return AT_FAIL(AT_USAGE, "cases: --keep makes a file, --count does not");
    AT_TRY(at_runner_open(spec ? spec : "cpu", &runner));
    at_status status = AT_OK;
    for (int i = 0; i < at_family_count() && status == AT_OK; i++) {
        const struct at_family *family = at_family_at(i);
        if (strcmp(family->op, op) != 0 && strcmp(family->name, op) != 0)
            continue;
        status = design_family(runner, family, args, known++ == 0, missing);
    }
    at_runner_close(runner);
    if (status == AT_OK && !known)
        status = AT_FAIL(AT_NOT_FOUND,
                         "cases: there is no operator or family '%.64s'; `attest list operators` names all", op);
    return status;
}

static int run(const struct at_args *args) {
    int missing = 0;
    const at_status status = design_cases(args, &missing);
    return status == AT_OK ? missing > 0 : at_report_failure(status);
}

const struct at_command at_command_cases = {
    .name = "cases",
    .synopsis = "cases --design OP [options]",
    .summary = "cases that hold every pair, or triple, of classes of an operator's domain",
    .example = "attest cases --design softmax_attention --strength 2",
    .options = options,
    .run = run,
};
