/* The fields of a result as data: the JSON keys and the archive's columns are written and read from these
 * tables, so that none can forget a field.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RESULT_FIELDS_H
#define AT_RESULT_FIELDS_H

#include <stddef.h>

#include "verify/result/result.h"

/* How a field is kept in memory and in files. */
enum at_field_kind {
    AT_FIELD_TEXT,  /* char[size]; UTF-8 */
    AT_FIELD_STATE, /* enum at_state; its name in JSON, int8 with flag_meanings in the archive */
    AT_FIELD_BOOL,  /* int 0 or 1; int8 in the archive */
    AT_FIELD_INT,   /* int; int32 */
    AT_FIELD_I64,   /* int64_t[count] */
    AT_FIELD_PLACE, /* int64_t[count] where -1 says there is none */
    AT_FIELD_U64,   /* uint64_t[count] */
    AT_FIELD_F64    /* double; NaN says there is none */
};

/* The archive's group that holds it. AT_FIELD_NOWHERE: the journal only. */
enum at_field_group { AT_FIELD_RESULTS, AT_FIELD_CASES, AT_FIELD_KERNELS, AT_FIELD_NOWHERE };

struct at_field {
    const char *name;
    enum at_field_kind kind;
    enum at_field_group group;
    size_t offset, size; /* in bytes, inside the struct */
    int count;           /* values; 1 unless an array (text counts as one) */
    const char *units, *meaning;
};

/* A field of a struct of rows that are not results: one value, units and meaning. */
#define AT_ROW_FIELD(type, kind, field, units, meaning) \
    { #field, AT_FIELD_##kind, AT_FIELD_NOWHERE, offsetof(struct type, field), sizeof(((struct type *)0)->field), \
      1,      units,           meaning },

/* Field i of struct at_result / at_ledger_row / at_ledger (its counters), in order; NULL past the end.
 * The ledger itself and its places (`first`, `first_laundered`) are not in these tables. */
const struct at_field *at_result_field(int i);
const struct at_field *at_ledger_row_field(int i);
const struct at_field *at_ledger_total_field(int i);

/* Address of a field in a struct that starts at `base`. */
void *at_field_at(const struct at_field *field, void *base);
const void *at_field_of(const struct at_field *field, const void *base);

/* AT_USAGE with `where` unless the values that others use as indices are in range: state, worst_rank,
 * n_decoys. For results that come from a file. */
at_status at_result_check(const struct at_result *result, const char *where);

#endif
