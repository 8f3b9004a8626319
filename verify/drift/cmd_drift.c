/* attest drift: has a distribution moved between two recordings?
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/drift/drift.h"

static const struct at_option options[] = {
    { "--limits", "F.json",
      "limits, as {\"paired\": {\"ks\": 0.01, \"p\": {\"zero_share\": 0.001}, \"chance\": 5, "
      "\"noise_factor\": 3}, \"unpaired\": "
      "{\"level\": 0.01, \"permutations\": 999}}" },
    { "--noise", "LIST",
      "two or more recordings of one and the same thing, with commas or as further words: each metric may be 3 times "
      "the "
      "largest of it among them, in the same quantity and layer, beside its limit" },
    { "--what", "GLOB", "quantities (default: all that both have)" },
    { "--paired", NULL,
      "the requests are the same (default: found out by the ids of their tokens, else by their sizes and by how close "
      "their values are)" },
    { "--unpaired", NULL, "they are not: a permutation test over requests decides" },
    { "--seed", "S", "of the permutations (default 1)" },
    { "--worst", "N", "heads shown (default 20)" },
    { "--junit", "F.xml", "a test case for each layer and head" },
    { "--json", "F.jsonl", "a line for each quantity of each layer and head" },
    { NULL, NULL, NULL },
};

enum { MAX_NOISE = 32 };

/* Recordings of --noise: the option's own, with commas, and all words behind A and B. */
struct noise {
    char *text; /* that the option's paths lie in */
    const char *paths[MAX_NOISE];
    int n;
};

static at_status read_noise(const struct at_args *args, struct noise *noise) {
    const char *list = at_args_get(args, "--noise");
    if (!list && args->n_words > 2)
        return AT_FAIL(AT_USAGE, "drift: found %d words, wanted A.h5 and B.h5; more recordings belong to --noise",
                       args->n_words);
    if (!list)
        return AT_OK;
    noise->text = strdup(list);
    if (!noise->text)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for names");
    char *rest = NULL;
    for (char *path = strtok_r(noise->text, ",", &rest); path; path = strtok_r(NULL, ",", &rest)) {
        if (noise->n < MAX_NOISE)
            noise->paths[noise->n] = path;
        noise->n++;
    }
    for (int i = 2; i < args->n_words; i++, noise->n++)
        if (noise->n < MAX_NOISE)
            noise->paths[noise->n] = args->words[i];
    return noise->n >= 2 && noise->n <= MAX_NOISE
               ? AT_OK
               : AT_FAIL(AT_USAGE, "drift: --noise: found %d recordings, wanted 2 to %d of one and the same thing",
                         noise->n, (int)MAX_NOISE);
}

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

static at_status check_files(const struct at_args *args, const struct noise *noise) {
    const char *written[] = { at_args_get(args, "--junit"), at_args_get(args, "--json") };
    const char *read[3 + MAX_NOISE] = { args->words[0], args->words[1], at_args_get(args, "--limits") };
    memcpy(read + 3, noise->paths, (size_t)noise->n * sizeof *read);
    return at_atomic_check_files(written, 2, read, 3 + noise->n);
}

static at_status drift_all(const struct at_args *args, struct noise *noise, struct at_drift *drift) {
    struct at_drift_options o;
    struct at_drift_limits limits;
    int64_t worst;
    AT_TRY(read_options(args, &o, &worst));
    AT_TRY(read_noise(args, noise));
    o.noise = noise->paths;
    o.n_noise = noise->n;
    AT_TRY(check_files(args, noise));
    AT_TRY(at_drift_compare(args->words[0], args->words[1], &o, &limits, drift));
    at_drift_table(drift, &limits, worst, stdout);
    AT_TRY(at_drift_explain(drift, stdout));
    if (at_args_get(args, "--junit"))
        AT_TRY(at_drift_junit(drift, at_args_get(args, "--junit")));
    return at_args_get(args, "--json") ? at_drift_jsonl(drift, at_args_get(args, "--json")) : AT_OK;
}

static int run(const struct at_args *args) {
    struct at_drift drift = { 0 };
    struct noise noise = { 0 };
    const at_status status = drift_all(args, &noise, &drift);
    const int code = status != AT_OK ? at_report_failure(status) : !drift.judged ? 4 : drift.failed > 0;
    at_drift_release(&drift);
    free(noise.text);
    return code;
}

const struct at_command at_command_drift = {
    .name = "drift",
    .synopsis = "drift A.h5 B.h5 [options] [--noise C.h5 D.h5]",
    .summary = "has a distribution moved between two recordings; exit 1 beyond the limits",
    .example = "attest drift main.h5 branch.h5 --limits drift.json --junit drift.xml",
    .options = options,
    .min_words = 2,
    .max_words = 2 + MAX_NOISE,
    .reads_archives = 1,
    .run = run,
};
