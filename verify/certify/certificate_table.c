/* Certificates in an archive, and as JSON lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>

#include "verify/certify/certify_report.h"
#include "verify/result/field_json.h"

/* clang-format off */
#define CERTIFICATE_FIELDS(X)                                                                        \
    X(TEXT, family,         "1", "kernel family")                                                    \
    X(TEXT, variant,        "1", "variant")                                                          \
    X(TEXT, path,           "1", "source file of the variant")                                       \
    X(TEXT, sha256,         "1", "SHA-256 of the source file")                                       \
    X(TEXT, numerics,       "1", "declared numerics, every field")                                   \
    X(TEXT, property,       "1", "what is changed around a row")                                     \
    X(TEXT, with,           "1", "property row: the other variant")                                  \
    X(TEXT, value,          "1", "yes: no bit differs; no; n/a: not shown on any case; failed: a launch broke") \
    X(TEXT, reason,         "1", "of n/a and failed")                                                \
    X(I64,  cases,          "1", "cases that count for it")                                          \
    X(I64,  settings,       "1", "settings compared with the case itself")                           \
    X(I64,  declined,       "1", "settings that the variant declined")                               \
    X(I64,  ways,           "1", "most different launches of a case over its capacities (split)")    \
    X(I64,  compared,       "1", "elements compared, over all settings")                             \
    X(I64,  different,      "1", "elements whose bits differ")                                       \
    X(U64,  worst_ulp,      "ulp", "largest distance of those; 2^64 - 1 beside a NaN")               \
    X(TEXT, from,           "1", "least setting at which bits differ, or sums are declared to have another order")                               \
    X(TEXT, from_case,      "1", "the case of that")                                                 \
    X(I64,  from_compared,  "1", "elements compared there")                                          \
    X(I64,  from_different, "1", "elements whose bits differ there")                                 \
    X(U64,  from_ulp,       "ulp", "largest distance of those")                                      \
    X(BOOL, disagrees,      "1", "the bits contradict the declaration")                              \
    X(TEXT, claim,          "1", "what the declaration says of it; empty: nothing")
/* clang-format on */

static const struct at_field fields[] = {
#define X(kind, field, units, meaning) AT_ROW_FIELD(at_certificate, kind, field, units, meaning)
    CERTIFICATE_FIELDS(X)
#undef X
};

static const struct at_field *field_at(int i) {
    return i >= 0 && (size_t)i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

const struct at_table at_certify_table = {
    .group = "certificates",
    .type = "attest.certificates",
    .signal = "different",
    .row = "row: one property of one variant",
    .field = field_at,
    .row_bytes = sizeof(struct at_certificate),
};

static void show(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    const struct at_certify_sum sum = at_certify_sum_of(rows->rows, rows->n, 0);
    (void)record;
    at_certify_put(rows->rows, rows->n, 1, out);
    at_certify_put_sum(&sum, out);
}

const struct at_content at_content_certificates = { .what = "certificates",
                                                    .table = &at_certify_table,
                                                    .show_rows = show };

static at_status put_line(const struct at_certificate *row, FILE *out) {
    at_status status = AT_OK;
    char *text = NULL;
    json_t *object = json_object();
    const struct at_field *field;
    for (int i = 0; object && (field = field_at(i)); i++)
        json_object_set_new(object, field->name, at_field_to_json(field, row));
    text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (!text)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a line of JSON");
    fprintf(out, "%s\n", text);
out:
    free(text);
    json_decref(object);
    return status;
}

at_status at_certify_put_json(const struct at_certificate *rows, int64_t n, const char *path) {
    struct at_atomic_file file;
    AT_TRY(at_atomic_open(path, &file));
    for (int64_t i = 0; i < n; i++) {
        const at_status status = put_line(&rows[i], file.stream);
        if (status != AT_OK) {
            at_atomic_abandon(&file);
            return status;
        }
    }
    return at_atomic_commit(&file);
}
