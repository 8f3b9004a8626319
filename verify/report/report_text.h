/* What every report says of a result in the same words: where cases differ, decoys, headroom, the worst element.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_TEXT_H
#define AT_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "verify/result/text.h"

struct at_family_rows;
struct at_run_record;
struct at_result;

/* The words ("b=2") that the case of every result of a family has: what a table can say once. Words are
 * separated by one space. */
void at_case_common(const struct at_run_record *record, const struct at_family_rows *family, char *common, size_t size);
/* The other words of a case; "(as above)" when there are none. */
void at_case_short(const char *case_id, const char *common, char *text, size_t size);

/* Counts of a decoy's fate in a result, rejected of those that counted. */
void at_result_decoys(const struct at_result *result, int *rejected, int *counted);
/* Names of the decoys with this fate, ", "-separated. */
void at_result_decoys_of(const struct at_result *result, char fate, char *text, size_t size);
/* Least headroom in bits to 65504 over the stages before the clamp; NaN when there is no ledger or no value,
 * -inf when an infinity was seen. */
double at_result_headroom(const struct at_result *result);
/* "out[token 3, head 2, channel 17]": the worst element by the names of the operator's dimensions. */
void at_result_worst(const struct at_result *result, char *text, size_t size);

#endif
