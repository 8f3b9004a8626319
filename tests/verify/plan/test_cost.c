/* What a job is estimated to cost, by what its variant declares.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner, whose variants are planned for and never launched. */
#include "tests/at_test.h"

#include "tests/support/runner_rig.h"
#include "verify/plan/cost.h"

static int never(const struct at_launch *launch) {
    (void)launch;
    return 1;
}

static const struct at_kernel_entry *entry_at(int i) {
    static const struct at_kernel kernel = { .summary = "never launched",
                                             .source = "a test",
                                             .numerics = { .qk_lanes = 1,
                                                           .qk_unit = AT_UNIT_TC_F16,
                                                           .pv_unit = AT_UNIT_TC_F16,
                                                           .p = AT_F16,
                                                           .pv_chunk = 16,
                                                           .pv_zero = AT_PV_ZERO_MULTIPLIED },
                                             .launch = never };
    static const struct at_kernel_entry entries[] = { { "asynct_prefill", "04_mma_f16_sum", "", &kernel, "" } };
    return &entries[i];
}

static struct at_runner *runner;

static double cost_of_line(const char *line) {
    const struct at_selection s = { .case_line = line, .shards = 1 };
    struct at_plan plan;
    struct at_plan_cost c;
    at_assert_ok(at_plan_make(&s, runner, &plan));
    assert_int_equal(plan.n_jobs, 1);
    at_assert_ok(at_plan_cost_make(&plan.items[0], runner, 1, &c));
    const double cost = c.variant[0];
    at_plan_cost_release(&c);
    at_plan_release(&plan);
    return cost;
}

/* A kernel on tensor cores declines operands of another type than it declares, and then costs next to nothing. */
static void declined_jobs_cost_little(void **state) {
    (void)state;
    const double taken = cost_of_line("asynct_prefill h=8 sq=200 sk=200 d=64 dtype=f16");
    const double declined = cost_of_line("asynct_prefill h=8 sq=200 sk=200 d=64 dtype=bf16");
    at_assert_true(declined < 0.1 * taken, "%g s where it is declined, %g s where not", declined, taken);
}

static void more_work_costs_more(void **state) {
    (void)state;
    const double few = cost_of_line("asynct_prefill h=8 sq=20 sk=20 d=64 dtype=f16");
    const double many = cost_of_line("asynct_prefill h=8 sq=200 sk=2000 d=64 dtype=f16");
    at_assert_true(many > 3 * few, "%g s and %g s", few, many);
}

static int open_runner(void **state) {
    (void)state;
    return at_rig_open_self(&runner) == AT_OK ? 0 : -1;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_rig_serve_list(&(struct at_kernel_list){ 1, entry_at });
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declined_jobs_cost_little),
        cmocka_unit_test(more_work_costs_more),
    };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
