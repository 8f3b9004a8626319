/* The SIMT machine: products of doubles by a warp, element by element as the PTX ISA places them, and rounded as an H200
 * does: a chain of fma in ascending order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_matrix.h"
#include "tests/support/attention_problem.h"
#include "tests/support/simt_scene.h"

enum { LANES = 32, ROWS = 16, DEEP = 4, COLUMNS = 8 };

static double a[ROWS][DEEP], b[DEEP][COLUMNS], c[ROWS][COLUMNS], d[LANES][4];
static int in_place;

static void multiplies(void *unused) {
    (void)unused;
    const int lane = at_simt_lane(), group = lane >> 2, in_group = lane & 3;
    const double of_a[2] = { a[group][in_group], a[group + 8][in_group] };
    double sums[4] = { c[group][2 * in_group], c[group][2 * in_group + 1], c[group + 8][2 * in_group],
                       c[group + 8][2 * in_group + 1] };
    double *to = in_place ? sums : d[lane];
    at_simt_mma_f64(of_a, b[in_group][group], sums, to, HERE_PLACE);
    memcpy(d[lane], to, sizeof d[lane]);
}

/* Within 2^20 of 1 in size, with all 53 bits. */
static double drawn(struct at_test_random *random) {
    const double x = 1 + (double)(at_test_bits(random) >> 12) * 0x1p-52;
    const int sign = at_test_bits(random) % 2 ? 1 : -1;
    return sign * ldexp(x, (int)(at_test_bits(random) % 41) - 20);
}

static void test_chains_of_fma(void **state) {
    (void)state;
    int other_order = 0;
    for (long round = 1; round <= at_test_effort(20); round++) {
        struct at_test_random random = { (uint64_t)round };
        in_place = (int)(round % 2);
        for (int i = 0; i < ROWS * DEEP; i++)
            a[i / DEEP][i % DEEP] = drawn(&random);
        for (int i = 0; i < DEEP * COLUMNS; i++)
            b[i / COLUMNS][i % COLUMNS] = drawn(&random);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            c[i / COLUMNS][i % COLUMNS] = drawn(&random);
        at_simt_scene_run(multiplies, 1, LANES, (uint64_t)round);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int row = i / COLUMNS, column = i % COLUMNS;
            double up = c[row][column], down = up;
            for (int k = 0; k < DEEP; k++) {
                up = fma(a[row][k], b[k][column], up);
                down = fma(a[row][DEEP - 1 - k], b[DEEP - 1 - k][column], down);
            }
            const double got = d[row % 8 * 4 + column / 2][row / 8 * 2 + column % 2];
            at_assert_true(got == up, "round %ld, row %d, column %d: %a, wanted %a", round, row, column, got, up);
            other_order += up != down;
        }
    }
    assert_true(other_order > 0); /* the draws tell one order from another */
}

/* Part of a warp has no product. */
static void stays_out(void *unused) {
    if (at_simt_lane() != 5)
        multiplies(unused);
}

static void test_all_lanes_together(void **state) {
    (void)state;
    at_simt_scene_run(stays_out, 1, LANES, 1);
    at_simt_scene_expect(AT_FINDING_RACE, "mma of thread 0 names lane 5, which has left the kernel", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_chains_of_fma),
                                        cmocka_unit_test(test_all_lanes_together) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
