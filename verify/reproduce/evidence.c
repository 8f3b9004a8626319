/* Measurements: which archives there are, what is in them, and who measured when.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/reproduce/evidence.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "datasets/language/case.h"
#include "verify/commands/content.h"

const struct at_table *at_table_named(const char *group) {
    const struct at_content *c;
    for (int i = 0; (c = at_content_at(i)); i++)
        if (c->table && strcmp(c->table->group, group) == 0)
            return c->table;
    return NULL;
}

const struct at_table_rows *at_evidence_table(const struct at_run_evidence *run, const char *group) {
    for (int i = 0; i < run->n_tables; i++)
        if (run->tables[i].n >= 0 && strcmp(run->tables[i].table->group, group) == 0)
            return &run->tables[i];
    return NULL;
}

/* ---- one archive ---- */

/* The id as the language writes it today: a key that came later has its default. An id that it no longer takes stays. */
static void complete_id(const char *id, char to[1024]) {
    struct at_case_list list = { 0 };
    const int read = at_case_parse(id, "line", "an archive", &list) == AT_OK && list.n == 1;
    if (!read)
        at_error_clear();
    snprintf(to, 1024, "%s", read ? list.items[0].id : id);
    at_case_list_release(&list);
}

static at_status complete_ids(struct at_run_evidence *run) {
    const struct at_table_rows *bench = at_evidence_table(run, at_bench_table_kernels.group);
    if (!bench)
        return AT_OK;
    const struct at_bench_row *rows = bench->rows;
    run->cases = calloc((size_t)bench->n + 1, sizeof *run->cases);
    if (!run->cases)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld cases", (long long)bench->n);
    for (int64_t i = 0; i < bench->n; i++)
        if (i && strcmp(rows[i].case_id, rows[i - 1].case_id) == 0)
            memcpy(run->cases[i], run->cases[i - 1], sizeof *run->cases);
        else
            complete_id(rows[i].case_id, run->cases[i]);
    return AT_OK;
}

/* The device and the commit; the text of a device goes on with its driver's versions. */
static void read_provenance(const char *text, struct at_run_evidence *run) {
    json_t *build = text ? json_loads(text, 0, NULL) : NULL;
    const char *device = json_string_value(json_object_get(build, "device"));
    const char *commit = json_string_value(json_object_get(build, "commit"));
    if (device)
        snprintf(run->device, sizeof run->device, "%.*s", (int)strcspn(device, ","), device);
    if (commit)
        snprintf(run->commit, sizeof run->commit, "%s", commit);
    json_decref(build);
}

/* Archives keep no times. The table of the page beside them does: the row that names the file, the cell that is a date. */
static void read_date(const char *path, char date[16]) {
    char page[1200], line[4096], name[300];
    const int folder = (int)(strrchr(path, '/') ? strrchr(path, '/') + 1 - path : 0);
    snprintf(page, sizeof page, "%.*sREADME.md", folder, path);
    snprintf(name, sizeof name, "`%.290s`", path + folder);
    FILE *file = fopen(page, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *save = NULL;
        if (line[0] != '|' || !strstr(line, name))
            continue;
        for (char *cell = strtok_r(line, "|", &save); cell; cell = strtok_r(NULL, "|", &save)) {
            cell += strspn(cell, " ");
            if (fnmatch("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*", cell, 0) == 0)
                snprintf(date, 16, "%.10s", cell);
        }
        break;
    }
    if (file)
        fclose(file);
}

static at_status read_archive(const char *path, struct at_run_evidence *run) {
    struct at_run_record record;
    const struct at_content *c;
    at_status status = AT_OK;
    snprintf(run->file, sizeof run->file, "%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    for (int i = 0; (c = at_content_at(i)); i++)
        if (c->table) {
            if (run->n_tables == AT_EVIDENCE_TABLES)
                return AT_FAIL(AT_BUG, "reproduce: more than %d kinds of tables", AT_EVIDENCE_TABLES);
            run->tables[run->n_tables++] = (struct at_table_rows){ .table = c->table, .n = -1 };
        }
    at_run_record_init(&record);
    AT_TRY_OUT(at_archive_read_tables(path, run->tables, run->n_tables, &record));
    read_provenance(record.provenance, run);
    read_date(path, run->date);
    status = complete_ids(run);
out:
    at_run_record_release(&record);
    return status;
}

/* ---- all of them ---- */

static at_status add(struct at_evidence *evidence, struct at_run_evidence **run) {
    struct at_run_evidence *grown = realloc(evidence->runs, ((size_t)evidence->n + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d measurements", evidence->n + 1);
    evidence->runs = grown;
    *run = &grown[evidence->n++];
    memset(*run, 0, sizeof **run);
    return AT_OK;
}

static at_status add_archive(const char *path, struct at_evidence *evidence) {
    struct at_run_evidence *run;
    AT_TRY(add(evidence, &run));
    return read_archive(path, run);
}

static int is_archive(const struct dirent *entry) { return fnmatch("*.h5", entry->d_name, FNM_PERIOD) == 0; }

static at_status add_folder(const char *path, struct at_evidence *evidence) {
    struct dirent **entries = NULL;
    char file[1024];
    at_status status = AT_OK;
    const int n = scandir(path, &entries, is_archive, alphasort);
    if (n < 0)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    if (n == 0)
        status = AT_FAIL(AT_NOT_FOUND, "%s: has no archive *.h5", path);
    for (int i = 0; i < n; i++) {
        if (status == AT_OK && snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) >= (int)sizeof file)
            status = AT_FAIL(AT_USAGE, "%.200s: the path is too long", path);
        if (status == AT_OK)
            status = add_archive(file, evidence);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* What nvcc said of each kernel lies beside the archives, as a table of its own. */
static void find_resources(const char *folder, int length, struct at_evidence *evidence) {
    char path[sizeof evidence->resources];
    if (snprintf(path, sizeof path, "%.*s/resources.tsv", length, folder) < (int)sizeof path &&
        access(path, R_OK) == 0) {
        snprintf(evidence->resources, sizeof evidence->resources, "%s", path);
        read_date(path, evidence->resources_date);
    }
}

static at_status add_path(const char *path, struct at_evidence *evidence) {
    struct stat info;
    if (stat(path, &info) != 0)
        return AT_FAIL(AT_NOT_FOUND, "%s: %s", path, strerror(errno));
    const char *slash = strrchr(path, '/');
    if (S_ISDIR(info.st_mode))
        find_resources(path, (int)strlen(path), evidence);
    else
        find_resources(slash ? path : ".", slash ? (int)(slash - path) : 1, evidence);
    return S_ISDIR(info.st_mode) ? add_folder(path, evidence) : add_archive(path, evidence);
}

static int newest_first(const void *a, const void *b) {
    const struct at_run_evidence *x = a, *y = b;
    const int order = strcmp(y->date, x->date);
    return order ? order : strcmp(y->file, x->file);
}

at_status at_evidence_load(const char *from, struct at_evidence *evidence) {
    char path[1024];
    memset(evidence, 0, sizeof *evidence);
    for (const char *at = from;; at++) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof path)
            return AT_FAIL(AT_USAGE, "--from: found \"%.60s\", wanted archives or folders with commas between", from);
        snprintf(path, sizeof path, "%.*s", (int)length, at);
        AT_TRY(add_path(path, evidence));
        at += length;
        if (!*at)
            break;
    }
    if (evidence->n)
        qsort(evidence->runs, (size_t)evidence->n, sizeof *evidence->runs, newest_first);
    return AT_OK;
}

at_status at_evidence_of_run(struct at_bench_run *bench, struct at_evidence *evidence) {
    struct at_run_evidence *run;
    char folder[1024];
    const time_t now = time(NULL);
    struct tm day;
    memset(evidence, 0, sizeof *evidence);
    AT_TRY(add(evidence, &run));
    snprintf(run->file, sizeof run->file, "this run");
    run->tables[run->n_tables++] = (struct at_table_rows){ &at_bench_table_kernels, bench->rows, bench->n };
    bench->rows = NULL;
    bench->n = 0;
    read_provenance(bench->record.provenance, run);
    if (gmtime_r(&now, &day))
        strftime(run->date, sizeof run->date, "%Y-%m-%d", &day);
    snprintf(folder, sizeof folder, "%s/measurements", at_datasets_dir());
    find_resources(folder, (int)strlen(folder), evidence);
    return complete_ids(run);
}

void at_evidence_release(struct at_evidence *evidence) {
    for (int i = 0; i < evidence->n; i++) {
        for (int t = 0; t < evidence->runs[i].n_tables; t++)
            free(evidence->runs[i].tables[t].rows);
        free(evidence->runs[i].cases);
    }
    free(evidence->runs);
    memset(evidence, 0, sizeof *evidence);
}
