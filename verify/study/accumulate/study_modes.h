/* Modes of accumulation: how a stream of products is added up, step by step, before the eyes of an observer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_MODES_H
#define AT_STUDY_MODES_H

#include <stdint.h>

#include "attest/numerics.h"

/* The sum of n products a[i] * b[i], from +0. A step takes `step` products in ascending order:
 *   instruction NULL   one product, added exactly and rounded once to `stored` (an FMA chain)
 *   else               that tensor-core instruction's fused step; its result is then rounded to `stored`
 * every > 0: after that many products the accumulator is added to an f32 sum and starts again from +0 (promotion);
 * so is what is left at the end. */
struct at_study_mode {
    const char *name, *meaning;
    enum at_format operand;  /* of a and b */
    const char *instruction; /* tensor_core/instruction.h, "hopper_mma_k16_f16_f16" */
    int step;                /* products */
    enum at_format stored;   /* f32, f16 or bf16; the steps of E8M13 have 14 significand bits in f32 */
    int every;
    enum at_guard guard;  /* of values beyond f16 */
    int guard_at_the_end; /* 1: the finished sum alone, as a kernel tests its scores; 0: each stored value */
};

int at_study_mode_count(void);
const struct at_study_mode *at_study_mode_at(int i);
/* NULL if there is none of that name. */
const struct at_study_mode *at_study_mode_find(const char *name);

/* One step: products [first, first + n). */
struct at_study_step {
    int64_t index, first;
    int n;
    double before, computed, stored; /* the accumulator: as it was, as the step made it, after the guard */
};

struct at_study_observer {
    void (*see)(void *context, const struct at_study_step *step);
    void *context;
};

/* The sum by this mode. a and b hold values of mode->operand; n = 0 gives +0. NaN and infinities as the hardware has
 * them. observer may be NULL. guarded (may be NULL): how many values the guard changed. */
double at_study_add(const struct at_study_mode *mode, int64_t n, const double *a, const double *b,
                    const struct at_study_observer *observer, int64_t *guarded);

/* What theory allows, for finite operands and sums that stay in range. With S = sum |a b|, E the error:
 *   worst     |E| <= worst * S + eta, in any inputs
 *   probable  the same with the number of roundings replaced by its square root, the size that independent roundings
 *             of mean 0 have (Higham & Mary 2019, with a factor of 1); truncation does not have that mean */
struct at_study_bound {
    double worst, eta, probable;
};
/* n products, |a| and |b| at most `largest`. */
struct at_study_bound at_study_bound(const struct at_study_mode *mode, int64_t n, double largest);

#endif
