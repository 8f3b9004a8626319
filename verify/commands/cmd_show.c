/* attest show: what an archive says was judged, how near to its limit, and where the worst elements are; of a study's
 * or a benchmark's archive its table.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/cli/commands.h"
#include "verify/plan/nearest.h"
#include "verify/archive/archive_rows.h"
#include "verify/commands/content.h"
#include "verify/report/report_summary.h"
#include "verify/report/report_variants.h"

static const struct at_option options[] = {
    { "--worst", "N", "only the N results nearest to, or furthest beyond, their limit" },
    { "--all", NULL, "a row for each result of a large archive, too" },
    { "--strict", NULL, "count VACUOUS results as failing" },
    { NULL, NULL, NULL },
};

static int selected(const struct at_args *args, const struct at_result *r) {
    char name[192];
    if (args->n_words == 1)
        return 1;
    snprintf(name, sizeof name, "%s/%s", r->family, r->variant);
    for (int i = 1; i < args->n_words; i++)
        if (fnmatch(args->words[i], name, 0) == 0)
            return 1;
    return 0;
}

/* Of a GLOB that is of no result; `there`: what is. */
static at_status nothing_selected(const struct at_tallies *there, const char *glob) {
    char(*names)[192] = calloc((size_t)there->n + 1, sizeof *names), near[256] = "";
    const char **list = calloc((size_t)there->n + 1, sizeof *list);
    for (int64_t i = 0; names && list && i < there->n; i++) {
        at_tallies_name(there, i, names[i], sizeof names[i]);
        list[i] = names[i];
    }
    const int found = names && list && at_glob_nearest(glob, "/*", list, there->n, "/_", near, sizeof near);
    const at_status status = AT_FAIL(AT_NOT_FOUND, "show: no result is of a variant that matches '%.200s'%s%s%s", glob,
                                     found ? "; nearest is '" : "", near, found ? "'" : "");
    free(list);
    free(names);
    return status;
}

/* Failing states first, then by error over limit; a result without a ratio comes last. */
static int by_badness(const void *a, const void *b) {
    const struct at_result *x = a, *y = b;
    int fx = at_state_fails(x->state, x->expect, 1), fy = at_state_fails(y->state, y->expect, 1);
    if (fx != fy)
        return fy - fx;
    double rx = x->ratio_max >= 0 ? x->ratio_max : -1, ry = y->ratio_max >= 0 ? y->ratio_max : -1;
    return (rx < ry) - (rx > ry);
}

static at_status show(const struct at_args *args, struct at_run_record *record) {
    int64_t worst, kept = 0;
    struct at_tallies there = { 0 };
    AT_TRY(at_args_int(args, "--worst", 1, INT64_MAX, 0, &worst));
    AT_TRY(at_archive_read(args->words[0], record));
    for (int64_t i = 0; i < record->n; i++)
        if (selected(args, &record->results[i]))
            record->results[kept++] = record->results[i];
    if (kept == 0 && record->n > 0) {
        at_status status = AT_OK;
        for (int64_t i = 0; i < record->n && status == AT_OK; i++)
            status = at_tallies_add(&there, &record->results[i], 0);
        status = status == AT_OK ? nothing_selected(&there, args->words[1]) : status;
        at_tallies_release(&there);
        return status;
    }
    record->n = kept;
    record->is_part = worst > 0;
    if (worst) {
        qsort(record->results, (size_t)record->n, sizeof *record->results, by_badness);
        record->n = record->n > worst ? worst : record->n;
    }
    at_report_table(record, at_args_has(args, "--strict"), isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), stdout);
    return AT_OK;
}

/* ---- archives that are too large for a row each ---- */

/* Of so many results each has a row, and all are in memory at once (7 KB each). */
enum { MANY = 10000 };

/* What a row is chosen by. */
struct rank {
    int64_t row;
    double ratio;
    int fails;
};

struct survey {
    const struct at_args *args;
    struct at_summary *summary;
    int strict;
    int64_t n, worst;   /* results selected; --worst, 0: not given */
    struct rank *ranks; /* with --worst of all that are selected, else the first MANY that fail or are VACUOUS */
    int64_t n_ranks, capacity, left_out;
};

/* Failing states first, then by error over limit, as by_badness(). */
static int by_rank(const void *a, const void *b) {
    const struct rank *x = a, *y = b;
    if (x->fails != y->fails)
        return y->fails - x->fails;
    if (x->ratio != y->ratio)
        return x->ratio < y->ratio ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_row(const void *a, const void *b) {
    const struct rank *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static at_status survey_row(void *context, int64_t row, const struct at_result *r) {
    struct survey *s = context;
    if (!selected(s->args, r))
        return AT_OK;
    s->n++;
    AT_TRY(at_summary_add(s->summary, r));
    const int fails = at_state_fails(r->state, r->expect, 1);
    if (!s->worst && !fails)
        return AT_OK;
    if (!s->worst && s->n_ranks == MANY) {
        s->left_out++;
        return AT_OK;
    }
    if (s->n_ranks == s->capacity) {
        const int64_t capacity = 2 * s->capacity + 1024;
        struct rank *grown = realloc(s->ranks, (size_t)capacity * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "show: no memory for %lld rows", (long long)capacity);
        s->ranks = grown;
        s->capacity = capacity;
    }
    s->ranks[s->n_ranks++] = (struct rank){ row, r->ratio_max >= 0 ? r->ratio_max : -1, fails };
    return AT_OK;
}

/* The chosen rows, whole, in the order of the archive. */
static at_status read_ranked(struct survey *s, struct at_run_record *record) {
    int64_t *rows = calloc((size_t)s->n_ranks + 1, sizeof *rows);
    if (!rows)
        return AT_FAIL(AT_NO_MEMORY, "show: no memory for rows");
    qsort(s->ranks, (size_t)s->n_ranks, sizeof *s->ranks, by_row);
    for (int64_t i = 0; i < s->n_ranks; i++)
        rows[i] = s->ranks[i].row;
    const at_status status = at_archive_read_rows(s->args->words[0], rows, s->n_ranks, record);
    free(rows);
    return status;
}

static at_status show_worst(struct survey *s, struct at_run_record *record, int colour) {
    qsort(s->ranks, (size_t)s->n_ranks, sizeof *s->ranks, by_rank);
    s->n_ranks = s->n_ranks < s->worst ? s->n_ranks : s->worst;
    AT_TRY(read_ranked(s, record));
    record->is_part = 1;
    qsort(record->results, (size_t)record->n, sizeof *record->results, by_badness);
    at_report_table(record, s->strict, colour, stdout);
    return AT_OK;
}

static at_status tally_row(void *context, int64_t row, const struct at_result *r) {
    (void)row;
    return at_tallies_add(context, r, 0);
}

static at_status nothing_surveyed(const struct at_args *args) {
    struct at_tallies there = { 0 };
    at_status status = at_archive_scan(args->words[0], at_summary_fields, tally_row, &there);
    if (status == AT_OK)
        status = nothing_selected(&there, args->words[1]);
    at_tallies_release(&there);
    return status;
}

/* *code: the exit code of what is shown. */
static at_status show_survey(struct survey *s, struct at_run_record *record, int *code) {
    const int colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    AT_TRY(at_archive_scan(s->args->words[0], at_summary_fields, survey_row, s));
    if (s->n == 0)
        return nothing_surveyed(s->args);
    if (s->worst) {
        AT_TRY(show_worst(s, record, colour));
        *code = at_report_exit_code(record, s->strict);
        return AT_OK;
    }
    const struct at_run_record whole = { 0 };
    AT_TRY(read_ranked(s, record));
    printf("%lld results: rows for those that fail or are VACUOUS alone (--all: for each)\n\n", (long long)s->n);
    at_report_rows(record, s->strict, colour, stdout);
    if (s->left_out)
        printf("and %lld more of these; --worst N chooses\n\n", (long long)s->left_out);
    at_summary_put_families(s->summary, stdout);
    putchar('\n');
    at_summary_put(s->summary, &whole, stdout);
    *code = at_summary_exit_code(s->summary, &whole);
    return AT_OK;
}

static at_status show_large(const struct at_args *args, struct at_run_record *record, int *code) {
    struct survey s = { .args = args, .strict = at_args_has(args, "--strict") };
    at_status status = AT_OK;
    AT_TRY(at_args_int(args, "--worst", 1, INT64_MAX, 0, &s.worst));
    s.summary = at_summary_create(s.strict);
    status = s.summary ? show_survey(&s, record, code) : AT_FAIL(AT_NO_MEMORY, "show: no memory for a summary");
    at_summary_destroy(s.summary);
    free(s.ranks);
    return status;
}

static at_status show_results(const struct at_args *args, struct at_run_record *record, int *code) {
    int64_t n;
    AT_TRY(at_archive_count(args->words[0], &n));
    if (n > MANY && !at_args_has(args, "--all"))
        return show_large(args, record, code);
    AT_TRY(show(args, record));
    *code = at_report_exit_code(record, at_args_has(args, "--strict"));
    return AT_OK;
}

/* ---- other contents ---- */

enum { MAX_TABLES = 16 };

/* *shown: tables that the file has. */
static at_status show_tables(const char *path, int *shown) {
    struct at_table_rows rows[MAX_TABLES] = { 0 };
    const struct at_content *of[MAX_TABLES];
    struct at_run_record record;
    const struct at_content *c;
    int n = 0;
    for (int i = 0; (c = at_content_at(i)); i++)
        if (c->table) {
            if (n == MAX_TABLES)
                return AT_FAIL(AT_BUG, "show: more than %d kinds of tables", MAX_TABLES);
            of[n] = c;
            rows[n++].table = c->table;
        }
    at_run_record_init(&record);
    const at_status status = at_archive_read_tables(path, rows, n, &record);
    *shown = 0;
    for (int i = 0; i < n; i++) {
        if (status == AT_OK && rows[i].n >= 0) {
            if ((*shown)++ == 0)
                printf("%s\n", record.request);
            of[i]->show_rows(&rows[i], &record, stdout);
        }
        free(rows[i].rows);
    }
    at_run_record_release(&record);
    return status;
}

/* *shown: 1 when the file is of a content with files of its own. */
static at_status show_own(const char *path, int *shown) {
    *shown = 0;
    const struct at_content *c;
    for (int i = 0; (c = at_content_at(i)) && !*shown; i++)
        if (c->show && c->is && c->is(path)) {
            *shown = 1;
            AT_TRY(c->show(path, stdout));
        }
    return AT_OK;
}

static int run(const struct at_args *args) {
    struct at_run_record record;
    int shown;
    at_status other = show_own(args->words[0], &shown);
    if (other == AT_OK && !shown)
        other = show_tables(args->words[0], &shown);
    if (other != AT_OK)
        return at_report_failure(other);
    if (shown)
        return 0;
    at_run_record_init(&record);
    int code = 0;
    const at_status status = show_results(args, &record, &code);
    if (status != AT_OK)
        code = at_report_failure(status);
    at_run_record_release(&record);
    return code;
}

const struct at_command at_command_show = {
    .name = "show",
    .synopsis = "show RUN.h5 [GLOB...] [options]",
    .summary =
        "what an archive says was judged, and how near to its limit; the table of a study, benchmark or recording",
    .example = "attest show run.h5 --worst 10",
    .options = options,
    .min_words = 1,
    .max_words = AT_MAX_WORDS,
    .reads_archives = 1,
    .run = run,
};
