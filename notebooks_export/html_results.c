/* Verification results on the page: how many of each state, the worst first with what was got and wanted, how near to
 * the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/html.h"
#include "verify/result/result.h"

/* Rows that stand open; rows that are folded, as a page with more is slow to open. */
enum { OPEN_ROWS = 40, FOLDED_ROWS = 5000, WORDS = 48, MAX_OPS = 32 };

/* Words that all cases of an operator's family have, said once. */
struct common {
    char op[64]; /* first word of the case */
    char words[WORDS][48];
    int n;
};

struct table {
    const struct at_export_results *r;
    const struct at_html_order *order;
    struct common common[MAX_OPS];
    int n_common;
};

static const struct at_frame_column *column(const struct table *t, const char *name) {
    return at_frame_column(t->r->results, name);
}

static double number(const struct table *t, const char *name, int64_t i) {
    return at_frame_number(column(t, name), i, 0);
}

/* ---- cases in few words ---- */

static int has_word(const char *text, const char *word, size_t n) {
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return 1;
    return 0;
}

static int is_of(const char *case_id, const struct common *c) {
    const size_t n = strlen(c->op);
    return strncmp(case_id, c->op, n) == 0 && (case_id[n] == ' ' || case_id[n] == 0);
}

static struct common *common_of(struct table *t, const char *case_id) {
    for (int i = 0; i < t->n_common; i++)
        if (is_of(case_id, &t->common[i]))
            return &t->common[i];
    return NULL;
}

/* Words of the first case of its operator that all others have. */
static void find_words(const struct table *t, int64_t first, struct common *c) {
    const struct at_frame_column *id = at_frame_column(t->r->cases, "case_id");
    for (const char *at = at_frame_text(id, first) + strlen(c->op); *at && c->n < WORDS; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        int everywhere = length > 0 && length < sizeof c->words[0];
        snprintf(c->words[c->n], sizeof c->words[0], "%.*s", (int)length, at);
        for (int64_t i = first + 1; i < t->r->cases->n && everywhere; i++) {
            const int is = is_of(at_frame_text(id, i), c);
            everywhere = !is || has_word(at_frame_text(id, i), c->words[c->n], length);
        }
        c->n += everywhere;
    }
}

static void find_common(struct table *t) {
    const struct at_frame_column *id = at_frame_column(t->r->cases, "case_id");
    for (int64_t i = 0; id && i < t->r->cases->n && t->n_common < MAX_OPS; i++) {
        const char *text = at_frame_text(id, i);
        const size_t n = strcspn(text, " ");
        if (n == 0 || n >= sizeof t->common[0].op || common_of(t, text))
            continue;
        struct common *c = &t->common[t->n_common++];
        *c = (struct common){ .n = 0 };
        snprintf(c->op, sizeof c->op, "%.*s", (int)n, text);
        find_words(t, i, c);
    }
}

/* Without what is said once above the table. */
static void put_case(FILE *f, struct table *t, int64_t i) {
    const char *at = at_frame_text(at_frame_column(t->r->cases, "case_id"), at_export_case(t->r, i));
    const char *family = at_frame_text(at_frame_column(t->r->kernels, "family"), at_export_kernel(t->r, i));
    const struct common *c = common_of(t, at);
    char word[1024];
    int put = 0;
    for (int first = 1; *at; first = 0) {
        const size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        int said = first && strcmp(word, family) == 0;
        for (int w = 0; c && w < c->n && !said; w++)
            said = strcmp(word, c->words[w]) == 0;
        if (!said) {
            at_html_text(f, word);
            fputc(' ', f);
            put++;
        }
        at += length;
        at += strspn(at, " ");
    }
    if (!put)
        fputs("the case above ", f);
}

/* ---- rows ---- */

static void put_decoys(FILE *f, const struct table *t, int64_t i) {
    int rejected = 0, counted = 0;
    for (const char *fate = at_frame_text(column(t, "decoy_fate"), i); *fate; fate++) {
        rejected += *fate == AT_DECOY_REJECTED;
        counted += *fate != AT_DECOY_INERT;
    }
    fprintf(f, "<td class=\"n\">%d/%d</td>", rejected, counted);
}

static const char *met(const struct table *t, int64_t i) {
    if (number(t, "model_exact", i) == 1)
        return "MODEL-EXACT";
    return number(t, "within", i) == 1 ? "WITHIN" : "-";
}

static void put_value(FILE *f, const char *name, double value) {
    fprintf(f, "%s ", name);
    if (isnan(value))
        fputs("NaN", f); /* its sign says nothing */
    else
        fprintf(f, "%.6g", value);
}

/* The worst element, where one was found: its place, what stood there and what was wanted. */
static void put_worst(FILE *f, const struct table *t, int64_t i) {
    const struct at_frame_column *at = column(t, "worst_at");
    const double limit = number(t, "worst_limit", i), model = number(t, "worst_model", i);
    if (!(number(t, "worst_index", i) >= 0) || !(number(t, "compared", i) > 0))
        return;
    fputs("<span class=\"worst\">worst element ", f);
    at_html_text(f, at_frame_text(column(t, "tensor"), i));
    for (int a = 0; at && a < at->width && a < number(t, "worst_rank", i); a++)
        fprintf(f, "%s%.0f", a ? ", " : "[", at_frame_number(at, i, a));
    fputs(at && number(t, "worst_rank", i) > 0 ? "]: " : ": ", f);
    put_value(f, "got", number(t, "worst_got", i));
    put_value(f, ", want", number(t, "worst_want", i));
    if (!isnan(limit))
        put_value(f, ", limit", limit);
    if (!isnan(model))
        put_value(f, ", model", model);
    fputs("</span>", f);
}

static void put_why(FILE *f, struct table *t, int64_t i, enum at_html_class class) {
    fprintf(f, "<tr class=\"why\"><td colspan=\"11\" class=\"%s\"><div>", at_html_class_name(class));
    if (class == AT_HTML_FAILS || class == AT_HTML_DOUBTFUL) { /* the command names the case */
        at_html_text(f, at_frame_text(column(t, "cause"), i));
        if (class == AT_HTML_FAILS)
            put_worst(f, t, i);
        fputs(" <code>", f);
        at_html_text(f, at_frame_text(column(t, "repro"), i));
        fputs("</code>", f);
    } else {
        const char *cause = at_frame_text(column(t, "cause"), i); /* why it was not judged */
        put_case(f, t, i);
        fputs(*cause ? "- " : "", f);
        at_html_text(f, cause);
    }
    fputs("</div></td></tr>\n", f);
}

static void put_row(FILE *f, struct table *t, int64_t i) {
    const int64_t kernel = at_export_kernel(t->r, i);
    const enum at_html_class class = (enum at_html_class)t->order->class_of[i];
    fprintf(f, "<tr class=\"row\" id=\"r%lld\"><td class=\"%s\">", (long long)i, at_html_class_name(class));
    at_html_badge(f, class, at_frame_text(column(t, "state"), i));
    fputs("</td>", f);
    at_html_number(f, number(t, "ratio_max", i), 3);
    fputs("<td>", f);
    at_html_text(f, at_frame_text(at_frame_column(t->r->kernels, "family"), kernel));
    fputs("/<wbr>", f);
    at_html_name(f, at_frame_text(at_frame_column(t->r->kernels, "variant"), kernel));
    fputs("</td>", f);
    at_html_cell(f, at_frame_text(at_frame_column(t->r->cases, "role"), at_export_case(t->r, i)));
    at_html_cell(f, at_frame_text(column(t, "tensor"), i));
    at_html_number(f, number(t, "err_max", i), 2);
    at_html_number(f, number(t, "limit_median", i), 2);
    at_html_number(f, number(t, "ulp_p99", i), 3);
    at_html_number(f, 100 * number(t, "p_zero_share", i), 3);
    at_html_cell(f, met(t, i));
    put_decoys(f, t, i);
    fputs("</tr>\n", f);
    put_why(f, t, i, class);
}

static void put_rows(FILE *f, struct table *t, int64_t first, int64_t end) {
    static const char *const heads[] = { "state",  "#error/limit", "kernel",    "role",  "tensor", "#error",
                                         "#limit", "#ulp 99 %",    "#p = 0, %", "meets", "#decoys" };
    at_html_table(f, NULL, heads, sizeof heads / sizeof *heads);
    for (int64_t i = first; i < end; i++)
        put_row(f, t, t->order->row[i]);
    at_html_table_end(f);
}

/* ---- the section ---- */

static void put_summary(FILE *f, const struct table *t) {
    static const char *const heads[] = { "state", "#results", "meaning" };
    const struct at_frame_column *state = column(t, "state");
    const int64_t n = t->r->results->n;
    double compared = 0, total = 0;
    at_html_section(f, "summary", "Results by state");
    at_html_table(f, NULL, heads, 3);
    for (int s = 0; s < state->n_flags; s++) {
        enum at_state known;
        enum at_html_class class = AT_HTML_UNJUDGED; /* a state may fail in one case and be expected in another */
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++)
            if (state->at.i64[i] == s) {
                count++;
                class = t->order->class_of[i] < class ? (enum at_html_class)t->order->class_of[i] : class;
            }
        if (!count)
            continue;
        const int parsed = at_state_parse(state->flag[s], &known) == AT_OK;
        at_error_clear();
        fputs("<tr><td>", f);
        at_html_badge(f, class, state->flag[s]);
        fputs("</td>", f);
        fprintf(f, "<td class=\"n\">%lld (%.3g %%)</td>", (long long)count, 100 * (double)count / (double)n);
        fputs("<td>", f);
        at_html_text(f, parsed ? at_state_meaning(known) : "a state of a later version");
        fputs(parsed && class == AT_HTML_RIGHT && at_state_fails(known, "", 0) ? ", as its cases expect</td>" : "</td>",
              f);
        fputs("</tr>\n", f);
    }
    at_html_table_end(f);
    for (int64_t i = 0; i < n; i++) {
        compared += fmax(0, number(t, "compared", i));
        total += fmax(0, number(t, "total", i));
    }
    fprintf(f, "<p>%lld results, %lld variants, cases: %lld; %.0f of %.0f elements were compared.</p>\n", (long long)n,
            (long long)t->r->kernels->n, (long long)t->r->cases->n, compared, total);
}

/* Rows that are not folded: all that fail or prove nothing, up to a number. */
static int64_t open_rows(const struct at_html_order *order) {
    const int64_t bad = order->count[AT_HTML_FAILS] + order->count[AT_HTML_DOUBTFUL];
    const int64_t open = bad < OPEN_ROWS ? OPEN_ROWS : bad < 4 * OPEN_ROWS ? bad : 4 * OPEN_ROWS;
    return open < order->r.results->n ? open : order->r.results->n;
}

int64_t at_html_results_shown(const struct at_html_order *order) {
    const int64_t most = open_rows(order) + FOLDED_ROWS, n = order->r.results->n;
    return n < most ? n : most;
}

static void put_results(FILE *f, struct table *t) {
    const int64_t n = t->r->results->n, open = open_rows(t->order), end = at_html_results_shown(t->order);
    char text[96];
    at_html_section(f, "results", "Results, the worst first");
    fputs(
        "<p>What fails comes first, then what proves nothing, then what is right, nearest to its limit first. "
        "<b>error</b>: largest |kernel - exact|; <b>limit</b>: median of the elements' limits; <b>error/limit</b>: the "
        "largest; <b>ulp</b>: last places of the format, 99 % quantile; <b>MODEL-EXACT</b>: every bit equals the "
        "declared "
        "arithmetic; <b>WITHIN</b>: every element is inside its limit; <b>decoys</b>: wrong results that the same "
        "comparison rejected, of those that count.</p>\n",
        f);
    for (int c = 0; c < t->n_common; c++) {
        if (!t->common[c].n)
            continue;
        fputs("<p>Every case of ", f);
        at_html_text(f, t->common[c].op);
        fputs(": <code>", f);
        for (int w = 0; w < t->common[c].n; w++) {
            at_html_text(f, t->common[c].words[w]);
            fputc(' ', f);
        }
        fputs("</code></p>\n", f);
    }
    put_rows(f, t, 0, open);
    if (open == n)
        return;
    snprintf(text, sizeof text, end < n ? "The next %lld results" : "The other %lld results", (long long)(end - open));
    at_html_fold(f, text);
    put_rows(f, t, open, end);
    if (end < n)
        fprintf(f,
                "<p>%lld more, none of them worse: <code>attest export --to csv</code> writes "
                "them.</p>\n",
                (long long)(n - end));
    at_html_fold_end(f);
}

at_status at_html_results(const struct at_export *e, const struct at_html_order *order, FILE *f) {
    const struct at_figure_sink sink = { at_html_take_figure, f };
    struct table t = { .r = &order->r, .order = order };
    if (!order->r.results)
        return AT_OK;
    find_common(&t);
    put_summary(f, &t);
    put_results(f, &t);
    at_html_section(f, "limits", "How near to the limits, and how much range was left");
    AT_TRY(at_figures_results(e, &sink));
    const struct at_frame *ledger = at_frame_find(&e->frames, "ledger");
    if (ledger && ledger->n) {
        at_html_fold(f, "The overflow ledger, every row");
        at_html_frame(f, ledger);
        at_html_fold_end(f);
    }
    return AT_OK;
}
