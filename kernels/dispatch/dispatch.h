/* Dispatchers: which kernel of a family takes a problem, by what was measured.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A table has a row for each shape that was timed, with the variant that was fastest there: `attest bench GLOB --tune` writes it to
 * kernels/FAMILY/dispatch_table.h. A problem goes to the variant of the row that is nearest to it, of those that take it; where none
 * does, to one that takes nearly all. Only sizes, format and layout count, and of lengths only what a captured graph keeps. */
#ifndef AT_DISPATCH_H
#define AT_DISPATCH_H

#include "attest/kernel.h"

/* A shape that was timed. `queries` and `keys` are the most of one request: sizes.max_sq, sizes.capacity. */
struct at_dispatch_row {
    enum at_format dtype;
    int64_t b, h, hk, d, page, queries, keys;
    const char *variant; /* of the same family */
};

struct at_dispatch_table {
    const char *family;
    const struct at_dispatch_row *rows;
    int n;
    const char *otherwise; /* the variant where no row's takes a problem */
};

/* How far a problem is from a row, 0: it is the row's shape. Powers of two apart, summed over requests times kv heads, keys and
 * queries; a ratio of another count of query heads a kv head counts four times as much, another head size eight times; another format
 * as one power of two, pages instead of none as two. */
double at_dispatch_distance(const struct at_dispatch_row *row, const struct at_problem *problem);

/* The kernel, among those of `kernels`; of rows equally near the first counts. NULL where none takes the problem: *reason is then what
 * `otherwise` says, or that this program does not have it. */
const struct at_kernel_entry *at_dispatch_among(const struct at_dispatch_table *table, int n_kernels,
                                                const struct at_kernel_entry *(*at)(int i),
                                                const struct at_problem *problem, const char **reason);
/* The same among this program's kernels. */
static inline const struct at_kernel_entry *at_dispatch(const struct at_dispatch_table *table,
                                                        const struct at_problem *problem, const char **reason) {
    return at_dispatch_among(table, at_kernel_count(), at_kernel_at, problem, reason);
}

/* What a dispatcher's file has behind `rows` of its table: choose(), which asks it, and `otherwise` where no row's variant takes a
 * problem. */
#define AT_DISPATCHES(family, otherwise) \
    static const struct at_dispatch_table table = { #family, rows, (int)(sizeof rows / sizeof *rows), otherwise }; \
    static const struct at_kernel_entry *choose(const struct at_problem *problem, const char **reason) { \
        return at_dispatch(&table, problem, reason); \
    } \
    _Static_assert(sizeof rows > 0, "a table has shapes")

/* What its line declares, until a problem is asked about: an order that is not told, P in the inputs' format. */
#define AT_DISPATCH_NUMERICS \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_P_INPUT, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, \
        .free_order = 1, .repeats = 1, \
    }

#endif
