/* Errors that are small everywhere: sums over an output that roundings to nearest cannot make large.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_AGGREGATE_H
#define AT_AGGREGATE_H

#include "verify/judge/answer.h"

/* What one sum over a group of rows came to. */
struct at_bias {
    double size;  /* sum of w_i e_i */
    double bound; /* a right variant's is at most this */
    double norm;  /* sum of w_i x_i (slope) or the number of elements (mean): what makes a slope or a mean of both */
};

struct at_aggregate {
    int judged;    /* 0: nothing here is rounded to nearest, or some element is not what sums are for */
    int outside;   /* some element is beyond a limit that it has; then not judged */
    int confirmed; /* fresh data gave the alarm again (redraw.c) */
    double ratio;  /* largest |size| / bound of all its tests; 0/0 is 0 */
    double moment_ratio[AT_MOMENT_COUNT]; /* of either kind */
    struct at_bias worst;                 /* of the test with the largest ratio */
    enum at_moment moment;
    int64_t head; /* of the worst; -1: the whole tensor */
    double scale; /* uniform scale error of the tensor that its slope cannot hide: twice its bound; INFINITY: none */
};

/* Tests one output. `got`: the kernel's; `limit`: of its elements, as widened by hand. Values that are not finite, and
 * elements without a limit or beyond it, are settled elsewhere: then nothing is judged. */
at_status at_aggregate_judge(const struct at_answer *answer, const struct at_numerics *numerics, int tensor,
                             const struct at_tensor *got, const double *limit, int threads, struct at_aggregate *out);

/* "biased: slope 1.0301, at most 1.0004 by the declaration (head 3)". */
void at_aggregate_say(const struct at_aggregate *a, char *text, size_t size);

#endif
