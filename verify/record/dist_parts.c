/* Files of layers that are finished or in hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_parts.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attest/names.h"
#include "verify/archive/guard.h"

enum { PATH_BYTES = 4352 };

static at_status path_of(const char *out, int64_t layer, char path[PATH_BYTES]) {
    if (snprintf(path, PATH_BYTES, "%s.parts/layer_%06" PRId64 ".h5", out, layer) >= PATH_BYTES)
        return AT_FAIL(AT_USAGE, "--out: the path is too long");
    return AT_OK;
}

/* "layer_000012.h5.PID.tmp": what verify/result/atomic_file.c had not renamed when the process was killed. */
static int is_half_written(const char *name) {
    const char *rest = at_name_past_number(name, "layer_", 6);
    return rest && strncmp(rest, ".h5.", 4) == 0;
}

at_status at_dist_parts_open(const char *out) {
    char folder[PATH_BYTES], path[2 * PATH_BYTES];
    at_status status = AT_OK;
    AT_TRY(path_of(out, INT32_MAX, folder));
    *strrchr(folder, '/') = 0;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return AT_FAIL(AT_IO, "cannot make %s: %s", folder, strerror(errno));
    DIR *dir = opendir(folder);
    if (!dir)
        return AT_FAIL(AT_IO, "cannot read %s: %s", folder, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (is_half_written(entry->d_name) && unlink(path) != 0)
            status = AT_FAIL(AT_IO, "cannot delete %s: %s", path, strerror(errno));
    }
    closedir(dir);
    return status;
}

at_status at_dist_parts_write(const char *out, const struct at_dist_recording *x, int64_t i,
                              const struct at_dist_layer *layer, const struct at_dist_unit_row *units, int64_t n) {
    char path[PATH_BYTES];
    struct at_dist_writer *writer = NULL;
    struct at_dist_head head = at_dist_recording_head(x);
    AT_TRY(path_of(out, x->source.layer[i], path));
    head.shape.n_layers = 1;
    head.layer = &x->source.layer[i];
    head.quick = 1;
    AT_TRY(at_dist_writer_open(path, &head, &writer));
    const at_status status = at_dist_writer_put(writer, 0, layer);
    if (status == AT_OK)
        return at_dist_writer_save(writer, units, n);
    at_dist_writer_abandon(writer);
    return status;
}

int at_dist_parts_has(const char *out, int64_t layer) {
    char path[PATH_BYTES];
    return path_of(out, layer, path) == AT_OK && access(path, R_OK) == 0;
}

static int is_alike(const struct at_distributions *part, const struct at_dist_recording *x,
                    const struct at_dist_shape *shape) {
    char difference[512];
    const struct at_dist_shape *s = &part->shape;
    return s->h == shape->h && s->hk == shape->hk && s->what == shape->what && s->bins == shape->bins &&
           s->n_groups == shape->n_groups && s->n_distances == shape->n_distances && s->n_layers == 1 &&
           part->n_units <= x->shape.requests &&
           !at_json_difference(part->record.request, x->record.request, difference, sizeof difference);
}

/* The shard's requests of layer i from the first on, none left out. */
static int are_first(const struct at_dist_recording *x, int64_t i, const struct at_dist_unit_row *units, int64_t n) {
    int64_t at = 0;
    for (int64_t request = 0; request < x->shape.requests && at < n; request++)
        if (at_dist_recording_has(x, i, request)) {
            if (units[at].request != request || units[at].layer != x->source.layer[i])
                return 0;
            at++;
        }
    return at == n;
}

struct part {
    const char *path;
    const struct at_dist_recording *recording;
    int64_t i, *n;
    struct at_dist_layer *layer;
    struct at_dist_unit_row *units;
};

static at_status take(void *context) {
    const struct part *p = context;
    struct at_distributions part;
    at_status status = AT_OK;
    AT_TRY(at_distributions_open(p->path, &part));
    if (!is_alike(&part, p->recording, &p->layer->shape) || !are_first(p->recording, p->i, part.units, part.n_units))
        AT_FAIL_OUT(AT_USAGE, "%s: is not a part of this recording", p->path);
    AT_TRY_OUT(at_distributions_add(&part, 0, p->layer));
    memcpy(p->units, part.units, (size_t)part.n_units * sizeof *p->units);
    *p->n = part.n_units;
out:
    at_distributions_close(&part);
    return status;
}

/* Twice, as a machine that went down may have left anything: in a process that may die of it, then here. */
at_status at_dist_parts_take(const char *out, const struct at_dist_recording *x, int64_t i, struct at_dist_layer *layer,
                             struct at_dist_unit_row *units,
                             int64_t *n) { // NOLINT(readability-non-const-parameter): by way of part
    char path[PATH_BYTES];
    struct part part = { path, x, i, n, layer, units };
    AT_TRY(path_of(out, x->source.layer[i], path));
    const at_status status = at_guard_probe(path, take, &part);
    if (status == AT_USAGE)
        return AT_FAIL(
            status,
            "%s: a process that read it died of it or did not come to an end: the file is damaged; delete it, "
            "and --resume counts the layer anew",
            path);
    AT_TRY(status);
    return take(&part);
}

void at_dist_parts_remove(const char *out, const struct at_dist_recording *x) {
    char path[PATH_BYTES];
    for (int64_t i = 0; i < x->shape.n_layers; i++)
        if (path_of(out, x->source.layer[i], path) == AT_OK)
            unlink(path);
    if (path_of(out, 0, path) == AT_OK) {
        *strrchr(path, '/') = 0;
        rmdir(path);
    }
}
