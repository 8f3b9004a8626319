/* Certificates as text, JSON lines, JUnit, and as a table of an archive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CERTIFY_REPORT_H
#define AT_CERTIFY_REPORT_H

#include <stdio.h>

#include "verify/certify/certify.h"
#include "verify/commands/content.h"

extern const struct at_table at_certify_table;
extern const struct at_content at_content_certificates;

/* How rows stand: properties by value; those that contradict a declaration, and those that --want wants and are not `yes`. */
struct at_certify_sum {
    int64_t variants, disagree, unmet, of[AT_PROPERTY_COUNT][AT_CERTIFIED_COUNT];
};
/* wanted: bits of AT_PROPERTY_LIST. */
struct at_certify_sum at_certify_sum_of(const struct at_certificate *rows, int64_t n, unsigned wanted);
/* 1 where a row fails the run: broken, against its declaration, or wanted and not there. */
int at_certificate_fails(const struct at_certificate *row, unsigned wanted);

/* A line a variant, and one below it for each property that contradicts its declaration. With counts a line a property, too. */
void at_certify_put(const struct at_certificate *rows, int64_t n, int counts, FILE *out);
void at_certify_put_sum(const struct at_certify_sum *sum, FILE *out);
/* A line a row, sorted keys: those of the table. */
at_status at_certify_put_json(const struct at_certificate *rows, int64_t n, const char *path);
/* Through the report of a run: a test case a property, skipped where it is not certified and nothing asks for it. */
at_status at_certify_put_junit(const struct at_certificate *rows, int64_t n, unsigned wanted, const char *path);

#endif
