/* One page of HTML that holds all of an archive: no scripts, no other files, no network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/html.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- where it comes from ---- */

static void put_facts(FILE *f, const char *caption, const char *text) {
    static const char *const heads[] = { "key", "value" };
    json_t *object = json_loads(text, 0, NULL), *value;
    const char *key;
    at_html_table(f, caption, heads, 2);
    if (!json_is_object(object)) { /* not ours: shown as it is */
        fputs("<tr>", f);
        at_html_cell(f, "");
        at_html_cell(f, text);
        fputs("</tr>\n", f);
    }
    json_object_foreach(object, key, value) {
        char *dumped =
            json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        fputs("<tr>", f);
        at_html_cell(f, key);
        at_html_cell(f, json_is_string(value) ? json_string_value(value) : dumped ? dumped : "");
        fputs("</tr>\n", f);
        free(dumped);
    }
    at_html_table_end(f);
    json_decref(object);
}

static void put_provenance(const struct at_export *e, FILE *f) {
    at_html_section(f, "provenance", "Where it comes from");
    put_facts(f, "What was asked for", e->frames.request);
    put_facts(f, "What answered", e->frames.build);
    fputs("<p>Archive of schema version ", f);
    at_html_text(f, e->frames.version);
    fputs(".</p>\n", f);
}

static at_status put_page(const struct at_export *e, const struct at_html_order *order, FILE *f) {
    at_html_head(e, order, f);
    AT_TRY(at_html_matrix(order, f));
    AT_TRY(at_html_results(e, order, f));
    AT_TRY(at_html_bench(e, f));
    AT_TRY(at_html_studies(e, f));
    AT_TRY(at_html_distributions(e, f));
    put_provenance(e, f);
    fputs("<footer>Written by <code>attest export --to html</code>. This page needs no other file; <code>--to "
          "csv</code> gives the numbers, <code>--to ipynb</code> a notebook.</footer>\n</body>\n</html>\n",
          f);
    return AT_OK;
}

at_status at_export_html(struct at_export *e) {
    struct at_html_order order;
    struct at_atomic_file file;
    at_status status = AT_OK;
    AT_TRY_OUT(at_html_order_make(e, &order));
    AT_TRY_OUT(at_export_begin(e, "", "html", &file));
    status = put_page(e, &order, file.stream);
    if (status == AT_OK)
        status = at_export_end(e, &file);
    else
        at_atomic_abandon(&file);
out:
    at_html_order_release(&order);
    return status;
}
