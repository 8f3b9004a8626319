/* How long a launch may take before it counts as hung.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/built_case.h"
#include "verify/judge/job.h"

static double seconds(const char *line) {
    struct at_built_case built = at_build_line(line);
    const double seconds = at_launch_seconds(&built.data.problem);
    at_drop_case(&built);
    return seconds;
}

/* 03_fa3_f16_sum_guarded took more than 10 s for 130 requests of one query or two on the SIMT machine: its blocks have 128
 * threads whatever queries there are. */
static void a_lone_query_takes_as_long_as_a_tile(void **state) {
    (void)state;
    const double one = seconds("softmax_prefill b=64 h=8 hk=2 sq=1 sk=512 d=128 causal=0"),
                 tile = seconds("softmax_prefill b=64 h=8 hk=2 sq=32 sk=512 d=128 causal=0"),
                 more = seconds("softmax_prefill b=64 h=8 hk=2 sq=64 sk=512 d=128 causal=0");
    at_assert_within(one, tile, 1e-9 * tile);
    at_assert_within(more, 2 * tile, 1e-9 * more);
    assert_true(tile > 20);
}

/* 02_fa2 took 8 s for these on the SIMT machine, and was HUNG beside other work: 10,000 blocks, a tile of keys each. */
static void a_lone_key_takes_as_long_as_a_tile(void **state) {
    (void)state;
    const double one = seconds("softmax_prefill b=1250 h=8 hk=8 sq=1 sk=1 d=64"),
                 tile = seconds("softmax_prefill b=1250 h=8 hk=8 sq=1 sk=16 d=64");
    at_assert_within(one, tile, 1e-9 * tile);
    assert_true(one > 100);
}

static void little_work_has_ten_seconds(void **state) {
    (void)state;
    at_assert_same(seconds("softmax_decode b=1 h=1 hk=1 sk=1 d=1"), 10);
    at_assert_same(seconds("rms_norm tokens=3 channels=8"), 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_query_takes_as_long_as_a_tile),
        cmocka_unit_test(a_lone_key_takes_as_long_as_a_tile),
        cmocka_unit_test(little_work_has_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
