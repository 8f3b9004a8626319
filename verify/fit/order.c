/* All pairs of a sum's terms in one launch, and the tree that they make.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fit/masks.h"

/* Requests, or columns, that hold all pairs of n terms. */
static int64_t wide_enough(enum at_probe_kind kind, int64_t n, int64_t d) {
    const int64_t pairs = n * (n - 1) / 2, each = kind == AT_PROBE_PRODUCT ? 1 : kind == AT_PROBE_QK ? d - 1 : d;
    return (pairs + each - 1) / each;
}

/* Sizes of common subtrees from what survived. */
static at_status read_sizes(const struct at_probe *probe, int n, int apart, int *lca) {
    for (int64_t c = 0; c < (int64_t)n * (n - 1) / 2; c++) {
        const struct at_pair p = at_pair_of(c);
        const double left = at_masks_survivors(&probe->data.problem, &probe->got, probe->kind, apart, c),
                     whole = round(left);
        if (!(fabs(left - whole) < 0.3 && whole >= 0 && whole <= n - 2))
            return AT_FAIL(AT_UNSUPPORTED,
                           "%.3g units survive beside terms %lld and %lld, wanted a whole number up to %d", left,
                           (long long)p.i, (long long)p.j, n - 2);
        lca[p.i * n + p.j] = lca[p.j * n + p.i] = n - (int)whole;
    }
    for (int i = 0; i < n; i++)
        lca[i * n + i] = 1;
    return AT_OK;
}

static at_status run_once(struct at_runner *runner, int variant, const struct at_probe_layout *layout,
                          enum at_probe_kind kind, int n, int apart, int64_t order, int *lca) {
    struct at_probe probe = { 0 };
    const struct at_probe_plan plan = {
        "all pairs", kind, (int)wide_enough(kind, n, layout->d), kind == AT_PROBE_QK ? (int)layout->d : n * apart, 0,
        "normal",    apart
    };
    at_status status = at_probe_open(runner, variant, layout, &plan, order, &probe);
    if (status == AT_OK)
        status = read_sizes(&probe, n, apart, lca);
    at_probe_release(&probe);
    return status;
}

at_status at_order_find(struct at_runner *runner, int variant, const struct at_probe_layout *layout,
                        enum at_probe_kind kind, int apart, int runs, struct at_order_found *found) {
    const int n = kind == AT_PROBE_QK ? (int)layout->d : AT_ORDER_TERMS;
    const size_t all = (size_t)n * (size_t)n;
    int *lca = calloc(3 * all, sizeof *lca);
    at_status status = AT_OK;
    *found = (struct at_order_found){ .n = n, .apart = apart };
    if (!lca)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the pairs of %d terms", n);
    for (int r = 0; r < runs && status == AT_OK; r++) {
        int *now = r ? lca + all : lca;
        status = run_once(runner, variant, layout, kind, n, apart, r, now);
        if (r && status == AT_OK && memcmp(lca, now, all * sizeof *lca) != 0) {
            found->changes = 1;
            at_tree_shared(n, lca, now, lca + 2 * all);
            memcpy(lca, lca + 2 * all, all * sizeof *lca);
        }
    }
    if (status == AT_OK)
        status = at_tree_draw(n, apart, lca, found->text, sizeof found->text, &found->signature);
    free(lca);
    if (status != AT_UNSUPPORTED)
        return status;
    snprintf(found->why, sizeof found->why, "%.250s", at_error_message());
    at_error_clear();
    return AT_OK;
}
