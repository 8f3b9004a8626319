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
#include "verify/commands/content.h"

static const struct at_option options[] = {
    { "--worst", "N", "only the N results nearest to, or furthest beyond, their limit" },
    { "--strict", NULL, "count VACUOUS results as failing" },
    { NULL, NULL, NULL },
};

static int selected(const struct at_args *args, const struct at_result *r) {
    char name[192];
    snprintf(name, sizeof name, "%s/%s", r->family, r->variant);
    for (int i = 1; i < args->n_words; i++)
        if (fnmatch(args->words[i], name, 0) == 0)
            return 1;
    return args->n_words == 1;
}

/* Of a GLOB that is of no result. */
static at_status nothing_selected(const struct at_run_record *record, const char *glob) {
    char(*names)[192] = calloc((size_t)record->n + 1, sizeof *names), near[256] = "";
    const char **list = calloc((size_t)record->n + 1, sizeof *list);
    for (int64_t i = 0; names && list && i < record->n; i++) {
        snprintf(names[i], sizeof names[i], "%s/%s", record->results[i].family, record->results[i].variant);
        list[i] = names[i];
    }
    const int found = names && list && at_glob_nearest(glob, "/*", list, record->n, "/_", near, sizeof near);
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
    AT_TRY(at_args_int(args, "--worst", 1, INT64_MAX, 0, &worst));
    AT_TRY(at_archive_read(args->words[0], record));
    for (int64_t i = 0; i < record->n; i++)
        if (selected(args, &record->results[i]))
            record->results[kept++] = record->results[i];
    if (kept == 0 && record->n > 0)
        return nothing_selected(record, args->words[1]);
    record->n = kept;
    record->is_part = worst > 0;
    if (worst) {
        qsort(record->results, (size_t)record->n, sizeof *record->results, by_badness);
        record->n = record->n > worst ? worst : record->n;
    }
    at_report_table(record, at_args_has(args, "--strict"), isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), stdout);
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
    at_status status = show(args, &record);
    int code =
        status == AT_OK ? at_run_record_exit_code(&record, at_args_has(args, "--strict")) : at_report_failure(status);
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
