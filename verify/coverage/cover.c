/* Counts of lines, branches and instances, added up over objects and runner processes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/cover.h"

#include <stdlib.h>
#include <string.h>

void at_cover_release(struct at_cover *cover) {
    for (int i = 0; i < cover->n; i++) {
        struct at_cover_file *f = &cover->files[i];
        for (int l = 0; l < f->n; l++) {
            for (int b = 0; b < f->lines[l].n_lists; b++)
                free(f->lines[l].lists[b].taken);
            free(f->lines[l].lists);
            free(f->lines[l].reason);
        }
        for (int k = 0; k < f->n_instances; k++)
            free(f->instances[k].name);
        free(f->instances);
        free(f->lines);
        free(f->path);
    }
    free(cover->files);
    *cover = (struct at_cover){ 0 };
}

struct at_cover_file *at_cover_file(struct at_cover *cover, const char *path) {
    int at = 0;
    while (at < cover->n && strcmp(cover->files[at].path, path) < 0)
        at++;
    if (at < cover->n && strcmp(cover->files[at].path, path) == 0)
        return &cover->files[at];
    struct at_cover_file *files = realloc(cover->files, (size_t)(cover->n + 1) * sizeof *files);
    char *name = strdup(path);
    if (files)
        cover->files = files;
    if (!files || !name) {
        free(name);
        return NULL;
    }
    memmove(files + at + 1, files + at, (size_t)(cover->n - at) * sizeof *files);
    files[at] = (struct at_cover_file){ .path = name };
    cover->n++;
    return &files[at];
}

static at_status reach_line(struct at_cover_file *file, int number) {
    if (number < 1 || number > 1000000)
        return AT_FAIL(AT_ENVIRONMENT, "gcov speaks of line %d of %s", number, file->path);
    if (number <= file->n)
        return AT_OK;
    struct at_cover_line *lines = realloc(file->lines, (size_t)number * sizeof *lines);
    if (!lines)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d lines", number);
    memset(lines + file->n, 0, (size_t)(number - file->n) * sizeof *lines);
    file->lines = lines;
    file->n = number;
    return AT_OK;
}

/* The list of as many branches, made when there is none. */
static struct at_cover_branches *list_of(struct at_cover_line *line, int n) {
    for (int i = 0; i < line->n_lists; i++)
        if (line->lists[i].n == n)
            return &line->lists[i];
    struct at_cover_branches *lists = realloc(line->lists, (size_t)(line->n_lists + 1) * sizeof *lists);
    if (!lists)
        return NULL;
    line->lists = lists;
    lists[line->n_lists] = (struct at_cover_branches){ n, calloc((size_t)n, sizeof(int64_t)) };
    return lists[line->n_lists].taken ? &lists[line->n_lists++] : NULL;
}

at_status at_cover_add_line(struct at_cover_file *file, int number, int64_t count, const int64_t *taken, int n) {
    AT_TRY(reach_line(file, number));
    struct at_cover_line *line = &file->lines[number - 1];
    line->is_code = 1;
    line->count += count;
    if (n == 0)
        return AT_OK;
    struct at_cover_branches *list = list_of(line, n);
    if (!list)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d branches", n);
    for (int i = 0; i < n; i++)
        list->taken[i] += taken[i];
    return AT_OK;
}

static int by_place(const struct at_cover_instance *a, int line, int column, const char *name) {
    if (a->line != line || a->column != column)
        return a->line != line ? a->line - line : a->column - column;
    return strcmp(a->name, name);
}

at_status at_cover_add_instance(struct at_cover_file *file, const char *name, int line, int column, int64_t calls) {
    int at = 0, high = file->n_instances;
    while (at < high) {
        const int middle = (at + high) / 2;
        if (by_place(&file->instances[middle], line, column, name) < 0)
            at = middle + 1;
        else
            high = middle;
    }
    if (at < file->n_instances && by_place(&file->instances[at], line, column, name) == 0) {
        file->instances[at].calls += calls;
        return AT_OK;
    }
    if (file->n_instances == file->room) {
        const int room = file->room ? 2 * file->room : 16;
        struct at_cover_instance *more = realloc(file->instances, (size_t)room * sizeof *more);
        if (!more)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %d functions", room);
        file->instances = more;
        file->room = room;
    }
    char *own = strdup(name);
    if (!own)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the name of a function");
    memmove(file->instances + at + 1, file->instances + at, (size_t)(file->n_instances - at) * sizeof *file->instances);
    file->instances[at] = (struct at_cover_instance){ own, line, column, calls };
    file->n_instances++;
    return AT_OK;
}

at_status at_cover_merge(struct at_cover *into, const struct at_cover *from) {
    for (int i = 0; i < from->n; i++) {
        const struct at_cover_file *f = &from->files[i];
        struct at_cover_file *to = at_cover_file(into, f->path);
        if (!to)
            return AT_FAIL(AT_NO_MEMORY, "no memory for the counts of %s", f->path);
        for (int l = 0; l < f->n; l++) {
            const struct at_cover_line *line = &f->lines[l];
            if (line->is_code)
                AT_TRY(at_cover_add_line(to, l + 1, line->count, NULL, 0));
            for (int b = 0; b < line->n_lists; b++)
                AT_TRY(at_cover_add_line(to, l + 1, 0, line->lists[b].taken, line->lists[b].n));
        }
        for (int k = 0; k < f->n_instances; k++) {
            const struct at_cover_instance *x = &f->instances[k];
            AT_TRY(at_cover_add_instance(to, x->name, x->line, x->column, x->calls));
        }
    }
    return AT_OK;
}

int at_cover_line_branches(const struct at_cover_line *line, int *missed) {
    int n = 0;
    *missed = 0;
    for (int b = 0; b < line->n_lists; b++) {
        n += line->lists[b].n;
        for (int i = 0; i < line->lists[b].n; i++)
            *missed += line->lists[b].taken[i] == 0;
    }
    return n;
}

int at_cover_place(const struct at_cover_file *file, int i, int *called) {
    const struct at_cover_instance *first = &file->instances[i];
    int n = 0;
    *called = 0;
    for (;
         i < file->n_instances && file->instances[i].line == first->line && file->instances[i].column == first->column;
         i++, n++)
        *called += file->instances[i].calls > 0;
    return n;
}

void at_cover_count(const struct at_cover_file *file, struct at_cover_sum *sum) {
    int missed, called;
    for (int l = 0; l < file->n; l++) {
        const struct at_cover_line *line = &file->lines[l];
        const int branches = at_cover_line_branches(line, &missed);
        sum->lines += line->is_code;
        sum->lines_run += line->is_code && line->count > 0;
        sum->branches += branches;
        sum->taken += branches - missed;
        sum->explained += line->reason ? missed : 0;
    }
    for (int i = 0, n; i < file->n_instances; i += n) {
        n = at_cover_place(file, i, &called);
        sum->functions++;
        sum->functions_run += called > 0;
        sum->instances += n > 1 ? n : 0;
        sum->instances_run += n > 1 ? called : 0;
    }
}
