/* Verification results in the order of the page, and what class each is of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HTML_ORDER_H
#define AT_HTML_ORDER_H

#include <stdio.h>

#include "notebooks_export/export.h"

/* Worst first: fails the run; proves nothing (VACUOUS); judged and right; not judged. A state that this program does not
 * know fails. */
enum at_html_class { AT_HTML_FAILS, AT_HTML_DOUBTFUL, AT_HTML_RIGHT, AT_HTML_UNJUDGED, AT_HTML_CLASSES };

struct at_html_order {
    struct at_export_results r;          /* its `results` is NULL when the archive has none */
    const struct at_frame_column *state; /* of /results, with flags */
    int64_t *row;                        /* rows of /results: by class, then by error over limit */
    unsigned char *class_of;             /* enum at_html_class of each row of /results */
    int64_t count[AT_HTML_CLASSES];      /* results of a class */
};

/* AT_USAGE when states or what results refer to are not there. Release in any case. */
at_status at_html_order_make(const struct at_export *e, struct at_html_order *order);
void at_html_order_release(struct at_html_order *order);

/* A column of /results, NULL where there is none. */
const struct at_frame_column *at_html_result_column(const struct at_html_order *order, const char *name);
double at_html_result_number(const struct at_html_order *order, const char *name, int64_t i);

/* The name of a class in page.css: "bad". */
const char *at_html_class_name(enum at_html_class class);
/* A word in the frame and with the mark of its class. */
void at_html_badge(FILE *f, enum at_html_class class, const char *word);

#endif
