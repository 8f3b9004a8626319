/* The SIMT machine: matrix loads of a warp. Where an element belongs is said here as the
 * PTX ISA says it, lane by lane, and not as the machine does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_matrix.h"
#include "tests/support/simt_scene.h"

enum { LANES = 32 };

static int fault_line;
#define NOTED (fault_line = __LINE__)
static const char *at_fault(void) {
    static char text[64];
    snprintf(text, sizeof text, "test_simt_matrix.c:%d", fault_line);
    return text;
}

/* ---- ldmatrix ---- */

static int count, transposed, stride; /* matrices; bytes from row to row */
static uint32_t loaded[LANES][4];

#define LOAD(row) (NOTED, at_simt_load_matrix(count, transposed, row, loaded[at_simt_lane()], HERE_PLACE))

/* The row a lane names; NULL where nobody looks. */
static const uint8_t *row_of(const uint32_t *tile) {
    return TID < 8 * count ? (const uint8_t *)tile + TID * stride : NULL;
}

/* Element e of row r of the tile is 8 r + e, all rows written by lane 0. */
static void fill(uint32_t *tile) {
    for (int r = 0; r < 8 * count && TID == 0; r++)
        for (int w = 0; w < 4; w++)
            PUT(tile[r * stride / 4 + w], (uint32_t)(8 * r + 2 * w) | (uint32_t)(8 * r + 2 * w + 1) << 16);
}

static void loads(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 32, tile);
    fill(tile);
    SYNC_WARP(0xffffffffu);
    LOAD(row_of(tile));
}

static void test_matrices(void **state) {
    (void)state;
    for (count = 1; count <= 4; count *= 2)
        for (transposed = 0; transposed < 2; transposed++)
            for (stride = 16; stride <= 128; stride *= 2) {
                AT_SIMT_SCENE_SEEDS(at_test_effort(5), loads, 1, 32, AT_FINDING_NONE, NULL);
                for (int i = 0; i < LANES * count; i++) {
                    const int lane = i % LANES, m = i / LANES, g = lane / 4, t = lane % 4;
                    const int low = transposed ? 8 * (2 * t) + g : 8 * g + 2 * t, high = low + (transposed ? 8 : 1);
                    const uint32_t want = (uint32_t)(64 * m + low) | (uint32_t)(64 * m + high) << 16;
                    at_assert_true(loaded[lane][m] == want, "x%d%s lane %d register %d is %08x, wanted %08x", count,
                                   transposed ? " transposed" : "", lane, m, loaded[lane][m], want);
                }
            }
}

static void loads_misaligned(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 32, tile);
    fill(tile);
    SYNC_WARP(0xffffffffu);
    LOAD((const uint8_t *)tile + TID * stride + (TID == 5 ? 8 : 0));
}
static void loads_global(void *unused) {
    (void)unused;
    LOAD(at_simt_scene.in + 4 * TID);
}
static void loads_own_stack(void *unused) {
    (void)unused;
    _Alignas(16) uint32_t row[4] = { 0 };
    LOAD(row);
}
static void loads_past_the_end(void *unused) {
    (void)unused;
    SHARED(uint32_t, 31 * 4, tile);
    for (int i = TID; i < 31 * 4; i += LANES)
        PUT(tile[i], 0);
    SYNC_WARP(0xffffffffu);
    LOAD((const uint8_t *)tile + 16 * TID);
}
static void loads_unwritten(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 32, tile);
    fill(tile);
    SYNC_WARP(0xffffffffu);
    LOAD((const uint8_t *)tile + (TID == 7 ? 32 * stride : TID * stride));
}

static void test_rows_that_cannot_be(void **state) {
    (void)state;
    const long seeds = at_test_effort(10);
    count = 4;
    stride = 16;
    for (transposed = 0; transposed < 2; transposed++) {
        AT_SIMT_SCENE_SEEDS(seeds, loads_misaligned, 1, 32, AT_FINDING_BOUNDS, at_fault(), "thread 5",
                            "multiple of 16");
        AT_SIMT_SCENE_SEEDS(seeds, loads_global, 1, 32, AT_FINDING_BOUNDS, at_fault(), "not shared");
        AT_SIMT_SCENE_SEEDS(seeds, loads_own_stack, 1, 32, AT_FINDING_BOUNDS, at_fault(), "not shared");
        AT_SIMT_SCENE_SEEDS(seeds, loads_past_the_end, 1, 32, AT_FINDING_BOUNDS, at_fault(), "thread 31",
                            "belong to no variable");
        AT_SIMT_SCENE_SEEDS(seeds, loads_unwritten, 1, 32, AT_FINDING_UNWRITTEN, at_fault(), "thread 7");
    }
}

/* Each lane writes the row that it names itself, yet others get its elements. */
static void loads_what_lanes_wrote(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 4, tile);
    for (int w = 0; w < 4; w++)
        PUT(tile[4 * TID + w], (uint32_t)TID);
    LOAD(row_of(tile));
}
/* A lane writes to the row it named, and that others have read. */
static void overwrites_too_early(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 4, tile);
    fill(tile);
    SYNC_WARP(0xffffffffu);
    LOAD(row_of(tile));
    PUT(tile[4 * TID], 0);
}
static void overwrites_in_time(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 4, tile);
    fill(tile);
    SYNC_WARP(0xffffffffu);
    LOAD(row_of(tile));
    SYNC_WARP(0xffffffffu);
    PUT(tile[4 * TID], 0);
}
static void copy_not_waited_for(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 4, tile);
    at_simt_copy(tile + 4 * TID, at_simt_scene.in + 4 * TID, 16, HERE_PLACE);
    at_simt_copy_commit(HERE_PLACE);
    SYNC_WARP(0xffffffffu);
    LOAD(row_of(tile));
}
static void not_all_lanes(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 4, tile);
    fill(tile);
    SYNC_WARP(0xffffffffu);
    if (TID != 31)
        LOAD(row_of(tile));
}

static void test_order(void **state) {
    (void)state;
    const long seeds = at_test_effort(10);
    count = 4;
    stride = 16;
    for (transposed = 0; transposed < 2; transposed++) {
        AT_SIMT_SCENE_SEEDS(seeds, loads_what_lanes_wrote, 1, 32, AT_FINDING_RACE, at_fault(),
                            "writes without an order");
        AT_SIMT_SCENE_SEEDS(seeds, overwrites_too_early, 1, 32, AT_FINDING_RACE, "writes", "reads without an order");
        AT_SIMT_SCENE_SEEDS(seeds, overwrites_in_time, 1, 32, AT_FINDING_NONE, NULL);
        AT_SIMT_SCENE_SEEDS(seeds, copy_not_waited_for, 1, 32, AT_FINDING_RACE, "has not been waited for");
        AT_SIMT_SCENE_SEEDS(seeds, not_all_lanes, 1, 32, AT_FINDING_RACE, "matrix load of thread", "has left");
    }
}

/* Eight rows a pass when they lie in different banks, one when they lie in the same ones. */
static void test_wavefronts(void **state) {
    (void)state;
    for (count = 1; count <= 4; count *= 2)
        for (transposed = 0; transposed < 2; transposed++)
            for (stride = 16; stride <= 128; stride *= 8) {
                struct at_counters before, after;
                at_simt_scene_job(0);
                at_simt_count(1);
                at_simt_counters(&before);
                at_simt_scene_launch(loads, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 32, 1, 1 }, 0);
                at_simt_scene_expect(AT_FINDING_NONE, NULL);
                at_simt_counters(&after);
                const int stores = 8 * count * 4; /* a word each, by one lane */
                assert_int_equal(after.shared_requests - before.shared_requests, stores + 1);
                assert_int_equal(after.shared_wavefronts - before.shared_wavefronts,
                                 stores + (stride == 16 ? count : 8 * count));
            }
}
/* ---- stmatrix ---- */

static enum {
    STORE_RIGHT,
    STORE_READ_BY_ANOTHER,
    STORE_MISALIGNED,
    STORE_NOT_SHARED,
    STORE_WITHOUT_A_LANE
} store_fault;

/* What a lane has of matrix m: element e of row r is 64 m + 8 r + e. */
static uint32_t fragment(int m) {
    const int g = TID / 4, t = TID % 4, low = transposed ? 8 * (2 * t) + g : 8 * g + 2 * t;
    return (uint32_t)(64 * m + low) | (uint32_t)(64 * m + low + (transposed ? 8 : 1)) << 16;
}

static void stores(void *unused) {
    (void)unused;
    SHARED(uint32_t, 32 * 32, tile);
    const uint32_t registers[4] = { fragment(0), fragment(1), fragment(2), fragment(3) };
    uint8_t *row = TID < 8 * count ? (uint8_t *)tile + TID * stride : NULL;
    if (store_fault == STORE_MISALIGNED && TID == 3)
        row += 8;
    if (store_fault == STORE_NOT_SHARED && TID == 3)
        row = (uint8_t *)at_simt_scene.both;
    if (store_fault == STORE_WITHOUT_A_LANE && TID == 9)
        return;
    NOTED, at_simt_store_matrix(count, transposed, row, registers, HERE_PLACE);
    if (store_fault == STORE_READ_BY_ANOTHER)
        (void)GET(tile[(TID + 1) % 8 * stride / 4]);
    SYNC_WARP(0xffffffffu);
    for (int r = 0; r < 8 * count; r++)
        for (int w = 0; w < 4 && TID == 20; w++)
            loaded[r][w] = GET(tile[r * stride / 4 + w]);
}

static void test_stores(void **state) {
    (void)state;
    store_fault = STORE_RIGHT;
    for (count = 1; count <= 4; count *= 2)
        for (transposed = 0; transposed < 2; transposed++)
            for (stride = 16; stride <= 128; stride *= 2) {
                AT_SIMT_SCENE_SEEDS(at_test_effort(5), stores, 1, 32, AT_FINDING_NONE, NULL);
                for (int i = 0; i < 8 * count * 4; i++) {
                    const uint32_t first = (uint32_t)(2 * i), want = first | (first + 1) << 16;
                    at_assert_true(loaded[i / 4][i % 4] == want, "x%d%s row %d word %d is %08x, wanted %08x", count,
                                   transposed ? " transposed" : "", i / 4, i % 4, loaded[i / 4][i % 4], want);
                }
            }
    count = 1;
    stride = 16;
    static const struct {
        enum at_finding_kind kind;
        const char *say;
    } rows[] = { { AT_FINDING_NONE, "" },
                 { AT_FINDING_RACE, "without an order" },
                 { AT_FINDING_BOUNDS, "stores a matrix row to an address that is no multiple of 16" },
                 { AT_FINDING_BOUNDS, "stores a matrix row to memory that is not shared" },
                 { AT_FINDING_RACE, "which has left the kernel" } };
    for (transposed = 0; transposed < 2; transposed++)
        for (int i = 1; i < (int)(sizeof rows / sizeof *rows); i++) {
            store_fault = i;
            AT_SIMT_SCENE_SEEDS(at_test_effort(5), stores, 1, 32, rows[i].kind, rows[i].say);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stores), cmocka_unit_test(test_matrices),   cmocka_unit_test(test_rows_that_cannot_be),
        cmocka_unit_test(test_order),  cmocka_unit_test(test_wavefronts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
