/* attest study: what accumulators cost, tensor cores against their model, an exponential over all of f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "attest/names.h"
#include "verify/study/accumulate/study.h"
#include "verify/study/special/study_exp2.h"
#include "verify/study/tensor_core/study_tensor_core.h"

static const struct at_option options[] = {
    { "--modes", "GLOB", "accumulate: modes, as `attest study modes` lists them (default all)" },
    { "--lengths", "N,N,..", "accumulate: keys of a row, 0 allowed (default 64,256,1024,4096)" },
    { "--d", "N,N,..", "accumulate: head sizes (default 64,128)" },
    { "--data", "GLOB",
      "accumulate: data families, and layers as DATASET/LAYER of AT_DATASETS/activations (default all)" },
    { "--attention", "A", "accumulate: asynct, softmax or both (default)" },
    { "--sums", "N", "accumulate: sums looked at of each product of a case (default 128)" },
    { "--out", "S.h5", "write the archive" },
    { "--resume", NULL, "accumulate: go on from the journal S.h5.jsonl of an interrupted study" },
    { "--quick", NULL, "accumulate: lengths 64,256, d 64, 16 sums, unless given" },
    { "--demos", NULL, "accumulate: the demonstrations alone" },
    { "--runner", "R", "tensor-core, exp2: cuda, cpu (exp2: default), or a command line that speaks the protocol" },
    { "--step", "N", "exp2: every N-th of the 2^32 codes of f32; odd is best (default 1: all)" },
    { "--instructions", "GLOB", "tensor-core: which (default: all that the runner has)" },
    { "--patterns", "N", "tensor-core: of each instruction, over all strata (default 1048576)" },
    { "--golden", "FILE", "tensor-core: with a runner, write its results; without, the model against the file" },
    { "--seed", "S", "of generated data (default 1)" },
    { NULL, NULL, NULL },
};

static int list_modes(void) {
    for (int i = 0; i < at_study_mode_count(); i++)
        printf("%-20s %s\n", at_study_mode_at(i)->name, at_study_mode_at(i)->meaning);
    return 0;
}

static int run(const struct at_args *args) {
    if (strcmp(args->words[0], "accumulate") == 0)
        return at_study_accumulate(args);
    if (strcmp(args->words[0], "tensor-core") == 0)
        return at_study_tensor_core(args);
    if (strcmp(args->words[0], "exp2") == 0)
        return at_study_exp2(args);
    if (strcmp(args->words[0], "modes") == 0)
        return list_modes();
    static const char *const words[] = { "accumulate", "tensor-core", "exp2", "modes" };
    const char *nearest = at_nearest_name(args->words[0], words, sizeof words / sizeof *words);
    return at_report_failure(
        AT_FAIL(AT_USAGE, "study: found '%.64s'%s%s%s, wanted accumulate, exp2, modes or tensor-core", args->words[0],
                nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : ""));
}

const struct at_command at_command_study = {
    .name = "study",
    .synopsis = "study accumulate | exp2 | modes | tensor-core [options]",
    .summary = "precision lost by modes of accumulation; tensor cores against their model; exp2 over all of f32",
    .example = "attest study accumulate --modes 'f16*' --data '@(normal|same_sign|minilm/*)' --out s.h5",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
