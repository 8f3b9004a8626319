/* The rows of /cases and /kernels: each combination of texts once, in the order of its first result.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARCHIVE_KEYS_H
#define AT_ARCHIVE_KEYS_H

#include "verify/result/hash_index.h"
#include "verify/result/record.h"

enum { AT_KEY_FIELDS = 8 };

/* Memory: the texts and some 60 bytes a row. */
struct at_archive_keys {
    enum at_field_group group; /* AT_FIELD_CASES, AT_FIELD_KERNELS: whose fields make a row */
    const struct at_field *fields[AT_KEY_FIELDS];
    int n_fields;
    struct at_hash_index index; /* of rows: index.n of them */
    char **rows;                /* the texts of a row one after the other, each with its zero */
    int64_t capacity;
    int64_t last; /* the row found last: neighbours mostly share */
};

/* Empty; all zeros need no release. */
at_status at_archive_keys_begin(struct at_archive_keys *keys, enum at_field_group group);
/* *row: the one with the texts of `result`, which is new or not. */
at_status at_archive_keys_find(struct at_archive_keys *keys, const struct at_result *result, int64_t *row);
/* Text of field f (of fields[]) in a row. */
const char *at_archive_key(const struct at_archive_keys *keys, int64_t row, int f);
void at_archive_keys_release(struct at_archive_keys *keys);

#endif
