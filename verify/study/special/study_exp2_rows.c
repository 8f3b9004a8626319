/* The rows of attest study special as a table and as an archive have them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "verify/run/provenance.h"
#include "verify/study/special/study_exp2.h"
#include "verify/result/table.h"

/* clang-format off */
#define FIELDS(X)                                                                                          \
    X(TEXT, variant,        "1", "family/variant")                                                         \
    X(TEXT, name,           "1", "class of inputs, by what 2^x is for them")                               \
    X(I64,  step,           "1", "every how many-th of the 2^32 codes of f32 was an input")                \
    X(I64,  inputs,         "1", "inputs of the class")                                                    \
    X(I64,  not_nearest,    "1", "finite results that are not what 2^x rounds to")                         \
    X(I64,  flushed,        "1", "of them: 0, where 2^x does not round to 0")                              \
    X(I64,  wrong_class,    "1", "NaN, infinite or finite where another of the three is due")              \
    X(I64,  beyond_limit,   "1", "finite results further from 2^x than the variant declares")              \
    X(I64,  descents,       "1", "results below that of the next smaller input of the same sign")          \
    X(I64,  undecided,      "1", "results of which 80 bits do not tell whether they are nearest")          \
    X(F64,  max_ulp,        "1", "largest error in units in the last place, of results not flushed")       \
    X(F64,  max_ulp_x,      "1", "its input")                                                              \
    X(F64,  max_relative,   "1", "largest error relative to 2^x, of results not flushed")                  \
    X(F64,  max_relative_x, "1", "its input")                                                              \
    X(F64,  first_bad_x,    "1", "first input whose result is of the wrong class or beyond its limit")     \
    X(U64,  hash,           "1", "of all inputs and results of the variant; NaNs are one class")
/* clang-format on */

#define X(kind, field, units, meaning) AT_ROW_FIELD(at_exp2_row, kind, field, units, meaning)
static const struct at_field fields[] = { FIELDS(X) };
#undef X

static const struct at_field *field(int i) {
    return i >= 0 && (size_t)i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

const struct at_table at_study_table_exp2 = {
    .parent = "studies",
    .group = "exp2",
    .type = "attest.study_exp2",
    .signal = "max_ulp",
    .row = "row: one class of inputs of one variant",
    .field = field,
    .row_bytes = sizeof(struct at_exp2_row),
};

static void print_number(double x, const char *format, int width, FILE *out) {
    char text[32] = "-";
    if (!isnan(x))
        snprintf(text, sizeof text, format, x);
    fprintf(out, " %*s", width, text);
}

static void print_row(const struct at_exp2_row *r, FILE *out) {
    fprintf(out, "  %-10s %11" PRId64 " %11" PRId64 " %11" PRId64, r->name, r->inputs, r->not_nearest, r->flushed);
    print_number(r->max_ulp, "%.5f", 9, out);
    print_number(r->max_ulp_x, "%.9g", 16, out);
    print_number(r->max_relative, "%.4g", 10, out);
    fprintf(out, " %9" PRId64 " %12" PRId64 " %11" PRId64, r->descents, r->beyond_limit, r->wrong_class);
    if (!isnan(r->first_bad_x))
        fprintf(out, "  first at x = %.9g", r->first_bad_x);
    fprintf(out, "\n");
}

void at_exp2_print(const struct at_exp2_row *rows, int64_t n, FILE *out) {
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t inputs = 0, undecided = 0;
        for (end = i; end < n && strcmp(rows[end].variant, rows[i].variant) == 0; end++) {
            inputs += rows[end].inputs;
            undecided += rows[end].undecided;
        }
        fprintf(out, "%s: %" PRId64 " inputs, every %" PRId64 "%s code of f32; hash %016" PRIx64 "\n", rows[i].variant,
                inputs, rows[i].step, rows[i].step == 1 ? "st" : "th", rows[i].hash);
        fprintf(out, "  %-10s %11s %11s %11s %9s %16s %10s %9s %12s %11s\n", "2^x", "inputs", "not nearest", "flushed",
                "max ulp", "at x", "max rel", "descents", "beyond limit", "wrong class");
        for (int64_t k = i; k < end; k++)
            if (rows[k].inputs)
                print_row(&rows[k], out);
        if (undecided)
            fprintf(out, "  of %" PRId64 " results 80 bits do not tell whether they are nearest\n", undecided);
    }
}

at_status at_exp2_archive(const char *path, const char *device, struct at_exp2_row *rows, int n) {
    struct at_run_record record;
    at_status status = AT_OK;
    at_run_record_init(&record);
    json_t *request = json_pack("{s:s, s:I}", "study", "exp2", "step", (json_int_t)(n ? rows[0].step : 0));
    record.request = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!record.request)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %d rows", path, n);
    AT_TRY_OUT(at_provenance_build(device, &record.provenance));
    const struct at_table_rows table = { &at_study_table_exp2, rows, n };
    AT_TRY_OUT(at_archive_write_tables(&table, 1, &record, path));
out:
    at_run_record_release(&record);
    return status;
}

static void show(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    (void)record;
    at_exp2_print(rows->rows, rows->n, out);
}

const struct at_content at_content_exp2 = { .what = "a study of 2^x",
                                            .table = &at_study_table_exp2,
                                            .show_rows = show };
