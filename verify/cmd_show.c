/* attest show: what an archive says was judged, how near to its limit, and where the worst elements are.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/commands.h"
#include "verify/record.h"

static const struct at_option options[] = {
    { "--worst", "N", "only the N results nearest to, or furthest beyond, their limit" },
    { "--strict", NULL, "count VACUOUS results as failing" },
    { NULL, NULL, NULL },
};

static int selected(const struct at_args *args, const struct at_result *r) {
    char name[192];
    snprintf(name, sizeof name, "%s/%s", r->family, r->variant);
    for (int i = 1; i < args->n_words; i++)
        if (fnmatch(args->words[i], name, 0) == 0)
            return 1;
    return args->n_words == 1;
}

/* Failing states first, then by error over limit; a result without a ratio comes last. */
static int by_badness(const void *a, const void *b) {
    const struct at_result *x = a, *y = b;
    int fx = at_state_fails(x->state, x->expect, 1), fy = at_state_fails(y->state, y->expect, 1);
    if (fx != fy)
        return fy - fx;
    double rx = x->ratio_max >= 0 ? x->ratio_max : -1, ry = y->ratio_max >= 0 ? y->ratio_max : -1;
    return (rx < ry) - (rx > ry);
}

static at_status show(const struct at_args *args, struct at_run_record *record) {
    int64_t worst, kept = 0;
    AT_TRY(at_args_int(args, "--worst", 1, INT64_MAX, 0, &worst));
    AT_TRY(at_archive_read(args->words[0], record));
    for (int64_t i = 0; i < record->n; i++)
        if (selected(args, &record->results[i]))
            record->results[kept++] = record->results[i];
    record->n = kept;
    if (worst) {
        qsort(record->results, (size_t)record->n, sizeof *record->results, by_badness);
        record->n = record->n > worst ? worst : record->n;
    }
    at_report_table(record, at_args_has(args, "--strict"), isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), stdout);
    return AT_OK;
}

static int run(const struct at_args *args) {
    struct at_run_record record;
    at_run_record_init(&record);
    at_status status = show(args, &record);
    int code =
        status == AT_OK ? at_run_record_exit_code(&record, at_args_has(args, "--strict")) : at_report_failure(status);
    at_run_record_release(&record);
    return code;
}

const struct at_command at_command_show = {
    .name = "show",
    .synopsis = "show RUN.h5 [GLOB...] [options]",
    .summary = "what an archive says was judged, and how near to its limit",
    .example = "attest show run.h5 --worst 10",
    .options = options,
    .min_words = 1,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
