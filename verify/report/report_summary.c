/* What stands below the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/report_summary.h"

#include <inttypes.h>
#include <string.h>

#include "verify/report/report_text.h"

enum { WIDTH = 120, MAX_LISTED = 20 };
/* Times the limits of f32 arithmetic from where on a claim is named: two bits. */
static const double LOOSE = 4;

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

/* family NULL: of all. */
static void put_counts(const struct at_run_record *record, const char *label, const char *family, FILE *out) {
    int64_t count[AT_STATE_COUNT] = { 0 };
    const char *separator = "";
    char text[AT_STATE_COUNT * 40] = "";
    size_t used = 0;
    for (int64_t i = 0; i < record->n; i++)
        if (!family || strcmp(record->results[i].family, family) == 0)
            count[record->results[i].state]++;
    for (int s = 0; s < AT_STATE_COUNT; s++)
        if (count[s]) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64 " %s", separator, count[s],
                                     at_state_name((enum at_state)s));
            separator = ", ";
        }
    at_put_wrapped(out, label, text, WIDTH);
}

void at_put_family_counts(const struct at_run_record *record, const char *family, FILE *out) {
    put_counts(record, "    ", family, out);
}

static void put_compared(const struct at_run_record *record, FILE *out) {
    int64_t total = 0, compared = 0, partial = 0, judged = 0, again = 0;
    char a[32], b[32];
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = &record->results[i];
        if (at_state_class(r->state) == AT_CLASS_DECLINED)
            continue;
        total += r->total;
        compared += r->compared;
        partial += r->compared != r->total;
        judged += r->total > 0;
        again += r->rerun_compared > 0;
    }
    fprintf(out, "compared %s of %s elements", grouped(compared, a), grouped(total, b));
    if (partial)
        fprintf(out, "; %" PRId64 " results are not complete", partial);
    fputc('\n', out);
    if (again < judged)
        fprintf(out, "launched again for %s of %s results\n", grouped(again, a), grouped(judged, b));
}

/* How many results equal a reference of hardware's own arithmetic to the bit: the SIMT run, the declared model. */
static void put_exact(const struct at_run_record *record, FILE *out) {
    int64_t predicted = 0, bit_exact = 0, modelled = 0, model_exact = 0, in_part = 0;
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = &record->results[i];
        predicted += r->predicted_compared > 0;
        bit_exact += r->predicted_compared > 0 && r->predicted_different == 0;
        modelled += r->model_compared > 0;
        model_exact += r->model_exact;
        in_part += r->model_compared > 0 && r->model_compared < r->compared;
    }
    if (predicted)
        fprintf(out, "BIT-EXACT %" PRId64 " of %" PRId64 ", ", bit_exact, predicted);
    if (modelled)
        fprintf(out, "MODEL-EXACT %" PRId64 " of %" PRId64, model_exact, modelled);
    if (in_part)
        fprintf(out, "; %" PRId64 " modelled on drawn rows alone, WITHIN elsewhere", in_part);
    if (predicted || modelled)
        fputc('\n', out);
}

static int is_loose(const struct at_result *r) {
    return at_state_class(r->state) == AT_CLASS_GOOD && r->looseness >= LOOSE;
}

/* Variants whose PASS leaves much open, by their loosest result; and whether f32 arithmetic would have been claim enough. */
static void put_loose(const struct at_run_record *record, FILE *out) {
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *first = &record->results[i];
        double most = 0, need = 0;
        int64_t n = 0, before = 0; /* an earlier result of the variant has told it */
        char text[1024];
        for (int64_t k = 0; is_loose(first) && k < record->n && !before; k++) {
            const struct at_result *r = &record->results[k];
            if (!is_loose(r) || strcmp(r->variant, first->variant) != 0 || strcmp(r->family, first->family) != 0)
                continue;
            before += k < i;
            n++;
            most = r->looseness > most ? r->looseness : most;
            need = r->ratio_max * r->looseness > need ? r->ratio_max * r->looseness : need;
        }
        if (n == 0 || before)
            continue;
        snprintf(text, sizeof text,
                 "%s/%s: limits up to %.3g times those of f32 arithmetic in any order, in %" PRId64
                 " results that PASS: that proves so much less%s",
                 first->family, first->variant, most, n,
                 need <= 1 ? "; its errors are within those of f32, too, so the claim could be tighter" : "");
        at_put_wrapped(out, "loose claim: ", text, WIDTH);
    }
}

static void put_vacuous(const struct at_run_record *record, int strict, FILE *out) {
    int64_t n = 0;
    for (int64_t i = 0; i < record->n; i++)
        n += at_state_class(record->results[i].state) == AT_CLASS_VACUOUS;
    if (!n)
        return;
    fprintf(out, "VACUOUS proves nothing for its variant and %s with --strict; %" PRId64 " of these:\n",
            strict ? "fails the run" : "would fail the run", n);
    int listed = 0;
    for (int64_t i = 0; i < record->n && listed < MAX_LISTED; i++) {
        const struct at_result *r = &record->results[i];
        if (at_state_class(r->state) != AT_CLASS_VACUOUS)
            continue;
        char passed[sizeof r->decoy_names + 64], text[4096];
        at_result_decoys_of(r, AT_DECOY_PASSED, passed, sizeof passed);
        snprintf(text, sizeof text, "%s %s [%s]%s%s%s%s", r->variant, r->case_id, r->tensor,
                 passed[0] ? "; would have passed: " : "", passed, r->required_inert[0] ? "; required but inert: " : "",
                 r->required_inert);
        at_text_clean(text);
        at_put_wrapped(out, "  ", text, WIDTH);
        listed++;
    }
    if (n > listed)
        fprintf(out, "  and %" PRId64 " more\n", n - listed);
}

static void put_exit(const struct at_run_record *record, int strict, FILE *out) {
    int code = at_run_record_exit_code(record, strict);
    int64_t failing = 0, unjudged = 0;
    for (int64_t i = 0; i < record->n; i++)
        failing += at_state_fails(record->results[i].state, record->results[i].expect, strict) != 0;
    for (int64_t i = 0; strict && at_run_record_unjudged(record, &i);)
        unjudged++;
    if (record->signal)
        fprintf(out, "exit %d: interrupted: %" PRId64 " of %" PRId64 " jobs judged, %" PRId64 " results fail the run\n",
                code, at_run_record_jobs(record), record->planned, failing);
    else if (code == 1 && unjudged)
        fprintf(out,
                "exit 1: %" PRId64 " of %" PRId64 " results fail the run, %" PRId64 " variants were never judged\n",
                failing, record->n, unjudged);
    else if (code == 1)
        fprintf(out, "exit 1: %" PRId64 " of %" PRId64 " results fail the run\n", failing, record->n);
    else if (code == 4)
        fprintf(out, "exit 4: nothing was judged\n");
    else
        fprintf(out, "exit 0: no result fails the run\n");
}

void at_put_summary(const struct at_run_record *record, int strict, FILE *out) {
    char label[64];
    at_put_variants(record, strict, out);
    snprintf(label, sizeof label, "%" PRId64 " results%s", record->n, record->n ? ": " : "");
    put_counts(record, label, NULL, out);
    put_compared(record, out);
    put_exact(record, out);
    put_vacuous(record, strict, out);
    put_loose(record, out);
    at_put_set_aside(record, out);
    if (strict && !record->signal)
        at_put_unjudged(record, out);
    put_exit(record, strict, out);
}
