/* Columns from arrays of structs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum at_h5_type at_archive_type(enum at_field_kind kind) {
    switch (kind) {
    case AT_FIELD_TEXT:
        return AT_H5_TEXT;
    case AT_FIELD_STATE:
    case AT_FIELD_BOOL:
        return AT_H5_I8;
    case AT_FIELD_INT:
        return AT_H5_I32;
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        return AT_H5_I64;
    case AT_FIELD_U64:
        return AT_H5_U64;
    case AT_FIELD_F64:
        return AT_H5_F64;
    }
    return AT_H5_TEXT;
}

/* Field `field` of one struct, to place i of a column. */
static void store(const struct at_field *field, const void *base, void *data, size_t i) {
    const void *at = at_field_of(field, base);
    switch (field->kind) {
    case AT_FIELD_TEXT:
        ((const char **)data)[i] = at;
        break;
    case AT_FIELD_STATE:
        ((int8_t *)data)[i] = (int8_t)(*(const enum at_state *)at);
        break;
    case AT_FIELD_BOOL:
        ((int8_t *)data)[i] = *(const int *)at != 0;
        break;
    case AT_FIELD_INT:
        ((int32_t *)data)[i] = *(const int *)at;
        break;
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
    case AT_FIELD_U64:
        memcpy((char *)data + i * field->size, at, field->size);
        break;
    case AT_FIELD_F64:
        ((double *)data)[i] = isnan(*(const double *)at) ? (double)NAN : *(const double *)at;
        break;
    }
}

/* Names of the values of a status-like field; NULL for others. */
static const char *flag_names(enum at_field_kind kind, char *text, size_t size, int *n) {
    if (kind == AT_FIELD_BOOL) {
        *n = 2;
        return "no yes";
    }
    if (kind != AT_FIELD_STATE)
        return NULL;
    *n = AT_STATE_COUNT;
    text[0] = 0;
    for (int s = 0; s < AT_STATE_COUNT; s++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", s ? " " : "", at_state_name((enum at_state)s));
    return text;
}

/* The column of a field but for its data; `meanings` has room for the names of its values. */
static struct at_h5_column describe(const struct at_archive_group *g, const struct at_field *field,
                                    char meanings[256]) {
    struct at_h5_column column = { .name = field->name,
                                   .type = at_archive_type(field->kind),
                                   .rank = field->count > 1 ? 2 : 1,
                                   .dims = { g->n, (hsize_t)field->count },
                                   .scales = { g->scale, g->inner },
                                   .units = field->units,
                                   .long_name = field->meaning,
                                   .missing = field->kind == AT_FIELD_PLACE };
    column.flag_meanings = flag_names(field->kind, meanings, 256, &column.n_flags);
    return column;
}

at_status at_archive_field(const struct at_archive_group *g, const struct at_field *field, const void *const *structs) {
    char meanings[256];
    void *data = calloc(g->n + 1, at_h5_type_bytes(at_archive_type(field->kind)) * (size_t)field->count);
    if (!data)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, field->name);
    for (size_t i = 0; i < g->n; i++)
        store(field, structs[i], data, i);
    struct at_h5_column column = describe(g, field, meanings);
    column.data = data;
    at_status status = at_h5_write(g->file, g->group, &column);
    free(data);
    return status;
}

/* ---- columns that were stored ---- */

at_status at_archive_put(struct at_store *to, int c, const struct at_field *field, const void *base) {
    double value[1];
    if (field->kind == AT_FIELD_TEXT || field->count > 1)
        return at_store_put(to, c, at_field_of(field, base));
    store(field, base, value, 0);
    return at_store_put(to, c, value);
}

struct stored {
    struct at_store *store;
    int c;
};

static at_status next_piece(void *context, hsize_t first, const void **data) {
    const struct stored *s = context;
    return at_store_read(s->store, s->c, (int64_t)first, data);
}

at_status at_archive_stored(const struct at_archive_group *g, const struct at_field *field, struct at_store *from,
                            int c) {
    char meanings[256];
    struct stored stored = { from, c };
    struct at_h5_column column = describe(g, field, meanings);
    column.piece = next_piece;
    column.context = &stored;
    return at_h5_write(g->file, g->group, &column);
}

at_status at_archive_stored_column(const struct at_archive_group *g, struct at_h5_column *column, struct at_store *from,
                                   int c) {
    struct stored stored = { from, c };
    column->type = from->columns[c].type;
    column->rank = 1;
    column->dims[0] = g->n;
    column->scales[0] = g->scale;
    column->piece = next_piece;
    column->context = &stored;
    return at_h5_write(g->file, g->group, column);
}

at_status at_archive_stored_number(const struct at_archive_group *g, const char *name, struct at_store *from, int c,
                                   const char *units, int missing, const char *long_name) {
    struct at_h5_column column = { .name = name, .units = units, .long_name = long_name, .missing = missing };
    return at_archive_stored_column(g, &column, from, c);
}

/* ---- other columns ---- */

at_status at_archive_index(const struct at_archive_group *g, const char *name, const int64_t *values,
                           const char *long_name) {
    struct at_h5_column column = { .name = name,
                                   .type = AT_H5_I64,
                                   .rank = 1,
                                   .dims = { g->n },
                                   .scales = { g->scale },
                                   .units = "1",
                                   .long_name = long_name,
                                   .data = values };
    return at_h5_write(g->file, g->group, &column);
}

const struct at_archive_part at_archive_parts[AT_PLACE_PARTS] = {
    { "b", "request", offsetof(struct at_place, b) },
    { "h", "query head", offsetof(struct at_place, h) },
    { "q", "query of the request", offsetof(struct at_place, q) },
    { "k", "key", offsetof(struct at_place, k) },
    { "step", "accumulation step", offsetof(struct at_place, step) },
};

at_status at_archive_places(const struct at_archive_group *g, const char *prefix,
                            const struct at_place *const *places) {
    at_status status = AT_OK;
    int64_t *values = calloc(g->n + 1, sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, prefix);
    for (size_t p = 0; p < AT_PLACE_PARTS && status == AT_OK; p++) {
        char name[64], meaning[96];
        snprintf(name, sizeof name, "%s_%s", prefix, at_archive_parts[p].name);
        snprintf(meaning, sizeof meaning, "first place it happened at: %s", at_archive_parts[p].meaning);
        for (size_t i = 0; i < g->n; i++) {
            values[i] = -1;
            if (places[i])
                memcpy(&values[i], (const char *)places[i] + at_archive_parts[p].offset, sizeof values[i]);
        }
        struct at_h5_column column = { .name = name,
                                       .type = AT_H5_I64,
                                       .rank = 1,
                                       .dims = { g->n },
                                       .scales = { g->scale },
                                       .units = "1",
                                       .long_name = meaning,
                                       .missing = 1,
                                       .data = values };
        status = at_h5_write(g->file, g->group, &column);
    }
    free(values);
    return status;
}
