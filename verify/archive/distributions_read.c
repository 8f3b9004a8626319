/* /distributions of an archive: summaries at once, counts on demand.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A file may lie. The number of layers and heads is bounded by what columns that are stored as they are take, chunks
 * must be those of the writer, and only then is memory asked for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/columns_read.h"
#include "verify/archive/distributions.h"
#include "verify/archive/distributions_columns.h"
#include "verify/archive/guard.h"
#include "verify/archive/h5type.h"
#include "verify/archive/layout.h"

enum { MAX_RANK = 4 };

struct at_dist_file {
    char *path;
    uint64_t bytes;
    hid_t id, group;
    hid_t counts[AT_DIST_COUNT], coarse[AT_DIST_COUNT];
};

int at_distributions_is(const char *path) {
    uint64_t bytes;
    hid_t id;
    int there = 0;
    at_guard_begin(path);
    if (at_archive_open(path, &id, &bytes) == AT_OK) {
        there = H5Lexists(id, AT_GROUP_DISTRIBUTIONS, H5P_DEFAULT) > 0;
        H5Fclose(id);
    }
    at_guard_end();
    return there;
}

/* ---- sizes ---- */

static at_status length_of(const struct at_dist_file *f, const char *name, int64_t most, int64_t *n) {
    hsize_t length;
    AT_TRY(at_h5_length(f->path, f->group, name, &length));
    if (length < 1 || length > (hsize_t)most)
        return AT_FAIL(AT_USAGE, "%s: axis %s has %" PRIu64 " places, wanted 1 to %" PRId64, f->path, name,
                       (uint64_t)length, most);
    *n = (int64_t)length;
    return AT_OK;
}

static at_status read_requests(const struct at_dist_file *f, int64_t *requests) {
    char *text = NULL, *end;
    AT_TRY(at_h5_read_attr(f->path, f->group, "requests", &text));
    const long long n = strtoll(text, &end, 10);
    const int good = end != text && *end == 0 && n >= 1 && n <= INT32_MAX;
    free(text);
    if (!good)
        return AT_FAIL(AT_USAGE, "%s: attribute requests of distributions: wanted a number from 1", f->path);
    *requests = n;
    return AT_OK;
}

static at_status read_bins(const struct at_dist_file *f, enum at_format *bins) {
    char *text = NULL;
    AT_TRY(at_h5_read_attr(f->path, f->group, "bins", &text));
    const int f16 = strcmp(text, "f16") == 0, bf16 = strcmp(text, "bf16") == 0;
    const at_status status =
        f16 || bf16 ? AT_OK : AT_FAIL(AT_USAGE, "%s: bins are of \"%.20s\", wanted f16 or bf16", f->path, text);
    free(text);
    *bins = f16 ? AT_F16 : AT_BF16;
    return status;
}

static at_status read_shape(const struct at_dist_file *f, struct at_dist_shape *s) {
    const int64_t most = 1 << 20;
    int64_t bins, classes;
    AT_TRY(read_bins(f, &s->bins));
    AT_TRY(read_requests(f, &s->requests));
    AT_TRY(length_of(f, "layer", most, &s->n_layers));
    AT_TRY(length_of(f, "head", most, &s->h));
    AT_TRY(length_of(f, "kv_head", s->h, &s->hk));
    AT_TRY(length_of(f, "group", AT_DIST_MAX_GROUPS, &s->n_groups));
    AT_TRY(length_of(f, "distance", AT_DIST_MAX_DISTANCES, &s->n_distances));
    AT_TRY(length_of(f, "bin", most, &bins));
    AT_TRY(length_of(f, "coarse", most, &classes));
    if (bins != at_dist_bins(s->bins) || classes != at_dist_classes(s->bins) || s->h % s->hk ||
        s->n_groups > s->requests)
        return AT_FAIL(AT_USAGE,
                       "%s: found %" PRId64 " bins, %" PRId64 " classes, %" PRId64 " and %" PRId64 " heads, %" PRId64
                       " groups of %" PRId64 " requests, which do not fit together",
                       f->path, bins, classes, s->h, s->hk, s->n_groups, s->requests);
    if ((uint64_t)s->n_layers > f->bytes / 8 / (uint64_t)s->h)
        return AT_FAIL(AT_USAGE, "%s: claims %" PRId64 " layers of %" PRId64 " heads in %" PRIu64 " bytes", f->path,
                       s->n_layers, s->h, f->bytes);
    for (int w = 0; w < AT_DIST_COUNT; w++)
        if (H5Lexists(f->group, at_dist_name((enum at_dist_what)w), H5P_DEFAULT) > 0)
            s->what |= 1u << w;
    return s->what ? AT_OK : AT_FAIL(AT_USAGE, "%s: distributions hold no quantity", f->path);
}

/* ---- datasets of counts ---- */

/* Of axis i: the first two are layers and heads; before chunks of some bins there was one of all. */
static int is_chunk(int i, int rank, hsize_t chunk, hsize_t dim) {
    return i < 2 ? chunk == 1 : chunk == dim || (rank == 3 && chunk == AT_DIST_CHUNK_BINS);
}

static at_status check_extent(const struct at_dist_file *f, hid_t dataset, const char *name, int rank,
                              const hsize_t *dims) {
    hsize_t have[MAX_RANK] = { 0 }, chunk[MAX_RANK] = { 0 };
    hid_t space = H5Dget_space(dataset), list = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
    hid_t want = at_h5_make_type(AT_H5_U64);
    int good = space >= 0 && list >= 0 && H5Sget_simple_extent_ndims(space) == rank &&
               H5Sget_simple_extent_dims(space, have, NULL) == rank && H5Pget_layout(list) == H5D_CHUNKED &&
               H5Pget_chunk(list, rank, chunk) == rank && H5Tequal(type, want) > 0;
    for (int i = 0; i < rank && good; i++)
        good = have[i] == dims[i] && is_chunk(i, rank, chunk[i], dims[i]);
    at_h5_close(want);
    at_h5_close(type);
    at_h5_close(list);
    at_h5_close(space);
    return good ? AT_OK
                : AT_FAIL(AT_USAGE, "%s: %s is not uint64 with the extent and the chunks of its axes", f->path, name);
}

static at_status open_counts(const struct at_dist_file *f, hid_t group, const char *name, int rank, const hsize_t *dims,
                             hid_t *dataset) {
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return AT_FAIL(AT_USAGE, "%s: column %s is missing", f->path, name);
    *dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (*dataset < 0)
        return at_h5_fail(AT_USAGE, f->path, "open column", name);
    return check_extent(f, *dataset, name, rank, dims);
}

static at_status read_summaries(const struct at_dist_file *f, hid_t group, enum at_dist_what what,
                                struct at_distributions *d) {
    const struct at_field *field;
    const hsize_t dims[] = { (hsize_t)d->shape.n_layers, (hsize_t)at_dist_heads(&d->shape, what) };
    const size_t n = (size_t)(dims[0] * dims[1]);
    at_status status = AT_OK;
    uint64_t *values = calloc(n + 1, sizeof *values);
    d->summary[what] = calloc(n + 1, sizeof *d->summary[what]);
    if (!values || !d->summary[what])
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %zu layers and heads", f->path, n);
    for (int i = 0; (field = at_dist_summary_field(i)); i++) {
        AT_TRY_OUT(at_h5_read(f->path, group, field->name, field->kind == AT_FIELD_F64 ? AT_H5_F64 : AT_H5_U64, 2, dims,
                              values));
        for (size_t j = 0; j < n; j++)
            memcpy(at_field_at(field, &d->summary[what][j]), &values[j], sizeof values[j]);
    }
out:
    free(values);
    return status;
}

static at_status read_what(struct at_dist_file *f, enum at_dist_what what, struct at_distributions *d) {
    const struct at_dist_shape *s = &d->shape;
    const hsize_t layers = (hsize_t)s->n_layers, heads = (hsize_t)at_dist_heads(s, what);
    const hsize_t fine[] = { layers, heads, (hsize_t)at_dist_bins(s->bins) };
    const hsize_t coarse[] = { layers, heads, (hsize_t)s->n_groups, (hsize_t)at_dist_classes(s->bins) };
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    AT_TRY_OUT(at_archive_open_group(f->path, f->group, at_dist_name(what), "attest.distribution", &group));
    AT_TRY_OUT(read_summaries(f, group, what, d));
    AT_TRY_OUT(open_counts(f, group, "counts", 3, fine, &f->counts[what]));
    AT_TRY_OUT(open_counts(f, group, "coarse_counts", 4, coarse, &f->coarse[what]));
out:
    at_h5_close(group);
    return status;
}

/* ---- the rest ---- */

static at_status read_mass(const struct at_dist_file *f, struct at_distributions *d) {
    const struct at_dist_shape *s = &d->shape;
    hsize_t have[3] = { 0 };
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID, dataset = H5I_INVALID_HID, space = H5I_INVALID_HID,
          type = at_h5_make_type(AT_H5_U64);
    d->mass = calloc((size_t)(s->n_layers * s->h * s->n_distances), sizeof *d->mass);
    if (!d->mass)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for the mass of %" PRId64 " layers", f->path, s->n_layers);
    AT_TRY_OUT(at_archive_open_group(f->path, f->group, "mass", "attest.distribution_mass", &group));
    dataset = H5Lexists(group, "mass", H5P_DEFAULT) > 0 ? H5Dopen2(group, "mass", H5P_DEFAULT) : H5I_INVALID_HID;
    space = dataset >= 0 ? H5Dget_space(dataset) : H5I_INVALID_HID;
    if (space < 0 || H5Sget_simple_extent_ndims(space) != 3 || H5Sget_simple_extent_dims(space, have, NULL) != 3 ||
        have[0] != (hsize_t)s->n_layers || have[1] != (hsize_t)s->h || have[2] != (hsize_t)s->n_distances)
        AT_FAIL_OUT(AT_USAGE, "%s: mass is not [layer, head, distance]", f->path);
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->mass) < 0)
        status = at_h5_fail(AT_USAGE, f->path, "read", "mass");
out:
    at_h5_close(type);
    at_h5_close(space);
    at_h5_close(dataset);
    at_h5_close(group);
    return status;
}

static at_status read_zeros(const struct at_dist_file *f, struct at_distributions *d) {
    const struct at_dist_shape *s = &d->shape;
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    AT_TRY_OUT(at_archive_open_group(f->path, f->group, "zero_share", "attest.distribution_zeros", &group));
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
        const hsize_t dims[] = { (hsize_t)s->n_layers, (hsize_t)at_dist_zero_heads(s, (enum at_dist_zero)z) };
        d->zero[z] = calloc((size_t)(dims[0] * dims[1]), sizeof *d->zero[z]);
        if (!d->zero[z])
            AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for the zero shares of %" PRId64 " layers", f->path, s->n_layers);
        AT_TRY_OUT(at_h5_read(f->path, group, at_dist_zero_name((enum at_dist_zero)z), AT_H5_U64, 2, dims, d->zero[z]));
    }
out:
    at_h5_close(group);
    return status;
}

static at_status read_all(struct at_dist_file *f, struct at_distributions *d) {
    AT_TRY(at_archive_check_version(f->path, f->id, "attest.archive", "the file"));
    AT_TRY(at_archive_read_provenance(f->path, f->id, &d->record));
    AT_TRY(at_archive_open_group(f->path, f->id, AT_GROUP_DISTRIBUTIONS, "attest.distributions", &f->group));
    AT_TRY(at_h5_read_attr(f->path, f->group, "attention", &d->attention));
    AT_TRY(at_h5_read_attr(f->path, f->group, "source", &d->source));
    AT_TRY(read_shape(f, &d->shape));
    const hsize_t layers = (hsize_t)d->shape.n_layers;
    d->layer = calloc((size_t)layers, sizeof *d->layer);
    d->ledger = calloc((size_t)(d->shape.n_layers * d->shape.h) * AT_DIST_STAGES, sizeof *d->ledger);
    if (!d->layer || !d->ledger)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " layers", f->path, d->shape.n_layers);
    AT_TRY(at_h5_read(f->path, f->group, "layer", AT_H5_I64, 1, &layers, d->layer));
    for (int w = 0; w < AT_DIST_COUNT; w++)
        if (at_dist_has(&d->shape, (enum at_dist_what)w))
            AT_TRY(read_what(f, (enum at_dist_what)w, d));
    AT_TRY(read_mass(f, d));
    AT_TRY(read_zeros(f, d));
    AT_TRY(at_dist_read_ledger(f->path, f->group, &d->shape, d->ledger));
    return at_dist_read_units(f->path, f->group, f->bytes, &d->units, &d->n_units);
}

at_status at_distributions_open(const char *path, struct at_distributions *d) {
    struct at_dist_file *f = calloc(1, sizeof *f);
    *d = (struct at_distributions){ .file = f };
    at_run_record_init(&d->record);
    if (!f)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory", path);
    f->id = f->group = H5I_INVALID_HID;
    for (int w = 0; w < AT_DIST_COUNT; w++)
        f->counts[w] = f->coarse[w] = H5I_INVALID_HID;
    f->path = strdup(path);
    at_guard_begin(path);
    at_status status =
        f->path ? at_archive_open(path, &f->id, &f->bytes) : AT_FAIL(AT_NO_MEMORY, "%s: no memory", path);
    if (status == AT_OK)
        status = read_all(f, d);
    at_guard_end();
    if (status != AT_OK)
        at_distributions_close(d);
    return status;
}

static void close_file(struct at_dist_file *f) {
    at_guard_begin(f->path ? f->path : "");
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        at_h5_close(f->counts[w]);
        at_h5_close(f->coarse[w]);
    }
    at_h5_close(f->group);
    if (f->id >= 0)
        H5Fclose(f->id);
    at_guard_end();
    free(f->path);
    free(f);
}

void at_distributions_close(struct at_distributions *d) {
    for (int w = 0; w < AT_DIST_COUNT; w++)
        free(d->summary[w]);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        free(d->zero[z]);
    if (d->file)
        close_file(d->file);
    free(d->attention);
    free(d->source);
    free(d->layer);
    free(d->mass);
    free(d->ledger);
    free(d->units);
    at_run_record_release(&d->record);
    *d = (struct at_distributions){ 0 };
}

/* ---- counts ---- */

static at_status read_piece(const struct at_distributions *d, hid_t dataset, enum at_dist_what what, int rank,
                            const hsize_t *start, const hsize_t *count, uint64_t *values) {
    const struct at_dist_shape *s = &d->shape;
    at_status status = AT_OK;
    if (!at_dist_has(s, what))
        return AT_FAIL(AT_NOT_FOUND, "%s: there are no counts of %s", d->file->path, at_dist_name(what));
    if (start[0] >= (hsize_t)s->n_layers || start[1] >= (hsize_t)at_dist_heads(s, what))
        return AT_FAIL(AT_BUG, "%s: layer %" PRIu64 ", head %" PRIu64 " of %s are not there", d->file->path,
                       (uint64_t)start[0], (uint64_t)start[1], at_dist_name(what));
    at_guard_begin(d->file->path);
    hid_t type = at_h5_make_type(AT_H5_U64), space = H5Dget_space(dataset),
          memory = H5Screate_simple(rank, count, NULL);
    if (type < 0 || space < 0 || memory < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(dataset, type, memory, space, H5P_DEFAULT, values) < 0)
        status = at_h5_fail(AT_USAGE, d->file->path, "read the counts of", at_dist_name(what));
    at_h5_close(memory);
    at_h5_close(space);
    at_h5_close(type);
    at_guard_end();
    return status;
}

at_status at_distributions_counts(const struct at_distributions *d, enum at_dist_what what, int64_t layer, int64_t head,
                                  uint64_t *counts) {
    const hsize_t start[] = { (hsize_t)layer, (hsize_t)head, 0 }, n[] = { 1, 1, (hsize_t)at_dist_bins(d->shape.bins) };
    return read_piece(d, d->file->counts[what], what, 3, start, n, counts);
}

at_status at_distributions_coarse(const struct at_distributions *d, enum at_dist_what what, int64_t layer, int64_t head,
                                  uint64_t *coarse) {
    const hsize_t start[] = { (hsize_t)layer, (hsize_t)head, 0, 0 };
    const hsize_t n[] = { 1, 1, (hsize_t)d->shape.n_groups, (hsize_t)at_dist_classes(d->shape.bins) };
    return read_piece(d, d->file->coarse[what], what, 4, start, n, coarse);
}

/* ---- sums ---- */

static int add_words(uint64_t *into, const uint64_t *from, int64_t n) {
    int overflow = 0;
    for (int64_t i = 0; i < n; i++)
        if (from[i]) /* memory of counts that are 0 is left untouched, and takes no room */
            overflow |= __builtin_add_overflow(into[i], from[i], &into[i]);
    return overflow;
}

static at_status add_what(const struct at_distributions *d, enum at_dist_what what, int64_t i, uint64_t *scratch,
                          struct at_dist_layer *into, int *overflow) {
    const struct at_dist_shape *s = &d->shape;
    const int64_t heads = at_dist_heads(s, what), bins = at_dist_bins(s->bins);
    const int64_t coarse = s->n_groups * at_dist_classes(s->bins);
    for (int64_t x = 0; x < heads; x++) {
        const struct at_dist_summary *have = &d->summary[what][i * heads + x];
        struct at_dist_tally *tally = &into->tally[what][x];
        *overflow |= add_words(&tally->nan, &have->nan, 1) | add_words(&tally->masked, &have->masked, 1) |
                     add_words(&tally->overflow, &have->overflow, 1) | add_words(&tally->n_empty, &have->n_empty, 1);
        if (have->n == have->nan)
            continue;
        AT_TRY(at_distributions_counts(d, what, i, x, scratch));
        *overflow |= add_words(into->counts[what] + x * bins, scratch, bins);
        AT_TRY(at_distributions_coarse(d, what, i, x, scratch));
        *overflow |= add_words(into->coarse[what] + x * coarse, scratch, coarse);
    }
    return AT_OK;
}

static void add_ledger(struct at_ledger_row *into, const struct at_ledger_row *from) {
    struct at_ledger sum, more;
    at_ledger_init(&sum);
    at_ledger_init(&more);
    sum.stage[0] = *into;
    more.stage[0] = *from;
    at_ledger_merge(&sum, &more);
    *into = sum.stage[0];
}

at_status at_distributions_add(const struct at_distributions *d, int64_t i, struct at_dist_layer *into) {
    const struct at_dist_shape *s = &d->shape;
    const int64_t coarse = s->n_groups * at_dist_classes(s->bins), bins = at_dist_bins(s->bins);
    const int64_t mass = s->h * s->n_distances;
    at_status status = AT_OK;
    int overflow = 0;
    uint64_t *scratch = calloc((size_t)(coarse > bins ? coarse : bins), sizeof *scratch);
    if (!scratch)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for counts", d->file->path);
    for (int w = 0; w < AT_DIST_COUNT; w++)
        if (at_dist_has(s, (enum at_dist_what)w))
            AT_TRY_OUT(add_what(d, (enum at_dist_what)w, i, scratch, into, &overflow));
    overflow |= add_words(into->mass, d->mass + i * mass, mass);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
        const int64_t heads = at_dist_zero_heads(s, (enum at_dist_zero)z);
        overflow |= add_words(into->zero[z], d->zero[z] + i * heads, heads);
    }
    for (int64_t r = 0; r < s->h * AT_DIST_STAGES; r++)
        add_ledger(&into->ledger[r], &d->ledger[i * s->h * AT_DIST_STAGES + r]);
    if (overflow)
        status = AT_FAIL(AT_USAGE, "%s: a sum of layer %" PRId64 " is beyond 64 bits", d->file->path, d->layer[i]);
out:
    free(scratch);
    return status;
}
