/* attest study: the list of studies, and the command that runs one of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "attest/names.h"
#include "verify/cli/commands.h"
#include "verify/study/accumulate/study.h"
#include "verify/study/special/study_exp2.h"
#include "verify/study/special/study_special.h"
#include "verify/study/tensor_core/study_tensor_core.h"
#include "verify/study/ways/study_ways.h"
#include "verify/study/zeros/study_zeros.h"

const struct at_study *const at_studies[] = {
    &at_study_accumulate, &at_study_modes, &at_study_tensor_core, &at_study_special,
    &at_study_zeros,      &at_study_ways,  &at_study_exp2,        NULL,
};

/* One table for all, so that a word of one study before another is told from a word that none knows. */
static const struct at_option options[] = {
    AT_STUDY_ACCUMULATE_OPTIONS,
    AT_STUDY_TENSOR_CORE_OPTIONS,
    AT_STUDY_EXP2_OPTIONS,
    AT_STUDY_SPECIAL_OPTIONS,
    AT_STUDY_ZEROS_OPTIONS,
    AT_STUDY_WAYS_OPTIONS,
    { "--runner", "R",
      "tensor-core, special, ways: cuda, cpu (special, ways: default), or a command line that speaks the protocol" },
    { "--devices", "LIST",
      "tensor-core, special --golden: all, or 0,1,...: two runners are started on each of these GPUs (default: two on "
      "the first), and whichever is free takes the next piece; what fails on one is done by another" },
    { "--out", "S.h5", "write the archive" },
    { "--seed", "S", "of generated data (default 1)" },
    { NULL, NULL, NULL },
};

enum { MAX_STUDIES = 32 };

static at_status unknown(const char *word) {
    const char *names[MAX_STUDIES];
    char all[512];
    size_t used = 0;
    int n = 0;
    all[0] = 0;
    for (; at_studies[n] && n < MAX_STUDIES && used < sizeof all; n++) {
        names[n] = at_studies[n]->name;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", names[n]);
    }
    const char *nearest = at_nearest_name(word, names, n);
    return AT_FAIL(AT_USAGE, "study: found '%.64s'%s%s%s, wanted one of %s", word, nearest ? ", did you mean '" : "",
                   nearest ? nearest : "", nearest ? "'?" : "", all);
}

static at_status check_devices(const struct at_args *args) {
    const char *study = args->words[0];
    if (!at_args_has(args, "--devices"))
        return AT_OK;
    if (strcmp(study, "tensor-core") != 0 && !(strcmp(study, "special") == 0 && at_args_has(args, "--golden")))
        return AT_FAIL(AT_USAGE, "study %.64s: --devices is for tensor-core and special --golden", study);
    return at_args_has(args, "--runner") ? AT_OK : AT_FAIL(AT_USAGE, "study: --devices wants --runner");
}

static int run(const struct at_args *args) {
    const at_status status = check_devices(args);
    if (status != AT_OK)
        return at_report_failure(status);
    for (int i = 0; at_studies[i]; i++)
        if (strcmp(args->words[0], at_studies[i]->name) == 0)
            return at_studies[i]->run(args);
    return at_report_failure(unknown(args->words[0]));
}

const struct at_command at_command_study = {
    .name = "study",
    .synopsis = "study accumulate | modes | special | tensor-core | zeros | ways [options]",
    .summary = "precision lost by modes of accumulation; tensor cores and the special-function unit against their "
               "models; zero outputs; which kernel a dispatcher takes",
    .example = "attest study accumulate --modes 'f16*' --data '@(normal|same_sign|minilm/*)' --out s.h5",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
