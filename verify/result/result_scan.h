/* The results of a journal's line read without a tree of JSON values: what at_result_from_json() gives, in a tenth of its time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RESULT_SCAN_H
#define AT_RESULT_SCAN_H

#include "verify/result/result.h"

/* Reads one result that stands at *text exactly as at_result_to_json() writes it, and moves *text behind it. 0: something is
 * written otherwise (a text with an escape or beyond ASCII, another order, a key of a later version) or does not fit its field;
 * then at_result_from_json() says what it is, or what is wrong with it. `text` ends with a 0. */
int at_result_scan(const char **text, struct at_result *result);

#endif
