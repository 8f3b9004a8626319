/* The SIMT machine from job to job: what it keeps of memory is of no other job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

static const struct at_dim3 one = { 1, 1, 1 }, two = { 2, 1, 1 }, block = { 64, 1, 1 };

static void fills_both(void *unused) {
    (void)unused;
    for (int i = TID; i < AT_SIMT_SCENE_WORDS - 16; i += 64)
        PUT(at_simt_scene.both[i], GET(at_simt_scene.both[i]) + 1);
}
static void copies_both(void *unused) {
    (void)unused;
    PUT(at_simt_scene.out[TID], GET(at_simt_scene.both[TID]));
}

static void reads_out(void *unused) {
    (void)unused;
    (void)GET(at_simt_scene.out[TID]);
    STAY();
}

/* Jobs have tensors of other sizes, in another order; what is remembered of the job before is of none of them. */
static void test_other_tensors(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        at_simt_scene_run(fills_both, 1, 64, seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        const int64_t bytes = 1024 + 36 * (int64_t)seed;
        const struct at_simt_region regions[] = {
            { .name = "both", .base = (uint8_t *)at_simt_scene.both, .bytes = bytes },
            { .name = "out", .base = (uint8_t *)at_simt_scene.out, .bytes = bytes - 4, .unwritten = 1 },
        };
        at_simt_job(regions, 2, seed);
        at_simt_scene_launch(copies_both, one, block, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        at_simt_job(regions, 2, seed);
        at_simt_scene_launch(reads_out, one, block, 0);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, " of out", NULL);
    }
}

static uint32_t *larger;
static int64_t larger_words;

static void writes_the_last(void *unused) {
    (void)unused;
    for (int64_t i = larger_words - 64; i < larger_words; i++)
        if (i % 64 == TID)
            PUT(larger[i], 1);
}

/* Jobs with ever larger tensors, up to more than is kept, and a small one again. */
static void test_larger_tensors(void **state) {
    (void)state;
    static const int64_t words[] = { 64, 1 << 18, 1 << 20, 10 << 20, 1 << 18 };
    larger = malloc((size_t)(10 << 20) * sizeof *larger);
    assert_non_null(larger);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        larger_words = words[i];
        const struct at_simt_region region = { .name = "larger", .base = (uint8_t *)larger, .bytes = 4 * words[i] };
        at_simt_job(&region, 1, i);
        at_simt_scene_launch(writes_the_last, one, block, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL); /* after a finding nothing would be kept */
    }
    at_simt_scene_launch(writes_the_last, two, block, 0);
    at_simt_scene_expect(AT_FINDING_RACE, "of larger", "without an order", NULL);
    free(larger);
}

/* The call that is to fail does in every job, does nothing, and no other call fails. */
static void test_failing_calls(void **state) {
    (void)state;
    for (int failing = 0; failing <= 3; failing++) {
        at_simt_call_fails(failing);
        for (int job = 0; job < 2; job++) {
            at_simt_scene_job(1);
            for (int call = 1; call <= 3; call++) {
                const uint32_t before = at_simt_scene.both[0];
                const int code = at_simt_launch(fills_both, NULL, 0, one, block, 0, NULL);
                at_assert_true((code != 0) == (call == failing), "call %d: %d, call %d is to fail", call, code,
                               failing);
                assert_int_equal(at_simt_scene.both[0] - before, code == 0);
                assert_int_equal(at_simt_calls(), call);
            }
        }
    }
    at_simt_call_fails(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_tensors),
        cmocka_unit_test(test_larger_tensors),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
