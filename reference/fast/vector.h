/* The fast tier's loops over one row, written so that compilers turn them into vector instructions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * They say the same as plain code elsewhere, which stays plain because it is read as the definition, and give the
 * same bits (tests/reference/fast/test_fast_rows.c): every element goes through the same IEEE operations in the same
 * order, only several elements at a time. */
#ifndef AT_FAST_VECTOR_H
#define AT_FAST_VECTOR_H

#include <limits.h> /* any header of glibc says __GLIBC__ */

#include "asynct_attention/asynct_attention.h"
#include "softmax_attention/softmax_attention.h"

/* AT_FAST_VECTOR: before a function, compiles it for several instruction sets and picks one when the program is
 * loaded. Needs gcc's target_clones and the dynamic linker's ifunc, whose resolvers run before a sanitizer is ready. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define AT_FAST_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define AT_FAST_VECTOR
#endif

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
