/* attest coverage: what of the kernels the selected cases reach, on the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/coverage/by_case.h"
#include "verify/coverage/gcov.h"
#include "verify/coverage/launches.h"
#include "verify/coverage/report.h"
#include "verify/coverage/rounds.h"
#include "verify/result/atomic_file.h"
#include "verify/run/session.h"

static const struct at_option options[] = {
    { "--cases", "GLOB", "which cases, as role:id, or a selection of cases as @NAME (default @check)" },
    { "--case", "LINE", "one case given as text instead of the case files" },
    { "--gate", NULL,
      "exit code 1 unless every branch of every kernel is taken and every function called, or the source says why not "
      "in a comment on "
      "the line or alone above it: /* not reached: REASON */; explained branches are less than 1 % of all" },
    { "--by-case", NULL,
      "then runs each case by itself, which takes minutes for a family of many variants: how many branches it takes, "
      "how "
      "many of them no other case takes (of two that take the same, neither has any), and how many no case before it "
      "in "
      "order of ids takes: without those that add none, all branches are still taken" },
    { "--until-taken", NULL,
      "in sixteen rounds, each with its share of the cases and only the variants of whose sources something is open "
      "still: "
      "a branch, a function, a mark. The gate says what it would say of all cases; counts are those of fewer" },
    { "--html", "FILE", "a page: the table, and each source with its counts" },
    { "--json", "FILE", "the same as JSON" },
    { "--jobs", "N", "runners at the same time (default: processors)" },
    { "--quiet", NULL, "no progress" },
    { NULL, NULL, NULL },
};

static at_status read_options(const struct at_args *args, struct at_session_options *o) {
    int64_t jobs;
    const char *files[] = { at_args_get(args, "--html"), at_args_get(args, "--json") };
    *o = at_session_defaults();
    o->selection.globs = args->words;
    o->selection.n_globs = args->n_words;
    o->selection.cases_glob = at_args_get(args, "--cases") ? at_args_get(args, "--cases") : "@check";
    o->selection.case_line = at_args_get(args, "--case");
    o->runner = "coverage";
    o->launch_only = 1;
    o->quiet = at_args_has(args, "--quiet");
    AT_TRY(at_args_int(args, "--jobs", 1, 256, o->jobs, &jobs));
    o->jobs = (int)jobs;
    if (o->selection.case_line && at_args_has(args, "--cases"))
        return AT_FAIL(AT_USAGE, "--case and --cases exclude each other");
    if (at_args_has(args, "--by-case") && at_args_has(args, "--until-taken"))
        return AT_FAIL(AT_USAGE, "--by-case wants all cases of each variant: --until-taken leaves some out");
    return at_atomic_check_files(files, 2, NULL, 0);
}

static void release(struct at_cover_report *r) {
    at_cover_close_sources(r);
    free(r->variants);
    free(r->cases_alone);
    at_cover_release(&r->cover);
}

/* ---- the command ---- */

static at_status measure(const struct at_args *args, struct at_cover_report *r, int *signal) {
    struct at_session_options o;
    struct at_run_record record;
    struct at_gcov gcov = { .folder = "" };
    at_status status = AT_OK;
    at_run_record_init(&record);
    AT_TRY_OUT(read_options(args, &o));
    *r = (struct at_cover_report){ .globs = args->words,
                                   .n_globs = args->n_words,
                                   .cases = o.selection.case_line ? o.selection.case_line : o.selection.cases_glob };
    AT_TRY_OUT(at_gcov_open(&gcov));
    if (at_args_has(args, "--until-taken")) {
        AT_TRY_OUT(at_cover_rounds(&gcov, &o, r));
        *signal = at_session_signal();
        goto out;
    }
    AT_TRY_OUT(at_gcov_begin(&gcov));
    AT_TRY_OUT(at_session_run(&o, &record));
    *signal = record.signal;
    if (record.signal)
        goto out;
    AT_TRY_OUT(at_cover_tally(&record, r));
    AT_TRY_OUT(at_cover_fail_calls(&o, &record, r));
    if ((*signal = at_session_signal()) != 0)
        goto out;
    AT_TRY_OUT(at_cover_read_counts(&gcov, r));
    AT_TRY_OUT(at_cover_read_sources(&gcov, r));
    if (at_args_has(args, "--by-case"))
        AT_TRY_OUT(at_cover_by_case(&gcov, &o, &record, r));
    *signal = at_session_signal();
out:
    at_gcov_close(&gcov);
    at_run_record_release(&record);
    return status;
}

static at_status write_reports(const struct at_args *args, const struct at_cover_report *r) {
    at_cover_table(r, at_args_has(args, "--gate"), stdout);
    if (at_args_get(args, "--html"))
        AT_TRY(at_cover_html(r, at_args_get(args, "--html")));
    return at_args_get(args, "--json") ? at_cover_json(r, at_args_get(args, "--json")) : AT_OK;
}

static int run(const struct at_args *args) {
    struct at_cover_report r = { 0 };
    int signal = 0, code = 0;
    at_status status = measure(args, &r, &signal);
    if (status != AT_OK) {
        code = at_report_failure(status);
    } else if (signal) {
        code = 128 + signal;
    } else if (r.n_variants == 0) {
        fprintf(stderr, "attest: nothing was launched: no selected case met a variant that runs on the SIMT machine\n");
        code = 4;
    } else {
        status = write_reports(args, &r);
        code = status != AT_OK ? at_report_failure(status) : at_args_has(args, "--gate") && !at_cover_gate(&r);
    }
    release(&r);
    return code;
}

const struct at_command at_command_coverage = {
    .name = "coverage",
    .synopsis = "coverage [GLOB...] [options]",
    .summary = "lines, branches and template instances of the CUDA kernels that the cases reach, without a GPU",
    .example = "attest coverage 'asynct_decode/*' --cases 'smoke:*' --html coverage.html",
    .options = options,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
