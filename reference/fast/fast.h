/* The fast tier: the attention operators' exact values and limits for big shapes, blocked over OpenBLAS.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Never a golden: bits of a BLAS change with threads, shape and core type. Its error against the plain C
 * reference is bounded (the bound is added to the limit) and cross-checked on sampled rows in every run. */
#ifndef AT_FAST_H
#define AT_FAST_H

#include "attest/op.h"

/* 1 when the operator has a fast tier (asynct_attention, softmax_attention) and the problem is worth it. */
int at_fast_supports(const struct at_problem *problem);

/* The whole problem, all rows, over `threads` threads of ours with OpenBLAS single-threaded. Same meaning
 * of `eval` as at_op.evaluate (value, limit; ledger and p_zero through trace are filled too when wanted).
 * Memory beyond the outputs is bounded by a fixed block per thread whatever b and s are;
 * *peak_bytes (may be NULL) is what was allocated at most. progress (may be NULL) is called with the
 * share done, from one thread at a time. */
at_status at_fast_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int threads,
                           struct at_eval *eval, int64_t *peak_bytes, void (*progress)(void *context, double share),
                           void *progress_context);

/* Evaluates `samples` rows (spread by seed) again with op->evaluate and demands |fast - plain| within the
 * tier's stated bound; AT_BUG naming the element otherwise. *worst_ratio = largest error/bound seen. */
at_status at_fast_cross_check(const struct at_problem *problem, const struct at_eval *fast, int samples, uint64_t seed,
                              double *worst_ratio);

/* Name of the BLAS in use, its kernels and who chose them, for provenance. */
const char *at_fast_blas_name(void);

#endif
