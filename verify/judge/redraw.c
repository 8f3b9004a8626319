/* Tests of whole outputs, and what fresh data say of an alarm.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/redraw.h"

#include <math.h>

#include "verify/judge/relaunch.h"

enum { REDRAWS = 2, FIRST_LAUNCH = 16 /* numbers below are those of relaunch.c */ };

static at_status judge_again(struct at_job *j, int tensor, const struct at_case_data *data,
                             const struct at_outputs *got, struct at_aggregate *out) {
    const struct at_judge_options *options = j->context->options;
    struct at_answer answer;
    struct at_judgement judgement = { 0 };
    AT_TRY(at_answer_open(&data->problem, options->threads, options->seed, &answer));
    at_status status =
        at_judgement_open(&answer, &j->numerics, options->threads, options->model_rows, options->seed, &judgement);
    if (status == AT_OK) {
        at_judgement_widen(&answer, options->limit_factor, &judgement);
        status = at_aggregate_judge(&answer, &j->numerics, tensor, &got->tensors[tensor], judgement.limit[tensor],
                                    options->threads, out);
    }
    at_judgement_close(&judgement);
    at_answer_close(&answer);
    return status;
}

/* The same case on other data: its sums. */
static at_status redraw(struct at_job *j, int tensor, int turn, struct at_aggregate *out) {
    const uint64_t launch = FIRST_LAUNCH + (uint64_t)turn;
    struct at_case_data data = { 0 };
    struct at_run_reply reply;
    struct at_outputs got = { 0 };
    at_status status = AT_OK;
    AT_TRY(at_case_build_again(j->context->item->c, (uint64_t)turn, &data));
    AT_TRY_OUT(at_guarded_launch(j->runner, j->variant, &data.problem, AT_POISON_JUDGED, NULL, at_job_seed(j, launch),
                                 at_job_time_limit(j), &reply, &got));
    AT_TRY_OUT(at_job_check_ran(j, &reply, "data of another seed"));
    AT_TRY_OUT(judge_again(j, tensor, &data, &got, out));
out:
    at_outputs_release(&got);
    at_case_data_release(&data);
    return status;
}

static at_status confirm(struct at_job *j, int tensor) {
    struct at_aggregate *first = &j->aggregates[tensor];
    int alarms[AT_MOMENT_COUNT], any = 0;
    for (int m = 0; m < AT_MOMENT_COUNT; m++)
        any |= alarms[m] = !(first->moment_ratio[m] <= 1);
    for (int turn = 0; turn < REDRAWS && any; turn++) {
        struct at_aggregate again;
        AT_TRY(redraw(j, tensor, turn, &again));
        any = 0;
        for (int m = 0; m < AT_MOMENT_COUNT; m++)
            any |= alarms[m] &= again.outside || (again.judged && !(again.moment_ratio[m] <= 1));
    }
    first->confirmed = any;
    return AT_OK;
}

at_status at_job_aggregates(struct at_job *j) {
    const struct at_answer *a = &j->context->answer;
    const int is_tested =
        !j->judgement.has_model && !j->context->is_given && at_case_is_continuous(j->context->item->c);
    for (int o = 0; o < a->n_outputs; o++) {
        const int t = a->outputs[o];
        j->aggregates[t] = (struct at_aggregate){ .scale = INFINITY };
        if (!is_tested)
            continue;
        AT_TRY(at_aggregate_judge(a, &j->numerics, t, &j->outputs.tensors[t], j->judgement.limit[t],
                                  j->context->options->threads, &j->aggregates[t]));
        AT_TRY(confirm(j, t));
    }
    return AT_OK;
}
