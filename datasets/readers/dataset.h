/* Recorded activations: q, k and v of one layer, as a case reads them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DATASET_H
#define AT_DATASET_H

#include "datasets/language/case_keys.h"
#include "datasets/readers/reader.h"

enum { AT_RECORDED_Q, AT_RECORDED_K, AT_RECORDED_V, AT_RECORDED_TENSORS };

/* An open dataset. Request r owns tokens start[r] .. start[r+1] of q, k and v alike. */
struct at_recorded {
    struct at_reader *reader;
    int tensor[AT_RECORDED_TENSORS]; /* index in the reader */
    int64_t b, h, hk, d, tokens;
    int64_t *start; /* [b+1]; owned */
};

/* Opens at_datasets_dir()/activations/NAME.safetensors and checks that layers.N.q, k, v are [tokens heads d] and
 * query_start is i32 [b+1], ascending from 0 to tokens. AT_NOT_FOUND, AT_USAGE with the file and tensor named. */
at_status at_recorded_open(const struct at_case *c, struct at_recorded *recorded);
void at_recorded_release(struct at_recorded *recorded);
/* All heads of tokens [first, first + n) of q, k or v, in double. */
at_status at_recorded_read(struct at_recorded *recorded, int tensor, int64_t first, int64_t n, double *out);

/* Datasets there are, by name, in `names` (each freed by the caller, as is the array); for `attest list datasets`. */
at_status at_recorded_list(char ***names, int *n);

#endif
