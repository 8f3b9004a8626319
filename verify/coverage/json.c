/* attest coverage as JSON: one object; "files" with their lines, "variants", "open": what the gate asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "verify/coverage/report.h"
#include "verify/result/atomic_file.h"

static json_t *sum_of(const struct at_cover_sum *s) {
    return json_pack("{sI sI sI sI sI sI sI sI sI}", "lines", (json_int_t)s->lines, "lines_run",
                     (json_int_t)s->lines_run, "branches", (json_int_t)s->branches, "branches_taken",
                     (json_int_t)s->taken, "branches_explained", (json_int_t)s->explained, "functions",
                     (json_int_t)s->functions, "functions_called", (json_int_t)s->functions_run, "instances",
                     (json_int_t)s->instances, "instances_called", (json_int_t)s->instances_run);
}

/* Counts of the branches, in lists as the instances have them. */
static json_t *line_of(const struct at_cover_line *line, int number) {
    json_t *object = json_pack("{si sI}", "line", number, "count", (json_int_t)line->count);
    json_t *lists = json_array();
    for (int b = 0; b < line->n_lists; b++) {
        json_t *list = json_array();
        for (int i = 0; i < line->lists[b].n; i++)
            json_array_append_new(list, json_integer((json_int_t)line->lists[b].taken[i]));
        json_array_append_new(lists, list);
    }
    json_object_set_new(object, "branches", lists);
    if (line->reason)
        json_object_set_new(object, "not_reached", json_string(line->reason));
    return object;
}

static json_t *instances_of(const struct at_cover_file *f) {
    json_t *list = json_array();
    for (int i = 0, n, called; i < f->n_instances; i += n) {
        n = at_cover_place(f, i, &called);
        for (int k = i; k < i + n; k++)
            json_array_append_new(list, json_pack("{ss si sI}", "name", f->instances[k].name, "line",
                                                  f->instances[k].line, "calls", (json_int_t)f->instances[k].calls));
    }
    return list;
}

static json_t *file_of(const struct at_cover_report *r, int i) {
    const struct at_cover_file *f = &r->cover.files[i];
    struct at_cover_sum sum = { 0 };
    json_t *lines = json_array();
    at_cover_count(f, &sum);
    for (int l = 0; l < f->n; l++)
        if (f->lines[l].is_code)
            json_array_append_new(lines, line_of(&f->lines[l], l + 1));
    return json_pack("{ss sb so so so}", "file", f->path, "asked", r->is_whole[i], "sum", sum_of(&sum), "lines", lines,
                     "functions", instances_of(f));
}

static void add_open(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault) {
    static const char *const names[] = { [AT_COVER_UNTAKEN] = "branch never taken",
                                         [AT_COVER_UNCALLED] = "function never called",
                                         [AT_COVER_REACHED] = "marked as not reached, and reached" };
    json_array_append_new(
        context, json_pack("{ss si ss}", "file", r->cover.files[file].path, "line", line, "what", names[fault]));
}

static json_t *variants_of(const struct at_cover_report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->n_variants; i++) {
        const struct at_cover_variant *v = &r->variants[i];
        json_array_append_new(list, json_pack("{ss sI sI sI so so}", "file", v->path, "launched", (json_int_t)v->ran,
                                              "declined", (json_int_t)v->declined, "broken", (json_int_t)v->broken,
                                              "own", sum_of(&v->own), "with_headers", sum_of(&v->all)));
    }
    return list;
}

static json_t *cases_of(const struct at_cover_report *r) {
    json_t *list = json_array();
    for (int64_t i = 0; i < r->n_cases; i++) {
        const struct at_cover_case *c = &r->cases_alone[i];
        json_array_append_new(list, json_pack("{ss ss sI sI sI sb}", "role", c->role, "case", c->id, "branches_taken",
                                              (json_int_t)c->taken, "branches_own", (json_int_t)c->own,
                                              "branches_added", (json_int_t)c->added, "enough", c->is_enough));
    }
    return list;
}

at_status at_cover_json(const struct at_cover_report *r, const char *path) {
    struct at_atomic_file file;
    struct at_cover_sum whole;
    at_cover_whole(r, &whole);
    json_t *open = json_array(), *files = json_array();
    at_cover_faults(r, add_open, open);
    for (int i = 0; i < r->cover.n; i++)
        json_array_append_new(files, file_of(r, i));
    json_t *all = json_pack("{ss sb so so so so}", "cases", r->cases, "gate", at_cover_gate(r), "asked", sum_of(&whole),
                            "open", open, "variants", variants_of(r), "files", files);
    if (all && r->n_cases)
        json_object_set_new(all, "by_case", cases_of(r));
    if (!all)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", path);
    at_status status = at_atomic_open(path, &file);
    if (status == AT_OK) {
        if (json_dumpf(all, file.stream, JSON_COMPACT | JSON_SORT_KEYS) == 0 && fputc('\n', file.stream) != EOF) {
            status = at_atomic_commit(&file);
        } else {
            at_atomic_abandon(&file);
            status = AT_FAIL(AT_IO, "cannot write %s", path);
        }
    }
    json_decref(all);
    return status;
}
