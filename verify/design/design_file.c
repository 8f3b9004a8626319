/* A design as a case file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/design/design.h"

#include "datasets/language/case_keys.h"

void at_design_print(const struct at_design *design, FILE *out) {
    const int seeded = at_key_index(design->domain.op, "seed") >= 0;
    for (int64_t i = 0; i < design->n_rows; i++) {
        fputs(design->rows[i].line, out);
        if (seeded)
            fprintf(out, " seed=%lld", (long long)i + 1);
        fputc('\n', out);
    }
}

void at_design_print_impossible(const struct at_design *design, FILE *out) {
    int64_t all, had, impossible;
    at_cover_counts(design, &all, &had, &impossible);
    fprintf(out, "# %s: %lld cases; %lld (variant, tuple)s, %lld had, %lld impossible\n", design->domain.family->name,
            (long long)design->n_rows, (long long)all, (long long)had, (long long)impossible);
}
