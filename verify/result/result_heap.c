/* Results in a scratch file, put in order by what is kept of each in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/result_heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/text.h"

enum { WORDS = sizeof(struct at_result) / 8 };
_Static_assert(sizeof(struct at_result) % 8 == 0, "a result is packed by words");

static at_status make_room(struct at_result_heap *h) {
    if (!h->one) {
        h->one = malloc(sizeof *h->one);
        h->other = malloc(sizeof *h->other);
        h->packed = malloc(AT_PACKED_RESULT_BYTES);
    }
    if (h->n == h->capacity) {
        const int64_t capacity = h->capacity ? 2 * h->capacity : 1024;
        struct at_heap_entry *grown = realloc(h->entries, (size_t)capacity * sizeof *grown);
        if (grown) {
            h->entries = grown;
            h->capacity = capacity;
        }
    }
    return h->one && h->other && h->packed && h->n < h->capacity
               ? AT_OK
               : AT_FAIL(AT_NO_MEMORY, "no memory for result %" PRId64, h->n);
}

/* What stands behind the end of a text is nobody's, and costs room. */
static void tidy(struct at_result *r) {
    const struct at_field *field;
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->kind == AT_FIELD_TEXT) {
            char *text = at_field_at(field, r);
            at_text_clean(text);
            const size_t n = strlen(text);
            memset(text + n, 0, field->size - n);
        }
}

size_t at_result_pack(const struct at_result *result, char packed[AT_PACKED_RESULT_BYTES]) {
    struct at_result tidied = *result;
    tidy(&tidied);
    return at_words_pack(&tidied, WORDS, packed);
}

at_status at_result_heap_add_packed(struct at_result_heap *h, const struct at_result *result, const char *packed,
                                    size_t bytes) {
    AT_TRY(make_room(h));
    struct at_heap_entry *e = &h->entries[h->n];
    e->plan_index = result->plan_index;
    e->tensor_index = result->tensor_index;
    e->bytes = (int32_t)bytes;
    AT_TRY(at_scratch_append(&h->scratch, packed, bytes, &e->offset));
    h->n++;
    return AT_OK;
}

at_status at_result_heap_add(struct at_result_heap *h, const struct at_result *result) {
    char packed[AT_PACKED_RESULT_BYTES];
    return at_result_heap_add_packed(h, result, packed, at_result_pack(result, packed));
}

static at_status read_entry(struct at_result_heap *h, const struct at_heap_entry *e, struct at_result *result) {
    AT_TRY(at_scratch_read(&h->scratch, e->offset, h->packed, (size_t)e->bytes));
    at_words_unpack(h->packed, WORDS, result);
    return AT_OK;
}

at_status at_result_heap_get(void *context, int64_t i, const struct at_result **result) {
    struct at_result_heap *h = context;
    *result = h->one;
    return read_entry(h, &h->entries[i], h->one);
}

static int order_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* Entries that the plan does not tell apart (of a record made without one) are read for their names. */
static int compare(const void *a, const void *b, void *context) {
    struct at_result_heap *h = context;
    const struct at_heap_entry *x = a, *y = b;
    int order = order_i64(x->plan_index, y->plan_index);
    if (order == 0)
        order = order_i64(x->tensor_index, y->tensor_index);
    if (order != 0 || x == y || h->failed != AT_OK)
        return order;
    h->failed = read_entry(h, x, h->one);
    if (h->failed == AT_OK)
        h->failed = read_entry(h, y, h->other);
    return h->failed == AT_OK ? at_result_compare(h->one, h->other) : 0;
}

at_status at_result_heap_sort(struct at_result_heap *h) {
    if (h->n < 2)
        return AT_OK;
    qsort_r(h->entries, (size_t)h->n, sizeof *h->entries, compare, h);
    for (int64_t i = 1; i < h->n && h->failed == AT_OK; i++) {
        if (compare(&h->entries[i - 1], &h->entries[i], h) != 0 || h->failed != AT_OK)
            continue;
        return AT_FAIL(AT_USAGE, "two shards hold the same result: plan position %" PRId64 ", tensor %s, %s/%s",
                       h->one->plan_index, h->one->tensor, h->one->family, h->one->variant);
    }
    return h->failed;
}

void at_result_heap_release(struct at_result_heap *h) {
    at_scratch_release(&h->scratch);
    free(h->entries);
    free(h->one);
    free(h->other);
    free(h->packed);
    *h = (struct at_result_heap){ .scratch = h->scratch };
}
