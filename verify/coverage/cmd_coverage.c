/* attest coverage: what of the kernels the selected cases reach, on the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/coverage/cover_rounds.h"
#include "verify/coverage/report.h"
#include "verify/result/atomic_file.h"

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
    { "--fewest", "FILE",
      "with --by-case: a selection of few and cheap cases that take every branch and call every function that all of "
      "these do" },
    { "--until-taken", NULL,
      "run the lines of a selection in turn, and launch a variant no further once every branch of its sources is taken "
      "or explained: what is open in the end is the same, in a fraction of the time; counts are lower, and a reason "
      "that a case left out would belie is not seen" },
    { "--html", "FILE", "a page: the table, and each source with its counts" },
    { "--json", "FILE", "the same as JSON" },
    { "--jobs", "N", "runners at the same time (default: processors)" },
    { "--quiet", NULL, "no progress" },
    { NULL, NULL, NULL },
};

static at_status read_options(const struct at_args *args, struct at_session_options *o) {
    int64_t jobs;
    const char *files[] = { at_args_get(args, "--html"), at_args_get(args, "--json"), at_args_get(args, "--fewest") };
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
    if (at_args_has(args, "--until-taken") && at_args_has(args, "--by-case"))
        return AT_FAIL(AT_USAGE, "--until-taken and --by-case exclude each other");
    if (at_args_get(args, "--fewest") && !at_args_has(args, "--by-case"))
        return AT_FAIL(AT_USAGE, "--fewest wants --by-case");
    return at_atomic_check_files(files, 3, NULL, 0);
}

/* ---- the command ---- */

static at_status write_reports(const struct at_args *args, const struct at_selection *selection,
                               const struct at_cover_report *r) {
    at_cover_table(r, at_args_has(args, "--gate"), stdout);
    if (at_args_get(args, "--html"))
        AT_TRY(at_cover_html(r, at_args_get(args, "--html")));
    if (at_args_get(args, "--fewest"))
        AT_TRY(at_cover_selection(r, selection, at_args_get(args, "--fewest")));
    return at_args_get(args, "--json") ? at_cover_json(r, at_args_get(args, "--json")) : AT_OK;
}

static int run(const struct at_args *args) {
    struct at_cover_report r = { 0 };
    struct at_session_options o;
    const struct at_cover_how how = { .until_taken = at_args_has(args, "--until-taken"),
                                      .by_case = at_args_has(args, "--by-case") };
    int signal = 0, code = 0;
    at_status status = read_options(args, &o);
    if (status == AT_OK)
        status = at_cover_measure(&o, &how, &r, &signal);
    if (status != AT_OK) {
        code = at_report_failure(status);
    } else if (signal) {
        code = 128 + signal;
    } else if (r.n_variants == 0) {
        fprintf(stderr, "attest: nothing was launched: no selected case met a variant that runs on the SIMT machine\n");
        code = 4;
    } else {
        status = write_reports(args, &o.selection, &r);
        code = status != AT_OK ? at_report_failure(status) : at_args_has(args, "--gate") && !at_cover_gate(&r);
    }
    at_cover_report_release(&r);
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
