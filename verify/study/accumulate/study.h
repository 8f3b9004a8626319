/* attest study accumulate: its rows, and what makes and shows them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_H
#define AT_STUDY_H

#include <stdio.h>

#include "verify/cli/commands.h"
#include "verify/result/record.h"
#include "verify/result/result_fields.h"
#include "verify/study/accumulate/study_inputs.h"
#include "verify/study/accumulate/study_modes.h"
#include "verify/study/study_list.h"

/* A mode on the sums of one product of one case: sizes of the errors, what theory has beside them, the ledger.
 * Errors are |sum - exact| / sum |a b| over sums whose operands and result are finite; 0/0 is 0. */
struct at_study_row {
    char attention[12], product[12], mode[32], data[40], case_id[AT_CASE_ID_BYTES];
    int64_t d, length, length_min; /* products of the longest and of the shortest sum */
    int64_t sums, compared;        /* made; of them with finite operands and a finite result */
    int64_t inputs_nonfinite, result_inf, result_nan;
    double err_max, err_mean, bias; /* bias: mean of the error's part along the exact sum; negative: too short */
    uint64_t ulp_p50, ulp_p99, ulp_max;
    int64_t additions, swamped;            /* steps whose products do not add up to 0; those that change nothing */
    double swamped_share;                  /* NaN: no additions */
    int64_t overflowed;                    /* sums with an accumulator beyond 65504 */
    int64_t earliest_step;                 /* least step at which one of them went there; -1: none */
    int64_t laundered;                     /* sums with an infinite accumulator and a finite result */
    int64_t guarded;                       /* values that the guard changed */
    double guarded_err_max;                /* over sums with such a value and a finite result; NaN: none */
    double bound, probable;                /* of the errors; for the longest sum */
    int64_t beyond_bound, beyond_probable; /* sums that never left the range and passed their own bound */
    double slope, slope_error;             /* of log2 err_mean over log2 length, among the rows that differ in length */
    int slope_points;                      /* rows that it was fitted to; fewer than 3: no error, than 2: no slope */
    struct at_ledger_row ledger;           /* of the accumulator after each step, before a guard */
};
/* Field i of a row, NULL past the end; the ledger's counts have at_ledger_row_field(). */
const struct at_field *at_study_field(int i);

struct at_study_rows {
    struct at_study_row *items;
    int64_t n, capacity;
};
void at_study_rows_release(struct at_study_rows *rows);
/* `more` zeroed rows at the end; *first is the first of them until rows are added again. */
at_status at_study_rows_add(struct at_study_rows *rows, int64_t more, struct at_study_row **first);

/* Adds a row for each mode of `modes` (n_modes) with at most `sums` sums of this product, spread over the case. Same
 * bits for any number of threads. */
at_status at_study_measure(const struct at_study_input *input, enum at_study_product product, const char *attention,
                           const char *data, const struct at_study_mode *const *modes, int n_modes, int64_t sums,
                           struct at_study_rows *rows);

/* Fills slope, slope_error and slope_points of every row. */
at_status at_study_fit(struct at_study_rows *rows);

/* The default table: for each attention, product and mode one line at its longest length. */
void at_study_table(const struct at_study_rows *rows, FILE *out);
/* The demonstrations, a line each; each computes what it prints. */
at_status at_study_demos(FILE *out);
at_status at_study_attention_demos(FILE *out); /* those of them that are about attention */

extern const struct at_study at_study_accumulate, at_study_modes;
/* clang-format off */
#define AT_STUDY_ACCUMULATE_OPTIONS                                                                                          \
    { "--modes", "GLOB", "accumulate: modes, as `attest study modes` lists them (default all)" },                           \
    { "--lengths", "N,N,..", "accumulate: keys of a row, 0 allowed (default 64,256,1024,4096)" },                           \
    { "--d", "N,N,..", "accumulate: head sizes (default 64,128)" },                                                         \
    { "--data", "GLOB", "accumulate: data families, and layers as DATASET/LAYER of AT_DATASETS/activations (default all)" }, \
    { "--attention", "A", "accumulate: asynct, softmax or both (default)" },                                                \
    { "--sums", "N", "accumulate: sums looked at of each product of a case (default 128)" },                                \
    { "--resume", NULL, "accumulate: go on from the journal S.h5.jsonl of an interrupted study" },                          \
    { "--shard", "i/N", "accumulate: only this share of the cases; `attest merge` joins the shards" },                      \
    { "--quick", NULL, "accumulate: lengths 64,256, d 64, 16 sums, unless given" },                                         \
    { "--demos", NULL, "accumulate: the demonstrations alone" }
/* clang-format on */

extern const struct at_table at_study_table_accumulate;
/* 1 when the file is an archive of this study; errors give 0. */
int at_study_is_accumulate(const char *path);
/* The archive that one process would have written, out of the journals of all shards beside paths[0 .. n). AT_USAGE when some
 * are missing, did not end, or are of different studies. */
at_status at_study_merge(const char *const *paths, int n, const char *out);
extern const struct at_content at_content_accumulate;

#endif
