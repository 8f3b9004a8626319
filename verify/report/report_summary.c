/* What stands below the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/report_summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/report/report_families.h"
#include "verify/report/report_text.h"
#include "verify/report/report_variants.h"

enum { WIDTH = 120, MAX_LISTED = 20 };

void at_put_wrapped(FILE *out, const char *label, const char *text, int width) {
    int column = at_text_width(label), words = 0;
    at_text_fit(out, label, column, 0);
    while (*text) {
        char word[1024];
        size_t n = strcspn(text, " "), keep = n < sizeof word ? n : sizeof word - 1;
        memcpy(word, text, keep);
        word[keep] = 0;
        at_text_clean(word); /* the cut may have hit a character */
        if (words && column + 1 + at_text_width(word) > width) {
            fputs("\n    ", out);
            column = 4;
        } else if (words) {
            fputc(' ', out);
            column++;
        }
        at_text_fit(out, word, at_text_width(word), 0);
        column += at_text_width(word);
        words++;
        text += keep;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* 1234567 as 1,234,567 */
static const char *grouped(int64_t n, char text[32]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0 && digits[i - 1] != '-')
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = 0;
    return text;
}

/* ---- counted as results come ---- */

struct family {
    char name[sizeof(((struct at_result *)0)->family)];
    int64_t count[AT_STATE_COUNT];
};

struct at_summary {
    int strict;
    struct at_tallies tallies;
    struct family *families; /* in the order of their first results */
    int n_families, last;
    int64_t n, jobs, last_job, failing, n_vacuous, any_judged;
    int64_t count[AT_STATE_COUNT];
    int64_t total, compared, partial, judged, again;
    int64_t predicted, bit_exact, modelled, model_exact, in_part;
    char *vacuous[MAX_LISTED];
    int n_listed;
};

const char *const at_summary_fields[] = { "plan_index",
                                          "tensor_index",
                                          "expect",
                                          "family",
                                          "variant",
                                          "numerics",
                                          "state",
                                          "cause",
                                          "total",
                                          "compared",
                                          "ratio_max",
                                          "resolution",
                                          "model_equal",
                                          "model_compared",
                                          "model_exact",
                                          "predicted_compared",
                                          "predicted_different",
                                          "rerun_compared",
                                          "looseness",
                                          NULL };

struct at_summary *at_summary_create(int strict) {
    struct at_summary *s = calloc(1, sizeof *s);
    if (s)
        s->strict = strict;
    return s;
}

void at_summary_destroy(struct at_summary *s) {
    if (!s)
        return;
    at_tallies_release(&s->tallies);
    for (int i = 0; i < s->n_listed; i++)
        free(s->vacuous[i]);
    free(s->families);
    free(s);
}

static at_status count_family(struct at_summary *s, const struct at_result *r) {
    if (!s->n_families || strcmp(s->families[s->last].name, r->family) != 0)
        for (s->last = 0; s->last < s->n_families && strcmp(s->families[s->last].name, r->family) != 0;)
            s->last++;
    if (s->last == s->n_families) {
        struct family *grown = realloc(s->families, ((size_t)s->n_families + 1) * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for a summary");
        s->families = grown;
        grown[s->n_families] = (struct family){ 0 };
        snprintf(grown[s->n_families].name, sizeof grown[0].name, "%s", r->family);
        s->n_families++;
    }
    s->families[s->last].count[r->state]++;
    return AT_OK;
}

static at_status list_vacuous(struct at_summary *s, const struct at_result *r) {
    char passed[sizeof r->decoy_names + 64], text[4096];
    s->n_vacuous++;
    if (s->n_listed == MAX_LISTED ||
        !r->case_id[0]) /* of an archive by at_summary_fields: they have rows of their own */
        return AT_OK;
    at_result_decoys_of(r, AT_DECOY_PASSED, passed, sizeof passed);
    snprintf(text, sizeof text, "%s %s [%s]%s%s%s%s", r->variant, r->case_id, r->tensor,
             passed[0] ? "; would have passed: " : "", passed, r->required_inert[0] ? "; required but inert: " : "",
             r->required_inert);
    at_text_clean(text);
    s->vacuous[s->n_listed] = strdup(text);
    return s->vacuous[s->n_listed++] ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for a summary");
}

static void count_compared(struct at_summary *s, const struct at_result *r) {
    s->total += r->total;
    s->compared += r->compared;
    s->partial += r->compared != r->total;
    s->judged += r->total > 0;
    s->again += r->rerun_compared > 0;
}

/* How many results equal a reference of hardware's own arithmetic to the bit: the SIMT run, the declared model. */
static void count_exact(struct at_summary *s, const struct at_result *r) {
    s->predicted += r->predicted_compared > 0;
    s->bit_exact += r->predicted_compared > 0 && r->predicted_different == 0;
    s->modelled += r->model_compared > 0;
    s->model_exact += r->model_exact;
    s->in_part += r->model_compared > 0 && r->model_compared < r->compared;
}

at_status at_summary_add(struct at_summary *s, const struct at_result *r) {
    const enum at_state_class class = at_state_class(r->state);
    s->jobs += s->n == 0 || r->plan_index != s->last_job;
    s->last_job = r->plan_index;
    s->n++;
    s->count[r->state]++;
    s->failing += at_state_fails(r->state, r->expect, s->strict) != 0;
    s->any_judged += class != AT_CLASS_DECLINED;
    if (class != AT_CLASS_DECLINED)
        count_compared(s, r);
    count_exact(s, r);
    AT_TRY(at_tallies_add(&s->tallies, r, s->strict));
    AT_TRY(count_family(s, r));
    return class == AT_CLASS_VACUOUS ? list_vacuous(s, r) : AT_OK;
}

int at_summary_exit_code(const struct at_summary *s, const struct at_run_record *run) {
    if (run->signal)
        return 128 + run->signal;
    if (s->failing)
        return 1;
    if (!s->any_judged)
        return 4;
    return s->strict && !run->is_part && at_tallies_unjudged(&s->tallies) + at_tallies_blind(&s->tallies) ? 1 : 0;
}

/* ---- lines ---- */

static void put_states(const int64_t *count, const char *label, FILE *out) {
    const char *separator = "";
    char text[AT_STATE_COUNT * 40] = "";
    size_t used = 0;
    for (int s = 0; s < AT_STATE_COUNT; s++)
        if (count[s]) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64 " %s", separator, count[s],
                                     at_state_name((enum at_state)s));
            separator = ", ";
        }
    at_put_wrapped(out, label, text, WIDTH);
}

void at_put_family_counts(const struct at_run_record *record, const struct at_family_rows *family, FILE *out) {
    int64_t count[AT_STATE_COUNT] = { 0 };
    for (int64_t i = 0; i < family->n; i++)
        count[at_run_record_at(record, family->rows[i])->state]++;
    put_states(count, "    ", out);
}

void at_summary_put_families(const struct at_summary *s, FILE *out) {
    for (int i = 0; i < s->n_families; i++) {
        char label[96];
        snprintf(label, sizeof label, "%s: ", s->families[i].name);
        put_states(s->families[i].count, label, out);
    }
}

static void put_compared(const struct at_summary *s, FILE *out) {
    char a[32], b[32];
    fprintf(out, "compared %s of %s elements", grouped(s->compared, a), grouped(s->total, b));
    if (s->partial)
        fprintf(out, "; %" PRId64 " results are not complete", s->partial);
    fputc('\n', out);
    if (s->again < s->judged)
        fprintf(out, "launched again for %s of %s results\n", grouped(s->again, a), grouped(s->judged, b));
}

static void put_exact(const struct at_summary *s, FILE *out) {
    if (s->predicted)
        fprintf(out, "BIT-EXACT %" PRId64 " of %" PRId64 ", ", s->bit_exact, s->predicted);
    if (s->modelled)
        fprintf(out, "MODEL-EXACT %" PRId64 " of %" PRId64, s->model_exact, s->modelled);
    if (s->in_part)
        fprintf(out, "; %" PRId64 " modelled on drawn rows alone, WITHIN elsewhere", s->in_part);
    if (s->predicted || s->modelled)
        fputc('\n', out);
}

static void put_vacuous(const struct at_summary *s, FILE *out) {
    if (!s->n_vacuous)
        return;
    fprintf(out, "VACUOUS proves nothing for its variant and %s with --strict; %" PRId64 " of these%s\n",
            s->strict ? "fails the run" : "would fail the run", s->n_vacuous, s->n_listed ? ":" : "");
    if (!s->n_listed)
        return;
    for (int i = 0; i < s->n_listed; i++)
        at_put_wrapped(out, "  ", s->vacuous[i], WIDTH);
    if (s->n_vacuous > s->n_listed)
        fprintf(out, "  and %" PRId64 " more\n", s->n_vacuous - s->n_listed);
}

static void put_exit(const struct at_summary *s, const struct at_run_record *run, FILE *out) {
    const int code = at_summary_exit_code(s, run);
    const int is_whole = s->strict && !run->is_part;
    const int64_t unjudged = is_whole ? at_tallies_unjudged(&s->tallies) : 0;
    const int64_t blind = is_whole ? at_tallies_blind(&s->tallies) : 0;
    if (run->signal)
        fprintf(out, "exit %d: interrupted: %" PRId64 " of %" PRId64 " jobs judged, %" PRId64 " results fail the run\n",
                code, s->jobs, run->planned, s->failing);
    else if (code == 1 && unjudged)
        fprintf(out,
                "exit 1: %" PRId64 " of %" PRId64 " results fail the run, %" PRId64 " variants were never judged\n",
                s->failing, s->n, unjudged);
    else if (code == 1 && blind)
        fprintf(out,
                "exit 1: %" PRId64 " of %" PRId64 " results fail the run, %" PRId64
                " claims are so loose that nothing was tested\n",
                s->failing, s->n, blind);
    else if (code == 1)
        fprintf(out, "exit 1: %" PRId64 " of %" PRId64 " results fail the run\n", s->failing, s->n);
    else if (code == 4)
        fprintf(out, "exit 4: nothing was judged\n");
    else
        fprintf(out, "exit 0: no result fails the run\n");
}

void at_summary_put(const struct at_summary *s, const struct at_run_record *run, FILE *out) {
    char label[64];
    at_put_variants(&s->tallies, out);
    snprintf(label, sizeof label, "%" PRId64 " results%s", s->n, s->n ? ": " : "");
    put_states(s->count, label, out);
    put_compared(s, out);
    put_exact(s, out);
    put_vacuous(s, out);
    at_put_loose(&s->tallies, s->strict && !run->is_part, out);
    at_put_set_aside(&s->tallies, out);
    if (s->strict && !run->signal && !run->is_part)
        at_put_unjudged(&s->tallies, out);
    put_exit(s, run, out);
}

static at_status summarize(const struct at_run_record *record, int strict, struct at_summary **summary) {
    struct at_summary *s = *summary = at_summary_create(strict);
    at_status status = s ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for a summary");
    for (int64_t i = 0; i < record->n && status == AT_OK; i++)
        status = at_summary_add(s, at_run_record_at(record, i));
    return status == AT_OK ? at_run_record_readable(record) : status;
}

int at_report_exit_code(const struct at_run_record *record, int strict) {
    struct at_summary *s;
    const at_status status = summarize(record, strict, &s);
    const int code = status == AT_OK ? at_summary_exit_code(s, record) : at_status_exit_code(status);
    at_summary_destroy(s);
    return code;
}

void at_put_summary(const struct at_run_record *record, int strict, FILE *out) {
    struct at_summary *s;
    const at_status status = summarize(record, strict, &s);
    if (status == AT_OK)
        at_summary_put(s, record, out);
    else
        fputs("no memory for a summary\n", out);
    at_summary_destroy(s);
}
