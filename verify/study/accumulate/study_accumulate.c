/* attest study accumulate: what modes of accumulation cost, over lengths, head sizes and distributions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "verify/cli/progress.h"
#include "verify/plan/plan.h"
#include "verify/run/provenance.h"
#include "verify/study/accumulate/study.h"
#include "verify/study/accumulate/study_journal.h"
#include "verify/study/accumulate/study_plan.h"
#include "verify/result/table.h"

enum { MAX_MODES = 64, MAX_LENGTH = 1 << 22 };

struct study {
    const struct at_study_mode *modes[MAX_MODES];
    int n_modes, asynct, softmax;
    const char *modes_glob, *data_glob, *attention;
    struct at_study_sizes lengths, d;
    int64_t sums, seed;
    struct at_study_plan plan;
    int shard, shards;
    int *dealt;    /* [plan.n] whose shard a case is */
    int64_t cases; /* of this shard */
    struct at_study_rows rows;
    struct at_journal *journal; /* NULL without --out */
};

static const char *or_else(const char *text, const char *fallback) { return text ? text : fallback; }

static at_status choose_modes(struct study *s) {
    const char *names[MAX_MODES];
    const int n = at_study_mode_count() < MAX_MODES ? at_study_mode_count() : MAX_MODES;
    for (int i = 0; i < n; i++) {
        names[i] = at_study_mode_at(i)->name;
        if (fnmatch(s->modes_glob, names[i], FNM_EXTMATCH) == 0)
            s->modes[s->n_modes++] = at_study_mode_at(i);
    }
    const char *nearest = at_nearest_name(s->modes_glob, names, n);
    return s->n_modes
               ? AT_OK
               : AT_FAIL(AT_NOT_FOUND, "study: --modes '%s' matches no mode%s%s%s; `attest study modes` lists them",
                         s->modes_glob, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status read_options(const struct at_args *args, struct study *s) {
    const int quick = at_args_has(args, "--quick");
    s->modes_glob = or_else(at_args_get(args, "--modes"), "*");
    s->data_glob = or_else(at_args_get(args, "--data"), "*");
    s->attention = or_else(at_args_get(args, "--attention"), "both");
    s->asynct = strcmp(s->attention, "softmax") != 0;
    s->softmax = strcmp(s->attention, "asynct") != 0;
    if (at_args_has(args, "--resume") && !at_args_get(args, "--out"))
        return AT_FAIL(AT_USAGE, "--resume wants --out S.h5: the journal lies beside the archive");
    if (s->asynct && s->softmax && strcmp(s->attention, "both") != 0)
        return AT_FAIL(AT_USAGE, "study: --attention '%s', wanted asynct, softmax or both", s->attention);
    AT_TRY(choose_modes(s));
    AT_TRY(at_study_sizes_parse("--lengths",
                                or_else(at_args_get(args, "--lengths"), quick ? "64,256" : "64,256,1024,4096"), 0,
                                MAX_LENGTH, &s->lengths));
    AT_TRY(at_study_sizes_parse("--d", or_else(at_args_get(args, "--d"), quick ? "64" : "64,128"), 1, 4096, &s->d));
    AT_TRY(at_args_int(args, "--sums", 1, 1 << 20, quick ? 16 : 128, &s->sums));
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 1, &s->seed));
    AT_TRY(at_study_plan_make(s->data_glob, s->asynct, s->softmax, &s->lengths, &s->d, (uint64_t)s->seed, &s->plan));
    AT_TRY(at_shard_parse(at_args_get(args, "--shard"), &s->shard, &s->shards));
    s->dealt = calloc((size_t)s->plan.n + 1, sizeof *s->dealt);
    if (!s->dealt)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld cases", (long long)s->plan.n);
    AT_TRY(at_study_plan_deal(&s->plan, s->shards, s->dealt));
    for (int64_t i = 0; i < s->plan.n; i++)
        s->cases += s->dealt[i] == s->shard;
    return AT_OK;
}

/* A case that cannot be built is refused before hours have gone into the others. */
static at_status check_cases(const struct study *s) {
    at_status status = AT_OK;
    for (int64_t i = 0; i < s->plan.n && status == AT_OK; i++) {
        struct at_case_list cases = { 0 };
        status = at_case_parse(s->plan.items[i].line, "study", s->plan.items[i].line, &cases);
        at_case_list_release(&cases);
    }
    return status;
}

/* Nor does a study end without a place for what it found. */
static at_status check_place(const struct at_args *args) {
    return at_args_get(args, "--out") ? at_atomic_check(at_args_get(args, "--out")) : AT_OK;
}

/* ---- what was asked for ---- */

static json_t *sizes_json(const struct at_study_sizes *sizes) {
    json_t *list = json_array();
    for (int i = 0; i < sizes->n; i++)
        json_array_append_new(list, json_integer(sizes->value[i]));
    return list;
}

static at_status describe(const struct study *s, struct at_run_record *record) {
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I}", "study", "accumulate", "modes", s->modes_glob, "data",
                  s->data_glob, "attention", s->attention, "lengths", sizes_json(&s->lengths), "d", sizes_json(&s->d),
                  "sums", (json_int_t)s->sums, "seed", (json_int_t)s->seed);
    char *text = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the study's description");
    record->request = text; /* the record's to free */
    return at_provenance_build("none: reference/tensor_core", &record->provenance);
}

/* ---- the study ---- */

static at_status measure_case(struct study *s, const struct at_study_case *c) {
    const int64_t before = s->rows.n;
    struct at_study_input input = { 0 };
    at_status status = at_study_input_open(c->line, &input);
    for (int p = 0; p < AT_STUDY_PRODUCTS && status == AT_OK; p++)
        if (at_study_has(&input, (enum at_study_product)p) && (p != AT_STUDY_qk || c->with_qk))
            status = at_study_measure(&input, (enum at_study_product)p, c->attention, c->data, s->modes, s->n_modes,
                                      s->sums, &s->rows);
    at_study_input_release(&input);
    if (status == AT_OK && s->journal)
        status = at_study_journal_append(s->journal, s->rows.items + before, s->rows.n - before);
    return status;
}

static at_status open_journal(const struct at_args *args, const struct at_run_record *record, struct study *s) {
    char path[4096];
    snprintf(path, sizeof path, "%s.jsonl", at_args_get(args, "--out"));
    AT_TRY(at_study_journal_open(path, record, at_args_has(args, "--resume"), &s->rows, &s->journal));
    return at_journal_lines(s->journal) <= s->cases
               ? AT_OK
               : AT_FAIL(AT_USAGE, "%s: holds %lld cases of a study that has %lld", path,
                         (long long)at_journal_lines(s->journal), (long long)s->cases);
}

static at_status measure(struct study *s) {
    struct at_progress progress;
    at_status status = AT_OK;
    int64_t done = s->journal ? at_journal_lines(s->journal) : 0;
    at_progress_start(&progress, "adding up", s->cases);
    at_progress_step(&progress, done, 0, "");
    for (int64_t i = 0; i < s->plan.n && status == AT_OK; i++) {
        if (s->dealt[i] != s->shard || done-- > 0)
            continue;
        status = measure_case(s, &s->plan.items[i]);
        at_progress_step(&progress, 1, 0, s->plan.items[i].line);
    }
    at_progress_end(&progress);
    return status;
}

static at_status run_study(const struct at_args *args, struct study *s, struct at_run_record *record) {
    char shard[32];
    AT_TRY(read_options(args, s));
    AT_TRY(check_cases(s));
    AT_TRY(check_place(args));
    AT_TRY(at_study_demos(stdout));
    if (at_args_has(args, "--demos"))
        return AT_OK;
    fflush(stdout);
    if (at_args_get(args, "--out")) {
        AT_TRY(describe(s, record));
        AT_TRY(open_journal(args, record, s));
    }
    AT_TRY(measure(s));
    AT_TRY(at_study_fit(&s->rows));
    at_study_table(&s->rows, stdout);
    if (at_args_get(args, "--out")) {
        const struct at_table_rows table = { &at_study_table_accumulate, s->rows.items, s->rows.n };
        struct at_journal *journal = s->journal;
        AT_TRY(at_archive_write_tables(&table, 1, record, at_args_get(args, "--out")));
        s->journal = NULL;
        snprintf(shard, sizeof shard, "%d/%d", s->shard + 1, s->shards);
        AT_TRY(at_journal_finish(journal, s->shards > 1 ? shard : NULL));
    }
    return AT_OK;
}

/* 1: a sum in range passed its bound, so theory or code is wrong. */
static int exit_code(const struct study *s) {
    int64_t beyond = 0;
    for (int64_t i = 0; i < s->rows.n; i++)
        beyond += s->rows.items[i].beyond_bound;
    if (beyond)
        fprintf(stderr, "attest: study: %lld sums are beyond what theory allows\n", (long long)beyond);
    return beyond > 0;
}

static int run_command(const struct at_args *args) {
    struct study s = { 0 };
    struct at_run_record record;
    at_run_record_init(&record);
    const at_status status = run_study(args, &s, &record);
    const int code = status == AT_OK ? exit_code(&s) : at_report_failure(status);
    at_journal_abandon(s.journal);
    at_study_plan_release(&s.plan);
    free(s.dealt);
    at_study_rows_release(&s.rows);
    at_run_record_release(&record);
    return code;
}

static int list_modes(const struct at_args *args) {
    (void)args;
    for (int i = 0; i < at_study_mode_count(); i++)
        printf("%-20s %s\n", at_study_mode_at(i)->name, at_study_mode_at(i)->meaning);
    return 0;
}

static const struct at_content *const contents[] = { &at_content_accumulate, NULL };
const struct at_study at_study_accumulate = { .name = "accumulate", .run = run_command, .contents = contents };
const struct at_study at_study_modes = { .name = "modes", .run = list_modes };
