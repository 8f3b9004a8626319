/* The table of problems that variants have been asked about.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An answer depends on what a job says before its bytes: type, sizes, parameters, formats and shapes
 * (kernels/runner/PROTOCOL.md, `ask`). That is the key, word for word. */
#include "verify/design/design_asked.h"

#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/runner/launch.h"

enum { FIRST_ROOM = 1 << 10 };

/* Type, sizes and parameters in the order of the operator's table, then each tensor: format, rank, shape. */
static int words_of(const struct at_problem *problem, double *words) {
    const struct at_scalar *field;
    int n = 0;
#define PUT(value) (words ? (void)(words[n] = (double)(value)) : (void)0, n++)
    PUT(problem->dtype);
    for (int i = 0; (field = at_op_scalar_at(problem->op, i)); i++)
        PUT(at_scalar_get(problem, field));
    for (int t = 0; t < problem->op->n_tensors; t++) {
        const struct at_tensor *tensor = &problem->tensors[t];
        PUT(tensor->format);
        PUT(tensor->rank);
        for (int i = 0; i < tensor->rank; i++)
            PUT(tensor->shape[i]);
    }
#undef PUT
    return n;
}

static int same(const struct at_asked_problem *a, const struct at_asked_problem *b) {
    return a->hash == b->hash && a->n_words == b->n_words &&
           memcmp(a->words, b->words, (size_t)a->n_words * sizeof *a->words) == 0;
}

/* The slot of this problem, or the free one where it belongs. */
static struct at_asked_problem *slot_of(const struct at_asked *asked, const struct at_asked_problem *problem) {
    int64_t i = (int64_t)(problem->hash & (uint64_t)(asked->room - 1));
    while (asked->slots[i].words && !same(&asked->slots[i], problem))
        i = (i + 1) & (asked->room - 1);
    return &asked->slots[i];
}

/* Keeps half of the slots free. */
static at_status make_room(struct at_asked *asked) {
    if (asked->n < asked->room / 2)
        return AT_OK;
    struct at_asked grown = { .n = asked->n, .room = asked->room ? 2 * asked->room : FIRST_ROOM };
    grown.slots = calloc((size_t)grown.room, sizeof *grown.slots);
    if (!grown.slots)
        return AT_FAIL(AT_NO_MEMORY, "no memory for what variants have answered");
    for (int64_t i = 0; i < asked->room; i++)
        if (asked->slots[i].words)
            *slot_of(&grown, &asked->slots[i]) = asked->slots[i];
    free(asked->slots);
    *asked = grown;
    return AT_OK;
}

at_status at_asked_takes(struct at_asked *asked, struct at_runner *runner, const int *variants, int n,
                         const struct at_problem *problem, uint64_t *takes) {
    struct at_asked_problem question = { .n_words = words_of(problem, NULL) };
    at_status status = AT_OK;
    AT_TRY(make_room(asked));
    question.words = malloc((size_t)question.n_words * sizeof *question.words);
    if (!question.words)
        return AT_FAIL(AT_NO_MEMORY, "no memory for what variants have answered");
    words_of(problem, question.words);
    question.hash = at_hash_bytes(question.words, (size_t)question.n_words * sizeof *question.words, AT_HASH_START);
    struct at_asked_problem *slot = slot_of(asked, &question);
    if (!slot->words) {
        AT_TRY_OUT(at_ask_all(runner, variants, n, problem, &question.takes));
        *slot = question;
        asked->n++;
        question.words = NULL;
    }
    *takes = slot->takes;
out:
    free(question.words);
    return status;
}

void at_asked_release(struct at_asked *asked) {
    for (int64_t i = 0; i < asked->room; i++)
        free(asked->slots[i].words);
    free(asked->slots);
    *asked = (struct at_asked){ 0 };
}
