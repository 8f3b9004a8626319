/* A fit as text to read and as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/show.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 640 };

enum at_fit_state at_fit_state(const struct at_fit *fit) {
    if (fit->has_declared && fit->declared.far > 0)
        return AT_FIT_WRONG;
    if (fit->changes)
        return AT_FIT_FREE;
    return fit->distance.far > 0 ? AT_FIT_NONE : AT_FIT_FOUND;
}

/* The fields that are searched, those at their defaults left out. */
static void put_declaration(const struct at_fit *fit, const struct at_numerics *n, char text[LINE]) {
    const struct at_numerics fallback = at_numerics_default();
    struct at_numerics searched = fallback;
    for (int f = 0; f < at_numerics_field_count(); f++)
        if (at_axes_of(&fit->search.axes, f) >= 0)
            at_numerics_set(&searched, f, at_numerics_get(n, f));
    at_numerics_difference(&searched, &fallback, text, LINE);
}

/* ---- text ---- */

static void put_alike(const struct at_fit *fit) {
    for (int a = 0; a < fit->search.axes.n; a++) {
        int shown = 0;
        for (int i = 0; i < fit->n_alike; i++) {
            char text[LINE];
            if (fit->alike[i].axis != a)
                continue;
            at_numerics_difference(&fit->alike[i].numerics, &fit->best, text, LINE);
            if (!shown++)
                printf("  not told apart, %s:", fit->search.axes.axis[a].name);
            printf("%s %s", shown > 1 ? " |" : "", text);
        }
        if (shown)
            putchar('\n');
    }
    if (fit->more_alike)
        printf("  and %d more\n", fit->more_alike);
}

static void put_order(const char *what, const struct at_order_found *o) {
    char each[40] = "";
    if (!o->n)
        return;
    if (o->apart > 1)
        snprintf(each, sizeof each, ", each %dth of %d", o->apart, o->apart * o->n);
    if (o->why[0])
        printf("  order of %s, %d terms%s: not seen: %s\n", what, o->n, each, o->why);
    else
        printf("  order of %s, %d terms%s%s: %s  signature %016" PRIx64 "\n", what, o->n, each,
               o->changes ? ", what two runs share" : "", o->text, o->signature);
}

static void put_declared(const struct at_fit *fit) {
    char text[LINE];
    if (!fit->has_declared)
        return;
    if (!(fit->declared.far > 0)) {
        printf("  declared: fits\n");
        return;
    }
    if (isinf(fit->declared.far))
        printf("  declared: does not fit: it has no model of these problems\n");
    else
        printf("  declared: does not fit: %" PRId64 " of %" PRId64 " elements are off\n", fit->declared.off,
               fit->declared.looked_at);
    if (fit->wrong_axis < 0)
        return;
    at_numerics_difference(&fit->changed, &fit->v->numerics, text, LINE);
    printf("  declared: %s in: %s, %s\n", fit->changed_distance.far > 0 ? "nearer" : "fits", text,
           fit->changed_distance.far > 0 ? "which is not all that is wrong" : "everything else as declared");
}

void at_fit_put_text(const struct at_fit *fit) {
    char text[LINE];
    const struct at_probe_layout *l = &fit->layout;
    printf("%s/%s, %s\n", fit->v->family, fit->v->name, at_format_info(l->dtype)->name);
    if (fit->changes)
        printf("  numerics=\"free_order=1\"\n  bits change between runs of one problem: no order of sums fits\n");
    else {
        put_declaration(fit, &fit->best, text);
        if (fit->distance.far > 0)
            printf("  none fits; the nearest: %s\n  %" PRId64 " of %" PRId64 " elements are off\n"
                   "  without an order: numerics=\"free_order=1%s\" is held to limits alone; attest verify says "
                   "whether it "
                   "keeps them\n",
                   text, fit->distance.off, fit->distance.looked_at,
                   at_op_find(fit->layout.family->op)->declares >> AT_FIELD_p & 1 ? " p=input" : "");
        else
            printf("  numerics=\"%s\"\n", text);
        put_alike(fit);
        printf("  %" PRId64 " elements of %d probes, %" PRId64 " models of declarations\n", fit->distance.looked_at,
               fit->search.n_probes, fit->search.tried);
    }
    if (fit->first_alone)
        printf("  of %s alone: with its other formats no declaration fits; see --dtype\n",
               at_format_info(l->dtype)->name);
    if (fit->left_out[0])
        printf("  not probed: %s\n", fit->left_out);
    const int is_product = at_op_find(l->family->op)->kind == AT_KIND_PRODUCT;
    put_order(is_product ? "the sum" : "q.k", &fit->qk);
    put_order("P V", &fit->pv);
    put_order(is_product ? "the sum" : "P V", &fit->far);
    put_declared(fit);
}

/* ---- JSON ---- */

static json_t *order_json(const struct at_order_found *o) {
    char hex[24];
    snprintf(hex, sizeof hex, "%016" PRIx64, o->signature);
    if (!o->n)
        return json_null();
    return o->why[0] ? json_pack("{s:i, s:i, s:s}", "terms", o->n, "apart", o->apart, "why", o->why)
                     : json_pack("{s:i, s:i, s:b, s:s, s:s}", "terms", o->n, "apart", o->apart, "changes", o->changes,
                                 "tree", o->text, "signature", hex);
}

static json_t *alike_json(const struct at_fit *fit) {
    json_t *all = json_array();
    for (int i = 0; i < fit->n_alike; i++) {
        char text[LINE];
        at_numerics_difference(&fit->alike[i].numerics, &fit->best, text, LINE);
        json_array_append_new(all, json_string(text));
    }
    return all;
}

void at_fit_put_json(const struct at_fit *fit) {
    static const char *const states[] = { "fits", "none fits", "free order", "declared wrong" };
    char text[LINE] = "free_order=1", instead[LINE] = "";
    if (!fit->changes)
        put_declaration(fit, &fit->best, text);
    if (fit->wrong_axis >= 0)
        at_numerics_difference(&fit->changed, &fit->v->numerics, instead, LINE);
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "family",
                  fit->v->family, "variant", fit->v->name, "dtype", at_format_info(fit->layout.dtype)->name, "state",
                  states[at_fit_state(fit)], "numerics", text, "off", (json_int_t)fit->distance.off, "elements",
                  (json_int_t)fit->distance.looked_at, "probes", fit->search.n_probes, "tried",
                  (json_int_t)fit->search.tried, "not_told_apart", alike_json(fit), "qk", order_json(&fit->qk), "pv",
                  order_json(&fit->pv), "far", order_json(&fit->far), "not_probed", fit->left_out, "declared_instead",
                  instead, "declared_fits", fit->has_declared ? json_boolean(!(fit->declared.far > 0)) : json_null());
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    printf("%s\n", line ? line : "{}");
    free(line);
    json_decref(object);
}
