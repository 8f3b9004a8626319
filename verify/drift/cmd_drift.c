/* attest drift: has a distribution moved between two recordings?
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/drift/drift.h"

static const struct at_option options[] = {
    { "--limits", "F.json",
      "limits, as {\"paired\": {\"ks\": 0.01, \"p\": {\"zero_share\": 0.001}}, \"unpaired\": "
      "{\"level\": 0.01, \"permutations\": 999}}" },
    { "--what", "GLOB", "quantities (default: all that both have)" },
    { "--paired", NULL, "the requests are the same (default: found out by their sizes and values)" },
    { "--unpaired", NULL, "they are not: a permutation test over requests decides" },
    { "--seed", "S", "of the permutations (default 1)" },
    { "--worst", "N", "heads shown (default 20)" },
    { "--junit", "F.xml", "a test case for each layer and head" },
    { "--json", "F.jsonl", "a line for each quantity of each layer and head" },
    { NULL, NULL, NULL },
};

static at_status read_options(const struct at_args *args, struct at_drift_options *o, int64_t *worst) {
    const int paired = at_args_has(args, "--paired"), unpaired = at_args_has(args, "--unpaired");
    if (paired && unpaired)
        return AT_FAIL(AT_USAGE, "drift: --paired and --unpaired exclude each other");
    *o = (struct at_drift_options){ .pairing = paired     ? AT_DRIFT_PAIRED
                                               : unpaired ? AT_DRIFT_UNPAIRED
                                                          : AT_DRIFT_PAIR_AUTO,
                                    .limits = at_args_get(args, "--limits"),
                                    .what = at_args_get(args, "--what") };
    AT_TRY(at_args_int(args, "--worst", 1, INT64_MAX, 20, worst));
    return at_args_int(args, "--seed", 0, INT64_MAX, 1, &o->seed);
}

static at_status check_files(const struct at_args *args) {
    const char *written[] = { at_args_get(args, "--junit"), at_args_get(args, "--json") };
    const char *read[] = { args->words[0], args->words[1], at_args_get(args, "--limits") };
    return at_atomic_check_files(written, 2, read, 3);
}

static at_status drift_all(const struct at_args *args, struct at_drift *drift) {
    struct at_drift_options o;
    struct at_drift_limits limits;
    int64_t worst;
    AT_TRY(read_options(args, &o, &worst));
    AT_TRY(check_files(args));
    AT_TRY(at_drift_compare(args->words[0], args->words[1], &o, &limits, drift));
    at_drift_table(drift, &limits, worst, stdout);
    AT_TRY(at_drift_explain(drift, stdout));
    if (at_args_get(args, "--junit"))
        AT_TRY(at_drift_junit(drift, at_args_get(args, "--junit")));
    return at_args_get(args, "--json") ? at_drift_jsonl(drift, at_args_get(args, "--json")) : AT_OK;
}

static int run(const struct at_args *args) {
    struct at_drift drift = { 0 };
    const at_status status = drift_all(args, &drift);
    const int code = status != AT_OK ? at_report_failure(status) : !drift.judged ? 4 : drift.failed > 0;
    at_drift_release(&drift);
    return code;
}

const struct at_command at_command_drift = {
    .name = "drift",
    .synopsis = "drift A.h5 B.h5 [options]",
    .summary = "has a distribution moved between two recordings; exit 1 beyond the limits",
    .example = "attest drift main.h5 branch.h5 --limits drift.json --junit drift.xml",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .reads_archives = 1,
    .run = run,
};
