/* mma of doubles: what all lanes of a warp hold, put together; each element a chain of fma.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order is the one that an H200 has: ascending, from c on (kernels/device/mma_f64.h). Which code a NaN of its has was not
 * looked at: nothing may depend on it. */
#include "kernels/simt/simt_matrix.h"

#include <math.h>

#include "kernels/simt/warp.h"

enum { ROWS = 16, COLUMNS = 8, DEEP = 4 };

/* What a lane hands in. */
struct fragments {
    const double *a, *c;
    double b, *d;
};

static void multiply(struct at_simt_thread *const *members, int n) {
    double a[ROWS][DEEP] = { 0 }, b[DEEP][COLUMNS] = { 0 };
    for (int lane = 0; lane < n; lane++) {
        const struct fragments *f = members[lane]->deposit;
        const int group = lane / DEEP, place = lane % DEEP;
        a[group][place] = f->a[0];
        a[group + ROWS / 2][place] = f->a[1];
        b[place][group] = f->b;
    }
    for (int lane = 0; lane < n; lane++) {
        const struct fragments *f = members[lane]->deposit;
        for (int i = 0; i < 4; i++) {
            const int row = lane / DEEP + ROWS / 2 * (i / 2), column = 2 * (lane % DEEP) + i % 2;
            double sum = f->c[i];
            for (int j = 0; j < DEEP; j++)
                sum = fma(a[row][j], b[j][column], sum);
            f->d[i] = sum;
        }
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written when the warp has met */
void at_simt_mma_f64(const double *a, double b, const double *c, double *d, struct at_simt_place place) {
    const struct fragments mine = { a, c, b, d };
    at_warp_operation(AT_SIMT_MMA, 0xffffffffu, 0, AT_SIMT_MMA_KINDS, &mine, multiply, place);
}
