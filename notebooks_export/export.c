/* What every kind of export works from.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/distributions.h"

void at_export_name(const char *path, const char *suffix, char *name, size_t size) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t n = strlen(base), s = strlen(suffix);
    const size_t cut = n > s && strcmp(base + n - s, suffix) == 0 ? n - s : n;
    snprintf(name, size, "%.*s", (int)cut, base);
}

static at_status open_distributions(struct at_export *e) {
    struct at_distributions *d = calloc(1, sizeof *d);
    if (!d)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for distributions", e->archive);
    const at_status status = at_distributions_open(e->archive, d);
    if (status == AT_OK)
        e->distributions = d;
    else
        free(d);
    return status;
}

at_status at_export_open(const char *archive, const char *dir, int64_t most, struct at_export *e) {
    *e = (struct at_export){ .archive = archive, .dir = dir };
    at_export_name(archive, ".h5", e->name, sizeof e->name);
    AT_TRY(at_frames_open(archive, most, &e->frames));
    if (e->frames.n == 0 && !e->frames.has_distributions)
        return AT_FAIL(AT_USAGE, "%s: holds no results, benchmarks, studies or distributions", archive);
    return e->frames.has_distributions ? open_distributions(e) : AT_OK;
}

void at_export_release(struct at_export *e) {
    if (e->distributions)
        at_distributions_close(e->distributions);
    free(e->distributions);
    at_frames_release(&e->frames);
}

at_status at_export_begin(const struct at_export *e, const char *what, const char *suffix,
                          struct at_atomic_file *file) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s%s%s.%s", e->dir, e->name, *what ? "_" : "", what, suffix);
    if (n < 0 || (size_t)n >= sizeof path)
        return AT_FAIL(AT_USAGE, "%.200s...: the path is too long", e->dir);
    return at_atomic_open(path, file);
}

at_status at_export_end(struct at_export *e, struct at_atomic_file *file) {
    char path[4096];
    snprintf(path, sizeof path, "%s", file->path);
    AT_TRY(at_atomic_commit(file));
    printf("%s\n", path);
    e->files++;
    return AT_OK;
}

/* ---- results with what they refer to ---- */

static at_status check_index(const struct at_export *e, const struct at_frame *from, const char *name,
                             const char *group, const struct at_frame *to, const struct at_frame_column **column) {
    *column = at_frame_column(from, name);
    if (!*column || (*column)->kind != AT_FRAME_I64 || (*column)->width != 1)
        return AT_FAIL(AT_USAGE, "%s: %s has no column %s of whole numbers", e->archive, from->group, name);
    if (!to) /* even where no row refers to one */
        return AT_FAIL(AT_USAGE, "%s: there is no group %s, which %s refers to", e->archive, group, from->group);
    return AT_OK;
}

static at_status check_rows(const struct at_export *e, const char *name, const struct at_frame *to,
                            const struct at_frame_column *c) {
    for (int64_t i = 0; i < c->rows; i++)
        if (c->at.i64[i] < 0 || c->at.i64[i] >= to->n)
            return AT_FAIL(AT_USAGE, "%s: row %" PRId64 " of results refers to %s %" PRId64 ", which is not there",
                           e->archive, c->first + i, name, c->at.i64[i]);
    return AT_OK;
}

at_status at_export_check(const struct at_export *e, const struct at_export_results *r) {
    AT_TRY(check_rows(e, "case", r->cases, r->case_of));
    return check_rows(e, "kernel", r->kernels, r->kernel_of);
}

at_status at_export_results_of(const struct at_export *e, struct at_export_results *r) {
    *r = (struct at_export_results){ .results = at_frame_find(&e->frames, "results"),
                                     .cases = at_frame_find(&e->frames, "cases"),
                                     .kernels = at_frame_find(&e->frames, "kernels") };
    if (!r->results)
        return AT_OK;
    AT_TRY(check_index(e, r->results, "case", "cases", r->cases, &r->case_of));
    AT_TRY(check_index(e, r->results, "kernel", "kernels", r->kernels, &r->kernel_of));
    return at_export_check(e, r);
}

int64_t at_export_case(const struct at_export_results *r, int64_t i) {
    return r->case_of->at.i64[i - r->case_of->first];
}

int64_t at_export_kernel(const struct at_export_results *r, int64_t i) {
    return r->kernel_of->at.i64[i - r->kernel_of->first];
}
