/* The table of a study: for each product and mode, one line.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "verify/result/text.h"
#include "verify/study/accumulate/study.h"

/* Rows of one attention, product and mode. */
struct group {
    const struct at_study_rows *rows;
    const struct at_study_row *like;
};

static int belongs(const struct group *g, const struct at_study_row *row) {
    return strcmp(row->mode, g->like->mode) == 0 && strcmp(row->product, g->like->product) == 0 &&
           strcmp(row->attention, g->like->attention) == 0;
}

static int64_t size_of(const struct at_study_row *row) { return row->length * 65536 + row->d; }

/* The longest row of normal data, else of the data that comes first. */
static const struct at_study_row *typical(const struct group *g) {
    const struct at_study_row *best = g->like;
    for (int64_t i = 0; i < g->rows->n; i++) {
        const struct at_study_row *row = &g->rows->items[i];
        const int normal = strcmp(row->data, "normal") == 0, better = normal && strcmp(best->data, "normal") != 0;
        if (belongs(g, row) && (better || (strcmp(row->data, best->data) == 0 && size_of(row) > size_of(best))))
            best = row;
    }
    return best;
}

/* The row with the largest mean error; rows without one (every result infinite or NaN) do not compete. */
static const struct at_study_row *worst_of_all(const struct group *g) {
    const struct at_study_row *worst = NULL;
    for (int64_t i = 0; i < g->rows->n; i++) {
        const struct at_study_row *row = &g->rows->items[i];
        if (belongs(g, row) && row->compared > 0 && (!worst || row->err_mean > worst->err_mean))
            worst = row;
    }
    return worst;
}

struct totals {
    int64_t sums, overflowed, lost, laundered, beyond_probable;
};

static struct totals totals_of(const struct group *g) {
    struct totals t = { 0 };
    for (int64_t i = 0; i < g->rows->n; i++) {
        const struct at_study_row *row = &g->rows->items[i];
        if (!belongs(g, row))
            continue;
        t.sums += row->sums - row->inputs_nonfinite;
        t.overflowed += row->overflowed;
        t.lost += row->result_inf + row->result_nan;
        t.laundered += row->laundered;
        t.beyond_probable += row->beyond_probable;
    }
    return t;
}

static void put_number(FILE *out, const char *format, int width, double value) {
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, format, width, value);
}

static void put_line(const struct group *g, FILE *out) {
    const struct at_study_row *first = typical(g), *worst = worst_of_all(g);
    const struct totals t = totals_of(g);
    fprintf(out, "  ");
    at_text_fit(out, first->mode, 18, 0);
    put_number(out, " %*.1e", 7, first->err_mean);
    put_number(out, " %+*.1e", 8, first->bias);
    fprintf(out, " %6llu", (unsigned long long)first->ulp_p99);
    put_number(out, " %*.1f%%", 5, 100 * first->swamped_share);
    put_number(out, " %*.1e", 7, first->probable);
    put_number(out, " %*.1e", 7, first->bound);
    put_number(out, " %*.2f", 5, first->slope);
    put_number(out, " %*.1e", 7, worst ? worst->err_mean : NAN);
    fprintf(out, " ");
    at_text_fit(out, worst ? worst->data : "-", 12, 0);
    fprintf(out, " %6lld %5lld %5lld\n", (long long)t.overflowed, (long long)t.lost, (long long)t.laundered);
}

static void put_head(const struct group *g, FILE *out) {
    const struct at_study_row *first = typical(g);
    fprintf(out, "%s %s; %s: %lld products, d %lld\n  %-18s %7s %8s %6s %6s %7s %7s %5s %7s %-12s %6s %5s %5s\n",
            first->attention, first->product, first->data, (long long)first->length, (long long)first->d, "MODE",
            "MEAN", "BIAS", "ULP99", "SWAMP", "SQRT(N)", "BOUND", "SLOPE", "WORST", "OF", "OVER", "LOST", "HIDDEN");
}

static const struct at_study_row *first_of(const struct at_study_rows *rows, const char *attention, const char *product,
                                           const char *mode) {
    for (int64_t i = 0; i < rows->n; i++)
        if (strcmp(rows->items[i].mode, mode) == 0 && strcmp(rows->items[i].product, product) == 0 &&
            strcmp(rows->items[i].attention, attention) == 0)
            return &rows->items[i];
    return NULL;
}

static void put_tables(const struct at_study_rows *rows, const char *attention, FILE *out) {
    for (int p = 0; p < AT_STUDY_PRODUCTS; p++)
        for (int m = 0, lines = 0; m < at_study_mode_count(); m++) {
            const struct group g = { rows, first_of(rows, attention, at_study_product_name((enum at_study_product)p),
                                                    at_study_mode_at(m)->name) };
            if (!g.like)
                continue;
            if (lines++ == 0)
                put_head(&g, out);
            put_line(&g, out);
        }
}

void at_study_table(const struct at_study_rows *rows, FILE *out) {
    int64_t sums = 0;
    fprintf(
        out,
        "mean and bias: error / sum |a b|; ulp99: of f16; swamp: steps that change nothing; sqrt(n), bound: theory;\n"
        "slope: of log2 error over log2 length; worst: largest mean of any data and size; over: sums beyond 65504 on\n"
        "their way; lost: results Inf or NaN; hidden: finite results of sums that were infinite, in all data\n");
    for (int64_t i = 0; i < rows->n; i++)
        sums += rows->items[i].sums;
    put_tables(rows, "asynct", out);
    put_tables(rows, "softmax", out);
    fprintf(out, "%lld rows, %lld sums\n", (long long)rows->n, (long long)sums);
}

static void show(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    (void)record;
    at_study_table(&(struct at_study_rows){ .items = rows->rows, .n = rows->n }, out);
}

const struct at_content at_content_accumulate = { .what = "a study of accumulators",
                                                  .table = &at_study_table_accumulate,
                                                  .show_rows = show,
                                                  .is = at_study_is_accumulate,
                                                  .merge = at_study_merge };
