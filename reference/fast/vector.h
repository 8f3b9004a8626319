/* The fast tier's loops over one row, written so that compilers turn them into vector instructions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * They say the same as plain code elsewhere, which stays plain because it is read as the definition, and give the
 * same bits (tests/reference/fast/test_fast_rows.c): every element goes through the same IEEE operations in the same
 * order, only several elements at a time. */
#ifndef AT_FAST_VECTOR_H
#define AT_FAST_VECTOR_H

#include "asynct_attention/asynct_attention.h"
#include "attest/clones.h"
#include "softmax_attention/softmax_attention.h"

/* at_asynct_gate_row(). p may be dot itself; beyond that no arrays may overlap. */
void at_fast_gate_row(const struct at_asynct_head *head, int64_t n, const double *dot, double *s, double *z, double *p);

/* at_softmax_weights(), except that a maximum of 0 may have another sign. p may be dot itself; beyond that
 * no arrays may overlap. */
void at_fast_weight_row(int64_t n, const struct at_softmax_form *form, const double *dot, double *s, double *p,
                        struct at_softmax_row *row);

/* at_decode_array(). */
void at_fast_decode(enum at_format format, int64_t n, const void *codes, double *values);

/* 1 when each of the n values is finite. */
int at_fast_all_finite(int64_t n, const double *values);

#endif
