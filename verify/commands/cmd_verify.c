/* attest verify: judges variants on cases, prints the table, writes archive and reports.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/report/report_stream.h"
#include "verify/report/report_summary.h"
#include "verify/report/reports.h"
#include "verify/run/session.h"

static const struct at_option options[] = {
    { "--cases", "GLOB",
      "which cases, as role:id (default 'smoke:*'; '*' for all), or @NAME for those that NAME.selection lists: @check "
      "has "
      "what `make check` judges" },
    { "--case", "LINE", "one case given as text instead of the case files" },
    { "--random", "N",
      "N cases drawn from the operators' domains instead of the case files, one in ten far out: long, wide, large; "
      "each has "
      "its own line, which replays it. --seed draws others" },
    { "--runner", "R", "cpu (default), cuda, or any command line that speaks the protocol" },
    { "--devices", "LIST",
      "all, or 0,1,...: the runner is started on each of these GPUs (it sees one, by CUDA_VISIBLE_DEVICES), jobs go to "
      "whichever is free, and the archive is that of one; what breaks down on one is judged on another" },
    { "--sandbox", NULL,
      "keep runners from other processes' memory, from files but a scratch folder, from networks and from signals, as "
      "far "
      "as the system can; what it cannot is said on stderr" },
    { "--strict", NULL,
      "VACUOUS results fail the run, and so do a selected variant that was never judged: one that a GLOB names (all, "
      "without any) and that declined every selected case of its family; and a declaration so loose that no case of it "
      "would have shown an output 1/32 too large; not asked of a shard" },
    { "--shard", "i/N", "only this share of the cases; `attest merge` joins the shards" },
    { "--jobs", "N",
      "jobs judged at the same time (default: processors; with --devices: for each device its share of them)" },
    { "--seed", "S", "of marks, guard bytes, batch orders and random cases (data seeds are part of a case)" },
    { "--out", "RUN.h5", "write the archive, and while running the journal RUN.h5.jsonl" },
#define X(name, file, help) { "--" #name, file, help },
    AT_REPORT_LIST(X)
#undef X
        { "--jsonl", "FILE",
          "write each result as a JSON line when its job has been judged; -: to stdout, and the table to stderr "
          "(verify/REPAIR.md)" },
    { "--counters", NULL,
      "count memory requests, sectors and bank conflicts (SIMT machine: as g++ compiled the kernel)" },
    { "--keep", "WHEN", "tensors in the archive: never (default), wrong (what fails or is VACUOUS), all" },
    { "--resume", NULL,
      "go on from the journal of a run with --out that was killed or interrupted (Ctrl-C shows what was judged, writes "
      "no "
      "report and no archive, and names the command that goes on)" },
    { "--fail-fast", NULL, "stop after the first failing job" },
    { "--first-failure", NULL,
      "judge each variant up to its first failing result, on small cases first; not with --shard, where each would "
      "have "
      "its own" },
    { "--last-failed", "RUN.h5",
      "of what is selected, judge only the jobs that failed in that run, by the journal beside it (exit 4: nothing "
      "did); "
      "--out is another file" },
    { "--set-aside", "N",
      "judge a variant no further once N of its jobs have CRASHED or HUNG: the others are SKIPPED, with that reason" },
    { "--again", "N",
      "launch again (in other memory, in a graph, parts of the batch alone and backwards) for one job in N, drawn by "
      "variant and case; the others are judged by one launch (default 1: every job)" },
    { "--timeout", "SECONDS",
      "a launch is HUNG after this much processor time, or ten times as long by the clock (default: 20 x expected, at "
      "least 10)" },
    { "--limit-factor", "X", "widen every limit by hand, to see what then becomes VACUOUS (default 1)" },
    { "--quiet", NULL, "no progress; rows only for what fails or is VACUOUS" },
    { NULL, NULL, NULL },
};

/* A run cut short would have overwritten what it had yet to judge: the archive is another than that of --out. Its places in the
 * plan are those of no shard. */
static at_status read_last_failed(const struct at_args *args, struct at_session_options *o) {
    o->last_failed = at_args_get(args, "--last-failed");
    if (!o->last_failed)
        return AT_OK;
    if (o->selection.shards > 1)
        return AT_FAIL(AT_USAGE, "--last-failed and shards exclude each other");
    return o->out ? at_atomic_check_apart(o->out, o->last_failed) : AT_OK;
}

/* Who has a function in a file takes the file for what is to be judged. */
static at_status check_globs(const struct at_args *args) {
    for (int i = 0; i < args->n_words; i++) {
        const size_t n = strlen(args->words[i]);
        if (n > 3 && strcmp(args->words[i] + n - 3, ".py") == 0 && access(args->words[i], F_OK) == 0)
            return AT_FAIL(AT_USAGE,
                           "found %s, a file of Python, where a GLOB of variants stands: wanted --runner 'python3 %s'",
                           args->words[i], args->words[i]);
    }
    return AT_OK;
}

static at_status read_options(const struct at_args *args, struct at_session_options *o) {
    int64_t seed, jobs;
    const char *text;
    *o = at_session_defaults();
    o->selection.globs = args->words;
    o->selection.n_globs = args->n_words;
    if ((text = at_args_get(args, "--cases")) != NULL)
        o->selection.cases_glob = strcmp(text, "*") == 0 ? "*:*" : text;
    o->selection.case_line = at_args_get(args, "--case");
    if ((text = at_args_get(args, "--runner")) != NULL)
        o->runner = text;
    o->out = at_args_get(args, "--out");
    o->strict = at_args_has(args, "--strict");
    o->sandbox = at_args_has(args, "--sandbox");
    o->resume = at_args_has(args, "--resume");
    o->fail_fast = at_args_has(args, "--fail-fast");
    o->first_failure = at_args_has(args, "--first-failure");
    o->counters = at_args_has(args, "--counters");
    o->quiet = at_args_has(args, "--quiet");
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 0, &seed));
    AT_TRY(at_devices_parse(at_args_get(args, "--devices"), &o->devices));
    AT_TRY(at_args_int(args, "--jobs", o->devices.n > 1 ? o->devices.n : 1, 256, at_devices_jobs(&o->devices), &jobs));
    AT_TRY(at_args_int(args, "--again", 1, 1000000, 1, &o->again));
    AT_TRY(at_args_int(args, "--set-aside", 1, 1000000, 0, &o->set_aside));
    o->selection.again = o->again;
    AT_TRY(at_args_real(args, "--timeout", 0.001, 1e6, 0, &o->timeout));
    AT_TRY(at_args_real(args, "--limit-factor", 1, 1e12, 1, &o->limit_factor));
    AT_TRY(at_shard_parse(at_args_get(args, "--shard"), &o->selection.shard, &o->selection.shards));
    if (o->selection.shards > 1)
        snprintf(o->shard_text, sizeof o->shard_text, "%d/%d", o->selection.shard + 1, o->selection.shards);
    if (o->first_failure && o->selection.shards > 1)
        return AT_FAIL(AT_USAGE, "--first-failure and shards exclude each other");
    AT_TRY(at_args_int(args, "--random", 1, 10000000, 0, &o->selection.random));
    o->selection.random_seed = (uint64_t)seed;
    if (!!o->selection.case_line + at_args_has(args, "--cases") + at_args_has(args, "--random") > 1)
        return AT_FAIL(AT_USAGE, "--case, --cases and --random exclude each other");
    if (o->resume && !o->out)
        return AT_FAIL(AT_USAGE, "--resume wants --out RUN.h5: the journal lies beside the archive");
    AT_TRY(read_last_failed(args, o));
    if ((text = at_args_get(args, "--keep")) != NULL)
        AT_TRY(at_keep_parse(text, &o->keep));
    if (text && !o->out)
        return AT_FAIL(AT_USAGE, "--keep wants --out RUN.h5: tensors are kept in the archive");
    o->seed = (uint64_t)seed;
    o->jobs = (int)jobs;
    return AT_OK;
}

/* A report in the place of the archive or of its journal would destroy it at the end of the run. */
static at_status check_files(const struct at_args *args) {
    char journal[4096];
    const char *out = at_args_get(args, "--out"), *lines = at_args_get(args, "--jsonl"), *reports[AT_REPORT_COUNT + 1];
    const char *others[] = { out, out ? journal : NULL };
    for (int r = 0; r < AT_REPORT_COUNT; r++) {
        const char *option = at_report_option((enum at_report)r);
        reports[r] = at_report_is_file((enum at_report)r) ? at_args_get(args, option) : NULL;
    }
    if (lines && strcmp(lines, "-") == 0 && at_args_has(args, "--github"))
        return AT_FAIL(AT_USAGE, "--github and --jsonl - both want standard output");
    reports[AT_REPORT_COUNT] = lines && strcmp(lines, "-") != 0 ? lines : NULL;
    if (out)
        snprintf(journal, sizeof journal, "%s.jsonl", out); /* longer ones are refused when it is opened */
    return at_atomic_check_files(reports, AT_REPORT_COUNT + 1, others, 2);
}

/* What a signal has left: the command that goes on from it, where there is one. Reports would pass for those of the whole
 * run, so none is written. */
static void explain_signal(const struct at_args *args) {
    const char *out = at_args_get(args, "--out");
    for (int r = 0; r < AT_REPORT_COUNT; r++) {
        const char *option = at_report_option((enum at_report)r), *path = at_args_get(args, option);
        if (path)
            fprintf(stderr, "attest: %s%s%s: not written, a part would pass for the whole\n", option, *path ? " " : "",
                    path);
    }
    if (!out) {
        fprintf(stderr, "attest: nothing was kept to go on from, which takes --out RUN.h5\n");
        return;
    }
    fprintf(stderr, "attest: %s.jsonl has what was judged; to go on: ", out);
    at_args_put(&at_command_verify, args, at_args_has(args, "--resume") ? "" : "--resume", stderr);
}

static at_status write_reports(const struct at_args *args, const struct at_run_record *record, int strict) {
    const char *lines = at_args_get(args, "--jsonl");
    FILE *out = lines && strcmp(lines, "-") == 0 ? stderr : stdout;
    int colour = isatty(fileno(out)) && !getenv("NO_COLOR");
    if (at_args_has(args, "--quiet"))
        at_report_table_brief(record, strict, colour, out);
    else
        at_report_table(record, strict, colour, out);
    for (int r = 0; r < AT_REPORT_COUNT && !record->signal; r++) {
        const char *path = at_args_get(args, at_report_option((enum at_report)r));
        if (path)
            AT_TRY(at_report_write((enum at_report)r, record, strict, path));
    }
    if (record->signal)
        explain_signal(args);
    return at_run_record_readable(record);
}

static int run(const struct at_args *args) {
    struct at_session_options o;
    struct at_run_record record;
    struct at_stream stream = { 0 };
    const char *lines = at_args_get(args, "--jsonl");
    at_status status = check_globs(args);
    if (status == AT_OK)
        status = read_options(args, &o);
    if (status == AT_OK)
        status = check_files(args);
    if (status == AT_OK && lines)
        status = at_stream_open(lines, o.strict, &stream);
    if (status != AT_OK)
        return at_report_failure(status);
    o.stored = 1;
    o.see = lines ? at_stream_results : NULL;
    o.see_context = &stream;
    status = at_session_run(&o, &record);
    if (status == AT_OK)
        status = at_stream_close(&stream);
    if (status == AT_OK)
        status = write_reports(args, &record, o.strict);
    int code = status == AT_OK ? at_report_exit_code(&record, o.strict) : at_report_failure(status);
    if (code == 4 && !(o.last_failed && record.n == 0))
        fprintf(stderr, "attest: nothing was judged: no selected case met a variant that takes it\n");
    at_run_record_release(&record);
    return code;
}

const struct at_command at_command_verify = {
    .name = "verify",
    .synopsis = "verify [GLOB...] [options]",
    .summary = "judge variants (GLOB matches family/variant) on cases",
    .example = "attest verify 'asynct_*/*split*' --cases 'exact:*' --strict --out run.h5",
    .options = options,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
