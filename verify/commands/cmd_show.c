/* attest show: what an archive says was judged, how near to its limit, and where the worst elements are; of a study's
 * or a benchmark's archive its table. SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/archive/distributions.h"
#include "verify/bench/bench.h"
#include "verify/record/dist_table.h"
#include "verify/study/accumulate/study.h"
#include "verify/study/special/study_exp2.h"
#include "verify/study/tensor_core/study_tensor_core.h"
#include "verify/result/table.h"

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
    record->n = kept;
    if (worst) {
        qsort(record->results, (size_t)record->n, sizeof *record->results, by_badness);
        record->n = record->n > worst ? worst : record->n;
    }
    at_report_table(record, at_args_has(args, "--strict"), isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), stdout);
    return AT_OK;
}

/* ---- studies and benchmarks ---- */

static void show_tensor_core(const struct at_tc_stratum_row *rows, int64_t n) {
    at_tc_study_head(stdout);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && strcmp(rows[end].instruction, rows[i].instruction) == 0;)
            end++;
        at_tc_study_print(&rows[i], end - i, stdout);
    }
}

static void show_probes(const struct at_tc_probe_row *rows, int64_t n) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        wrong += !rows[i].right;
        if (!rows[i].right)
            printf("%s %s, %s: predicted %.10g, model %.10g, runner %.10g\n", rows[i].name, rows[i].what,
                   rows[i].instruction, rows[i].predicted, rows[i].model, rows[i].runner);
    }
    printf("%lld probes, %lld not as predicted\n", (long long)n, (long long)wrong);
}

static void show_bench(const struct at_table_rows *t, const char *provenance) {
    json_t *build = json_loads(provenance, 0, NULL);
    const char *device = json_string_value(json_object_get(build, "device"));
    at_bench_table(t->rows, (int)t->n, device ? device : "a device of no name", stdout);
    json_decref(build);
}

static void show_table(const struct at_table_rows *t, const char *provenance) {
    if (t->table == &at_study_table_accumulate)
        at_study_table(&(struct at_study_rows){ .items = t->rows, .n = t->n }, stdout);
    else if (t->table == &at_study_table_tensor_core)
        show_tensor_core(t->rows, t->n);
    else if (t->table == &at_study_table_probes)
        show_probes(t->rows, t->n);
    else if (t->table == &at_study_table_exp2)
        at_exp2_print(t->rows, t->n, stdout);
    else
        show_bench(t, provenance);
}

/* *shown: tables that the file has. */
static at_status show_tables(const char *path, int *shown) {
    struct at_table_rows tables[] = { { .table = &at_study_table_accumulate },
                                      { .table = &at_study_table_tensor_core },
                                      { .table = &at_study_table_probes },
                                      { .table = &at_study_table_exp2 },
                                      { .table = &at_bench_table_kernels } };
    const int n = (int)(sizeof tables / sizeof *tables);
    struct at_run_record record;
    at_run_record_init(&record);
    const at_status status = at_archive_read_tables(path, tables, n, &record);
    *shown = 0;
    for (int i = 0; i < n; i++) {
        if (status == AT_OK && tables[i].n >= 0) {
            if ((*shown)++ == 0)
                printf("%s\n", record.request);
            show_table(&tables[i], record.provenance);
        }
        free(tables[i].rows);
    }
    at_run_record_release(&record);
    return status;
}

static at_status show_distributions(const char *path) {
    struct at_distributions d;
    AT_TRY(at_distributions_open(path, &d));
    printf("%s\n", d.record.request);
    const at_status status = at_dist_table(&d, stdout);
    at_distributions_close(&d);
    return status;
}

static int run(const struct at_args *args) {
    struct at_run_record record;
    int tables;
    if (at_distributions_is(args->words[0])) {
        const at_status status = show_distributions(args->words[0]);
        return status == AT_OK ? 0 : at_report_failure(status);
    }
    const at_status read = show_tables(args->words[0], &tables);
    if (read != AT_OK)
        return at_report_failure(read);
    if (tables)
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
    .run = run,
};
