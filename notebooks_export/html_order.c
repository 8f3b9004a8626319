/* Verification results in the order of the page, and what class each is of.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/html_order.h"

#include <stdlib.h>
#include <string.h>

#include "notebooks_export/html.h"
#include "verify/result/result.h"

const struct at_frame_column *at_html_result_column(const struct at_html_order *order, const char *name) {
    return at_frame_column(order->r.results, name);
}

double at_html_result_number(const struct at_html_order *order, const char *name, int64_t i) {
    return at_frame_number(at_html_result_column(order, name), i, 0);
}

static enum at_html_class class_of(const struct at_html_order *order, int64_t i) {
    enum at_state state;
    if (at_state_parse(at_frame_text(order->state, i), &state) != AT_OK) {
        at_error_clear();
        return AT_HTML_FAILS;
    }
    const char *expect = at_frame_text(at_frame_column(order->r.cases, "expect"), at_export_case(&order->r, i));
    if (at_state_fails(state, expect, 0))
        return AT_HTML_FAILS;
    if (at_state_fails(state, expect, 1))
        return AT_HTML_DOUBTFUL;
    return at_state_class(state) == AT_CLASS_DECLINED ? AT_HTML_UNJUDGED : AT_HTML_RIGHT;
}

struct key {
    int64_t row;
    enum at_html_class class;
    double ratio;
};

static int by_class(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    if (x->class != y->class)
        return (x->class > y->class) - (x->class < y->class);
    if (x->ratio != y->ratio)
        return (x->ratio < y->ratio) - (x->ratio > y->ratio);
    return (x->row > y->row) - (x->row < y->row);
}

at_status at_html_order_make(const struct at_export *e, struct at_html_order *order) {
    *order = (struct at_html_order){ .row = NULL };
    AT_TRY(at_export_results_of(e, &order->r));
    if (!order->r.results)
        return AT_OK;
    order->state = at_html_result_column(order, "state");
    if (!order->state || order->state->kind != AT_FRAME_FLAG)
        return AT_FAIL(AT_USAGE, "%s: results has no column state with flags", e->archive);
    const size_t n = (size_t)order->r.results->n;
    struct key *keys = calloc(n + 1, sizeof *keys);
    order->row = calloc(n + 1, sizeof *order->row);
    order->class_of = calloc(n + 1, sizeof *order->class_of);
    if (!keys || !order->row || !order->class_of) {
        free(keys);
        return AT_FAIL(AT_NO_MEMORY, "export: no memory to order the results");
    }
    for (size_t i = 0; i < n; i++) {
        const double ratio = at_html_result_number(order, "ratio_max", (int64_t)i);
        keys[i] = (struct key){ (int64_t)i, class_of(order, (int64_t)i), ratio >= 0 ? ratio : -1 };
        order->class_of[i] = (unsigned char)keys[i].class;
        order->count[keys[i].class]++;
    }
    qsort(keys, n, sizeof *keys, by_class);
    for (size_t i = 0; i < n; i++)
        order->row[i] = keys[i].row;
    free(keys);
    return AT_OK;
}

void at_html_order_release(struct at_html_order *order) {
    free(order->row);
    free(order->class_of);
    *order = (struct at_html_order){ .row = NULL };
}

const char *at_html_class_name(enum at_html_class class) {
    static const char *const names[AT_HTML_CLASSES] = { "bad", "doubt", "fine", "none" };
    return names[class];
}

void at_html_badge(FILE *f, enum at_html_class class, const char *word) {
    fprintf(f, "<span class=\"s %s\">", at_html_class_name(class));
    at_html_text(f, word);
    fputs("</span>", f);
}
