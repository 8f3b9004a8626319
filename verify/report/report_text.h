/* Text that every report needs: UTF-8 made valid and measured, the words in which cases differ.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_TEXT_H
#define AT_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct at_run_record;
struct at_result;

/* Bytes that are no valid UTF-8 become '?'. Never longer; a second call changes nothing. */
void at_text_clean(char *text);
/* Code points of valid UTF-8: columns on a terminal, for the scripts in use here. */
int at_text_width(const char *text);
/* Bytes of the character that starts at `text` (1 for ASCII), 0 when it is no valid UTF-8. */
size_t at_text_char(const char *text);
/* x for printf: a NaN loses its sign, which says nothing and reads as a fault ("want -nan"). */
double at_text_nan(double x);
/* Bytes of the first line when `text` is broken into lines of at most `width` columns: at a space where there is one, in
 * the middle of a word that is longer than a line. *next: where the second begins, or the end. */
size_t at_text_line(const char *text, int width, const char **next);
/* Prints in exactly `width` columns: padded, or cut with ".." at the end; left- or right-aligned. Control
 * characters are printed as '?', so that no text can move the cursor or break a line. */
void at_text_fit(FILE *out, const char *text, int width, int right);

/* The words ("b=2") that the case of every result of `family` has: what a table can say once. Words are
 * separated by one space. */
void at_case_common(const struct at_run_record *record, const char *family, char *common, size_t size);
/* The other words of a case; "(as above)" when there are none. */
void at_case_short(const char *case_id, const char *common, char *text, size_t size);

/* Counts of a decoy's fate in a result, as VERDICTS says: rejected of those that counted. */
void at_result_decoys(const struct at_result *result, int *rejected, int *counted);
/* Names of the decoys with this fate, ", "-separated. */
void at_result_decoys_of(const struct at_result *result, char fate, char *text, size_t size);
/* Least headroom in bits to 65504 over the stages before the clamp; NaN when there is no ledger or no value,
 * -inf when an infinity was seen. */
double at_result_headroom(const struct at_result *result);
/* "out[token 3, head 2, channel 17]": the worst element by the names of the operator's dimensions. */
void at_result_worst(const struct at_result *result, char *text, size_t size);

#endif
