/* The results of a run by variant: one line each, and those that were never judged.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/report/report_summary.h"
#include "verify/report/report_text.h"
#include "verify/result/set_aside.h"

enum { FEW = 2, WIDTH = 120, MAX_NAME = 72, TENSORS = 16 };

struct tally {
    const char *family, *variant;
    int64_t judged, ok, failing, vacuous, declined;
    double worst;             /* error over limit; NaN: no limit anywhere */
    double resolves[TENSORS]; /* by output: 0, or the smallest scale error that some case of it would have seen */
};

static void name_of(const struct tally *t, char *text, size_t size) {
    snprintf(text, size, "%s/%s", t->family, t->variant);
}

/* OK: judged, and the run does not fail by it, though the state may be one that the case expects beside PASS. */
static void count(struct tally *t, const struct at_result *r, int strict) {
    const enum at_state_class class = at_state_class(r->state);
    const int failing = at_state_fails(r->state, r->expect, strict);
    t->judged += class != AT_CLASS_DECLINED;
    t->declined += class == AT_CLASS_DECLINED;
    t->failing += failing;
    t->vacuous += class == AT_CLASS_VACUOUS;
    t->ok += !failing && class != AT_CLASS_VACUOUS && class != AT_CLASS_DECLINED;
    if (r->compared > 0 && !isnan(r->ratio_max) && !(t->worst >= r->ratio_max))
        t->worst = r->ratio_max;
    if (r->compared > 0 && r->resolution > 0 && r->tensor_index >= 0 && r->tensor_index < TENSORS) {
        double *smallest = &t->resolves[r->tensor_index];
        *smallest = *smallest > 0 && *smallest <= r->resolution ? *smallest : r->resolution;
    }
}

/* Of the output that is seen least sharply; 0: nothing is known. */
static double resolution_of(const struct tally *t) {
    double largest = 0;
    for (int o = 0; o < TENSORS; o++)
        largest = t->resolves[o] > largest ? t->resolves[o] : largest;
    return largest;
}

/* In the order of their first results. */
static int64_t tallies(const struct at_run_record *record, int strict, struct tally *list) {
    int64_t n = 0, last = 0;
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = &record->results[i];
        int64_t k =
            n > 0 && strcmp(list[last].variant, r->variant) == 0 ? last : 0; /* tensors of a job are neighbours */
        while (k < n && (strcmp(list[k].variant, r->variant) != 0 || strcmp(list[k].family, r->family) != 0))
            k++;
        if (k == n)
            list[n++] = (struct tally){ .family = r->family, .variant = r->variant, .worst = NAN };
        count(&list[last = k], r, strict);
    }
    return n;
}

static void put_tally(const struct tally *t, int width, FILE *out) {
    char name[192], worst[32] = "-", resolves[32] = "-";
    name_of(t, name, sizeof name);
    if (!isnan(t->worst))
        snprintf(worst, sizeof worst, "%.2g", t->worst);
    if (resolution_of(t) > 0)
        snprintf(resolves, sizeof resolves, "%.1e", resolution_of(t));
    at_text_fit(out, name, width, 0);
    fprintf(out, " %7" PRId64 " %5" PRId64 " %7" PRId64 " %7" PRId64 " %8" PRId64 " %11s %8s\n", t->judged, t->ok,
            t->failing, t->vacuous, t->declined, worst, resolves);
}

void at_put_variants(const struct at_run_record *record, int strict, FILE *out) {
    static const char title[] = "BY VARIANT";
    struct tally *list = calloc((size_t)record->n + 1, sizeof *list);
    int width = (int)sizeof title - 1;
    const int64_t n = list ? tallies(record, strict, list) : 0;
    for (int64_t i = 0; i < n; i++) {
        char name[192];
        name_of(&list[i], name, sizeof name);
        width = at_text_width(name) > width ? at_text_width(name) : width;
    }
    width = width > MAX_NAME ? MAX_NAME : width;
    if (n > FEW) {
        fprintf(out, "%-*s  JUDGED    OK FAILING VACUOUS DECLINED WORST RATIO RESOLVES\n", width, title);
        for (int64_t i = 0; i < n; i++)
            put_tally(&list[i], width, out);
        fputc('\n', out);
    }
    free(list);
}

void at_put_unjudged(const struct at_run_record *record, FILE *out) {
    const struct at_result *r;
    for (int64_t i = 0; (r = at_run_record_unjudged(record, &i));) {
        char text[1024];
        snprintf(text, sizeof text, "%s/%s: %s", r->family, r->variant,
                 r->cause[0] ? r->cause : at_state_name(r->state));
        at_put_wrapped(out, "never judged, which --strict does not let pass: ", text, WIDTH);
    }
}

/* Whether results a and b are of one variant that was set aside. */
static int both_set_aside(const struct at_result *a, const struct at_result *b) {
    return at_result_is_set_aside(a) && at_result_is_set_aside(b) && strcmp(a->variant, b->variant) == 0 &&
           strcmp(a->family, b->family) == 0;
}

/* The first such result of a variant counts them all. */
void at_put_set_aside(const struct at_run_record *record, FILE *out) {
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = &record->results[i];
        int64_t before = 0, n = 0;
        char text[1024];
        if (!at_result_is_set_aside(r))
            continue;
        while (before < i && !both_set_aside(&record->results[before], r))
            before++;
        if (before < i)
            continue;
        for (int64_t k = i; k < record->n; k++)
            n += both_set_aside(&record->results[k], r);
        snprintf(text, sizeof text, "%s/%s, %" PRId64 " jobs not run: %s", r->family, r->variant, n,
                 r->cause + sizeof AT_SET_ASIDE - 1);
        at_put_wrapped(out, AT_SET_ASIDE, text, WIDTH);
    }
}
