/* The SIMT machine: what it knows without looking, it knows rightly, and it does not outlive what it was about.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_bulk.h"
#include "kernels/simt/machine.h"
#include "tests/support/simt_scene.h"

#define FULL 0xffffffffu

static const struct at_dim3 one = { 1, 1, 1 }, warp = { 32, 1, 1 };

/* ---- reads of inputs, all by one call ---- */

static const uint8_t *first_read, *then_read;
static __attribute__((noinline, noclone)) void read_here(const uint8_t *address) {
    at_mem_read4(address);
    STAY();
}
static void reads_by_one_call(void *unused) {
    (void)unused;
    read_here(first_read);
    read_here(first_read);
    read_here(then_read);
}

static void test_ends_of_an_input(void **state) {
    (void)state;
    at_simt_scene_job(0);
    first_read = (const uint8_t *)at_simt_scene.in;
    const uint8_t *end = first_read + sizeof at_simt_scene.in; /* where out begins, which nobody wrote */
    then_read = end - 4;
    at_simt_scene_run(reads_by_one_call, 1, 1, 0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    then_read = end - 2;
    at_simt_scene_run(reads_by_one_call, 1, 1, 0);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "reads 4 bytes outside every tensor", NULL);
    then_read = end;
    at_simt_scene_run(reads_by_one_call, 1, 1, 0);
    at_simt_scene_expect(AT_FINDING_UNWRITTEN, "byte 0 of out", NULL);
    then_read = first_read - 1;
    at_simt_scene_run(reads_by_one_call, 1, 1, 0);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "reads 4 bytes outside every tensor", NULL);
}

/* The same bytes told otherwise: as an output in the next job; half of them as an output in the same. */
static void test_what_was_an_input(void **state) {
    (void)state;
    at_simt_scene_job(0);
    first_read = (const uint8_t *)at_simt_scene.in;
    then_read = first_read + 64;
    uint8_t *base = (uint8_t *)at_simt_scene.in;
    const struct at_simt_region all[] = { { .name = "over", .base = base + 64, .bytes = 64, .unwritten = 1 },
                                          { .name = "in", .base = base, .bytes = 256, .read_only = 1 },
                                          { .name = "late", .base = base, .bytes = 256, .unwritten = 1 } };
    at_simt_job(all + 1, 1, 0);
    at_simt_scene_launch(reads_by_one_call, one, one, 0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    at_simt_job(all + 2, 1, 0);
    at_simt_scene_launch(reads_by_one_call, one, one, 0);
    at_simt_scene_expect(AT_FINDING_UNWRITTEN, "byte 0 of late", NULL);
    at_simt_job(all, 2, 0);
    at_simt_scene_launch(reads_by_one_call, one, one, 0);
    at_simt_scene_expect(AT_FINDING_UNWRITTEN, "byte 0 of over", NULL);
}

/* Counting is turned on after reads that were not counted. */
static void test_counts_of_inputs(void **state) {
    (void)state;
    struct at_counters counters;
    at_simt_scene_job(0);
    first_read = then_read = (const uint8_t *)at_simt_scene.in;
    at_simt_scene_launch(reads_by_one_call, one, warp, 0);
    at_simt_count(1);
    at_simt_scene_launch(reads_by_one_call, one, warp, 0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    at_simt_counters(&counters);
    assert_int_equal(counters.lane_accesses, 3 * 32);
    assert_int_equal(counters.global_requests, 3);
}

/* ---- shared memory ---- */

static void has_a_variable(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32, row);
    PUT(row[TID], 1);
}
static void reads_where_none_is(void *unused) {
    (void)unused;
    const uint8_t *arena = at_simt_shared_dynamic();
    at_mem_read4(arena + 16);
    STAY();
}
static void test_variables_of_an_earlier_launch(void **state) {
    (void)state;
    at_simt_scene_run(has_a_variable, 1, 32, 0);
    at_simt_scene_launch(reads_where_none_is, one, warp, 0);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "shared memory that belong to no variable", NULL);
}

static void writes_single_bytes(void *unused) {
    (void)unused;
    SHARED(uint8_t, 128, row);
    for (int i = 0; i < 4; i++)
        WRITE(1, &row[4 * TID + i]);
    SYNC();
    READ(1, &row[127 - TID]);
}
static void reads_words(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32, row);
    READ(4, &row[TID]);
}
static void writes_words_twice(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32, row);
    PUT(row[TID], 1);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 0)
        PUT(row[3], 2);
}
/* The first bytes that are watched one by one are of another word now. */
static void writes_other_bytes(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32, row);
    SHARED(uint8_t, 4, other);
    if (TID == 5)
        WRITE(1, &other[0]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 6)
        PUT(row[0], 1);
}
/* Cells of single bytes end with their job. */
static void test_bytes_of_an_earlier_job(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        at_simt_scene_run(writes_single_bytes, 1, 32, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        at_simt_scene_run(reads_words, 1, 32, 0);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, "thread 0 reads byte 0 of a variable", NULL);
        at_simt_scene_run(writes_single_bytes, 1, 32, 0);
        at_simt_scene_run(writes_other_bytes, 1, 32, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        at_simt_scene_run(writes_single_bytes, 1, 32, 0);
        at_simt_scene_run(writes_words_twice, 1, 32, 0);
        at_simt_scene_expect(AT_FINDING_RACE, "thread 0 writes byte 12 of a variable", "which thread 3 of", NULL);
    }
}

static void leaves_before_its_store(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32, row);
    if (TID < 4)
        PUT(row[TID], 1);
    SYNC();
    at_simt_proxy_fence(HERE_PLACE);
    if (TID == 0)
        at_simt_bulk_store(at_simt_scene.both, row, 16, HERE_PLACE);
}
/* A job that was ended by a finding leaves reads that nobody waits for any more. */
static void test_reads_of_a_job_that_ended(void **state) {
    (void)state;
    at_simt_scene_run(leaves_before_its_store, 1, 32, 0);
    at_simt_scene_expect(AT_FINDING_RACE, "leaves the kernel before its bulk store", NULL);
    at_simt_scene_run(has_a_variable, 1, 32, 0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
}

/* ---- warps ---- */

/* Lanes 1 and 2, and 3 and 4, wait for lane 31 in two operations at one place. It comes to one after the other, or to
 * one that names them all. */
static int names_all;
static void two_operations_wait(void *unused) {
    (void)unused;
    static const uint32_t low = 0x80000006u, high = 0x80000018u;
    uint32_t votes = 0;
    for (int i = 0; i < 2; i++) {
        const int in_high = TID == 31 ? i == 0 : TID >= 3;
        const uint32_t mask = TID == 31 && names_all ? low | high : in_high ? high : low;
        if ((mask >> TID & 1) && (TID == 31 || i == 0))
            votes = votes * 2 + (uint32_t)__builtin_popcount(BALLOT(mask, 1));
    }
    (void)SHUFFLE(FULL, 1, 0);
    PUT(at_simt_scene.out[TID], votes);
}
static void test_mixed_operations(void **state) {
    (void)state;
    names_all = 0;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), two_operations_wait, 1, 32, AT_FINDING_NONE, "");
    assert_int_equal(at_simt_scene.out[31], 3 * 2 + 3);
    assert_int_equal(at_simt_scene.out[1], 3);
    names_all = 1;
    at_simt_scene_run(two_operations_wait, 1, 32, 0);
    at_simt_scene_expect(AT_FINDING_RACE, "ballot of thread 31 with mask 8000001e names lane 1, which waits for it in",
                         "with mask 80000006", NULL);
}

/* Nobody waits yet when lane 5 names one that has left, or that the block does not have. */
static int gone;
static void names_who_is_gone(void *unused) {
    (void)unused;
    if (TID < 5)
        return;
    if (TID == 5)
        SYNC_WARP(1u << 5 | 1u << gone);
}
static void test_lanes_that_are_gone(void **state) {
    (void)state;
    gone = 2;
    at_simt_scene_run(names_who_is_gone, 1, 20, 0);
    at_simt_scene_expect(AT_FINDING_RACE, "thread 5 names lane 2, which has left the kernel", NULL);
    gone = 25;
    at_simt_scene_run(names_who_is_gone, 1, 32, 0); /* more threads first */
    at_simt_scene_run(names_who_is_gone, 1, 20, 0);
    at_simt_scene_expect(AT_FINDING_RACE, "thread 5 names lane 25, which the block of 20 does not have", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_of_an_input),        cmocka_unit_test(test_what_was_an_input),
        cmocka_unit_test(test_counts_of_inputs),        cmocka_unit_test(test_variables_of_an_earlier_launch),
        cmocka_unit_test(test_bytes_of_an_earlier_job), cmocka_unit_test(test_reads_of_a_job_that_ended),
        cmocka_unit_test(test_mixed_operations),        cmocka_unit_test(test_lanes_that_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
