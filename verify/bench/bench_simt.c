/* attest bench simt: speed of the SIMT machine, its checks on and off.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bench/bench.h"
#include "verify/runner/launch.h"

static const char DEFAULT_CASE[] = "asynct_decode b=2 h=8 hk=4 sk=1024 d=128 page=16 dtype=bf16 data=normal";
static const char DEFAULT_VARIANT[] = "asynct_decode/02_cooperative_qk";
static const double timeout_seconds = 600;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static at_status launch(struct at_runner *runner, int variant, const struct at_problem *p,
                        const struct at_run_mode *mode, struct at_run_reply *reply) {
    struct at_outputs outputs;
    AT_TRY(at_guarded_launch(runner, variant, p, AT_POISON_JUDGED, mode, 1, timeout_seconds, reply, &outputs));
    at_outputs_release(&outputs);
    if (reply->outcome != AT_RAN)
        return AT_FAIL(AT_UNSUPPORTED, "bench: %s", reply->reason);
    return AT_OK;
}

static at_status median(struct at_runner *runner, int variant, const struct at_problem *p, int unchecked, int rounds,
                        double *seconds) {
    const struct at_run_mode mode = { .unchecked = unchecked };
    struct at_run_reply reply;
    at_status status = AT_OK;
    double *times = calloc((size_t)rounds, sizeof *times);
    if (!times)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d times", rounds);
    for (int i = 0; i < rounds && status == AT_OK; i++) {
        status = launch(runner, variant, p, &mode, &reply);
        times[i] = reply.seconds;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    *seconds = times[rounds / 2];
    free(times);
    return status;
}

static int find_variant(const struct at_runner *runner, const char *name) {
    char full[192];
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        snprintf(full, sizeof full, "%s/%s", v->family, v->name);
        if (strcmp(full, name) == 0)
            return i;
    }
    return -1;
}

static at_status bench(const struct at_args *args) {
    const struct at_run_mode counting = { .counters = 1 };
    const char *line = at_args_get(args, "--case") ? at_args_get(args, "--case") : DEFAULT_CASE;
    struct at_case_list cases = { 0 };
    struct at_case_data data = { 0 };
    struct at_runner *runner = NULL;
    struct at_run_reply reply;
    struct at_bench_row row = { 0 };
    const char *name = args->n_words > 1 ? args->words[1] : DEFAULT_VARIANT;
    double on, off;
    int64_t rounds;
    at_status status = AT_OK;
    AT_TRY(at_args_int(args, "--rounds", 1, 1000, 5, &rounds));
    AT_TRY_OUT(at_case_parse(line, "line", "command line", &cases));
    if (cases.n != 1)
        AT_FAIL_OUT(AT_USAGE, "bench: --case expands to %lld cases, wanted one", (long long)cases.n);
    AT_TRY_OUT(at_case_build(&cases.items[0], &data));
    AT_TRY_OUT(at_runner_open("cpu", &runner));
    const int variant = find_variant(runner, name);
    if (variant < 0 || strcmp(at_runner_variant(runner, variant)->family, cases.items[0].family->name) != 0)
        AT_FAIL_OUT(AT_USAGE, "bench simt: found %s, wanted a variant and one of its cases (attest list kernels)",
                    name);
    AT_TRY_OUT(at_bench_verify(runner, variant, &data.problem, 1, 1, &row));
    if (row.wrong || row.compared == 0)
        AT_FAIL_OUT(AT_UNSUPPORTED, "bench simt: %s", row.verdict);
    AT_TRY_OUT(launch(runner, variant, &data.problem, &counting, &reply));
    AT_TRY_OUT(median(runner, variant, &data.problem, 0, (int)rounds, &on));
    AT_TRY_OUT(median(runner, variant, &data.problem, 1, (int)rounds, &off));
    const double seen = (double)reply.counters.lane_accesses, flops = at_bench_flops(&data.problem);
    printf("case         %s\nvariant      %s, %s\n", cases.items[0].id, name, row.verdict);
    printf("work         %.0f memory accesses of lanes, %.0f multiply-adds of QK and PV, as g++ compiled the kernel\n",
           seen, flops / 2);
    printf("checks on    %8.3f s  %8.1f million accesses/s  %8.1f million multiply-adds/s (median of %lld, one core)\n",
           on, seen / on / 1e6, flops / 2 / on / 1e6, (long long)rounds);
    printf("checks off   %8.3f s  %8.1f million accesses/s  %8.1f million multiply-adds/s\n", off, seen / off / 1e6,
           flops / 2 / off / 1e6);
out:
    if (runner)
        at_runner_close(runner);
    at_case_data_release(&data);
    at_case_list_release(&cases);
    return status;
}

int at_bench_simt(const struct at_args *args) {
    const at_status status = bench(args);
    return status == AT_OK ? 0 : at_report_failure(status);
}
