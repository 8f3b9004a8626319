/* data=mixed: regimes that change within a tensor, by request, head and block of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "tests/support/built_case.h"

/* The mean square of n elements from `first` on. */
static double square_of(const struct at_tensor *x, int64_t first, int64_t n) {
    double square = 0;
    for (int64_t i = first; i < first + n; i++)
        square += at_tensor_get(x, i) * at_tensor_get(x, i) / (double)n;
    return square;
}

enum { REGIMES = 4 };

/* Of a block of rows: 0 ordinary, 1 large, 2 subnormal, 3 cancelling, by its mean square. */
static int regime_of(double square) { return square < 1e-10 ? 2 : square < 2 ? 0 : square > 1000 ? 1 : 3; }

/* Blocks of eight keys of a request and head are of one regime each, all four are there, and another seed has others. */
static void test_mixed(void **state) {
    (void)state;
    enum { BLOCKS = 24, HEADS = 2, D = 64, KEYS = 8 };
    int blocks[2][HEADS][BLOCKS], seen[REGIMES] = { 0 };
    for (int seed = 0; seed < 2; seed++) {
        char line[160];
        snprintf(line, sizeof line, "softmax_decode b=1 h=2 hk=2 sk=192 d=64 dtype=f32 data=mixed seed=%d", 5 + seed);
        struct at_built_case built = at_build_line(line);
        const struct at_tensor *v = at_built_tensor(&built, "v");
        for (int head = 0; head < HEADS; head++)
            for (int block = 0; block < BLOCKS; block++) {
                double square = 0;
                for (int key = block * KEYS; key < (block + 1) * KEYS; key++)
                    square += square_of(v, ((int64_t)key * HEADS + head) * D, D) / KEYS;
                blocks[seed][head][block] = regime_of(square);
                seen[regime_of(square)]++;
                for (int key = block * KEYS; key < (block + 1) * KEYS; key++)
                    assert_int_equal(regime_of(square_of(v, ((int64_t)key * HEADS + head) * D, D)), regime_of(square));
            }
        at_drop_case(&built);
    }
    for (int r = 0; r < REGIMES; r++)
        at_assert_true(seen[r] >= 8 && seen[r] <= 48, "regime %d: %d of 96 blocks", r, seen[r]);
    assert_memory_not_equal(blocks[0][0], blocks[0][1], sizeof blocks[0][0]);
    assert_memory_not_equal(blocks[0][0], blocks[1][0], sizeof blocks[0][0]);
    /* rows of a norm, and a residual of its regime */
    struct at_built_case built = at_build_line("add_rms_norm tokens=256 channels=64 data=mixed dtype=f32 seed=2");
    int rows[REGIMES] = { 0 };
    for (int row = 0; row < 256; row++) {
        const int x = regime_of(square_of(at_built_tensor(&built, "x"), row * 64, 64));
        assert_int_equal(x, regime_of(square_of(at_built_tensor(&built, "res"), row * 64, 64)));
        rows[x]++;
    }
    for (int r = 0; r < REGIMES; r++)
        at_assert_true(rows[r] >= 20 && rows[r] % 4 == 0, "regime %d: %d of 256 rows", r, rows[r]);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
