/* Neighbours of the special-function unit's model, and how many arguments tell them from it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/study/special/study_special.h"

enum { PIECE = 1 << 14, MAX_ROWS = 128, NOWHERE = -1 };

/* The arguments in which every row is met: codes from `first` on. sin and cos meet them all between 1/4 and 4. */
static void period(enum at_special_function function, uint32_t *first, int64_t *n) {
    int binades = 1;
    *first = 0x3f800000;
    if (function == AT_SPECIAL_rsqrt || function == AT_SPECIAL_sqrt) {
        binades = 2;
    } else if (function == AT_SPECIAL_sin || function == AT_SPECIAL_cos) {
        binades = 4;
        *first = 0x3e800000;
    } else if (function == AT_SPECIAL_tanh) {
        binades = 11;
        *first = 0x3b800000;
    }
    *n = (int64_t)binades << 23;
}

struct comparison {
    enum at_special_function function;
    const struct at_special_shape *shape;
    uint32_t first;
    int stop;                  /* at the first difference */
    int64_t (*told)[MAX_ROWS]; /* of each worker */
};

static at_status compare(void *context, int64_t begin, int64_t end, int worker) {
    const struct comparison *c = context;
    uint32_t x[PIECE] = { 0 }, y[PIECE], other[PIECE];
    for (int64_t i = begin; i < end; i++)
        x[i - begin] = c->first + (uint32_t)i;
    at_special_each(c->function, NULL, 0, end - begin, x, y);
    at_special_each(c->function, c->shape, 0, end - begin, x, other);
    for (int64_t i = 0; i < end - begin; i++)
        if (y[i] != other[i])
            c->told[worker][at_special_row_of(c->function, x[i])]++;
    return AT_OK;
}

/* told[row]: arguments that tell `shape`, row by row; *sum of all. */
static at_status tell(enum at_special_function function, const struct at_special_shape *shape, int threads,
                      int64_t told[MAX_ROWS], int64_t *sum) {
    struct comparison c = { .function = function, .shape = shape };
    int64_t n;
    period(function, &c.first, &n);
    c.told = calloc((size_t)threads, sizeof *c.told);
    if (!c.told)
        return AT_FAIL(AT_NO_MEMORY, "study special: no memory");
    const at_status status = at_parallel(n, PIECE, threads, compare, &c);
    memset(told, 0, MAX_ROWS * sizeof *told);
    *sum = 0;
    for (int w = 0; w < threads; w++)
        for (int r = 0; r < MAX_ROWS; r++) {
            told[r] += c.told[w][r];
            *sum += c.told[w][r];
        }
    free(c.told);
    return status;
}

static at_status add(enum at_special_function function, const struct at_special_shape *shape, int threads,
                     const char *name, struct at_special_neighbour *to) {
    int64_t told[MAX_ROWS];
    uint32_t first;
    snprintf(to->name, sizeof to->name, "%s", name);
    period(function, &first, &to->of);
    AT_TRY(tell(function, shape, threads, told, &to->told));
    to->least = to->told;
    for (int r = 0; r < shape->n_rows; r++)
        to->least = told[r] < to->least ? told[r] : to->least;
    return AT_OK;
}

/* The bias farthest from the unit's, by `direction`, with which nothing changes: what a bias changes, one farther changes too. */
static at_status farthest_bias(enum at_special_function function, int direction, int threads, int64_t *bias) {
    int64_t told[MAX_ROWS], sum, same = 0, other = 1;
    struct at_special_shape shape = at_special_shapes[function];
    const int32_t own = shape.bias;
    for (int found = 0; !found || other - same > 1;) {
        const int64_t step = found ? (same + other) / 2 : other;
        shape.bias = (int32_t)(own + direction * step);
        AT_TRY(tell(function, &shape, threads, told, &sum));
        if (sum) {
            other = step;
            found = 1;
        } else {
            same = step;
            other = found ? other : 2 * step;
        }
    }
    *bias = own + direction * same;
    return AT_OK;
}

at_status at_special_neighbours(enum at_special_function function, int threads,
                                struct at_special_neighbourhood *found) {
    const struct at_special_shape own = at_special_shapes[function];
    struct at_special_row rows[MAX_ROWS];
    struct at_special_shape shape = own;
    struct at_special_neighbour *next = found->items;
    memset(found, 0, sizeof *found);
    shape.rows = rows;
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = { "c0 + 1", "c0 - 1", "c1 + 1", "c1 - 1", "c2 + 1", "c2 - 1" };
        memcpy(rows, own.rows, (size_t)own.n_rows * sizeof *rows);
        for (int r = 0; r < own.n_rows; r++)
            *(i / 2 == 0 ? &rows[r].c0 : i / 2 == 1 ? &rows[r].c1 : &rows[r].c2) += i % 2 ? -1 : 1;
        next->of_each_row = 1;
        AT_TRY(add(function, &shape, threads, names[i], next++));
    }
    shape = own;
    for (int more = -1; more <= 1; more += 2) {
        shape.columns = own.columns + more;
        AT_TRY(add(function, &shape, threads, more < 0 ? "18 columns" : "20 columns", next++));
    }
    AT_TRY(farthest_bias(function, -1, threads, &found->least_bias));
    AT_TRY(farthest_bias(function, 1, threads, &found->most_bias));
    shape = own;
    shape.bias = (int32_t)found->least_bias - 1;
    AT_TRY(add(function, &shape, threads, "bias less", next++));
    shape.bias = (int32_t)found->most_bias + 1;
    return add(function, &shape, threads, "bias more", next++);
}
