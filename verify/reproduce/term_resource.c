/* Terms that are registers, shared memory or spills of a kernel, as nvcc said it once: a table beside the archives.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/reproduce/terms.h"

enum { COLUMNS = 16, LINE_BYTES = 2048 };

static at_status check(const struct at_term *term) {
    AT_TRY(at_term_want(term, 4));
    for (int i = 2; i < term->n_words; i++)
        if (strncmp(term->words[i], "arch=", 5) != 0 && strncmp(term->words[i], "entry=", 6) != 0)
            return AT_FAIL(AT_USAGE, "%s: resource: found \"%.60s\", wanted arch= or entry=", term->where,
                           term->words[i]);
    return AT_OK;
}

/* Cells of a line, cut at its tabs. */
static int cut(char *line, char *cells[COLUMNS]) {
    int n = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && n < COLUMNS; n++) {
        cells[n] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = 0;
    }
    return n;
}

static int column_named(char *heads[COLUMNS], int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(heads[i], name) == 0)
            return i;
    return -1;
}

static int row_takes(const struct at_term *term, char *heads[COLUMNS], int n, char *cells[COLUMNS]) {
    char source[192];
    snprintf(source, sizeof source, "kernels/%.150s.cu", term->words[0]);
    if (strcmp(cells[0], source) != 0)
        return 0;
    for (int i = 2; i < term->n_words; i++) {
        char name[16];
        const char *value = strchr(term->words[i], '=') + 1;
        snprintf(name, sizeof name, "%.*s", (int)(value - 1 - term->words[i]), term->words[i]);
        const int c = column_named(heads, n, name);
        if (c < 0 || strcmp(cells[c], value) != 0)
            return 0;
    }
    return 1;
}

static at_status read_table(FILE *file, const char *path, const struct at_term *term, struct at_term_value *v) {
    char head[LINE_BYTES], line[LINE_BYTES], *heads[COLUMNS], *cells[COLUMNS], *end;
    if (!fgets(head, sizeof head, file))
        return AT_FAIL(AT_USAGE, "%s: is empty, wanted a line of column names", path);
    const int n = cut(head, heads), column = column_named(heads, n, term->words[1]);
    if (column < 0)
        return AT_FAIL(AT_USAGE, "%s: resource: found column \"%.40s\", wanted one of %s", term->where, term->words[1],
                       path);
    while (fgets(line, sizeof line, file)) {
        if (cut(line, cells) != n || !row_takes(term, heads, n, cells))
            continue;
        const double value = strtod(cells[column], &end);
        if (*end || end == cells[column])
            return AT_FAIL(AT_USAGE, "%s: %s of %s: found \"%.40s\", wanted a number", path, term->words[1],
                           term->words[0], cells[column]);
        if (!isnan(v->value) && v->value != value)
            return AT_FAIL(AT_USAGE, "%s: %s: %s has two such entries, wanted entry= that tells them apart",
                           term->where, term->name, path);
        v->value = value;
    }
    return AT_OK;
}

static at_status find(struct at_term_sources *sources, const struct at_run_evidence *run, const struct at_term *term,
                      struct at_term_value *v) {
    const char *path = sources->evidence->resources;
    at_status status = AT_OK;
    (void)run;
    v->value = (double)NAN;
    FILE *file = *path ? fopen(path, "re") : NULL;
    if (file) {
        status = read_table(file, path, term, v);
        fclose(file);
    }
    snprintf(v->note, sizeof v->note, "resources.tsv: %.100s", term->words[0]);
    if (isnan(v->value))
        snprintf(v->why, sizeof v->why, "not measured: no such entry of %.100s in resources.tsv", term->words[0]);
    return status;
}

const struct at_term_kind at_term_resource = { .name = "resource",
                                               .wants = "FAMILY/VARIANT COLUMN arch=A entry=E",
                                               .meaning = "registers, shared memory or spills, by nvcc",
                                               .by_nvcc = 1,
                                               .check = check,
                                               .find = find };
