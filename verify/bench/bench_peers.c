/* Peers of a case: whose variants they are, which case they get, and how they compare.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bench/bench.h"

/* Libraries have attention with softmax alone, so that is what a gate's attention can be set beside. Counting scores makes no
 * outputs of values and has no such sibling. */
const struct at_family *at_bench_peer_family(const struct at_case *c) {
    if (c->op->kind != AT_KIND_ATTENTION || c->op->weights != AT_WEIGHTS_GATE || c->op->scores)
        return NULL;
    for (int i = 0; i < at_family_count(); i++) {
        const struct at_family *family = at_family_at(i);
        const struct at_op *op = at_op_find(family->op);
        if (op && op->kind == AT_KIND_ATTENTION && op->weights == AT_WEIGHTS_SOFTMAX &&
            family->decode == c->family->decode)
            return family;
    }
    return NULL;
}

static int takes_key(const struct at_op *op, const char *key, size_t length) {
    static const char *const of_judging[] = { "require", "expect" };
    for (size_t i = 0; i < sizeof of_judging / sizeof *of_judging; i++)
        if (strlen(of_judging[i]) == length && strncmp(key, of_judging[i], length) == 0)
            return 0;
    for (int i = 0; op->keys && op->keys[i]; i++)
        if (strlen(op->keys[i]) == length && strncmp(key, op->keys[i], length) == 0)
            return 1;
    return 0;
}

at_status at_bench_peer_case(const struct at_case *c, const struct at_family *family, struct at_case_list *list) {
    char line[AT_CASE_ID_BYTES + 64], where[sizeof c->where + 16];
    const struct at_op *op = at_op_find(family->op);
    const int64_t before = list->n;
    int used = snprintf(line, sizeof line, "%s", family->name);
    for (const char *word = strchr(c->id, ' '); word; word = strchr(word, ' ')) {
        word++;
        const int length = (int)strcspn(word, " ");
        if (takes_key(op, word, strcspn(word, "=")))
            used += snprintf(line + used, sizeof line - (size_t)used, " %.*s", length, word);
    }
    snprintf(where, sizeof where, "%s, for peers", c->where);
    AT_TRY(at_case_parse(line, c->role, where, list));
    return list->n == before + 1 ? AT_OK : AT_FAIL(AT_USAGE, "%s: found \"%.200s\", wanted one case", where, line);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double at_bench_median(double *seconds, int n) {
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    return seconds[n / 2];
}

void at_bench_compare_peers(struct at_bench_row *rows, int n) {
    const struct at_bench_row *fastest = NULL;
    for (int i = 0; i < n; i++)
        if (rows[i].peer && rows[i].timed && rows[i].compared > 0 && rows[i].wrong == 0 &&
            (!fastest || rows[i].cold < fastest->cold))
            fastest = &rows[i];
    for (int i = 0; i < n && fastest; i++) {
        if (rows[i].peer)
            continue;
        rows[i].peer_cold = fastest->cold;
        snprintf(rows[i].fastest_peer, sizeof rows[i].fastest_peer, "%s", fastest->variant);
    }
}
