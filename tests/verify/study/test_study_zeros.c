/* Zero outputs and whole blocks of them, counted a second way; blocks that do not lie whole in the matrix do not count.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/study/zeros/study_zeros.h"

enum { MAX_SIDE = 40 };

/* Zeros of blocks of `high` rows and 16 columns that lie in the matrix whole, corner by corner. */
static int64_t naive(int64_t rows, int64_t columns, int64_t high, const double *values, int64_t *blocks) {
    int64_t zero = 0;
    *blocks = 0;
    for (int64_t r = 0; r + high <= rows; r += high)
        for (int64_t c = 0; c + 16 <= columns; c += 16) {
            int64_t others = 0;
            for (int64_t i = 0; i < high * 16; i++)
                others += values[(r + i / 16) * columns + c + i % 16] != 0;
            ++*blocks;
            zero += others == 0;
        }
    return zero;
}

static void test_counts(void **state) {
    (void)state;
    uint64_t draw = 1;
    int64_t zero_strips = 0, zero_blocks = 0;
    for (int round = 0; round < 400; round++) {
        double values[MAX_SIDE * MAX_SIDE];
        struct at_zeros z;
        int64_t blocks, zero = 0;
        const int64_t rows = round % (MAX_SIDE + 1), columns = round / 3 % (MAX_SIDE + 1);
        for (int64_t i = 0; i < rows * columns; i++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            values[i] = draw >> 40 & (round % 4 ? 511 : 63) ? (draw >> 60 & 1 ? -0.0 : 0.0) : 1;
            zero += values[i] == 0;
        }
        at_zeros_count(AT_F16, rows, columns, values, &z);
        assert_true(z.elements == rows * columns && z.zero == zero);
        assert_int_equal(z.zero_strips, naive(rows, columns, 1, values, &blocks));
        assert_int_equal(z.strips, blocks);
        assert_int_equal(z.zero_blocks, naive(rows, columns, 16, values, &blocks));
        assert_int_equal(z.blocks, blocks);
        zero_strips += z.zero_strips;
        zero_blocks += z.zero_blocks;
        assert_true(z.blocks == 0 || z.zero_strips >= 16 * z.zero_blocks);
    }
    assert_true(zero_strips > 1000 && zero_blocks > 20);
}

/* 0 is what the format has of it: f16 loses what is not above half of its least number, f32 keeps that; NaN is not 0. */
static void test_rounded(void **state) {
    (void)state;
    static const double values[] = { 0x1p-25, 0x1.8p-25, -0x1p-30, -0.0, (double)NAN, (double)INFINITY };
    struct at_zeros z;
    at_zeros_count(AT_F16, 1, 6, values, &z);
    assert_true(z.zero == 3 && z.strips == 0 && z.blocks == 0);
    at_zeros_count(AT_F32, 1, 6, values, &z);
    assert_true(z.zero == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
