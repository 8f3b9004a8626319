/* The SIMT machine: bulk copies by boxes and plain bytes, their layouts and edges, what they ask of mbarriers and
 * fences.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <string.h>

#include "kernels/device/tensor_box.h"
#include "kernels/simt/simt_bulk.h"
#include "tests/support/simt_scene.h"

enum { THREADS = 64, TILE_WORDS = 1024, TILE_BYTES = 4 * TILE_WORDS };
#define INIT(b, count) at_simt_mbarrier_init(b, count, HERE_PLACE)
#define EXPECT(b, bytes) at_simt_mbarrier_arrive_expect(b, bytes, HERE_PLACE)
#define ARRIVE(b) at_simt_mbarrier_arrive(b, HERE_PLACE)
#define WAIT(b, parity) at_simt_mbarrier_wait(b, parity, HERE_PLACE)
#define LOAD(to, box, b) at_simt_tensor_load(to, box, coordinates, b, HERE_PLACE)
#define FENCE() at_simt_proxy_fence(HERE_PLACE)

struct tile {
    _Alignas(1024) uint32_t words[TILE_WORDS];
};

/* ---- boxes ---- */

static struct at_simt_tensor_map map;
static int32_t coordinates[AT_SIMT_TENSOR_DIMS];
static uint8_t landed[TILE_BYTES];

static int64_t box_elements(void) {
    int64_t n = 1;
    for (int i = 0; i < map.rank; i++)
        n *= map.box[i];
    return n;
}

/* Where byte b of a box lies, said anew: lines of 128 bytes whose columns of 16 are exchanged by the line's number. */
static int place(int b) {
    const int columns = map.swizzle / 16;
    return map.swizzle ? b / 128 * 128 + (b % 128 / 16 ^ b / 128 % 8 % columns) * 16 + b % 16 : b;
}

/* Element e of the box: where it is in the tensor; -1: outside. */
static int64_t element_offset(int64_t e) {
    int64_t offset = 0;
    for (int i = 0; i < map.rank; e /= map.box[i++]) {
        const int64_t x = coordinates[i] + e % map.box[i];
        if (x < 0 || x >= map.size[i])
            return -1;
        offset += x * (i ? map.stride[i] : map.element_bytes);
    }
    return offset;
}

static void loads_a_box(void *unused) {
    (void)unused;
    SHARED(struct tile, 1, tile);
    SHARED(uint64_t, 1, bar);
    if (TID == 0) {
        INIT(bar, 1);
        FENCE();
    }
    SYNC();
    if (TID == 17) {
        EXPECT(bar, (uint32_t)(box_elements() * map.element_bytes));
        LOAD(tile, &map, bar);
    }
    WAIT(bar, 0);
    for (int i = TID; i < box_elements() * map.element_bytes / 4; i += THREADS) {
        const uint32_t word = GET(tile->words[i]);
        memcpy(landed + (ptrdiff_t)4 * i, &word, 4);
    }
}

/* Every word of the scene's input is its number plus one: a tensor over it, of any shape. */
static void tensor(int rank, int element_bytes, int swizzle, const int *box, const int *size) {
    map = (struct at_simt_tensor_map){
        .base = (uint8_t *)at_simt_scene.in, .rank = rank, .element_bytes = element_bytes, .swizzle = swizzle
    };
    int64_t stride = element_bytes;
    for (int i = 0; i < rank; i++) {
        map.size[i] = size[i];
        map.box[i] = box[i];
        map.stride[i] = stride;
        stride = (stride * size[i] + 15) / 16 * 16;
    }
}

static void check_box(const char *what) {
    at_simt_scene_job(1);
    map.base = (uint8_t *)at_simt_scene.in;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(3); seed++) {
        memset(landed, 0xee, sizeof landed);
        at_simt_scene_run(loads_a_box, 1, THREADS, seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int64_t e = 0; e < box_elements(); e++) {
            const int64_t offset = element_offset(e);
            static const uint8_t zeros[8];
            const uint8_t *want = offset < 0 ? zeros : (uint8_t *)at_simt_scene.in + offset;
            const int at = place((int)e * map.element_bytes);
            at_assert_true(memcmp(landed + at, want, (size_t)map.element_bytes) == 0,
                           "%s: element %lld, byte %d of the tile, is not byte %lld of the tensor", what, (long long)e,
                           at, (long long)offset);
        }
    }
}

static void test_boxes(void **state) {
    (void)state;
    at_simt_scene_job(1);
    static const int swizzles[] = { 0, 32, 64, 128 }, sizes[5] = { 40, 5, 3, 2, 2 };
    for (int rank = 1; rank <= 5; rank++)
        for (int s = 0; s < 4; s++)
            for (int e = 2; e <= 4; e += 2) {
                const int row = swizzles[s] ? swizzles[s] / e : 48 / e;
                const int box[5] = { row, rank == 2 ? 16 : 5, 2, 1, 2 };
                tensor(rank, e, swizzles[s], box, sizes);
                for (int edge = 0; edge < 5; edge++) {
                    char what[64];
                    snprintf(what, sizeof what, "rank %d, swizzle %d, %d bytes, edge %d", rank, swizzles[s], e, edge);
                    for (int i = 0; i < 5; i++) /* within, before the beginning, past the end, all past the end */
                        coordinates[i] = edge == 0   ? 0
                                         : edge == 1 ? (i == 0 ? 3 : 1)
                                         : edge == 2 ? -3 + 2 * (i > 0)
                                         : edge == 3 ? sizes[i] - 1
                                                     : sizes[i] + 7;
                    check_box(what);
                }
            }
}

static void test_what_a_map_cannot_say(void **state) {
    (void)state;
    static _Alignas(16) char memory[16];
    const struct at_tensor_box right = { .base = memory,
                                         .rank = 3,
                                         .element_bytes = 2,
                                         .size = { 64, 2, 100 },
                                         .stride = { 0, 128, 256 },
                                         .box = { 64, 1, 256 },
                                         .swizzle = 128 };
    struct at_tensor_box t = right;
    assert_null(at_tensor_box_wrong(&t));
#define WRONG(change, words) \
    do { \
        t = right; \
        change; \
        at_assert_true(at_tensor_box_wrong(&t) && strstr(at_tensor_box_wrong(&t), words), "%s: not refused", #change); \
    } while (0)
    WRONG(t.rank = 0, "1 to 5 dimensions");
    WRONG(t.rank = 6, "1 to 5 dimensions");
    WRONG(t.element_bytes = 3, "elements of");
    WRONG(t.base = memory + 8, "multiple of 16");
    WRONG(t.base = NULL, "multiple of 16");
    WRONG(t.size[1] = 0, "2^32 elements");
    WRONG(t.size[2] = ((int64_t)1 << 32) + 1, "2^32 elements");
    WRONG(t.box[2] = 257, "256 elements");
    WRONG(t.box[1] = 0, "256 elements");
    WRONG(t.stride[1] = 136, "multiples of 16");
    WRONG(t.stride[2] = (int64_t)1 << 40, "2^40");
    WRONG((t.box[0] = 12, t.swizzle = 0), "multiples of 16 bytes");
    WRONG(t.swizzle = 16, "a swizzle of");
    WRONG(t.swizzle = 64, "as many bytes");
    WRONG(t.box[0] = 32, "as many bytes");
}

/* ---- plain bytes, and the way back ---- */

static void goes_and_comes(void *unused) {
    (void)unused;
    SHARED(struct tile, 1, tile);
    SHARED(uint64_t, 1, bar);
    if (TID == 0) {
        INIT(bar, 1);
        FENCE();
        EXPECT(bar, 512);
        at_simt_bulk_load(tile->words, at_simt_scene.in + 4, 256, bar, HERE_PLACE);
        at_simt_bulk_load(tile->words + 64, at_simt_scene.in + 400, 256, bar, HERE_PLACE);
    }
    SYNC();
    WAIT(bar, 0);
    for (int i = TID; i < 128; i += THREADS)
        PUT(tile->words[i], GET(tile->words[i]) + 1000);
    FENCE();
    SYNC();
    if (TID == 5) {
        at_simt_bulk_store(at_simt_scene.out + 32, tile->words, 256, HERE_PLACE);
        at_simt_bulk_commit(HERE_PLACE);
        at_simt_tensor_store(&map, coordinates, tile->words, HERE_PLACE);
        at_simt_bulk_commit(HERE_PLACE);
        at_simt_bulk_wait(0, 1, HERE_PLACE);
    }
}

static void test_plain_bytes_and_stores(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(10); seed++) {
        at_simt_scene_job(seed);
        /* rows of 4 words, 6 of them; the box of 8 words by 16 rows begins at word 2 of row -1 */
        map = (struct at_simt_tensor_map){ .base = (uint8_t *)(at_simt_scene.out + 1024),
                                           .rank = 2,
                                           .element_bytes = 4,
                                           .size = { 4, 6 },
                                           .stride = { 4, 16 },
                                           .box = { 8, 16 } };
        coordinates[0] = 2;
        coordinates[1] = -1;
        at_simt_scene_run(goes_and_comes, 1, THREADS, seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (uint32_t i = 0; i < 64; i++)
            assert_int_equal(at_simt_scene.out[32 + i], 1000 + 5 + i);
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t row = i / 4, word = (row + 1) * 8 + i % 4 - 2; /* of the tile */
            const int stored = i % 4 >= 2 && row < 6;
            assert_int_equal(at_simt_scene.out[1024 + i],
                             stored ? 1000 + (word < 64 ? 5 + word : 401 + word - 64) : 0xdeadbeef);
        }
    }
}

/* ---- rules ---- */

static enum fault {
    RIGHT,
    WAITED_BY_ANOTHER, /* right: a thread that a barrier orders after the wait needs none of its own */
    NO_WAIT,
    NO_WAIT_BUT_BARRIERS,
    WAITED_FOR_THE_PHASE_BEFORE,
    WAITED_AT_ANOTHER,
    EXPECTS_TOO_MUCH,
    EXPECTS_TOO_LITTLE,
    EXPECTS_ONE_OF_TWO,
    EXPECTS_NOTHING,
    NO_FENCE_BEHIND_INIT,
    NO_FENCE_BEHIND_WRITE,
    FENCED_WRITE, /* right */
    WRITTEN_IN_FLIGHT,
    LOADED_IN_FLIGHT,
    LOADED_BEFORE_ALL_HAVE_READ,
    LOADED_WHEN_ALL_HAVE_READ, /* right */
    NOBODY_WAITS,
    NOBODY_WAITS_AT_THE_END,
    ARRIVES_TOO_OFTEN,
    EXPECTS_A_MEGABYTE,
    MISALIGNED,
    NOT_SHARED,
    PAST_THE_TENSOR,
    ODD_BYTES,
} fault;

static void one_load(void *tile, uint64_t *bar) {
    const uint32_t bytes = fault == EXPECTS_TOO_MUCH     ? 1056
                           : fault == EXPECTS_TOO_LITTLE ? 1008
                           : fault == EXPECTS_A_MEGABYTE ? 1u << 20
                           : fault == EXPECTS_ONE_OF_TWO ? 512
                                                         : 1024;
    if (fault == EXPECTS_NOTHING)
        ARRIVE(bar);
    else
        EXPECT(bar, bytes);
    if (fault == ARRIVES_TOO_OFTEN)
        ARRIVE(bar);
    at_simt_bulk_load((uint8_t *)tile + (fault == MISALIGNED ? 8 : 0),
                      fault == PAST_THE_TENSOR ? at_simt_scene.both + AT_SIMT_SCENE_WORDS - 64 : at_simt_scene.in,
                      fault == ODD_BYTES ? 520 : 512, bar, HERE_PLACE);
    at_simt_bulk_load((uint8_t *)tile + 512, at_simt_scene.in + 128, 512, bar, HERE_PLACE);
}

/* Long enough for copies to land where the seed lets them. */
static void idle(void) {
    for (int i = 0; i < 60; i++)
        SYNC();
}

/* Another 16 bytes in the place of the first, once all have read those; 16 more are expected and never come. */
static void waits_for_the_phase_before(struct tile *tile, uint64_t *bar) {
    SYNC();
    if (TID == 0) {
        EXPECT(bar, 32);
        at_simt_bulk_load(tile->words, at_simt_scene.in + 64, 16, bar, HERE_PLACE);
    }
    idle();
    WAIT(bar, 0);
    (void)GET(tile->words[0]);
}

static void uses_a_load(void *unused) {
    (void)unused;
    SHARED(struct tile, 1, tile);
    SHARED(uint64_t, 3, bar);
    if (TID == 0)
        for (int i = 0; i < 3; i++)
            INIT(bar + i, i == 2 ? THREADS : 1);
    if (TID == 0 && fault != NO_FENCE_BEHIND_INIT)
        FENCE();
    SYNC();
    if (fault == NO_FENCE_BEHIND_WRITE || fault == FENCED_WRITE)
        PUT(tile->words[TID], 0);
    if (fault == FENCED_WRITE)
        FENCE();
    SYNC();
    if (TID == 0) {
        one_load(fault == NOT_SHARED ? (void *)at_simt_scene.both : tile, bar);
        EXPECT(bar + 1, 16);
        at_simt_bulk_load(tile->words + 512, at_simt_scene.in, 16, bar + 1, HERE_PLACE);
        if (fault == LOADED_IN_FLIGHT)
            at_simt_bulk_load(tile->words, at_simt_scene.in, 16, bar + 1, HERE_PLACE);
    }
    if (fault == WRITTEN_IN_FLIGHT && TID == 40)
        PUT(tile->words[3], 0);
    if (fault == NOBODY_WAITS)
        return;
    WAIT(bar + 1, 0);
    if (fault == NO_WAIT_BUT_BARRIERS || fault == NOBODY_WAITS_AT_THE_END)
        idle();
    if (fault == NOBODY_WAITS_AT_THE_END)
        return;
    if (fault != NO_WAIT && fault != NO_WAIT_BUT_BARRIERS && fault != WAITED_AT_ANOTHER &&
        (fault != WAITED_BY_ANOTHER || TID == 33))
        WAIT(bar, 0);
    if (fault == WAITED_BY_ANOTHER)
        SYNC();
    for (int i = TID; i < 256 && !(fault == LOADED_BEFORE_ALL_HAVE_READ && TID >= 32); i += THREADS)
        PUT(at_simt_scene.out[BID * 256 + i], GET(tile->words[i]));
    if (fault == WAITED_FOR_THE_PHASE_BEFORE)
        waits_for_the_phase_before(tile, bar);
    if (fault == LOADED_WHEN_ALL_HAVE_READ)
        ARRIVE(bar + 2);
    else
        (void)BALLOT(0xffffffffu, 1); /* all of the warp have read, which orders nothing */
    if (fault < LOADED_BEFORE_ALL_HAVE_READ || fault > LOADED_WHEN_ALL_HAVE_READ)
        return;
    if (TID == 0) {
        if (fault == LOADED_WHEN_ALL_HAVE_READ)
            WAIT(bar + 2, 0);
        EXPECT(bar, 16);
        at_simt_bulk_load(tile->words, at_simt_scene.in + 64, 16, bar, HERE_PLACE);
    }
    WAIT(bar, 1);
}

static void finds(enum fault wrong, enum at_finding_kind kind, const char *words) {
    fault = wrong;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(20); seed++) {
        at_simt_scene_run(uses_a_load, 2, THREADS, seed);
        at_simt_scene_expect(kind, words, NULL);
        for (int i = 0; i < 512 && kind == AT_FINDING_NONE; i++)
            assert_int_equal(at_simt_scene.out[i], i % 256 + 1);
    }
}

static void test_rules_of_loads(void **state) {
    (void)state;
    finds(RIGHT, AT_FINDING_NONE, NULL);
    finds(WAITED_BY_ANOTHER, AT_FINDING_NONE, NULL);
    finds(FENCED_WRITE, AT_FINDING_NONE, NULL);
    finds(LOADED_WHEN_ALL_HAVE_READ, AT_FINDING_NONE, NULL);
    finds(NO_WAIT, AT_FINDING_RACE, "has not been waited for, at the mbarrier of");
    finds(NO_WAIT_BUT_BARRIERS, AT_FINDING_RACE, "has not been waited for, at the mbarrier of");
    finds(WAITED_FOR_THE_PHASE_BEFORE, AT_FINDING_RACE, "has not been waited for, at the mbarrier of");
    finds(WAITED_AT_ANOTHER, AT_FINDING_RACE, "has not been waited for, at the mbarrier of");
    finds(EXPECTS_TOO_MUCH, AT_FINDING_DEADLOCK, "has 1 arrivals of 1 and 32 bytes of bulk copies to come");
    finds(EXPECTS_TOO_LITTLE, AT_FINDING_DEADLOCK, "has 1 arrivals of 1 and 16 bytes of bulk copies too many");
    finds(EXPECTS_ONE_OF_TWO, AT_FINDING_RACE, "has not been waited for, at the mbarrier of");
    finds(EXPECTS_NOTHING, AT_FINDING_RACE, "has not been waited for, at the mbarrier of");
    finds(NO_FENCE_BEHIND_INIT, AT_FINDING_RACE, "initialises at");
    finds(NO_FENCE_BEHIND_INIT, AT_FINDING_RACE, "without a proxy fence between them");
    finds(NO_FENCE_BEHIND_WRITE, AT_FINDING_RACE, "without a proxy fence between them");
    finds(WRITTEN_IN_FLIGHT, AT_FINDING_RACE, "thread 40");
    finds(LOADED_IN_FLIGHT, AT_FINDING_RACE, "copies in bulk to byte 0");
    finds(LOADED_BEFORE_ALL_HAVE_READ, AT_FINDING_RACE, "shared memory, which thread");
    finds(NOBODY_WAITS, AT_FINDING_RACE, "block");
    finds(NOBODY_WAITS_AT_THE_END, AT_FINDING_RACE, "block");
    finds(ARRIVES_TOO_OFTEN, AT_FINDING_RACE, "once more than the 1 times of a phase");
    finds(EXPECTS_A_MEGABYTE, AT_FINDING_BOUNDS, "expects 1048576 bytes");
    finds(MISALIGNED, AT_FINDING_BOUNDS, "no multiple of 16");
    finds(NOT_SHARED, AT_FINDING_BOUNDS, "not shared");
    finds(PAST_THE_TENSOR, AT_FINDING_BOUNDS, "outside every tensor");
    finds(ODD_BYTES, AT_FINDING_BOUNDS, "copies 520 bytes in bulk");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_what_a_map_cannot_say),
        cmocka_unit_test(test_plain_bytes_and_stores),
        cmocka_unit_test(test_rules_of_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
