/* Drift as JUnit XML and as JSON lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "verify/result/atomic_file.h"
#include "verify/drift/drift.h"

/* The row of a layer and query head (or key/value head) that is furthest beyond its limits; NULL: none of them is
 * there. */
static const struct at_drift_row *worst_of(const struct at_drift *drift, int64_t index, int64_t head, int kv) {
    const struct at_drift_row *worst = NULL;
    for (int64_t i = 0; i < drift->n; i++) {
        const struct at_drift_row *row = &drift->rows[i];
        if (row->index == index && row->head == head && at_dist_is_kv(row->what) == kv &&
            (!worst || (row->failed != 0) > (worst->failed != 0) ||
             ((row->failed != 0) == (worst->failed != 0) && row->excess > worst->excess)))
            worst = row;
    }
    return worst;
}

static void put_measures(const struct at_drift_row *row, FILE *out) {
    fprintf(out,
            "%s: ks %.6g, area %.6g, js %.6g, grain %.6g, zero share %.6g to %.6g, headroom %.6g to %.6g, p %.3g, of "
            "spreads %.3g",
            at_dist_name(row->what), row->metric[AT_DRIFT_ks], row->metric[AT_DRIFT_wasserstein],
            row->metric[AT_DRIFT_js], row->metric[AT_DRIFT_grain], row->zero_a, row->zero_b, row->headroom_a,
            row->headroom_b, row->p, row->p_spread);
}

static void put_case(const struct at_drift *drift, const struct at_drift_row *row, FILE *out) {
    char reasons[160];
    at_drift_reasons(row, reasons, sizeof reasons);
    fprintf(out,
            "    <testcase classname=\"layer %" PRId64 "\" name=\"%s %" PRId64
            "\" file=\"/distributions/%s\" time=\"0.000000\">\n",
            row->layer, at_dist_is_kv(row->what) ? "key/value head" : "head", row->head, at_dist_name(row->what));
    if (row->failed)
        fprintf(out, "      <failure type=\"DRIFT\" message=\"%s beyond %s; first to move: %s\">",
                at_dist_name(row->what), reasons, at_dist_name(at_drift_origin(drift, row)->what));
    else
        fputs("      <system-out>", out);
    put_measures(row, out);
    fprintf(out, "</%s>\n    </testcase>\n", row->failed ? "failure" : "system-out");
}

/* Cases of one kind of head: printed when `out` is there; *failures counts them. */
static int64_t put_cases(const struct at_drift *drift, int kv, FILE *out, int64_t *failures) {
    int64_t n = 0;
    for (int64_t i = 0; i < drift->a.shape.n_layers; i++)
        for (int64_t head = 0; head < (kv ? drift->a.shape.hk : drift->a.shape.h); head++) {
            const struct at_drift_row *row = worst_of(drift, i, head, kv);
            if (!row)
                continue;
            n++;
            *failures += row->failed != 0;
            if (out)
                put_case(drift, row, out);
        }
    return n;
}

at_status at_drift_junit(const struct at_drift *drift, const char *path) {
    struct at_atomic_file file;
    int64_t failures = 0;
    const int64_t tests = put_cases(drift, 0, NULL, &failures) + put_cases(drift, 1, NULL, &failures);
    AT_TRY(at_atomic_open(path, &file));
    for (int level = 0; level < 2; level++)
        fprintf(file.stream,
                "%s name=\"%s\" tests=\"%" PRId64 "\" failures=\"%" PRId64
                "\" errors=\"0\" skipped=\"0\" time=\"0.000000\">\n",
                level ? "  <testsuite" : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites",
                level ? "drift" : "attest", tests, failures);
    failures = 0;
    put_cases(drift, 0, file.stream, &failures);
    put_cases(drift, 1, file.stream, &failures);
    fputs("  </testsuite>\n</testsuites>\n", file.stream);
    return at_atomic_commit(&file);
}

/* JSON has no NaN and no infinities: null. */
static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *row_json(const struct at_drift *drift, const struct at_drift_row *row) {
    char reasons[160];
    at_drift_reasons(row, reasons, sizeof reasons);
    json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:b, s:s}", "what", at_dist_name(row->what), "layer",
                               (json_int_t)row->layer, "head", (json_int_t)row->head, "n_a", (json_int_t)row->n_a,
                               "n_b", (json_int_t)row->n_b, "failed", row->failed != 0, "beyond", reasons);
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        json_object_set_new(object, at_drift_metric_name((enum at_drift_metric)m), number(row->metric[m]));
    json_t *limits = json_object();
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        json_object_set_new(limits, at_drift_metric_name((enum at_drift_metric)m), number(row->limit[m]));
    json_object_set_new(object, "limits", limits);
    json_object_set_new(object, "hidden_a", number(row->hidden_a));
    json_object_set_new(object, "hidden_b", number(row->hidden_b));
    json_object_set_new(object, "ks_at", number(row->ks_at));
    json_object_set_new(object, "p", number(row->p));
    json_object_set_new(object, "p_spread", number(row->p_spread));
    json_object_set_new(object, "first", json_string(at_dist_name(at_drift_origin(drift, row)->what)));
    return object;
}

at_status at_drift_jsonl(const struct at_drift *drift, const char *path) {
    struct at_atomic_file file;
    AT_TRY(at_atomic_open(path, &file));
    for (int64_t i = 0; i < drift->n; i++) {
        json_t *object = row_json(drift, &drift->rows[i]);
        if (!object || json_dumpf(object, file.stream, JSON_COMPACT | JSON_SORT_KEYS) != 0) {
            json_decref(object);
            at_atomic_abandon(&file);
            return AT_FAIL(AT_IO, "%s: row %" PRId64 " could not be written", path, i);
        }
        fputc('\n', file.stream);
        json_decref(object);
    }
    return at_atomic_commit(&file);
}
