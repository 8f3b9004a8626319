/* attest study: what arithmetic does, on the CPU and on a device.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "verify/commands.h"
#include "verify/study_tensor_core.h"

static const struct at_option options[] = {
    { "--runner", "R", "tensor-core: cuda, cpu, or a command line that speaks the protocol" },
    { "--instructions", "GLOB", "tensor-core: which (default: all that the runner has)" },
    { "--patterns", "N", "tensor-core: of each instruction, over all strata (default 1048576)" },
    { "--seed", "S", "tensor-core: of the patterns (default 1)" },
    { "--golden", "FILE", "tensor-core: with a runner, write its results; without, the model against the file" },
    { NULL, NULL, NULL },
};

static int run(const struct at_args *args) {
    if (strcmp(args->words[0], "tensor-core") == 0)
        return at_study_tensor_core(args);
    return at_report_failure(AT_FAIL(AT_USAGE, "study: found '%.64s', wanted tensor-core", args->words[0]));
}

const struct at_command at_command_study = {
    .name = "study",
    .synopsis = "study tensor-core [options]",
    .summary = "arithmetic itself: tensor cores against their model",
    .example = "attest study tensor-core --runner cuda",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
