/* attest study special: an exponential over every f32 there is, in order of their codes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_EXP2_H
#define AT_STUDY_EXP2_H

#include <stdint.h>
#include <stdio.h>

#include "verify/cli/options.h"
#include "verify/study/study_list.h"
#include "verify/runner/runner.h"

/* Inputs by what 2^x is for them. name, meaning */
#define AT_EXP2_CLASS_LIST(X) \
    X(normal, "-126 <= x < 128: results that f32 has as normal numbers") \
    X(subnormal, "-150 < x < -126: subnormal results") \
    X(underflow, "x <= -150: results that round to 0") \
    X(overflow, "x >= 128: results that round to infinity") \
    X(zero, "x = +0 and -0: the result is 1") \
    X(tiny, "x subnormal: the result rounds to 1") \
    X(infinite, "x = +inf and -inf: +inf and 0") \
    X(nan, "x a NaN: the result is one")

enum at_exp2_class {
#define X(name, meaning) AT_EXP2_##name,
    AT_EXP2_CLASS_LIST(X)
#undef X
        AT_EXP2_CLASSES
};

/* Inputs of one class through one variant. A result is off by |y - 2^x|, in units in the last place that f32 has at 2^x
 * (2^-149 below 2^-126). x of a maximum: the first code in order that reaches it; NaN where nothing was measured. */
struct at_exp2_row {
    char variant[96], name[16];
    int64_t step, inputs;
    int64_t not_nearest;  /* finite where it is due, and not what 2^x rounds to */
    int64_t flushed;      /* of them: 0, where 2^x does not round to 0 */
    int64_t wrong_class;  /* NaN, infinite or finite where something else of the three is due */
    int64_t beyond_limit; /* finite, and further from 2^x than the variant declares */
    int64_t descents;     /* results below that of the next smaller input, of the same sign, that was evaluated */
    int64_t undecided;    /* results of which 80 bits do not tell whether they are nearest */
    double max_ulp, max_ulp_x, max_relative, max_relative_x; /* over finite results that were not flushed */
    double first_bad_x; /* the first of wrong class or beyond its limit; NaN: none */
    uint64_t hash;      /* of all results of the variant, the same in each of its rows */
};

/* One chunk: results `got` for the inputs with codes (first + i) * step, i < n, exact values and limits beside them.
 * `before`: the result of the code before the first, if has_before. Adds to rows[AT_EXP2_CLASSES] and to their hash;
 * the same for any number of threads, and for any cut of the inputs into chunks. */
struct at_exp2_chunk {
    int64_t first, step, n;
    const float *got;
    const double *value, *limit;
    int has_before;
    float before;
};
at_status at_exp2_compare(const struct at_exp2_chunk *chunk, int threads, struct at_exp2_row *rows);

/* Rows of a variant with nothing counted yet. */
void at_exp2_rows_init(const char *variant, int64_t step, struct at_exp2_row rows[AT_EXP2_CLASSES]);
/* What 2^x rounds to in f32, given 2^x within 4 units of double's last place. *undecided is raised by one where even
 * 80 bits do not tell. */
float at_exp2_nearest(float x, double value, int64_t *undecided);

/* The table of n rows, variant by variant. */
void at_exp2_print(const struct at_exp2_row *rows, int64_t n, FILE *out);
/* verify/archive: /studies/exp2. */
at_status at_exp2_archive(const char *path, const char *device, struct at_exp2_row *rows, int n);

/* The variants of family exp2 over all of f32: exit code. */
int at_study_exp2_run(const struct at_args *args);
extern const struct at_study at_study_exp2;
#define AT_STUDY_EXP2_OPTIONS \
    { "--step", "N", "special: every N-th of the 2^32 codes of f32; odd is best (default 1: all)" }

extern const struct at_table at_study_table_exp2;
extern const struct at_content at_content_exp2;

#endif
