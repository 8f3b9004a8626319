/* Decoys: wrong results fed to the same comparison, to prove on this very case that it can fail one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DECOYS_H
#define AT_DECOYS_H

#include "attest/decoy.h"
#include "verify/judge/answer.h"
#include "verify/result/result.h"

/* What the decoys said about one output tensor. */
struct at_decoy_report {
    int n, counted, rejected, passed;
    char fate[AT_RESULT_DECOYS + 1];
};

/* Notes of each decoy whether it counts for an output (AT_DECOY_SCALED: when the case requires it, and something can be
 * scaled; a case of few or of special values says nothing of small errors everywhere): where |D - R| > max(16 ulp of the output, rms(row)/4) in some
 * sampled element. Decided from the exact values alone, before any limit; at_answer_decoys() asks it of what it makes. */
void at_decoys_count(struct at_answer *answer, int tensor);
/* `modelled`: of a model that has values for some elements alone, those; NULL: all.
 * A decoy that counts is rejected when |D - R| > 2 limit somewhere (a wrong kernel also rounds) or, where the model
 * decides, when it is off the model by more than twice the interval still allowed.
 * Where the operator says which values within a limit are right (at_op.admits, of `numerics`), any other is rejected.
 * `limit` and `model`, `interval`: whole tensors; a NULL pointer means that reference does not decide. */
void at_decoys_try(const struct at_answer *answer, const struct at_numerics *numerics, int tensor, const double *limit,
                   const double *model, const double *interval, const unsigned char *modelled,
                   struct at_decoy_report *report);

/* AT_DECOY_SCALED, should it have passed, is rejected when sums over the output see a scale error of `scale` (as of
 * at_aggregate) that is smaller. */
void at_decoys_try_scale(const struct at_answer *answer, double scale, struct at_decoy_report *report);

#endif
