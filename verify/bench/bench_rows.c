/* Rows of a benchmark: their fields, their table, and the source's times.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bench/bench.h"
#include "verify/result/text.h"
#include "verify/result/table.h"

/* clang-format off */
#define BENCH_FIELDS(X)                                                                              \
    X(TEXT, case_id,        "1", "the case, one line of text with every key")                        \
    X(TEXT, family,         "1", "kernel family")                                                    \
    X(TEXT, variant,        "1", "variant")                                                          \
    X(TEXT, path,           "1", "source file of the variant")                                       \
    X(TEXT, sha256,         "1", "SHA-256 of the source file")                                       \
    X(TEXT, numerics,       "1", "declared numerics, every field")                                   \
    X(TEXT, verdict,        "1", "how it was verified in this run, or why it was not timed")         \
    X(BOOL, timed,          "1", "it was verified and timed")                                        \
    X(I64,  rows_checked,   "1", "rows of the sample that were compared before timing")              \
    X(I64,  compared,       "1", "elements of those rows")                                           \
    X(I64,  wrong,          "1", "elements off the model, or beyond the limit")                      \
    X(I64,  model_equal,    "1", "elements equal to the declared arithmetic")                        \
    X(I64,  model_compared, "1", "elements compared with it; 0: no declared order")                  \
    X(F64,  cold,           "s", "median time of a launch, inputs rotated past the caches")          \
    X(F64,  hot,            "s", "median time of a launch, one set of inputs")                       \
    X(INT,  replays,        "1", "graph replays timed")                                              \
    X(INT,  copies,         "1", "copies of the inputs that rotate")                                 \
    X(F64,  bytes,          "byte", "bytes that a dense evaluation must move")                       \
    X(F64,  flops,          "1", "floating-point operations of a dense evaluation; NaN: not counted") \
    X(F64,  scores,         "1", "scores that score_counts counts; NaN: another operator")           \
    X(F64,  copy_rate,      "byte/s", "read and written by a large copy within the device")          \
    X(F64,  source_seconds, "s", "the source's time for this idea and shape; NaN: none")             \
    X(TEXT, source,         "1", "where the source has it")                                          \
    X(BOOL, peer,           "1", "it is of --peer's runner")                                         \
    X(TEXT, device,         "1", "what its runner calls its device")                                 \
    X(TEXT, beside,         "1", "the case whose rows it was timed with, of another operator; empty: its own") \
    X(INT,  turns,          "1", "rounds that it was timed in; cold and hot are medians over them")  \
    X(F64,  cold_low,       "s", "least cold time of a round")                                       \
    X(F64,  cold_high,      "s", "largest cold time of a round")                                     \
    X(F64,  peer_cold,      "s", "cold time of the fastest verified peer in the same rounds; NaN: none") \
    X(TEXT, fastest_peer,   "1", "that peer")                                                        \
    X(TEXT, state,          "1", "what the row comes to: PASS, WRONG, IMPOSSIBLE, ...")              \
    X(I64,  timed_compared, "1", "elements of a timed launch's outputs that were compared; 0: none came back") \
    X(F64,  floor,          "s", "least time of a launch by the ceilings of its device; NaN: not timed") \
    X(TEXT, ceiling,        "1", "what the floor follows from")
/* clang-format on */

static const struct at_field fields[] = {
#define X(kind, field, units, meaning) AT_ROW_FIELD(at_bench_row, kind, field, units, meaning)
    BENCH_FIELDS(X)
#undef X
};

const struct at_field *at_bench_field(int i) {
    return i >= 0 && (size_t)i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

static const char *const later[] = { "scores",    "peer",      "device",       "beside", "turns",          "cold_low",
                                     "cold_high", "peer_cold", "fastest_peer", "state",  "timed_compared", "floor",
                                     "ceiling",   NULL };

const struct at_table at_bench_table_kernels = {
    .group = "bench",
    .type = "attest.bench",
    .signal = "cold",
    .row = "row: one variant on one case",
    .field = at_bench_field,
    .later = later,
    .row_bytes = sizeof(struct at_bench_row),
};

/* ---- the table ---- */

static void put_microseconds(FILE *out, double seconds) {
    if (isnan(seconds))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %8.2f", seconds * 1e6);
}

/* Of ours, over the fastest peer. */
static void put_peer_ratio(const struct at_bench_row *r, FILE *out) {
    if (r->peer || isnan(r->peer_cold))
        fprintf(out, " %6s", "-");
    else
        fprintf(out, " %6.2f", r->cold / r->peer_cold);
}

static void put_row(const struct at_bench_row *r, int peers, FILE *out) {
    char name[sizeof r->variant + 8];
    snprintf(name, sizeof name, "%s%s", r->peer ? "peer " : "", r->variant);
    fprintf(out, "  ");
    at_text_fit(out, name, 26, 0);
    if (!r->timed) {
        fprintf(out, "  %s\n", r->verdict);
        return;
    }
    const double floor = r->bytes / r->copy_rate;
    put_microseconds(out, r->cold);
    put_microseconds(out, r->hot);
    fprintf(out, " %7.0f", r->bytes / r->cold / 1e9);
    if (isnan(r->flops))
        fprintf(out, " %7s", "-");
    else
        fprintf(out, " %7.2f", r->flops / r->cold / 1e12);
    put_microseconds(out, floor);
    fprintf(out, " %5.1f%%", 100 * floor / r->cold);
    put_microseconds(out, r->source_seconds);
    if (isnan(r->source_seconds))
        fprintf(out, " %6s %6s", "-", "-");
    else
        fprintf(out, " %6.2f %6.2f", r->cold / r->source_seconds, r->hot / r->source_seconds);
    if (peers)
        put_peer_ratio(r, out);
    fprintf(out, "  %s%s", r->verdict, r->timed_compared ? "" : ", not judged when timed");
    if (r->beside[0])
        fprintf(out, ", %s", r->family);
    if (!isnan(r->scores))
        fprintf(out, ", %.3g scores/s", r->scores / r->cold);
    fprintf(out, "\n");
}

/* What the peers are, where there are any. */
static void put_peers(const struct at_bench_row *rows, int n, FILE *out) {
    const struct at_bench_row *peer = NULL, *other = NULL;
    int turns = 0;
    for (int i = 0; i < n; i++) {
        if (rows[i].peer)
            peer = &rows[i];
        turns = rows[i].turns > turns ? rows[i].turns : turns;
        if (rows[i].beside[0])
            other = &rows[i];
    }
    if (!peer)
        return;
    fprintf(
        out,
        "peers: %s; timed in turns with ours, medians over %d rounds; xPEER: our cold over that of the case's fastest "
        "verified peer\n",
        peer->device, turns);
    if (other)
        fprintf(out, "a peer of %s has the same shapes and another operator: it reads all of V, whatever P is\n",
                other->family);
}

/* The case under which a row stands. */
static const char *heading(const struct at_bench_row *r) { return r->beside[0] ? r->beside : r->case_id; }

/* A peer that declines the problem while another takes it: a library has a variant for each format, and one line is enough. */
static int is_left_out(const struct at_bench_row *rows, int n, const struct at_bench_row *r) {
    if (!r->peer || r->compared > 0 || r->wrong > 0)
        return 0;
    for (int i = 0; i < n; i++)
        if (rows[i].peer && rows[i].compared > 0 && strcmp(heading(&rows[i]), heading(r)) == 0)
            return 1;
    return 0;
}

void at_bench_table(const struct at_bench_row *rows, int n, const char *device, FILE *out) {
    double rate = 0;
    int peers = 0;
    for (int i = 0; i < n; i++) {
        rate = !rows[i].peer && rows[i].copy_rate > rate ? rows[i].copy_rate : rate;
        peers |= rows[i].peer;
    }
    fprintf(out,
            "%s; a large copy within the device moved %.2f TB/s in this run\n"
            "cold, hot: median us of a launch among graph replays; floor: dense bytes at the copy's rate;\n"
            "source: its figure for the idea and shape, us, caches not said; xCOLD, xHOT: ours over it\n",
            device, rate / 1e12);
    put_peers(rows, n, out);
    for (int i = 0; i < n; i++) {
        if (i == 0 || strcmp(heading(&rows[i]), heading(&rows[i - 1])) != 0)
            fprintf(out, "%s\n  %-26s %8s %8s %7s %7s %8s %6s %8s %6s %6s%s  %s\n", heading(&rows[i]), "VARIANT",
                    "COLD", "HOT", "GB/s", "TFLOP/s", "FLOOR", "SHARE", "SOURCE", "xCOLD", "xHOT",
                    peers ? "  xPEER" : "", "VERIFIED");
        if (!is_left_out(rows, n, &rows[i]))
            put_row(&rows[i], peers, out);
    }
}

/* ---- the source's times ---- */

static at_status parse_time(const char *line, const char *path, int number, void *item) {
    struct at_source_time *t = item;
    double microseconds;
    long long b, k;
    char rest[2];
    if (sscanf(line, "%95s %lld %lld %lf %23s %1s", t->variant, &b, &k, &microseconds, t->section, rest) != 5 ||
        b < 1 || k < 0 || !(microseconds > 0))
        return AT_FAIL(AT_USAGE, "%s:%d: found \"%.60s\", wanted: variant b k microseconds section", path, number,
                       line);
    t->b = b;
    t->k = k;
    t->seconds = microseconds * 1e-6;
    return AT_OK;
}

at_status at_source_times_load(const char *path, struct at_source_times *times) {
    void *items;
    const at_status status = at_bench_table_load(path, sizeof *times->items, parse_time, &items, &times->n);
    times->items = items;
    return status;
}

void at_source_times_release(struct at_source_times *times) {
    free(times->items);
    *times = (struct at_source_times){ 0 };
}

void at_source_times_find(const struct at_source_times *times, int64_t b, int64_t k, struct at_bench_row *row) {
    for (int i = 0; i < times->n; i++) {
        const struct at_source_time *t = &times->items[i];
        if (t->b != b || t->k != k || strcmp(t->variant, row->variant) != 0)
            continue;
        row->source_seconds = t->seconds;
        snprintf(row->source, sizeof row->source, "%s", t->section);
    }
}

static void show(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    json_t *build = json_loads(record->provenance, 0, NULL);
    const char *device = json_string_value(json_object_get(build, "device"));
    at_bench_table(rows->rows, (int)rows->n, device ? device : "a device of no name", out);
    json_decref(build);
}

const struct at_content at_content_bench_kernels = { .what = "times of kernels",
                                                     .table = &at_bench_table_kernels,
                                                     .show_rows = show };
