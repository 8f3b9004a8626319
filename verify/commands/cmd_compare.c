/* attest compare: what got worse from one run's archive to another's.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/commands/compare_runs.h"

static const struct at_option options[] = {
    { "--strict", NULL, "VACUOUS counts as failing, and a job that is gone as worse" },
    { "--times", "X",
      "a right result is worse when its largest error has come so many times nearer to its limit (default 2; errors "
      "below a "
      "hundredth of a limit are not looked at)" },
    { "--quiet", NULL, "only what is worse, and the counts" },
    { NULL, NULL, NULL },
};

static const char *const words[AT_CHANGE_COUNT] = { "same", "WORSE", "better", "gone", "new" };

static void put_job(const struct at_changed_job *job) {
    const struct at_result *r = job->b ? job->b : job->a;
    printf("%-6s %s/%s: %s\n", words[job->change], r->family, r->variant, job->why);
    printf("       %s\n", r->case_id);
    if (job->change != AT_CHANGE_WORSE)
        return;
    if (r->cause[0])
        printf("       cause %s\n", r->cause);
    if (r->repro[0])
        printf("       repro %s\n", r->repro);
}

/* Whether the first archive's request is the second's, for who compares what was never the same. */
static void put_requests(const struct at_run_record *a, const struct at_run_record *b) {
    char difference[512];
    if (at_json_difference(a->request, b->request, difference, sizeof difference))
        printf("the runs were asked for different things: %s\n", difference);
}

static at_status compare(const struct at_args *args, struct at_run_record *a, struct at_run_record *b, int *code) {
    const int strict = at_args_has(args, "--strict"), quiet = at_args_has(args, "--quiet");
    struct at_run_comparison c;
    double times;
    AT_TRY(at_args_real(args, "--times", 1, 1e9, 2, &times));
    AT_TRY(at_archive_read(args->words[0], a));
    AT_TRY(at_archive_read(args->words[1], b));
    AT_TRY(at_compare_runs(a, b, strict, times, &c));
    for (int64_t i = 0; i < c.n; i++)
        if (!quiet || c.jobs[i].change == AT_CHANGE_WORSE)
            put_job(&c.jobs[i]);
    put_requests(a, b);
    printf("%" PRId64 " worse, %" PRId64 " better, %" PRId64 " as before, %" PRId64 " gone, %" PRId64
           " new; fail in both: %" PRId64 "\n",
           c.count[AT_CHANGE_WORSE], c.count[AT_CHANGE_BETTER], c.count[AT_CHANGE_NONE], c.count[AT_CHANGE_GONE],
           c.count[AT_CHANGE_NEW], c.fail_in_both);
    *code = c.count[AT_CHANGE_WORSE] > 0 || (strict && c.count[AT_CHANGE_GONE] > 0);
    at_run_comparison_release(&c);
    return AT_OK;
}

static int run(const struct at_args *args) {
    struct at_run_record a, b;
    int code = 0;
    at_run_record_init(&a);
    at_run_record_init(&b);
    const at_status status = compare(args, &a, &b, &code);
    at_run_record_release(&a);
    at_run_record_release(&b);
    return status == AT_OK ? code : at_report_failure(status);
}

const struct at_command at_command_compare = {
    .name = "compare",
    .synopsis = "compare A.h5 B.h5 [options]",
    .summary = "what got worse from one run's archive to another's; exit 1 when something did",
    .example = "attest compare before.h5 after.h5 --times 1.5",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .reads_archives = 1,
    .run = run,
};
