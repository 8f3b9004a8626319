/* Completing a case and knowing its sizes: what the parser and the builder share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CASE_FINISH_H
#define AT_CASE_FINISH_H

#include "datasets/language/case_keys.h"

/* Fills what the line left open, checks what keys mean together, and writes c->id and the rest of the case.
 * c->family, op, where and the keys read from the line are set. */
at_status at_case_finish(struct at_case *c);

/* The canonical line into c->id; AT_USAGE when it does not fit. */
at_status at_case_write_id(struct at_case *c);

/* Own sizes and parameters of the operator that follow from the rest of a case, or from a dataset's sizes. */
void at_case_complete(const struct at_case *c, struct at_problem *problem);

/* Shared sizes of a case that is no recorded dataset; for paged ones the spare pages are counted. Lengths are checked
 * one by one, sums of 64 bits cannot overflow. */
void at_case_sizes(const struct at_case *c, struct at_sizes *sizes);
/* Queries and keys of request r, by the case's lists or scenario. */
int64_t at_case_sq(const struct at_case *c, int64_t r);
int64_t at_case_sk(const struct at_case *c, int64_t r);
/* max, sums and pages of b requests into sizes (b and page set before). */
void at_case_lengths(struct at_sizes *sizes, const struct at_case *c, const int64_t *sq, const int64_t *sk);

/* Bytes of all tensors of a problem's op, dtype and sizes, outputs included; INT64_MAX beyond 64 bits. */
int64_t at_case_need(const struct at_problem *problem);
/* AT_MEMORY_LIMIT in bytes (suffix K, M, G, T), else 16 GiB. AT_USAGE for a value that is none. */
at_status at_case_memory_limit(int64_t *bytes);
/* AT_USAGE when need is beyond that. */
at_status at_case_check_need(const struct at_case *c, int64_t need);

#endif
