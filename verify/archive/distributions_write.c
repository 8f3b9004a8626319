/* /distributions of an archive, written layer by layer.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counts go into their datasets when a layer is put, in chunks of a head, and are deflated there; only the few numbers
 * per layer and head are kept until the end. Chunks that were never put read as zeros and take no room. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns.h"
#include "verify/archive/distributions.h"
#include "verify/archive/distributions_columns.h"
#include "verify/archive/h5pieces.h"
#include "verify/archive/h5type.h"
#include "verify/archive/layout.h"

enum { DEFLATE_LEVEL = 6, DEFLATE_QUICK = 1, MAX_RANK = 4 };

/* Open scales of /distributions. */
enum { LAYER, HEAD, KV_HEAD, BIN, COARSE, GROUP, DISTANCE, SCALES };

struct at_dist_writer {
    char *path;
    struct at_dist_shape shape;
    int quick; /* a file for a while */
    int64_t *layer;
    hid_t file, group, scale[SCALES];
    hid_t what[AT_DIST_COUNT], counts[AT_DIST_COUNT], coarse[AT_DIST_COUNT];
    struct at_dist_summary *summary[AT_DIST_COUNT]; /* [n_layers heads] */
    uint64_t *mass, *zero[AT_DIST_ZERO_COUNT];
    struct at_ledger_row *ledger;
    struct at_h5_image image;
};

/* ---- opening ---- */

static at_status write_scales(struct at_dist_writer *w) {
    const struct at_dist_shape *s = &w->shape;
    int64_t edges[AT_DIST_MAX_DISTANCES];
    for (int64_t i = 0; i < s->n_distances; i++)
        edges[i] = at_dist_distance_edge(i);
    AT_TRY(at_h5_scale_of(w->path, w->group, "layer", (hsize_t)s->n_layers, w->layer,
                          "layer, by its number in the source", &w->scale[LAYER]));
    AT_TRY(at_h5_scale(w->path, w->group, "head", (hsize_t)s->h, 0, "query head", &w->scale[HEAD]));
    AT_TRY(at_h5_scale(w->path, w->group, "kv_head", (hsize_t)s->hk, 0, "key/value head", &w->scale[KV_HEAD]));
    AT_TRY(at_h5_scale(w->path, w->group, "bin", (hsize_t)at_dist_bins(s->bins), 0,
                       "code of the 16-bit format in numeric order; its value is in `value`", &w->scale[BIN]));
    AT_TRY(at_h5_scale(w->path, w->group, "coarse", (hsize_t)at_dist_classes(s->bins), 0,
                       "codes that share their upper byte, ascending; the lowest value is in `coarse_edge`",
                       &w->scale[COARSE]));
    AT_TRY(at_h5_scale(w->path, w->group, "group", (hsize_t)s->n_groups, 0, "requests r with r % groups equal",
                       &w->scale[GROUP]));
    return at_h5_scale_of(w->path, w->group, "distance", (hsize_t)s->n_distances, edges,
                          "lower edge of a range of abs(query position - key)", &w->scale[DISTANCE]);
}

/* Values of the bins, and the lowest of each class. */
static at_status write_values(struct at_dist_writer *w) {
    const enum at_format bins = w->shape.bins;
    const int64_t n = at_dist_bins(bins), classes = at_dist_classes(bins);
    const struct at_h5_pieces fine = {
        "value", "value of a bin", 1, { (hsize_t)n }, { (hsize_t)n }, { w->scale[BIN] }
    };
    at_status status = AT_OK;
    hid_t dataset = H5I_INVALID_HID, type = at_h5_make_type(AT_H5_F64);
    double *values = malloc((size_t)n * sizeof *values);
    if (!values)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for the values of %" PRId64 " bins", w->path, n);
    for (int64_t i = 0; i < n; i++)
        values[i] = at_dist_value_of(bins, i);
    AT_TRY_OUT(at_h5_create_pieces(w->path, w->group, AT_H5_F64, &fine, &dataset));
    if (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        status = at_h5_fail(AT_IO, w->path, "write", "value");
        goto out;
    }
    for (int64_t i = 0; i < classes; i++)
        values[i] = at_dist_value_of(bins, at_dist_class_first(bins, i));
    const struct at_h5_column edges = { .name = "coarse_edge",
                                        .type = AT_H5_F64,
                                        .rank = 1,
                                        .dims = { (hsize_t)classes },
                                        .scales = { w->scale[COARSE] },
                                        .units = "1",
                                        .long_name = "lowest value of a class",
                                        .data = values };
    AT_TRY_OUT(at_h5_write(w->path, w->group, &edges));
out:
    at_h5_close(type);
    at_h5_close(dataset);
    free(values);
    return status;
}

static at_status open_what(struct at_dist_writer *w, enum at_dist_what what) {
    static const char *const query_axes[] = { "layer", "head", "bin" }, *const key_axes[] = { "layer", "kv_head",
                                                                                              "bin" };
    const struct at_dist_shape *s = &w->shape;
    const hsize_t layers = (hsize_t)s->n_layers, heads = (hsize_t)at_dist_heads(s, what);
    const hsize_t bins = (hsize_t)at_dist_bins(s->bins), classes = (hsize_t)at_dist_classes(s->bins);
    const hsize_t groups = (hsize_t)s->n_groups;
    const hid_t head = w->scale[at_dist_is_kv(what) ? KV_HEAD : HEAD];
    const int level = w->quick ? DEFLATE_QUICK : DEFLATE_LEVEL;
    const struct at_h5_pieces counts = { .name = "counts",
                                         .long_name = "values rounded to the code of the bin",
                                         .rank = 3,
                                         .dims = { layers, heads, bins },
                                         .chunk = { 1, 1, AT_DIST_CHUNK_BINS },
                                         .scales = { w->scale[LAYER], head, w->scale[BIN] },
                                         .level = level,
                                         .bare = w->quick };
    const struct at_h5_pieces coarse = { .name = "coarse_counts",
                                         .long_name = "the same values by class, for each group of requests",
                                         .rank = 4,
                                         .dims = { layers, heads, groups, classes },
                                         .chunk = { 1, 1, groups, classes },
                                         .scales = { w->scale[LAYER], head, w->scale[GROUP], w->scale[COARSE] },
                                         .level = level,
                                         .bare = w->quick };
    AT_TRY(at_h5_group(w->path, w->group, at_dist_name(what), "attest.distribution", "NXdata", &w->what[what]));
    AT_TRY(at_h5_attr_text(w->path, w->what[what], "long_name", at_dist_meaning(what)));
    AT_TRY(at_h5_attr_text(w->path, w->what[what], "signal", "counts"));
    AT_TRY(at_h5_attr_texts(w->path, w->what[what], "axes", 3, at_dist_is_kv(what) ? key_axes : query_axes));
    AT_TRY(at_h5_create_pieces(w->path, w->what[what], AT_H5_U64, &counts, &w->counts[what]));
    return at_h5_create_pieces(w->path, w->what[what], AT_H5_U64, &coarse, &w->coarse[what]);
}

static at_status allocate(struct at_dist_writer *w, const struct at_dist_head *head) {
    const struct at_dist_shape *s = &w->shape;
    const size_t layers = (size_t)s->n_layers, rows = layers * (size_t)s->h;
    int missing = 0;
    w->path = strdup(w->path);
    w->layer = malloc((layers + 1) * sizeof *w->layer);
    w->mass = calloc(rows * (size_t)s->n_distances + 1, sizeof *w->mass);
    w->ledger = calloc(rows * AT_DIST_STAGES + 1, sizeof *w->ledger);
    for (int i = 0; i < AT_DIST_COUNT; i++)
        if (at_dist_has(s, (enum at_dist_what)i)) {
            const size_t n = layers * (size_t)at_dist_heads(s, (enum at_dist_what)i);
            w->summary[i] = calloc(n + 1, sizeof *w->summary[i]);
            missing |= !w->summary[i];
        }
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
        w->zero[z] = calloc(layers * (size_t)at_dist_zero_heads(s, (enum at_dist_zero)z) + 1, sizeof *w->zero[z]);
        missing |= !w->zero[z];
    }
    if (missing || !w->path || !w->layer || !w->mass || !w->ledger)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %zu layers of %lld heads", layers, (long long)s->h);
    memcpy(w->layer, head->layer, layers * sizeof *w->layer);
    return AT_OK;
}

/* What is read back of a layer that is never put. */
static void summarize_nothing(struct at_dist_writer *w) {
    const struct at_dist_tally none = { 0 };
    struct at_dist_summary summary;
    uint64_t *counts = calloc((size_t)at_dist_bins(w->shape.bins), sizeof *counts);
    if (!counts)
        return;
    at_dist_summarize(w->shape.bins, counts, &none, &summary);
    free(counts);
    for (int i = 0; i < AT_DIST_COUNT; i++)
        for (int64_t n = w->shape.n_layers * at_dist_heads(&w->shape, (enum at_dist_what)i); w->summary[i] && n > 0;
             n--)
            w->summary[i][n - 1] = summary;
}

static at_status open_all(struct at_dist_writer *w, const struct at_dist_head *head) {
    char requests[32];
    snprintf(requests, sizeof requests, "%" PRId64, w->shape.requests);
    AT_TRY(allocate(w, head));
    summarize_nothing(w);
    AT_TRY(at_h5_create(w->path, &w->image, &w->file));
    AT_TRY(at_archive_write_root(w->path, w->file, AT_GROUP_DISTRIBUTIONS));
    AT_TRY(at_archive_write_provenance(w->path, w->file, head->record));
    AT_TRY(at_h5_group(w->path, w->file, AT_GROUP_DISTRIBUTIONS, "attest.distributions", "NXentry", &w->group));
    AT_TRY(at_h5_attr_text(w->path, w->group, "attention", head->attention));
    AT_TRY(at_h5_attr_text(w->path, w->group, "bins", at_format_info(w->shape.bins)->name));
    AT_TRY(at_h5_attr_text(w->path, w->group, "source", head->source));
    AT_TRY(at_h5_attr_text(w->path, w->group, "requests", requests));
    AT_TRY(write_scales(w));
    AT_TRY(write_values(w));
    for (int i = 0; i < AT_DIST_COUNT; i++)
        if (at_dist_has(&w->shape, (enum at_dist_what)i))
            AT_TRY(open_what(w, (enum at_dist_what)i));
    return AT_OK;
}

at_status at_dist_writer_open(const char *path, const struct at_dist_head *head, struct at_dist_writer **writer) {
    struct at_dist_writer *w = calloc(1, sizeof *w);
    *writer = NULL;
    if (!w)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory", path);
    at_h5_quiet();
    w->path = (char *)path; /* until allocate() has a copy */
    w->shape = head->shape;
    w->quick = head->quick;
    w->file = w->group = H5I_INVALID_HID;
    for (int i = 0; i < SCALES; i++)
        w->scale[i] = H5I_INVALID_HID;
    for (int i = 0; i < AT_DIST_COUNT; i++)
        w->what[i] = w->counts[i] = w->coarse[i] = H5I_INVALID_HID;
    const at_status status = open_all(w, head);
    if (status != AT_OK)
        at_dist_writer_abandon(w);
    else
        *writer = w;
    return status;
}

/* ---- a layer ---- */

/* The chunks of one head that count anything. */
static at_status put_counts(struct at_dist_writer *w, enum at_dist_what what, const hsize_t start[2],
                            const uint64_t *counts) {
    const int64_t bins = at_dist_bins(w->shape.bins);
    for (int64_t first = 0; first < bins; first += AT_DIST_CHUNK_BINS) {
        const int64_t n = bins - first < AT_DIST_CHUNK_BINS ? bins - first : AT_DIST_CHUNK_BINS;
        const hsize_t from[] = { start[0], start[1], (hsize_t)first }, count[] = { 1, 1, (hsize_t)n };
        uint64_t any = 0;
        for (int64_t i = 0; i < n; i++)
            any |= counts[first + i];
        if (any)
            AT_TRY(at_h5_put_piece(w->path, w->counts[what], 3, from, count, counts + first));
    }
    return AT_OK;
}

static at_status put_what(struct at_dist_writer *w, enum at_dist_what what, int64_t i,
                          const struct at_dist_layer *from) {
    const struct at_dist_shape *s = &w->shape;
    const int64_t heads = at_dist_heads(s, what), bins = at_dist_bins(s->bins), classes = at_dist_classes(s->bins);
    for (int64_t x = 0; x < heads; x++) {
        const uint64_t *counts = from->counts[what] + x * bins;
        const hsize_t start[MAX_RANK] = { (hsize_t)i, (hsize_t)x };
        const hsize_t coarse[] = { 1, 1, (hsize_t)s->n_groups, (hsize_t)classes };
        struct at_dist_summary *summary = &w->summary[what][i * heads + x];
        at_dist_summarize(s->bins, counts, &from->tally[what][x], summary);
        if (summary->n == summary->nan)
            continue; /* nothing but zeros */
        AT_TRY(put_counts(w, what, start, counts));
        AT_TRY(at_h5_put_piece(w->path, w->coarse[what], 4, start, coarse,
                               from->coarse[what] + x * s->n_groups * classes));
    }
    return AT_OK;
}

at_status at_dist_writer_put(struct at_dist_writer *w, int64_t i, const struct at_dist_layer *from) {
    const struct at_dist_shape *s = &w->shape;
    for (int what = 0; what < AT_DIST_COUNT; what++)
        if (at_dist_has(s, (enum at_dist_what)what))
            AT_TRY(put_what(w, (enum at_dist_what)what, i, from));
    memcpy(w->mass + i * s->h * s->n_distances, from->mass, (size_t)(s->h * s->n_distances) * sizeof *w->mass);
    memcpy(w->ledger + i * s->h * AT_DIST_STAGES, from->ledger, (size_t)(s->h * AT_DIST_STAGES) * sizeof *w->ledger);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
        const int64_t heads = at_dist_zero_heads(s, (enum at_dist_zero)z);
        memcpy(w->zero[z] + i * heads, from->zero[z], (size_t)heads * sizeof *w->zero[z]);
    }
    return AT_OK;
}

/* ---- the end ---- */

/* A column [layer, head] of the summaries. */
static at_status write_summary(struct at_dist_writer *w, enum at_dist_what what, const struct at_field *field) {
    const int64_t heads = at_dist_heads(&w->shape, what), n = w->shape.n_layers * heads;
    uint64_t *values = malloc((size_t)(n + 1) * sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %s of %s", w->path, field->name, at_dist_name(what));
    for (int64_t i = 0; i < n; i++)
        memcpy(&values[i], at_field_of(field, &w->summary[what][i]), sizeof *values);
    const struct at_h5_column column = {
        .name = field->name,
        .type = field->kind == AT_FIELD_F64 ? AT_H5_F64 : AT_H5_U64,
        .rank = 2,
        .dims = { (hsize_t)w->shape.n_layers, (hsize_t)heads },
        .scales = { w->scale[LAYER], w->scale[at_dist_is_kv(what) ? KV_HEAD : HEAD] },
        .units = field->units,
        .long_name = field->meaning,
        .bare = w->quick,
        .data = values,
    };
    const at_status status = at_h5_write(w->path, w->what[what], &column);
    free(values);
    return status;
}

static at_status write_mass(struct at_dist_writer *w) {
    static const char *const axes[] = { "layer", "head", "distance" };
    const struct at_dist_shape *s = &w->shape;
    const hsize_t dims[] = { (hsize_t)s->n_layers, (hsize_t)s->h, (hsize_t)s->n_distances };
    const struct at_h5_pieces mass = { .name = "mass",
                                       .long_name =
                                           "sum of abs(p), each rounded to a multiple of 2^-24, in units of that",
                                       .rank = 3,
                                       .dims = { dims[0], dims[1], dims[2] },
                                       .chunk = { 1, dims[1], dims[2] },
                                       .scales = { w->scale[LAYER], w->scale[HEAD], w->scale[DISTANCE] } };
    const hsize_t start[3] = { 0 };
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    AT_TRY_OUT(at_h5_group(w->path, w->group, "mass", "attest.distribution_mass", "NXdata", &group));
    AT_TRY_OUT(at_h5_attr_text(w->path, group, "signal", "mass"));
    AT_TRY_OUT(at_h5_attr_texts(w->path, group, "axes", 3, axes));
    AT_TRY_OUT(at_h5_create_pieces(w->path, group, AT_H5_U64, &mass, &dataset));
    AT_TRY_OUT(at_h5_put_piece(w->path, dataset, 3, start, dims, w->mass));
out:
    at_h5_close(dataset);
    at_h5_close(group);
    return status;
}

static at_status write_zeros(struct at_dist_writer *w) {
    const struct at_dist_shape *s = &w->shape;
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    AT_TRY_OUT(at_h5_group(w->path, w->group, "zero_share", "attest.distribution_zeros", "NXcollection", &group));
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
        const int kv = at_dist_zero_is_kv((enum at_dist_zero)z);
        const struct at_h5_column column = {
            .name = at_dist_zero_name((enum at_dist_zero)z),
            .type = AT_H5_U64,
            .rank = 2,
            .dims = { (hsize_t)s->n_layers, (hsize_t)(kv ? s->hk : s->h) },
            .scales = { w->scale[LAYER], w->scale[kv ? KV_HEAD : HEAD] },
            .units = "1",
            .long_name = at_dist_zero_meaning((enum at_dist_zero)z),
            .data = w->zero[z],
        };
        AT_TRY_OUT(at_h5_write(w->path, group, &column));
    }
out:
    at_h5_close(group);
    return status;
}

static void release(struct at_dist_writer *w) {
    for (int i = 0; i < AT_DIST_COUNT; i++) {
        at_h5_close(w->counts[i]);
        at_h5_close(w->coarse[i]);
        at_h5_close(w->what[i]);
        free(w->summary[i]);
    }
    for (int i = 0; i < SCALES; i++)
        at_h5_close(w->scale[i]);
    at_h5_close(w->group);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        free(w->zero[z]);
    free(w->layer);
    free(w->mass);
    free(w->ledger);
}

static at_status write_rest(struct at_dist_writer *w, const struct at_dist_unit_row *units, int64_t n_units) {
    const struct at_field *field;
    for (int what = 0; what < AT_DIST_COUNT; what++)
        for (int i = 0; at_dist_has(&w->shape, (enum at_dist_what)what) && (field = at_dist_summary_field(i)); i++)
            AT_TRY(write_summary(w, (enum at_dist_what)what, field));
    AT_TRY(write_mass(w));
    AT_TRY(write_zeros(w));
    AT_TRY(at_dist_write_ledger(w->path, w->group, &w->shape, w->layer, w->ledger));
    return at_dist_write_units(w->path, w->group, units, n_units);
}

at_status at_dist_writer_save(struct at_dist_writer *w, const struct at_dist_unit_row *units, int64_t n_units) {
    at_status status = write_rest(w, units, n_units);
    release(w); /* before the file is closed: an object that is open then is an error */
    if (status == AT_OK)
        status = at_h5_save(w->path, w->file, &w->image);
    else
        at_h5_abandon(w->file, &w->image);
    free(w->path);
    free(w);
    return status;
}

void at_dist_writer_abandon(struct at_dist_writer *w) {
    if (!w)
        return;
    release(w);
    at_h5_abandon(w->file, &w->image);
    free(w->path);
    free(w);
}
