/* The rows of attest study tensor-core as tables and archives have them: strata, and probes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/run/provenance.h"
#include "verify/study/tensor_core/study_tensor_core.h"
#include "verify/result/table.h"
#include "verify/result/text.h"

/* clang-format off */
#define STRATUM_FIELDS(X)                                                                                        \
    X(TEXT,  instruction,    "1", "instruction of reference/tensor_core/instruction.h")                          \
    X(TEXT,  stratum,        "1", "what the patterns are made for")                                              \
    X(U64,   seed,           "1", "of the patterns")                                                             \
    X(I64,   patterns,       "1", "patterns run")                                                                \
    X(I64,   mismatches,     "1", "results that differ from the model; NaNs are one class")                      \
    X(U64,   hash,           "1", "of the results as f32 words")                                                 \
    X(PLACE, kept_less,      "1", "patterns that tell the model from one that keeps a bit less; -1: it cannot be told") \
    X(PLACE, kept_more,      "1", "... a bit more")                                                              \
    X(PLACE, block_half,     "1", "... blocks half as long")                                                     \
    X(PLACE, block_twice,    "1", "... blocks twice as long")                                                    \
    X(PLACE, other_rounding, "1", "... the other final rounding")                                                \
    X(PLACE, floor_less,     "1", "... a floor of the alignment one lower")                                      \
    X(PLACE, floor_more,     "1", "... one higher")                                                              \
    X(PLACE, addend_leading, "1", "... a subnormal addend that counts with the exponent of its leading bit")     \
    X(TEXT,  example,        "1", "the first mismatch")
#define PROBE_FIELDS(X)                                                          \
    X(TEXT,  name,        "1", "of the probe: P1 to P19")                        \
    X(TEXT,  what,        "1", "what it tells")                                  \
    X(TEXT,  instruction, "1", "instruction")                                    \
    X(F64,   predicted,   "1", "worked out by hand")                             \
    X(F64,   model,       "1", "what reference/tensor_core gives")               \
    X(F64,   runner,      "1", "what the runner gave")                           \
    X(BOOL,  right,       "1", "all three are equal")
/* clang-format on */

#define X(kind, field, units, meaning) AT_ROW_FIELD(at_tc_stratum_row, kind, field, units, meaning)
static const struct at_field stratum_fields[] = { STRATUM_FIELDS(X) };
#undef X
#define X(kind, field, units, meaning) AT_ROW_FIELD(at_tc_probe_row, kind, field, units, meaning)
static const struct at_field probe_fields[] = { PROBE_FIELDS(X) };
#undef X

#define PICK(table, i) ((i) >= 0 && (size_t)(i) < sizeof(table) / sizeof((table)[0]) ? &(table)[i] : NULL)
static const struct at_field *stratum_field(int i) { return PICK(stratum_fields, i); }
static const struct at_field *probe_field(int i) { return PICK(probe_fields, i); }

const struct at_table at_study_table_tensor_core = {
    .parent = "studies",
    .group = "tensor_core",
    .type = "attest.study_tensor_core",
    .signal = "mismatches",
    .row = "row: one stratum of patterns of one instruction",
    .field = stratum_field,
    .later = (const char *const[]){ "addend_leading", NULL },
    .row_bytes = sizeof(struct at_tc_stratum_row),
};

const struct at_table at_study_table_probes = {
    .parent = "studies",
    .group = "probes",
    .type = "attest.study_probes",
    .signal = "runner",
    .row = "row: one probe",
    .field = probe_field,
    .row_bytes = sizeof(struct at_tc_probe_row),
};

struct at_tc_stratum_row at_tc_study_stratum(const struct at_tc_study_row *r) {
    struct at_tc_stratum_row row = {
        .seed = r->seed,
        .patterns = r->patterns,
        .mismatches = r->mismatches,
        .hash = r->hash,
        .kept_less = r->neighbour[AT_TC_KEPT_LESS],
        .kept_more = r->neighbour[AT_TC_KEPT_MORE],
        .block_half = r->neighbour[AT_TC_BLOCK_HALF],
        .block_twice = r->neighbour[AT_TC_BLOCK_TWICE],
        .other_rounding = r->neighbour[AT_TC_OTHER_ROUNDING],
        .floor_less = r->neighbour[AT_TC_FLOOR_LESS],
        .floor_more = r->neighbour[AT_TC_FLOOR_MORE],
        .addend_leading = r->neighbour[AT_TC_ADDEND_LEADING],
    };
    snprintf(row.instruction, sizeof row.instruction, "%s", r->instruction->name);
    snprintf(row.stratum, sizeof row.stratum, "%s", at_tc_stratum_name(r->stratum));
    snprintf(row.example, sizeof row.example, "%s", r->example);
    return row;
}

/* ---- the table ---- */

static const struct {
    enum at_tc_neighbour neighbour;
    size_t offset;
} told_by[AT_TC_NEIGHBOURS] = {
    { AT_TC_KEPT_LESS, offsetof(struct at_tc_stratum_row, kept_less) },
    { AT_TC_KEPT_MORE, offsetof(struct at_tc_stratum_row, kept_more) },
    { AT_TC_BLOCK_HALF, offsetof(struct at_tc_stratum_row, block_half) },
    { AT_TC_BLOCK_TWICE, offsetof(struct at_tc_stratum_row, block_twice) },
    { AT_TC_OTHER_ROUNDING, offsetof(struct at_tc_stratum_row, other_rounding) },
    { AT_TC_FLOOR_LESS, offsetof(struct at_tc_stratum_row, floor_less) },
    { AT_TC_FLOOR_MORE, offsetof(struct at_tc_stratum_row, floor_more) },
    { AT_TC_ADDEND_LEADING, offsetof(struct at_tc_stratum_row, addend_leading) },
};

/* The largest share of a stratum, in percent, that tells neighbour k; -1: none can. */
static double best_share(const struct at_tc_stratum_row *rows, int64_t n, int k) {
    double best = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t told;
        memcpy(&told, (const char *)&rows[i] + told_by[k].offset, sizeof told);
        if (told >= 0 && rows[i].patterns)
            best = fmax(best, 100.0 * (double)told / (double)rows[i].patterns);
    }
    return best;
}

void at_tc_study_head(FILE *out) {
    fprintf(out, "%-30s %9s %10s ", "instruction", "patterns", "mismatches");
    for (int k = 0; k < AT_TC_NEIGHBOURS; k++)
        fprintf(out, "%10s", at_tc_neighbour_name(told_by[k].neighbour));
    fprintf(out, "   (%% of the stratum that tells it best)\n");
}

int at_tc_study_print(const struct at_tc_stratum_row *rows, int64_t n, FILE *out) {
    int64_t patterns = 0, mismatches = 0;
    int told = 1;
    for (int64_t i = 0; i < n; i++) {
        patterns += rows[i].patterns;
        mismatches += rows[i].mismatches;
    }
    fprintf(out, "%-30s %9" PRId64 " %10" PRId64 " ", rows->instruction, patterns, mismatches);
    for (int k = 0; k < AT_TC_NEIGHBOURS; k++) {
        const double best = best_share(rows, n, k);
        if (best < 0)
            fprintf(out, "%10s", "-");
        else
            fprintf(out, "%10.1f", best);
        told &= best < 0 || best >= 1;
    }
    fprintf(out, "%s\n", told ? "" : "  a neighbour is not told");
    for (int64_t i = 0; i < n; i++)
        if (rows[i].example[0])
            fprintf(out, "    %s: %" PRId64 ", %s\n", rows[i].stratum, rows[i].mismatches, rows[i].example);
    fflush(out);
    return told;
}

/* ---- the archive ---- */

at_status at_tc_study_archive(const char *path, const char *device, uint64_t seed, const struct at_tc_study_row *rows,
                              int n, struct at_tc_probe_row *probes, int n_probes) {
    struct at_run_record record;
    struct at_tc_stratum_row *strata = calloc((size_t)n + 1, sizeof *strata);
    at_status status = AT_OK;
    at_run_record_init(&record);
    json_t *request = json_pack("{s:s, s:I, s:I}", "study", "tensor-core", "seed", (json_int_t)seed, "patterns",
                                (json_int_t)(n ? rows[0].patterns : 0));
    record.request = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!strata || !record.request)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %d rows", path, n);
    for (int i = 0; i < n; i++)
        strata[i] = at_tc_study_stratum(&rows[i]);
    AT_TRY_OUT(at_provenance_build(device, &record.provenance));
    const struct at_table_rows tables[] = { { &at_study_table_tensor_core, strata, n },
                                            { &at_study_table_probes, probes, n_probes } };
    AT_TRY_OUT(at_archive_write_tables(tables, 2, &record, path));
out:
    free(strata);
    at_run_record_release(&record);
    return status;
}

/* ---- shown from an archive ---- */

static void show_strata(const struct at_table_rows *t, const struct at_run_record *record, FILE *out) {
    const struct at_tc_stratum_row *rows = t->rows;
    (void)record;
    at_tc_study_head(out);
    for (int64_t i = 0, end; i < t->n; i = end) {
        for (end = i + 1; end < t->n && strcmp(rows[end].instruction, rows[i].instruction) == 0;)
            end++;
        at_tc_study_print(&rows[i], end - i, out);
    }
}

static void show_probes(const struct at_table_rows *t, const struct at_run_record *record, FILE *out) {
    const struct at_tc_probe_row *rows = t->rows;
    int64_t wrong = 0;
    (void)record;
    for (int64_t i = 0; i < t->n; i++) {
        wrong += !rows[i].right;
        if (!rows[i].right)
            fprintf(out, "%s %s, %s: predicted %.10g, model %.10g, runner %.10g\n", rows[i].name, rows[i].what,
                    rows[i].instruction, at_text_nan(rows[i].predicted), at_text_nan(rows[i].model),
                    at_text_nan(rows[i].runner));
    }
    fprintf(out, "%" PRId64 " probes, %" PRId64 " not as predicted\n", t->n, wrong);
}

const struct at_content at_content_tensor_core = { .what = "a study of tensor cores",
                                                   .table = &at_study_table_tensor_core,
                                                   .show_rows = show_strata };
const struct at_content at_content_probes = { .what = "probes of tensor cores",
                                              .table = &at_study_table_probes,
                                              .show_rows = show_probes };
