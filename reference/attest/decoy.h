/* The ways of being wrong that every operator's results are tried with, beside the operator's own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DECOY_H
#define AT_DECOY_H

#include "attest/op.h"

enum at_general_decoy {
    AT_DECOY_ZEROS,
    AT_DECOY_SIGN,
    AT_DECOY_MEAN,
    AT_DECOY_PREVIOUS_ROW,
    AT_DECOY_OTHER_HEAD, /* where the operator has a next_head_row */
    AT_DECOY_ROW_ZEROED,
    AT_DECOY_BATCH_ZEROED, /* where it has a request_of_row */
    AT_DECOY_SCALED,       /* where it has roundings, whose limits can hide it */
    AT_DECOY_GENERAL
};

/* AT_DECOY_SCALED is the result times 1 + this: less than half a unit in the last place of most bf16 values. */
#define AT_DECOY_SCALE 0x1p-8

/* Name and meaning of general decoy i, NULL past the end. */
const struct at_decoy_spec *at_general_decoy(int i);
/* 1 when general decoy i means something for the operator. */
int at_decoy_applies(const struct at_op *op, int i);
/* 1 when `name` is a general decoy that applies or one of the operator's own. */
int at_decoy_known(const struct at_op *op, const char *name);

#endif
