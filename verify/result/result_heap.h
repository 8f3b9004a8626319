/* Results on disk, in the order of a run: a small entry of each in memory, the rest in a scratch file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RESULT_HEAP_H
#define AT_RESULT_HEAP_H

#include "verify/result/record.h"
#include "verify/result/scratch.h"

struct at_heap_entry {
    int64_t plan_index, offset;
    int32_t tensor_index, bytes;
};

/* Begins as { .scratch.beside = PATH }, where PATH is what the results will be written to. 24 bytes of memory a result. */
struct at_result_heap {
    struct at_scratch scratch;
    struct at_heap_entry *entries;
    int64_t n, capacity;
    struct at_result *one, *other; /* what was read last, and while two are compared */
    char *packed;
    at_status failed; /* of a comparison that could not read */
};

/* Appends a copy, cleaned as at_run_record_add() does. */
at_status at_result_heap_add(struct at_result_heap *heap, const struct at_result *result);
/* The same in two steps, of which the first is most of the work and needs no heap: threads pack at the same time and add in turn. */
enum { AT_PACKED_RESULT_BYTES = AT_PACKED_BYTES(sizeof(struct at_result) / 8) };
size_t at_result_pack(const struct at_result *result, char packed[AT_PACKED_RESULT_BYTES]);
at_status at_result_heap_add_packed(struct at_result_heap *heap, const struct at_result *result, const char *packed,
                                    size_t bytes);
/* Into the order of at_result_compare(). AT_USAGE, naming it, when a result is there twice. */
at_status at_result_heap_sort(struct at_result_heap *heap);
/* Result i; *result is good until the next call. For struct at_result_source. */
at_status at_result_heap_get(void *heap, int64_t i, const struct at_result **result);
void at_result_heap_release(struct at_result_heap *heap);

#endif
