/* Element-by-element comparison of an output with its references. The only comparator in attest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COMPARE_H
#define AT_COMPARE_H

#include "attest/op.h"
#include "verify/result/result.h"

struct at_comparison {
    const struct at_tensor *got;    /* as the kernel left it */
    const double *want;             /* exact */
    const double *limit;            /* of |got - want|; +inf: none (class RANGE) */
    const double *model, *interval; /* NULL: the variant declares no order */
    const unsigned char
        *modelled;          /* beside a model: 1 where it has a value; NULL: everywhere. Elsewhere the limit decides */
    const double *classes;  /* a modelled run in some order, for its NaNs and infinities alone; may be NULL */
    const double *overflow; /* where there is no limit: the same, for its NaNs; may be NULL */
    const void *bits;       /* codes that the output must have; NULL: values are compared */
    const unsigned char *computed; /* 1: of this element values all the same; NULL: of none */
    const struct at_problem
        *problem; /* whose operator may say that not all values within a limit are right; NULL: all are */
    const struct at_numerics *numerics;
    int tensor;
    int64_t count;
    int64_t first_wrong;                                    /* filled in: -1 when none */
    int64_t beyond_limit, off_model, laundered, overflowed; /* filled in */
    int64_t
        reclassed; /* of those beyond the limit: infinite or NaN as the exact value, but not the same, on the model */
    int64_t undecided; /* no limit, no model, no class to judge by */
    int64_t first_laundered;
    int64_t other_bits, first_other; /* right as values, wrong as codes */
};

/* Compares every element and fills the metric fields of `result` (total .. model_exact, worst_*) and the counts
 * above. Accepting form throughout: ok = error <= limit. NaNs compare as a class, infinities by sign.
 *   beyond_limit  error > limit, or a non-finite class differs where the exact value and its limit leave no doubt
 *   off_model     not within the interval around the modelled value
 *   laundered     the exact value is NaN or infinite and the kernel gave a finite number
 *   overflowed    the kernel is infinite or NaN where the exact value is finite
 *   other_bits    where `bits` are given: another payload of a NaN, another sign of a zero
 * An element is `wrong` when the reference that decides rejects it: the model where there is one; else, where the exact
 * value or `classes` is not finite, the class of `classes`; else the limit, and where there is none a NaN is right if
 * `overflow` has it too. Other bits are
 * wrong in any case. */
at_status at_compare(struct at_comparison *c, struct at_result *result);
/* 1 when element i is one of those that at_compare() counts as wrong. */
int at_compare_rejects(const struct at_comparison *c, int64_t i);

#endif
