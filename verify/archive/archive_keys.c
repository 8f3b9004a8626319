/* Rows of /cases and /kernels, found by a hash table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/archive_keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"

at_status at_archive_keys_begin(struct at_archive_keys *k, enum at_field_group group) {
    const struct at_field *field;
    *k = (struct at_archive_keys){ .group = group };
    for (int i = 0; (field = at_result_field(i)); i++) {
        if (field->group != k->group)
            continue;
        if (field->kind != AT_FIELD_TEXT || k->n_fields == AT_KEY_FIELDS)
            return AT_FAIL(AT_BUG, "%s: a key of an archive is a text, and one of at most %d", field->name,
                           AT_KEY_FIELDS);
        k->fields[k->n_fields++] = field;
    }
    return AT_OK;
}

const char *at_archive_key(const struct at_archive_keys *k, int64_t row, int f) {
    const char *text = k->rows[row];
    for (; f > 0; f--)
        text += strlen(text) + 1;
    return text;
}

struct wanted {
    const struct at_archive_keys *keys;
    const struct at_result *result;
};

static int is_row(const void *context, int64_t row) {
    const struct at_archive_keys *k = ((const struct wanted *)context)->keys;
    const struct at_result *r = ((const struct wanted *)context)->result;
    const char *text = k->rows[row];
    for (int f = 0; f < k->n_fields; f++) {
        if (strcmp(text, at_field_of(k->fields[f], r)) != 0)
            return 0;
        text += strlen(text) + 1;
    }
    return 1;
}

static uint64_t hash_of(const struct at_archive_keys *k, const struct at_result *r) {
    uint64_t hash = AT_HASH_START;
    for (int f = 0; f < k->n_fields; f++) {
        const char *text = at_field_of(k->fields[f], r);
        hash = at_hash_bytes(text, strlen(text) + 1, hash);
    }
    return hash;
}

static at_status add_row(struct at_archive_keys *k, const struct at_result *r, uint64_t hash) {
    const int64_t n_rows = k->index.n;
    size_t bytes = 0;
    if (n_rows == k->capacity) {
        char **rows = realloc(k->rows, (2 * (size_t)n_rows + 64) * sizeof *rows);
        if (!rows)
            return AT_FAIL(AT_NO_MEMORY, "no memory for case or kernel %" PRId64, n_rows);
        k->rows = rows;
        k->capacity = 2 * n_rows + 64;
    }
    for (int f = 0; f < k->n_fields; f++)
        bytes += strlen(at_field_of(k->fields[f], r)) + 1;
    char *text = k->rows[n_rows] = malloc(bytes + 1);
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "no memory for case or kernel %" PRId64, n_rows);
    for (int f = 0; f < k->n_fields; f++) {
        const char *from = at_field_of(k->fields[f], r);
        const size_t n = strlen(from) + 1;
        memcpy(text, from, n);
        text += n;
    }
    const at_status status = at_hash_index_add(&k->index, hash);
    if (status != AT_OK)
        free(k->rows[n_rows]);
    return status;
}

at_status at_archive_keys_find(struct at_archive_keys *k, const struct at_result *r, int64_t *row) {
    const struct wanted wanted = { k, r };
    if (!k->index.n || !is_row(&wanted, k->last)) {
        const uint64_t hash = hash_of(k, r);
        const int64_t found = at_hash_index_find(&k->index, hash, is_row, &wanted), next = k->index.n;
        if (found < 0)
            AT_TRY(add_row(k, r, hash));
        k->last = found < 0 ? next : found;
    }
    *row = k->last;
    return AT_OK;
}

void at_archive_keys_release(struct at_archive_keys *k) {
    for (int64_t i = 0; i < k->index.n; i++)
        free(k->rows[i]);
    free(k->rows);
    at_hash_index_release(&k->index);
    *k = (struct at_archive_keys){ 0 };
}
