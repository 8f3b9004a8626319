/* Keeping the tensors of a judged job: when, and what of it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Scores and P are not part of it: `attest replay --dump` makes them again. */
#include "verify/judge/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/witness.h"
#include "verify/judge/job.h"

static const char *const names[AT_KEEP_COUNT] = { "never", "wrong", "all" };

const char *at_keep_name(enum at_keep keep) { return names[keep]; }

at_status at_keep_parse(const char *name, enum at_keep *keep) {
    for (int i = 0; i < AT_KEEP_COUNT; i++)
        if (strcmp(name, names[i]) == 0) {
            *keep = (enum at_keep)i;
            return AT_OK;
        }
    return AT_FAIL(AT_USAGE, "--keep: found \"%.40s\", wanted never, wrong or all", name);
}

/* A VACUOUS result is a failure waiting for --strict. */
static int is_wanted(const struct at_job *j) {
    int fails = 0;
    for (int i = 0; i < j->n_results; i++)
        fails |= at_state_fails(j->results[i].state, j->results[i].expect, 1);
    const enum at_keep keep = j->context->options->keep;
    return keep == AT_KEEP_ALL || (keep == AT_KEEP_WRONG && fails);
}

/* Points the array at what the job has of it; 0 when it has nothing. */
static int fill(const struct at_job *j, int t, enum at_witness_part part, struct at_array *a) {
    const struct at_case_context *c = j->context;
    const int is_input = c->data.problem.op->tensors[t].role == AT_IN;
    const struct at_tensor *tensor = is_input ? &c->data.problem.tensors[t] : &j->outputs.tensors[t];
    const void *const data[AT_WITNESS_PARTS] = { [AT_WITNESS_TENSOR] = tensor->data,
                                                 [AT_WITNESS_REF] = c->answer.value[t],
                                                 [AT_WITNESS_LIMIT] = j->judgement.limit[t],
                                                 [AT_WITNESS_MODEL] = j->judgement.model[t],
                                                 [AT_WITNESS_INTERVAL] = j->judgement.interval[t] };
    a->data = data[part];
    a->rank = tensor->rank;
    if (part == AT_WITNESS_TENSOR)
        a->format = tensor->format;
    for (int r = 0; r < tensor->rank; r++)
        a->shape[r] = tensor->shape[r];
    return a->data && a->rank > 0;
}

static at_status write_arrays(const struct at_job *j, const char *path) {
    int tensor[AT_WITNESS_ARRAYS], n = 0;
    enum at_witness_part part[AT_WITNESS_ARRAYS];
    struct at_array *arrays = calloc(AT_WITNESS_ARRAYS, sizeof *arrays);
    if (!arrays)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a witness");
    const int all = at_witness_layout(j->context->data.problem.op, arrays, tensor, part);
    for (int i = 0; i < all; i++)
        if (fill(j, tensor[i], part[i], &arrays[i]))
            arrays[n++] = arrays[i];
    at_status status = at_arrays_write(path, arrays, n);
    free(arrays);
    return status;
}

at_status at_job_keep(struct at_job *j) {
    char row[AT_WITNESS_ROW_BYTES], path[4352];
    if (!is_wanted(j))
        return AT_OK;
    at_witness_row(&j->results[0], row);
    if (snprintf(path, sizeof path, "%s/%s.h5", j->context->options->witness, row) >= (int)sizeof path)
        return AT_FAIL(AT_USAGE, "--out: the path is too long");
    AT_TRY(write_arrays(j, path));
    for (int i = 0; i < j->n_results; i++)
        j->results[i].kept = 1;
    return AT_OK;
}
