/* Making what the jobs of one case share, once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/case_context.h"

#include <stdlib.h>
#include <string.h>

#include "attest/decoy.h"
#include "attest/env.h"

at_status at_case_context_create(const struct at_plan_case *item, const struct at_judge_options *options,
                                 struct at_case_context **context) {
    struct at_case_context *c = *context = calloc(1, sizeof *c);
    if (!c)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a case");
    c->item = item;
    c->options = options;
    pthread_mutex_init(&c->making, NULL);
    pthread_mutex_init(&c->decoys, NULL);
    return AT_OK;
}

at_status at_case_context_create_given(const struct at_plan_case *item, const struct at_problem *problem,
                                       const struct at_judge_options *options, struct at_case_context **context) {
    AT_TRY(at_case_context_create(item, options, context));
    (*context)->data.problem = *problem; /* no memory of its own */
    (*context)->has_data = (*context)->is_given = 1;
    return AT_OK;
}

void at_case_context_destroy(struct at_case_context *c) {
    if (!c)
        return;
    if (c->has_answer)
        at_answer_close(&c->answer);
    if (c->has_data)
        at_case_data_release(&c->data);
    pthread_mutex_destroy(&c->making);
    pthread_mutex_destroy(&c->decoys);
    free(c);
}

/* The jobs that are at work on the case wait for what they share: their threads make it. */
static int threads_for(struct at_case_context *c) {
    const int at_work = atomic_load(&c->jobs), threads = c->options->shared_threads;
    return at_work > threads ? at_work : threads;
}

at_status at_case_context_data(struct at_case_context *c) {
    at_status status = AT_OK;
    pthread_mutex_lock(&c->making);
    if (!c->has_data) {
        const int before = at_threads_use(threads_for(c));
        status = at_case_build(c->item->c, &c->data);
        at_threads_use(before);
        AT_TRY_OUT(status);
    }
    c->has_data = 1;
out:
    pthread_mutex_unlock(&c->making);
    return status;
}

static int requires(const struct at_case *c, const char *decoy) {
    for (int i = 0; i < c->n_require; i++)
        if (strcmp(c->require[i], decoy) == 0)
            return 1;
    return 0;
}

at_status at_case_context_answer(struct at_case_context *c) {
    at_status status = AT_OK;
    pthread_mutex_lock(&c->making);
    if (!c->has_answer) {
        AT_TRY_OUT(at_answer_open(&c->data.problem, threads_for(c), c->options->seed, &c->answer));
        c->answer.wants_scaled = requires(c->item->c, at_general_decoy(AT_DECOY_SCALED)->name);
    }
    c->has_answer = 1;
out:
    pthread_mutex_unlock(&c->making);
    return status;
}
