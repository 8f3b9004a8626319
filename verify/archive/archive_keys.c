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

static int is_row(const struct at_archive_keys *k, int64_t row, const struct at_result *r) {
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

/* At most half of the slots are taken. */
static at_status grow(struct at_archive_keys *k) {
    const int64_t capacity = k->capacity ? 2 * k->capacity : 64, n_slots = 2 * capacity;
    char **rows = realloc(k->rows, (size_t)capacity * sizeof *rows);
    k->rows = rows ? rows : k->rows;
    uint64_t *hashes = realloc(k->hashes, (size_t)capacity * sizeof *hashes);
    k->hashes = hashes ? hashes : k->hashes;
    int64_t *slots = calloc((size_t)n_slots, sizeof *slots);
    if (!rows || !hashes || !slots) {
        free(slots);
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " cases or kernels", capacity);
    }
    free(k->slots);
    k->slots = slots;
    k->n_slots = n_slots;
    k->capacity = capacity;
    for (int64_t row = 0; row < k->n; row++) {
        int64_t at = (int64_t)(k->hashes[row] & (uint64_t)(n_slots - 1));
        while (slots[at])
            at = (at + 1) & (n_slots - 1);
        slots[at] = row + 1;
    }
    return AT_OK;
}

static at_status add_row(struct at_archive_keys *k, const struct at_result *r, uint64_t hash) {
    size_t bytes = 0;
    for (int f = 0; f < k->n_fields; f++)
        bytes += strlen(at_field_of(k->fields[f], r)) + 1;
    char *text = k->rows[k->n] = malloc(bytes + 1);
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "no memory for case or kernel %" PRId64, k->n);
    for (int f = 0; f < k->n_fields; f++) {
        const char *from = at_field_of(k->fields[f], r);
        const size_t n = strlen(from) + 1;
        memcpy(text, from, n);
        text += n;
    }
    k->hashes[k->n++] = hash;
    return AT_OK;
}

at_status at_archive_keys_find(struct at_archive_keys *k, const struct at_result *r, int64_t *row) {
    if (k->n && is_row(k, k->last, r)) {
        *row = k->last;
        return AT_OK;
    }
    if (k->n == k->capacity)
        AT_TRY(grow(k));
    const uint64_t hash = hash_of(k, r);
    int64_t at = (int64_t)(hash & (uint64_t)(k->n_slots - 1));
    for (; k->slots[at]; at = (at + 1) & (k->n_slots - 1)) {
        *row = k->last = k->slots[at] - 1;
        if (k->hashes[*row] == hash && is_row(k, *row, r))
            return AT_OK;
    }
    AT_TRY(add_row(k, r, hash));
    *row = k->last = k->n - 1;
    k->slots[at] = k->n;
    return AT_OK;
}

void at_archive_keys_release(struct at_archive_keys *k) {
    for (int64_t i = 0; i < k->n; i++)
        free(k->rows[i]);
    free(k->rows);
    free(k->hashes);
    free(k->slots);
    *k = (struct at_archive_keys){ 0 };
}
