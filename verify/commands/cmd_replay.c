/* attest replay: repeats one job from the line its result printed.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/cli/commands.h"
#include "verify/report/report_stream.h"
#include "verify/run/session.h"

static const struct at_option options[] = {
    { "--runner", "R", "cpu (default), cuda, or a command line that speaks the protocol" },
    { "--seed", "S", "the run's seed, when it had one" },
    { "--timeout", "SECONDS", "a launch is HUNG after this much processor time, or ten times as long by the clock" },
    { "--sandbox", NULL, "as in verify" },
    { "--strict", NULL, "a VACUOUS result fails" },
    { "--jsonl", "FILE", "as in verify" },
    { "--dump", "F.h5", "keep every output and intermediate (scores, FIR, P, limits, model)" },
    { NULL, NULL, NULL },
};

/* "family/variant case line": the variant goes to `glob`, the rest is the case. */
static at_status split_line(const char *line, char *glob, size_t size, const char **case_line) {
    const char *space = strchr(line, ' '), *slash = strchr(line, '/');
    if (!space || !slash || slash > space || (size_t)(space - line) >= size)
        return AT_FAIL(AT_USAGE, "replay: found \"%.60s\", wanted 'family/variant case line', as a result prints it",
                       line);
    snprintf(glob, size, "%.*s", (int)(space - line), line);
    *case_line = space + 1;
    return AT_OK;
}

static at_status read_options(const struct at_args *args, char *glob, size_t size, const char **globs,
                              struct at_session_options *o) {
    int64_t seed;
    *o = at_session_defaults();
    AT_TRY(split_line(args->words[0], glob, size, &o->selection.case_line));
    globs[0] = glob;
    o->selection.globs = globs;
    o->selection.n_globs = 1;
    if (at_args_has(args, "--runner"))
        o->runner = at_args_get(args, "--runner");
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 0, &seed));
    AT_TRY(at_args_real(args, "--timeout", 0.001, 1e6, 0, &o->timeout));
    o->seed = (uint64_t)seed;
    o->dump = at_args_get(args, "--dump");
    o->strict = at_args_has(args, "--strict");
    o->sandbox = at_args_has(args, "--sandbox");
    o->jobs = 1;
    return AT_OK;
}

static int run(const struct at_args *args) {
    char glob[192];
    const char *globs[1];
    struct at_session_options o;
    struct at_run_record record;
    struct at_stream stream = { 0 };
    const char *lines = at_args_get(args, "--jsonl");
    FILE *out = lines && strcmp(lines, "-") == 0 ? stderr : stdout;
    at_status status = read_options(args, glob, sizeof glob, globs, &o);
    if (status == AT_OK && lines)
        status = at_stream_open(lines, o.strict, &stream);
    if (status != AT_OK)
        return at_report_failure(status);
    o.see = lines ? at_stream_results : NULL;
    o.see_context = &stream;
    status = at_session_run(&o, &record);
    if (status == AT_OK && record.n == 0)
        status = AT_FAIL(AT_USAGE, "replay: %s is no variant of the case's family", glob);
    if (status == AT_OK)
        at_report_table(&record, o.strict, isatty(fileno(out)) && !getenv("NO_COLOR"), out);
    if (status == AT_OK)
        status = at_stream_close(&stream);
    int code = status == AT_OK ? at_run_record_exit_code(&record, o.strict) : at_report_failure(status);
    at_run_record_release(&record);
    return code;
}

const struct at_command at_command_replay = {
    .name = "replay",
    .synopsis = "replay 'FAMILY/VARIANT CASE LINE' [options]",
    .summary = "repeat one job from the line that its result prints",
    .example =
        "attest replay 'asynct_decode/00_split_k asynct_decode b=2 h=8 hk=4 sk=300 d=128 dtype=bf16' --dump job.h5",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
