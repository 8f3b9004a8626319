/* The SIMT machine: wgmma, its layouts in shared memory, what it asks of fences, commits and waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <string.h>

#include "attest/format.h"
#include "tests/support/simt_scene.h"

enum { THREADS = 128, ROWS = 64, K = 16, COLUMNS_MAX = 256, SWIZZLES = 4 };

/* How the matrices lie, and what a kernel does wrong. */
static const int swizzles[SWIZZLES] = { 0, 32, 64, 128 };
static int swizzle, columns, a_in_registers, f16_sums, mn_major, fresh;
static float results[ROWS][COLUMNS_MAX];
static enum fault {
    RIGHT,
    NO_PROXY_FENCE,
    PROXY_FENCE_TOO_EARLY,
    PROXY_FENCE_OF_READERS, /* right: it stands between, too */
    NO_WGMMA_FENCE,
    READ_TOO_EARLY,
    WRITE_SUMS_TOO_EARLY,
    OPERAND_WRITTEN_TOO_EARLY,
    MATRIX_WRITTEN_TOO_EARLY,
    MATRIX_WRITTEN_AFTER_BARRIER,
    NO_COMMIT,
    NO_WAIT,
    WAITED_FOR_ANOTHER_GROUP,
    ONE_WARP_AWAY,
    MATRIX_GIVEN_BACK_TOO_EARLY,
    MATRIX_GIVEN_BACK, /* right */
    NO_ORDER
} fault;

static int a_value(int row, int k) { return (row + 2 * k) % 5 - 2; }
static int b_value(int column, int k) { return (3 * column + k) % 7 - 3; }
static int c_value(int row, int column) { return (row * column) % 9 - 4; }

/* Where chunk c of 16 bytes of a row lies, said anew: core matrices side by side along k and then by 8 rows, or rows of
 * `swizzle` bytes whose 16-byte columns are exchanged by the row's number in a pattern of 128 bytes a line. */
static int place(int row, int chunk) {
    if (!swizzle)
        return (row / 8 * 2 + chunk) * 128 + row % 8 * 16;
    const int byte = row * swizzle + chunk * 16, line = byte / 128;
    const int column = byte % 128 / 16, chunks = swizzle / 16;
    return line * 128 + (column ^ line % 8 % chunks) * 16;
}
static struct at_simt_matrix matrix(const void *at) {
    return (struct at_simt_matrix){ at, 128, swizzle ? 8 * swizzle : 256, swizzle, 0 };
}

/* Where column n of line k lies in an MN-major matrix: blocks of 8 lines of 8 columns, two along k and then by 8
 * columns; or 16 lines of `swizzle` bytes, permuted in the same way. */
static int place_mn(int n, int k) {
    const int chunks = swizzle / 16;
    if (!swizzle)
        return (n / 8 * 2 + k / 8) * 128 + k % 8 * 16 + n % 8 * 2;
    const int byte = (n / (8 * chunks) * K + k) * swizzle + n % (8 * chunks) * 2;
    return byte / 128 * 128 + (byte % 128 / 16 ^ byte / 128 % 8 % chunks) * 16 + byte % 16;
}
static struct at_simt_matrix matrix_mn(const void *at) {
    return (struct at_simt_matrix){ at, swizzle ? K * swizzle : 128, swizzle ? 8 * swizzle : 256, swizzle, 1 };
}

static uint32_t two(int low, int high) {
    return (uint32_t)at_encode(AT_F16, low) | (uint32_t)at_encode(AT_F16, high) << 16;
}

static void fill(uint32_t *to, int rows, int (*value)(int, int)) {
    for (int i = TID; i < rows * 8; i += THREADS) {
        const int row = i / 8, pair = i % 8;
        PUT(to[place(row, pair / 4) / 4 + pair % 4], two(value(row, 2 * pair), value(row, 2 * pair + 1)));
    }
}

static void fill_mn(uint32_t *to, int n, int (*value)(int, int)) {
    for (int i = TID; i < n / 2 * K; i += THREADS) {
        const int pair = i / K * 2, k = i % K;
        PUT(to[place_mn(pair, k) / 4], two(value(pair, k), value(pair + 1, k)));
    }
}

/* The lane's part of 16 rows by 8 columns each. */
static int row_of(int i) { return TID / 32 * 16 + TID % 32 / 4 + i / 2 % 2 * 8; }
static int column_of(int i) { return i / 4 * 8 + TID % 4 * 2 + i % 2; }

/* NOLINTNEXTLINE(readability-non-const-parameter): written when the warp has met */
static void issue(const uint32_t *a, const uint32_t *a_tile, const uint32_t *b_tile, uint32_t *d) {
    const struct at_simt_wgmma operation = { .kind = f16_sums ? AT_SIMT_WGMMA_K16_F16_F16 : AT_SIMT_WGMMA_K16_F16_F32,
                                             .columns = columns,
                                             .a = a_in_registers ? a : NULL,
                                             .a_at = matrix(a_tile),
                                             .b_at = mn_major ? matrix_mn(b_tile) : matrix(b_tile),
                                             .d = d,
                                             .fresh = fresh };
    at_simt_wgmma(&operation, HERE_PLACE);
}

static void put_sums(uint32_t *d) {
    for (int i = 0; i < columns / 2; i++) {
        const float x = (float)c_value(row_of(i), column_of(i));
        if (!f16_sums)
            memcpy(&d[i], &x, sizeof x);
        else if (i % 2)
            d[i / 2] = two(c_value(row_of(i - 1), column_of(i - 1)), (int)x);
    }
}

static void take_sums(const uint32_t *d) {
    for (int i = 0; i < columns / 2; i++) {
        float x;
        memcpy(&x, &d[i], sizeof x);
        results[row_of(i)][column_of(i)] = f16_sums ? (float)at_decode(AT_F16, d[i / 2] >> 16 * (i % 2) & 0xffff) : x;
    }
}

/* 8 rows of 128 bytes, after which a swizzle begins anew. */
struct pattern {
    _Alignas(1024) uint32_t words[256];
};

static void multiplies(void *unused) {
    (void)unused;
    SHARED(struct pattern, ROWS / 8, a_space);
    SHARED(struct pattern, COLUMNS_MAX / 8, b_space);
    SHARED(uint64_t, 1, given_back);
    uint32_t *a_tile = a_space->words, *b_tile = b_space->words;
    uint32_t d[COLUMNS_MAX / 2], other[COLUMNS_MAX / 2] = { 0 }, a[4];
    for (int r = 0; r < 4; r++) {
        const int row = TID / 32 * 16 + TID % 32 / 4 + r % 2 * 8, k = TID % 4 * 2 + r / 2 * 8;
        a[r] = two(a_value(row, k), a_value(row, k + 1));
    }
    put_sums(d);
    if (fault == PROXY_FENCE_TOO_EARLY)
        at_simt_proxy_fence(HERE_PLACE);
    fill(a_tile, ROWS, a_value);
    if (mn_major)
        fill_mn(b_tile, columns, b_value);
    else
        fill(b_tile, columns, b_value);
    if (fault != NO_PROXY_FENCE && fault != PROXY_FENCE_TOO_EARLY && fault != PROXY_FENCE_OF_READERS)
        at_simt_proxy_fence(HERE_PLACE);
    if (TID == 0)
        at_simt_mbarrier_init(given_back, THREADS, HERE_PLACE);
    if (fault != NO_ORDER)
        SYNC();
    if (fault == PROXY_FENCE_OF_READERS)
        at_simt_proxy_fence(HERE_PLACE);
    if (fault != NO_WGMMA_FENCE)
        at_simt_wgmma_fence(HERE_PLACE);
    if (!(fault == ONE_WARP_AWAY && TID / 32 == 2))
        issue(a, a_tile, b_tile, d);
    if (fault != NO_COMMIT)
        at_simt_wgmma_commit(HERE_PLACE);
    if (fault == WAITED_FOR_ANOTHER_GROUP) {
        issue(a, a_tile, b_tile, other);
        at_simt_wgmma_commit(HERE_PLACE);
    }
    if (fault == READ_TOO_EARLY)
        (void)GET(d[1]);
    if (fault == WRITE_SUMS_TOO_EARLY)
        PUT(d[0], 0);
    if (fault == OPERAND_WRITTEN_TOO_EARLY) {
        PUT(a[0], 0);
        issue(a, a_tile, b_tile, d);
    }
    if (fault == MATRIX_WRITTEN_AFTER_BARRIER)
        SYNC();
    if ((fault == MATRIX_WRITTEN_TOO_EARLY || fault == MATRIX_WRITTEN_AFTER_BARRIER) && TID == 77)
        PUT(b_tile[0], 0);
    if (fault == MATRIX_GIVEN_BACK_TOO_EARLY)
        at_simt_mbarrier_arrive(given_back, HERE_PLACE);
    if (fault != NO_WAIT)
        at_simt_wgmma_wait(fault == WAITED_FOR_ANOTHER_GROUP, HERE_PLACE);
    if (fault == WAITED_FOR_ANOTHER_GROUP) {
        (void)GET(d[0]);     /* of the first group: right */
        (void)GET(other[0]); /* of the second: wrong */
    }
    if (fault == MATRIX_GIVEN_BACK)
        at_simt_mbarrier_arrive(given_back, HERE_PLACE);
    if ((fault == MATRIX_GIVEN_BACK || fault == MATRIX_GIVEN_BACK_TOO_EARLY) && TID == 77) {
        at_simt_mbarrier_wait(given_back, 0, HERE_PLACE);
        PUT(b_tile[0], 0);
    }
    if (fault != NO_WAIT)
        take_sums(d);
}

static void test_products(void **state) {
    (void)state;
    fault = RIGHT;
    for (int i = 0; i < SWIZZLES * 2 * 2 * 5 * 2; i++) {
        static const int widths[5] = { 8, 16, 64, 128, 256 };
        swizzle = swizzles[i % SWIZZLES];
        a_in_registers = i / SWIZZLES % 2;
        f16_sums = i / SWIZZLES / 2 % 2;
        columns = widths[i / SWIZZLES / 4 % 5];
        mn_major = i / SWIZZLES / 20;
        fresh = i % 3 == 0;
        memset(results, 0, sizeof results);
        AT_SIMT_SCENE_SEEDS(at_test_effort(2), multiplies, 1, THREADS, AT_FINDING_NONE, NULL);
        for (int j = 0; j < ROWS * columns; j++) {
            const int row = j / columns, column = j % columns;
            int want = fresh ? 0 : c_value(row, column);
            for (int k = 0; k < K; k++)
                want += a_value(row, k) * b_value(column, k);
            at_assert_true((int)results[row][column] == want,
                           "swizzle %d, %d columns, %s, a in %s, sums in %s: row %d column %d is %g, wanted %d",
                           swizzle, columns, mn_major ? "MN-major" : "K-major",
                           a_in_registers ? "registers" : "shared memory", f16_sums ? "f16" : "f32", row, column,
                           (double)results[row][column], want);
        }
    }
}

static void finds(enum fault wrong, enum at_finding_kind kind, const char *words) {
    fault = wrong;
    AT_SIMT_SCENE_SEEDS(at_test_effort(10), multiplies, 1, THREADS, kind, words);
}

static void test_rules(void **state) {
    (void)state;
    f16_sums = fresh = 0;
    columns = 16;
    for (int i = 0; i < 8; i++) {
        a_in_registers = i % 2;
        swizzle = i / 2 % 2 * 128;
        mn_major = i / 4;
        finds(RIGHT, AT_FINDING_NONE, NULL);
        finds(PROXY_FENCE_OF_READERS, AT_FINDING_NONE, NULL);
        finds(NO_PROXY_FENCE, AT_FINDING_RACE, "without a proxy fence between them");
        finds(PROXY_FENCE_TOO_EARLY, AT_FINDING_RACE, "without a proxy fence between them");
        finds(NO_ORDER, AT_FINDING_RACE, "multiplies");
        finds(NO_WGMMA_FENCE, AT_FINDING_RACE, "touched since the last wgmma fence");
        finds(READ_TOO_EARLY, AT_FINDING_RACE, "touches sums of the wgmma at");
        finds(WRITE_SUMS_TOO_EARLY, AT_FINDING_RACE, "touches sums of the wgmma at");
        finds(MATRIX_WRITTEN_TOO_EARLY, AT_FINDING_RACE, "writes");
        finds(MATRIX_WRITTEN_AFTER_BARRIER, AT_FINDING_RACE, "which a wgmma reads that has not been waited for");
        finds(NO_COMMIT, AT_FINDING_RACE, "leaves the kernel with wgmma that have not been waited for");
        finds(NO_WAIT, AT_FINDING_RACE, "leaves the kernel with wgmma that have not been waited for");
        finds(WAITED_FOR_ANOTHER_GROUP, AT_FINDING_RACE, "touches sums of the wgmma at");
        finds(MATRIX_GIVEN_BACK, AT_FINDING_NONE, NULL);
        finds(MATRIX_GIVEN_BACK_TOO_EARLY, AT_FINDING_RACE, "shared memory, which thread");
        finds(ONE_WARP_AWAY, AT_FINDING_RACE, "of the same warpgroup");
    }
    swizzle = 0;
    a_in_registers = 1;
    finds(OPERAND_WRITTEN_TOO_EARLY, AT_FINDING_RACE, "operands that were touched since the last wgmma fence");
}

static void outside_a_warpgroup(void *unused) {
    SHARED(uint32_t, 512, tile);
    uint32_t d[64] = { 0 };
    (void)unused;
    at_simt_wgmma_fence(HERE_PLACE);
    issue(NULL, tile, tile, d);
}
static void in_global_memory(void *unused) {
    uint32_t d[64] = { 0 };
    (void)unused;
    at_simt_wgmma_fence(HERE_PLACE);
    issue(NULL, at_simt_scene.in, at_simt_scene.in, d);
}
static void misaligned(void *unused) {
    SHARED(uint32_t, 1024, tile);
    uint32_t d[64] = { 0 };
    (void)unused;
    at_simt_wgmma_fence(HERE_PLACE);
    issue(NULL, tile + 1, tile, d);
}
static void past_the_end(void *unused) {
    SHARED(uint32_t, 64, tile);
    uint32_t d[64] = { 0 }, a[4] = { 0 };
    (void)unused;
    if (TID < 64)
        PUT(tile[TID], 0);
    at_simt_proxy_fence(HERE_PLACE);
    SYNC();
    at_simt_wgmma_fence(HERE_PLACE);
    issue(a, tile, tile, d);
}

static void mn_major_tf32(void *unused) {
    SHARED(uint32_t, 512, tile);
    uint32_t d[64] = { 0 }, a[4] = { 0 };
    (void)unused;
    const struct at_simt_wgmma operation = {
        .kind = AT_SIMT_WGMMA_K8_TF32_F32, .columns = 16, .a = a, .b_at = matrix_mn(tile), .d = d
    };
    at_simt_wgmma_fence(HERE_PLACE);
    at_simt_wgmma(&operation, HERE_PLACE);
}

static void test_what_cannot_be(void **state) {
    (void)state;
    swizzle = f16_sums = a_in_registers = mn_major = 0;
    at_simt_scene_run(mn_major_tf32, 1, THREADS, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "have not 16 bits", NULL);
    columns = 16;
    at_simt_scene_run(outside_a_warpgroup, 1, 96, 1);
    at_simt_scene_expect(AT_FINDING_RACE, "outside a warpgroup", NULL);
    at_simt_scene_run(in_global_memory, 1, THREADS, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "not in shared memory", NULL);
    at_simt_scene_run(misaligned, 1, THREADS, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "no multiples of 16", NULL);
    columns = 12;
    at_simt_scene_run(past_the_end, 1, THREADS, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "wanted 8, 16", NULL);
    columns = 16;
    a_in_registers = 1;
    at_simt_scene_run(past_the_end, 1, THREADS, 1);
    at_simt_scene_expect(AT_FINDING_BOUNDS, "belong to no variable", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
