/* A stack's graph: nodes by kind, time by step, two sides beside each other; as text and as a table of archives.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "verify/stack/stack_report.h"

/* kind, name, member, units, meaning */
/* clang-format off */
#define GRAPH_FIELDS(X)                                                                                  \
    X(TEXT, stack,   stack,   "1", "what --against is beside")                                             \
    X(TEXT, side,    side,    "1", "own; or the settings or the stack of --against")                       \
    X(I64,  round,   round,   "1", "the sides take turns")                                               \
    X(TEXT, name,    name,    "1", "step; replay: the whole graph, without events between steps")        \
    X(TEXT, kind,    kind,    "1", "kind of the step, as the stack has it")                              \
    X(I64,  times,   times,   "1", "how often it runs")                                                  \
    X(F64,  seconds, seconds, "s", "sum over its layers of the medians of each; 0: not timed")           \
    X(F64,  least,   least,   "s", "of one layer")                                                       \
    X(F64,  most,    most,    "s", "of one layer")                                                       \
    X(F64,  kernels, kernels, "1", "nodes of the graph that are kernels; without a graph, launches")     \
    X(F64,  others,  others,  "1", "its other nodes: memory sets and copies")
/* clang-format on */

static const struct at_field fields[] = {
#define X(kind, name, member, units, meaning) \
    { #name, \
      AT_FIELD_##kind, \
      AT_FIELD_NOWHERE, \
      offsetof(struct at_stack_cost, member), \
      sizeof(((struct at_stack_cost *)0)->member), \
      1, \
      units, \
      meaning },
    GRAPH_FIELDS(X)
#undef X
};

static const struct at_field *field_at(int i) {
    return i >= 0 && (size_t)i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

const struct at_table at_stack_table_graph = {
    .group = "stack_graph",
    .parent = "studies",
    .type = "attest.stack_graph",
    .signal = "seconds",
    .row = "row: one step of one replayed graph, and the whole of it",
    .field = field_at,
    .row_bytes = sizeof(struct at_stack_cost),
};

/* ---- text ---- */

static int is_whole(const struct at_stack_cost *cost) { return strcmp(cost->name, AT_STACK_REPLAY) == 0; }

/* Of kinds in the order in which they come first: nodes, and time where there is one. */
static void put_kinds(const struct at_stack_cost *rows, int64_t n, FILE *out) {
    const char *before = "by kind: ";
    for (int64_t i = 0; i < n; i++) {
        double kernels = 0, others = 0, seconds = 0;
        int first = !is_whole(&rows[i]);
        for (int64_t k = 0; k < n; k++) {
            const int same = strcmp(rows[k].kind, rows[i].kind) == 0;
            first &= !(same && k < i);
            kernels += same ? rows[k].kernels : 0;
            others += same ? rows[k].others : 0;
            seconds += same ? rows[k].seconds : 0;
        }
        if (!first)
            continue;
        fprintf(out, "%s%s %.0f", before, rows[i].kind, kernels);
        before = ", ";
        if (others > 0)
            fprintf(out, " + %.0f", others);
        if (seconds > 0)
            fprintf(out, " (%.1f us)", seconds * 1e6);
    }
    fputc('\n', out);
}

void at_stack_put_costs(const struct at_stack_cost *rows, int64_t n, int has_layers, FILE *out) {
    const struct at_stack_cost *whole = NULL;
    double steps = 0, kernels = 0, others = 0;
    int64_t layers = 1;
    for (int64_t i = 0; i < n; i++) {
        whole = is_whole(&rows[i]) ? &rows[i] : whole;
        if (is_whole(&rows[i]))
            continue;
        steps += rows[i].seconds;
        kernels += rows[i].kernels;
        others += rows[i].others;
        layers = rows[i].times > layers ? rows[i].times : layers;
    }
    fprintf(out, "%-11s %-10s %6s %8s %7s %9s %9s %9s %10s %6s\n", "STEP", "KIND", "TIMES", "KERNELS", "OTHERS",
            "US EACH", "LEAST", "MAX", "US IN ALL", "SHARE");
    for (int64_t i = 0; i < n; i++) {
        const struct at_stack_cost *r = &rows[i];
        if (is_whole(r))
            continue;
        fprintf(out, "%-11s %-10s %6" PRId64 " %8.0f %7.0f", r->name, r->kind, r->times, r->kernels, r->others);
        if (steps > 0)
            fprintf(out, " %9.2f %9.2f %9.2f %10.1f %5.1f%%\n", r->seconds * 1e6 / (double)r->times, r->least * 1e6,
                    r->most * 1e6, r->seconds * 1e6, 100 * r->seconds / steps);
        else
            fprintf(out, " %9s %9s %9s %10s %6s\n", "-", "-", "-", "-", "-");
    }
    put_kinds(rows, n, out);
    fprintf(out, "%.0f kernels and %.0f other nodes", kernels, others);
    if (whole && whole->seconds > 0) {
        fprintf(out, "; a replay takes %.1f us", whole->seconds * 1e6);
        if (has_layers)
            fprintf(out, ", %.2f us a layer", whole->seconds * 1e6 / (double)layers);
        fprintf(out, "; the steps, with an event behind each, %.1f us, %.2f of it", steps * 1e6,
                steps / whole->seconds);
    }
    fputc('\n', out);
}

void at_stack_put_replayed(const struct at_stack_replayed *r, FILE *out) {
    fprintf(out, "\nas one graph: ");
    if (r->reason[0]) {
        fprintf(out, "NOT RUN: %s\n", r->reason);
        return;
    }
    fprintf(out, "%" PRId64 " buffers are written, %.1f MB with all others; ", r->compared, (double)r->bytes / 1e6);
    if (r->differ)
        fprintf(out, "%" PRId64 " DIFFER from what the steps one by one left there, the first: %s\n", r->differ,
                r->first);
    else
        fprintf(out, "all end with the bits that the steps one by one left there, hash %016" PRIx64 "\n", r->bits);
}

static double replay_of(const struct at_stack_cost *rows, int64_t n, const char *side, int64_t round) {
    for (int64_t i = 0; i < n; i++)
        if (is_whole(&rows[i]) && strcmp(rows[i].side, side) == 0 && rows[i].round == round)
            return rows[i].seconds;
    return 0;
}

void at_stack_put_sides(const struct at_stack_cost *rows, int64_t n, FILE *out) {
    const char *other = "";
    for (int64_t i = 0; i < n; i++)
        other = strcmp(rows[i].side, AT_STACK_OWN) != 0 ? rows[i].side : other;
    if (!other[0] || !(replay_of(rows, n, AT_STACK_OWN, 0) > 0)) /* no clock worth reading */
        return;
    fprintf(out, "\nin turns, us of a replay, %s over own:", other);
    for (int64_t round = 0;; round++) {
        const double own = replay_of(rows, n, AT_STACK_OWN, round), its = replay_of(rows, n, other, round);
        if (!(own > 0 && its > 0))
            break;
        fprintf(out, "%s %.1f, %.1f: %.4f", round ? ";" : "", own * 1e6, its * 1e6, its / own);
    }
    fputc('\n', out);
}

/* ---- of an archive ---- */

static void show(const struct at_table_rows *table, const struct at_run_record *record, FILE *out) {
    const struct at_stack_cost *rows = table->rows;
    const int has_layers = !record->request || !strstr(record->request, "\"turns\""); /* a sequence's settings */
    for (int64_t i = 0, next; i < table->n; i = next) {
        for (next = i + 1;
             next < table->n && rows[next].round == rows[i].round && strcmp(rows[next].side, rows[i].side) == 0;)
            next++;
        if (rows[i].round > 0)
            continue;
        fprintf(out, "\nas one graph, %s\n", rows[i].side);
        at_stack_put_costs(rows + i, next - i, has_layers, out);
    }
    at_stack_put_sides(rows, table->n, out);
}

const struct at_content at_content_stack_graph = { .what = "times of a stack",
                                                   .table = &at_stack_table_graph,
                                                   .show_rows = show };
