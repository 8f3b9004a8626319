/* The nearest measured shape whose kernel takes a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dispatch/dispatch.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Powers of two between two sizes; of nothing and nothing none. */
static double powers(int64_t a, int64_t b) { return fabs(log2((double)(a > 0 ? a : 1) / (double)(b > 0 ? b : 1))); }

double at_dispatch_distance(const struct at_dispatch_row *row, const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    const int64_t hk = z->hk > 0 ? z->hk : 1;
    return 8 * powers(row->d, z->d) + 4 * powers(row->h / row->hk, z->h / hk) + powers(row->b * row->hk, z->b * hk) +
           powers(row->keys, z->capacity) + powers(row->queries, z->max_sq) + (row->dtype != problem->dtype) +
           2 * ((row->page > 0) != (z->page > 0));
}

static const struct at_kernel_entry *find(const char *family, const char *name, int n_kernels,
                                          const struct at_kernel_entry *(*at)(int i)) {
    for (int i = 0; i < n_kernels; i++)
        if (strcmp(at(i)->family, family) == 0 && strcmp(at(i)->name, name) == 0)
            return at(i);
    return NULL;
}

static const char *refusal(const struct at_kernel_entry *entry, const struct at_problem *problem) {
    return entry->kernel->supports ? entry->kernel->supports(problem) : NULL;
}

const struct at_kernel_entry *at_dispatch_among(const struct at_dispatch_table *table, int n_kernels,
                                                const struct at_kernel_entry *(*at)(int i),
                                                const struct at_problem *problem, const char **reason) {
    const struct at_kernel_entry *chosen = NULL;
    double least = (double)INFINITY;
    for (int i = 0; i < table->n; i++) {
        const double distance = at_dispatch_distance(&table->rows[i], problem);
        if (!(distance < least))
            continue;
        const struct at_kernel_entry *entry = find(table->family, table->rows[i].variant, n_kernels, at);
        if (!entry || refusal(entry, problem))
            continue;
        chosen = entry;
        least = distance;
    }
    if (chosen)
        return chosen;
    chosen = find(table->family, table->otherwise, n_kernels, at);
    *reason = chosen ? refusal(chosen, problem) : "this program does not have the kernel that would take it";
    return *reason ? NULL : chosen;
}
