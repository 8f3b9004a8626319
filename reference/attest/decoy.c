/* The general decoys: their names, and for which operators they mean something.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/decoy.h"

#include <string.h>

static const struct at_decoy_spec general[AT_DECOY_GENERAL] = {
    [AT_DECOY_ZEROS] = { "zeros", "all zeros" },
    [AT_DECOY_SIGN] = { "sign", "sign flipped" },
    [AT_DECOY_MEAN] = { "mean", "the mean value everywhere" },
    [AT_DECOY_PREVIOUS_ROW] = { "previous_row", "each row is the row before it" },
    [AT_DECOY_OTHER_HEAD] = { "other_head", "each head is the next head" },
    [AT_DECOY_ROW_ZEROED] = { "row_zeroed", "one row zeroed" },
    [AT_DECOY_BATCH_ZEROED] = { "batch_zeroed", "one request zeroed" },
    [AT_DECOY_SCALED] = { "scaled", "all values times 1 + 1/256; counts where its case requires it" },
};

const struct at_decoy_spec *at_general_decoy(int i) { return i >= 0 && i < AT_DECOY_GENERAL ? &general[i] : NULL; }

int at_decoy_applies(const struct at_op *op, int i) {
    if (i == AT_DECOY_OTHER_HEAD)
        return op->next_head_row != NULL;
    if (i == AT_DECOY_SCALED)
        return op->roundings != NULL;
    return i != AT_DECOY_BATCH_ZEROED || op->request_of_row != NULL;
}

int at_decoy_known(const struct at_op *op, const char *name) {
    for (int i = 0; i < AT_DECOY_GENERAL; i++)
        if (strcmp(general[i].name, name) == 0)
            return at_decoy_applies(op, i);
    for (int i = 0; i < op->n_decoys; i++)
        if (strcmp(op->decoys[i].name, name) == 0)
            return 1;
    return 0;
}
