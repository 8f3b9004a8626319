/* attest doctor: what this installation can do, and what is missing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "attest/blas_core.h"
#include "attest/env.h"
#include "build_info.h"
#include "datasets/language/case.h"
#include "fast/fast.h"
#include "verify/cli/commands.h"
#include "verify/runner/runner.h"

static const struct at_option options[] = { { NULL, NULL, NULL } };

static int line(const char *what, int good, const char *detail) {
    printf("%-8s %-22s %s\n", good ? "found" : "MISSING", what, detail);
    return good;
}

static int check_runner(const char *spec, const char *cost) {
    struct at_runner *runner;
    char detail[256];
    if (at_runner_open(spec, &runner) != AT_OK) {
        snprintf(detail, sizeof detail, "%.160s (%s)", at_error_message(), cost);
        line(spec, 0, detail);
        return 0;
    }
    snprintf(detail, sizeof detail, "%s, %d variants", at_runner_device(runner), at_runner_variant_count(runner));
    at_runner_close(runner);
    return line(spec, 1, detail);
}

static int run(const struct at_args *args) {
    char path[1100], detail[1200];
    int good = 1;
    (void)args;
    printf("attest %s (%s), %s, %s\n", AT_VERSION, AT_COMMIT, AT_COMPILER, AT_BUILD_FLAGS);
    at_status numeric = at_env_check();
    good &= line("numeric environment", numeric == AT_OK,
                 numeric == AT_OK ? "subnormals kept, round to nearest" : at_error_message());
    snprintf(detail, sizeof detail, "%d threads (AT_THREADS sets another number)", at_threads());
    line("processors", 1, detail);
    line("BLAS", 1, at_fast_blas_name());
    if (at_blas_core_advice(detail, sizeof detail))
        printf("%-8s %-22s %s\n", "SLOW", "BLAS core", detail);
    snprintf(path, sizeof path, "%s/cases", at_datasets_dir());
    good &= line("case files", access(path, R_OK) == 0, path);
    snprintf(path, sizeof path, "%s/activations/minilm.safetensors", at_datasets_dir());
    good &= line("recorded activations", access(path, R_OK) == 0, path);
    good &= check_runner("cpu", "without it no kernel can be judged here");
    check_runner("cuda", "without it kernels are judged on the SIMT machine, not on a GPU");
    check_runner("mutants", "without it `attest selftest` cannot run");
    return good ? 0 : at_status_exit_code(AT_ENVIRONMENT);
}

const struct at_command at_command_doctor = {
    .name = "doctor",
    .synopsis = "doctor",
    .summary = "what is found, what is missing, what that costs",
    .example = "attest doctor",
    .options = options,
    .run = run,
};
