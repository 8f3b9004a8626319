/* The least time of a launch: what a device cannot exceed, and what a right kernel must move and compute.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bench/bench.h"

/* Of what is computed: clocks and counters are not better than that. */
static const double MARGIN = 0.98;
/* A few clock cycles: no launch of anything is shorter. */
static const double SHORTEST = 1e-9;

static int is_ceiling(const struct at_ceiling *c) {
    return c->bytes > 0 && c->flops > 0 && c->flops_of_bytes > 0 && c->cache >= 0 && isfinite(c->bytes) &&
           isfinite(c->flops) && isfinite(c->flops_of_bytes) && isfinite(c->cache);
}

static at_status parse_line(const char *line, const char *path, int number, void *item) {
    struct at_ceiling *c = item;
    int used = 0;
    *c = (struct at_ceiling){ .bytes = 0 };
    if (sscanf(line, "%lf %lf %lf %lf %n", &c->bytes, &c->flops, &c->flops_of_bytes, &c->cache, &used) != 4 || !used ||
        !line[used] || !is_ceiling(c))
        return AT_FAIL(AT_USAGE, "%s:%d: found \"%.80s\", wanted: bytes/s flop/s flop/s-of-one-byte cache NAME", path,
                       number, line);
    snprintf(c->device, sizeof c->device, "%s", line + used);
    return AT_OK;
}

at_status at_ceilings_load(const char *path, struct at_ceilings *all) {
    void *items;
    const at_status status = at_bench_table_load(path, sizeof *all->items, parse_line, &items, &all->n);
    all->items = items;
    if (status == AT_OK && !at_ceiling_find(all, ""))
        return AT_FAIL(AT_USAGE, "%s: no line for every other device, named *", path);
    return status;
}

void at_ceilings_release(struct at_ceilings *all) {
    free(all->items);
    *all = (struct at_ceilings){ 0 };
}

at_status at_ceiling_parse(const char *text, struct at_ceiling *c) {
    char rest[2];
    *c = (struct at_ceiling){ .device = "--ceiling" };
    const int n = sscanf(text, "%lf:%lf:%lf%1s", &c->bytes, &c->flops, &c->cache, rest);
    c->flops_of_bytes = c->flops;
    if ((n == 2 || n == 3) && is_ceiling(c))
        return AT_OK;
    return AT_FAIL(AT_USAGE, "--ceiling: found \"%.60s\", wanted BYTES:FLOPS[:CACHE], bytes and operations a second",
                   text);
}

const struct at_ceiling *at_ceiling_find(const struct at_ceilings *all, const char *device) {
    const struct at_ceiling *found = NULL;
    for (int i = 0; i < all->n; i++) {
        const struct at_ceiling *c = &all->items[i];
        const int is_other = strcmp(c->device, "*") == 0;
        if ((is_other && !found) ||
            (!is_other && strstr(device, c->device) &&
             (!found || strcmp(found->device, "*") == 0 || strlen(c->device) > strlen(found->device))))
            found = c;
    }
    return found;
}

/* Keys that nobody asks for need not be read. */
static int asks_everything(const struct at_problem *p) {
    int64_t asked = 0, last = -1;
    const int64_t rows = p->op->rows(p);
    if (!p->op->request_of_row)
        return rows > 0;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t request = p->op->request_of_row(p, row);
        asked += request != last;
        last = request;
    }
    return asked == p->sizes.b;
}

double at_bench_needed_bytes(const struct at_problem *p) {
    double sum = 0;
    if (!asks_everything(p))
        return 0;
    for (int t = 0; t < p->op->n_tensors; t++) {
        const struct at_tensor *x = &p->tensors[t];
        const int may_be_skipped = p->op->weights == AT_WEIGHTS_GATE && p->op->tensors[t].fill == AT_FILL_VALUES;
        if (x->rank == 0 || may_be_skipped)
            continue;
        const int64_t count = p->op->moved ? p->op->moved(p, t) : at_tensor_count(x);
        sum += (double)count * (double)at_format_info(x->format)->bytes;
    }
    return sum;
}

static int has_byte_factors(const struct at_problem *p) {
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_OUT && p->tensors[t].rank && p->tensors[t].format != AT_I32 &&
            at_format_info(p->tensors[t].format)->bytes == 1)
            return 1;
    return 0;
}

/* A line of the cache that is still there from the replay before saves one read, or the write of what overwrites it;
 * of a tensor that is read and written both. */
static double kept(const struct at_problem *p, const struct at_ceiling *c, int copies) {
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role == AT_INOUT)
            return 2 * c->cache / copies;
    return c->cache / copies;
}

double at_bench_floor(const struct at_problem *p, const struct at_ceiling *c, int copies) {
    const double of_bytes = (at_bench_needed_bytes(p) - kept(p, c, copies > 0 ? copies : 1)) / c->bytes;
    const double flops = at_bench_flops(p) * (p->op->weights == AT_WEIGHTS_GATE ? 0.5 : 1);
    const double of_flops = isnan(flops) ? 0 : flops / (has_byte_factors(p) ? c->flops_of_bytes : c->flops);
    double least = SHORTEST;
    least = of_bytes > least ? of_bytes : least;
    least = of_flops > least ? of_flops : least;
    return MARGIN * least;
}
