/* Rows that others make superfluous: a search adds a row for what is open then, and later rows may have all of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/design/design.h"

struct row_cost {
    int64_t row;
    double cost;
};

/* How many rows have what is to be had; variants vary fastest. */
struct counts {
    int *tuples, *far;
};

static int *far_count(const struct counts *counts, int f, int class) {
    return &counts->far[(f * AT_DOMAIN_CLASSES + class) * AT_DESIGN_VARIANTS];
}

/* Adds `by` for all that a row has; the smallest count among it before. */
static int count_of(const struct at_design *design, const struct at_design_row *row, const struct counts *counts,
                    int by) {
    int least = INT32_MAX;
    for (int v = 0; v < design->n_variants; v++) {
        if (!(row->takes >> v & 1))
            continue;
        for (int64_t i = 0; i < design->n_combinations; i++) {
            const int64_t tuple = at_cover_tuple(design, &design->combinations[i], row->classes);
            int *count = tuple < 0 ? NULL : &counts->tuples[tuple * AT_DESIGN_VARIANTS + v];
            least = count && *count < least ? *count : least;
            if (count)
                *count += by;
        }
        for (int f = 0; f < design->domain.n; f++) {
            int *count = row->classes[f] < design->domain.factors[f].n ? NULL : far_count(counts, f, row->classes[f]);
            least = count && count[v] < least ? count[v] : least;
            if (count)
                count[v] += by;
        }
    }
    return least;
}

static int dearest_first(const void *a, const void *b) {
    const struct row_cost *x = a, *y = b;
    return x->cost != y->cost ? (x->cost < y->cost) - (x->cost > y->cost) : (x->row < y->row) - (x->row > y->row);
}

static void leave_out(struct at_design *design, struct row_cost *order, const struct counts *counts) {
    int64_t left = 0;
    for (int64_t i = 0; i < design->n_rows; i++) {
        order[i] = (struct row_cost){ i, at_design_cost(&design->rows[i]) };
        count_of(design, &design->rows[i], counts, 1);
    }
    qsort(order, (size_t)design->n_rows, sizeof *order, dearest_first);
    for (int64_t i = 0; i < design->n_rows; i++) {
        struct at_design_row *row = &design->rows[order[i].row];
        if (count_of(design, row, counts, 0) < 2)
            continue;
        count_of(design, row, counts, -1);
        row->takes = 0;
    }
    for (int64_t i = 0; i < design->n_rows; i++)
        if (design->rows[i].takes)
            design->rows[left++] = design->rows[i];
    design->n_rows = left;
}

at_status at_design_thin(struct at_design *design) {
    struct counts counts = {
        .tuples = calloc((size_t)design->n_tuples * AT_DESIGN_VARIANTS, sizeof *counts.tuples),
        .far = calloc((size_t)AT_DOMAIN_FACTORS * AT_DOMAIN_CLASSES * AT_DESIGN_VARIANTS, sizeof *counts.far),
    };
    struct row_cost *order = calloc((size_t)design->n_rows + 1, sizeof *order);
    at_status status = AT_OK;
    if (counts.tuples && counts.far && order)
        leave_out(design, order, &counts);
    else
        status = AT_FAIL(AT_NO_MEMORY, "no memory for a design");
    free(counts.tuples);
    free(counts.far);
    free(order);
    return status;
}
