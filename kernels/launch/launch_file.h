/* What the files that read a launch file share: fields of JSON, and messages that name them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LAUNCH_FILE_H
#define AT_LAUNCH_FILE_H

#include "kernels/launch/launch_plan.h"

#include <jansson.h>

struct at_reader {
    struct at_plan *plan; /* being filled */
    json_t *root;
};

/* AT_USAGE: "FILE: FIELD: ..."; the second makes the message of a call that failed the field's. */
at_status at_field_wrong(const struct at_reader *r, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
at_status at_field_failed(const struct at_reader *r, const char *field);
/* "an array", "a text", ...; "nothing" for NULL. */
const char *at_json_word(const json_t *value);

/* `object` is one and has no other fields than these. field "": the file itself. */
at_status at_field_known(const struct at_reader *r, const char *field, json_t *object, const char *const *names, int n);
/* A text of 1 to size - 1 letters; optional: "" where there is none. */
at_status at_field_text(const struct at_reader *r, json_t *object, const char *name, int optional, char *text,
                        size_t size);
/* A whole number, or a text that is an expression; an array of least to most of them. */
at_status at_field_expression(const struct at_reader *r, const char *field, const json_t *value,
                              struct at_launch_expression *out);
at_status at_field_expressions(const struct at_reader *r, const char *field, const json_t *value, int least, int most,
                               struct at_launch_expression *out, int *n);

/* The parts that launch_kernels.c reads; head and scope are there. */
at_status at_plan_read_maps(const struct at_reader *r);
at_status at_plan_read_kernels(const struct at_reader *r);

#endif
