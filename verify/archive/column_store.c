/* Columns filled row by row, in pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/column_store.h"

#include <stdlib.h>
#include <string.h>

static at_status no_memory(const struct at_store *s) {
    return AT_FAIL(AT_NO_MEMORY, "%s: no memory for a piece of %d rows", s->file, AT_H5_PIECE_ROWS);
}

void at_store_init(struct at_store *s, const char *file, struct at_scratch *scratch) {
    *s = (struct at_store){ .file = file, .scratch = scratch };
}

void at_store_release(struct at_store *s) {
    for (int c = 0; c < s->n_columns; c++) {
        free(s->columns[c].data);
        free(s->columns[c].pieces);
    }
    free(s->unpacked);
    free(s->packed);
    free(s->texts);
    *s = (struct at_store){ 0 };
}

at_status at_store_column(struct at_store *s, enum at_h5_type type, int count) {
    if (s->n_columns == AT_STORE_COLUMNS)
        return AT_FAIL(AT_BUG, "%s: a table of more than %d columns", s->file, AT_STORE_COLUMNS);
    const size_t row = type == AT_H5_TEXT ? 0 : at_h5_type_bytes(type) * (size_t)count;
    s->columns[s->n_columns++] = (struct at_store_column){ .type = type, .row = row };
    return AT_OK;
}

at_status at_store_put(struct at_store *s, int c, const void *value) {
    struct at_store_column *column = &s->columns[c];
    const size_t n = column->row ? column->row : strlen(value) + 1;
    if (column->used + n + 8 > column->capacity) { /* 8: the last word is packed whole */
        const size_t capacity = 2 * column->capacity + n + 256;
        char *grown = realloc(column->data, capacity);
        if (!grown)
            return no_memory(s);
        column->data = grown;
        column->capacity = capacity;
    }
    memcpy(column->data + column->used, value, n);
    column->used += n;
    return AT_OK;
}

/* At least `bytes`. */
static int make_room(void **room, size_t *have, size_t bytes) {
    if (*have >= bytes)
        return 1;
    free(*room);
    *room = malloc(bytes);
    *have = *room ? bytes : 0;
    return *room != NULL;
}

static at_status put_away(struct at_store *s, struct at_store_column *c) {
    const size_t words = (c->used + 7) / 8;
    struct at_store_piece *grown = realloc(c->pieces, ((size_t)s->n_pieces + 1) * sizeof *grown);
    if (grown)
        c->pieces = grown;
    if (!grown || !make_room(&s->packed, &s->packed_bytes, AT_PACKED_BYTES(words)))
        return no_memory(s);
    struct at_store_piece *piece = &c->pieces[s->n_pieces];
    memset(c->data + c->used, 0, 8 * words - c->used);
    piece->bytes = c->used;
    piece->packed = at_words_pack(c->data, words, s->packed);
    c->used = 0;
    return at_scratch_append(s->scratch, s->packed, piece->packed, &piece->offset);
}

at_status at_store_end_row(struct at_store *s) {
    if (++s->n % AT_H5_PIECE_ROWS != 0)
        return AT_OK;
    for (int c = 0; c < s->n_columns; c++)
        AT_TRY(put_away(s, &s->columns[c]));
    s->n_pieces++;
    return AT_OK;
}

static at_status addresses_of(struct at_store *s, const char *text, int64_t rows, const void **data) {
    if (!s->texts)
        s->texts = malloc(AT_H5_PIECE_ROWS * sizeof *s->texts);
    if (!s->texts)
        return no_memory(s);
    for (int64_t i = 0; i < rows; i++, text += strlen(text) + 1)
        s->texts[i] = text;
    *data = s->texts;
    return AT_OK;
}

at_status at_store_read(struct at_store *s, int c, int64_t first, const void **data) {
    struct at_store_column *column = &s->columns[c];
    const int64_t p = first / AT_H5_PIECE_ROWS;
    *data = column->data;
    if (p < s->n_pieces) {
        const struct at_store_piece *piece = &column->pieces[p];
        const size_t words = (piece->bytes + 7) / 8;
        if (!make_room(&s->packed, &s->packed_bytes, piece->packed) ||
            !make_room(&s->unpacked, &s->unpacked_bytes, 8 * words))
            return no_memory(s);
        AT_TRY(at_scratch_read(s->scratch, piece->offset, s->packed, piece->packed));
        at_words_unpack(s->packed, words, s->unpacked);
        *data = s->unpacked;
    }
    const int64_t left = s->n - first;
    return column->row ? AT_OK : addresses_of(s, *data, left < AT_H5_PIECE_ROWS ? left : AT_H5_PIECE_ROWS, data);
}
