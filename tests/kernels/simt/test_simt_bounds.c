/* The SIMT machine: accesses out of bounds, and those that are nobody's business.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

static int line_of;
static char line_text[64];
static const char *at_line(int line) {
    snprintf(line_text, sizeof line_text, "test_simt_bounds.c:%d:", line);
    return line_text;
}

static const void *target;
static int offset;
static int target_bytes, target_writes;
static void reaches(void *unused) {
    (void)unused;
    SHARED(uint32_t, 8, row);
    PUT(row[TID % 8], 1);
    const void *address = target ? target : (const void *)((uint8_t *)row + offset);
    line_of = __LINE__ + 1;
    target_writes ? target_bytes == 4 ? at_mem_write4(address) : at_mem_write16(address) : at_mem_read4(address);
    STAY();
}

static void expect_reach(const void *address, int bytes, int writes, const char *say) {
    target = address;
    target_bytes = bytes;
    target_writes = writes;
    at_simt_scene_run(reaches, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, at_line(line_of), "block 0: thread 0", say, NULL);
}

static void test_bounds(void **state) {
    (void)state;
    at_simt_scene_job(1);
    const uint32_t *past = at_simt_scene.out + AT_SIMT_SCENE_WORDS - 16;
    expect_reach(past, 4, 1, "byte +16320 of its 16320");
    expect_reach(past, 4, 0, "byte +16320 of its 16320");
    expect_reach(past - 2, 16, 1, "the nearest is out, byte +16312 of its 16320");
    expect_reach(at_simt_scene.before + 15, 4, 0, "outside every tensor");
    expect_reach(at_simt_scene.in + 3, 4, 1, "writes to the input in, byte 12");
    expect_reach((const void *)(uintptr_t)64, 4, 0, "outside every tensor"); /* NOLINT(performance-no-int-to-ptr) */
    for (offset = 32; offset < 48; offset += 4)
        expect_reach(NULL, 4, 0, "shared memory that belong to no variable");
    offset = -4;
    expect_reach(NULL, 4, 0, "shared memory that belong to no variable");
    offset = 24;
    expect_reach(NULL, 16, 1, "shared memory that belong to no variable");
}

static void moves_16(void *unused) {
    (void)unused;
    uint32_t x[4] = { 0 };
    at_simt_load16(&at_simt_scene.in[4], x);
    at_simt_store16((uint8_t *)&at_simt_scene.out[8] + offset, x);
    at_simt_load16((uint8_t *)&at_simt_scene.out[8] + target_bytes, x);
    STAY();
}
static void test_16_bytes(void **state) {
    (void)state;
    offset = target_bytes = 0;
    at_simt_scene_run(moves_16, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(at_simt_scene.out[8 + i], 5 + i);
    target_bytes = 8;
    at_simt_scene_run(moves_16, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "thread 0 reads 16 bytes at an address that is no multiple of 16", NULL);
    offset = 2;
    at_simt_scene_run(moves_16, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "thread 0 writes 16 bytes at an address that is no multiple of 16", NULL);
}

/* Past the end of dynamic shared memory, which static variables follow. */
static void dynamic_and_static(void *unused) {
    (void)unused;
    uint32_t *dynamic = at_simt_shared_dynamic();
    SHARED(uint32_t, 4, after);
    PUT(dynamic[0], 1);
    PUT(dynamic[24], 1);
    PUT(after[3], 1);
    PUT(at_simt_scene.out[0], (uint32_t)((uint8_t *)after - (uint8_t *)dynamic));
    line_of = __LINE__ + 1;
    at_mem_write4(dynamic + 25);
    STAY();
}
static void test_dynamic_bounds(void **state) {
    (void)state;
    at_simt_scene_job(1);
    at_simt_scene_launch(dynamic_and_static, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 1, 1, 1 }, 100);
    at_simt_scene_expect(AT_FINDING_BOUNDS, at_line(line_of), "shared memory", NULL);
    at_assert_true(at_simt_scene.out[0] >= 100, "a variable lies %u bytes into dynamic shared memory",
                   at_simt_scene.out[0]);
}

/* A kernel's own stack, its arguments and the program's constants are nobody's business. */
static const uint32_t constant[4] = { 1, 2, 3, 4 };
static uint32_t argument[4];
static void touches_private(void *given) {
    uint32_t local[64];
    for (int i = 0; i < 64; i++)
        PUT(local[i], GET(constant[i % 4]) + GET(((uint32_t *)given)[i % 4]));
    READ(4, &at_simt_current->thread.x);
    PUT(at_simt_scene.out[TID], GET(local[TID]));
}
static void test_private_memory(void **state) {
    (void)state;
    at_simt_scene_job(1);
    uint32_t *heap = malloc(sizeof argument);
    memcpy(heap, argument, sizeof argument);
    assert_int_equal(at_simt_launch(touches_private, heap, sizeof argument, (struct at_dim3){ 1, 1, 1 },
                                    (struct at_dim3){ 64, 1, 1 }, 0, NULL),
                     0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    free(heap);
}

/* More tensors than any operator has: none is forgotten. */
static void reads_last_region(void *unused) {
    (void)unused;
    READ(4, &at_simt_scene.in[199]);
    line_of = __LINE__ + 1;
    WRITE(4, &at_simt_scene.in[199]);
}
static void test_many_regions(void **state) {
    (void)state;
    struct at_simt_region regions[200];
    for (int i = 0; i < 200; i++)
        regions[i] = (struct at_simt_region){
            .name = i == 199 ? "last" : "other", .base = (uint8_t *)&at_simt_scene.in[i], .bytes = 4, .read_only = 1
        };
    at_simt_job(regions, 200, 1);
    at_simt_scene_launch(reads_last_region, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 1, 1, 1 }, 0);
    at_simt_scene_expect(AT_FINDING_BOUNDS, at_line(line_of), "the input last", NULL);
}

/* What the compiler calls for an index that the array's type does not have, negative ones with their sign. */
static int64_t beyond;
static void takes_beyond(void *unused) {
    static const struct {
        uint16_t kind, bits;
        char name[12];
    } array = { 0xffff, 0, "'float [4]'" }, index = { 0, 0x0b, "'int'" };
    const struct at_index_check check = { "test", 1, 1, (const struct at_checked_type *)&array,
                                          (const struct at_checked_type *)&index };
    (void)unused;
    line_of = __LINE__ + 1;
    at_mem_out_of_bounds(&check, (uintptr_t)beyond);
    STAY();
}
static void test_index(void **state) {
    (void)state;
    at_simt_scene_job(1);
    beyond = 4;
    at_simt_scene_run(takes_beyond, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, at_line(line_of), "block 0: thread 0 takes element 4 of 'float [4]'", NULL);
    beyond = -1;
    at_simt_scene_run(takes_beyond, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, at_line(line_of), "takes element -1 of 'float [4]'", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),         cmocka_unit_test(test_16_bytes),
        cmocka_unit_test(test_dynamic_bounds), cmocka_unit_test(test_private_memory),
        cmocka_unit_test(test_many_regions),   cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
