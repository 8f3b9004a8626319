/* Variants of attest-cpu judged on problems of a test's own: by their models where they declare an order, and by their limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/judge_variants.h"

#include "tests/support/attention_problem.h"

#include <unistd.h>

struct at_runner *at_host_runner;

int at_open_host_runner(void **state) {
    (void)state;
    const char *build = getenv("BUILD");
    char spec[4200];
    snprintf(spec, sizeof spec, "exec '%s/attest-cpu'", build ? build : "build");
    if (at_runner_open(spec, &at_host_runner) != AT_OK)
        print_error("%s\n", at_error_trail());
    return at_host_runner ? 0 : -1;
}

int at_close_host_runner(void **state) {
    (void)state;
    at_runner_close(at_host_runner);
    return 0;
}

/* |got - want| <= limit for each element; NaN and infinities as classes. */
static void compare(const struct at_variant *v, const struct at_outputs *got, const struct at_test_eval *want,
                    const struct at_problem *problem, int is_model, uint64_t n, struct at_tally *tally) {
    for (int t = 0; t < problem->op->n_tensors; t++) {
        const double *value = want->eval.value[t], *limit = want->eval.limit[t];
        if (problem->op->tensors[t].role == AT_IN)
            continue;
        for (int64_t i = 0; i < at_test_count(problem, t); i++) {
            double x = at_tensor_get(&got->tensors[t], i), error = fabs(x - value[i]);
            int same = x == value[i] || (isnan(x) && isnan(value[i]));
            if (isinf(limit[i])) /* an f16 accumulator that can overflow: the model judges */
                continue;
            if (!same && !(error <= limit[i]))
                fail_msg("%s/%s problem %llu: %s[%lld] = %a, wanted %a within %g (%s)", v->family, v->name,
                         (unsigned long long)n, problem->op->tensors[t].name, (long long)i, x, value[i], limit[i],
                         is_model ? "model" : "limit");
            tally->elements++;
            tally->exact += same;
            if (!same && error / limit[i] > tally->worst)
                tally->worst = error / limit[i];
        }
    }
}

void at_judge_variant(int variant, const struct at_problem *problem, uint64_t n, struct at_tally *model,
                      struct at_tally *limit) {
    const struct at_variant *v = at_runner_variant(at_host_runner, variant);
    struct at_run_reply reply;
    struct at_outputs outputs;
    struct at_test_eval want;
    struct at_numerics declared;
    at_assert_ok(at_declared_on(at_host_runner, variant, problem, &declared));
    at_assert_ok(at_guarded_launch(at_host_runner, variant, problem, AT_POISON_JUDGED, NULL, n, 30, &reply, &outputs));
    at_assert_true(reply.outcome != AT_RUN_FAILED, "%s/%s: %s", v->family, v->name, reply.reason);
    if (reply.outcome == AT_RUN_UNSUPPORTED) {
        model->declined++;
        return;
    }
    model->runs++;
    for (int t = 0; t < problem->op->n_tensors; t++)
        at_assert_true(!outputs.dirty[t][0], "%s/%s problem %llu: %s", v->family, v->name, (unsigned long long)n,
                       outputs.dirty[t]);
    at_assert_ok(at_test_eval_init(problem, 1, &want));
    if (!declared.free_order) {
        at_assert_ok(problem->op->model(problem, &declared, 0, problem->op->rows(problem), &want.eval));
        compare(v, &outputs, &want, problem, 1, n, model);
    }
    at_assert_ok(problem->op->evaluate(problem, &declared, 0, problem->op->rows(problem), &want.eval));
    compare(v, &outputs, &want, problem, 0, n, limit);
    at_test_eval_release(&want);
    at_outputs_release(&outputs);
}

void at_collect_family(const char *family, struct at_candidates *c) {
    memset(c, 0, sizeof *c);
    for (int i = 0; i < at_runner_variant_count(at_host_runner); i++)
        if (strcmp(at_runner_variant(at_host_runner, i)->family, family) == 0) {
            assert_true(c->n < AT_CANDIDATES_MAX);
            c->variant[c->n++] = i;
        }
}

void at_judge_all(struct at_candidates *c, const struct at_problem *problem, uint64_t n, int64_t enough) {
    for (int i = 0; i < c->n; i++)
        if (c->model[i].runs < enough)
            at_judge_variant(c->variant[i], problem, n, &c->model[i], &c->limit[i]);
}

const struct at_variant *at_tell(const struct at_candidates *c, int i) {
    const struct at_variant *v = at_runner_variant(at_host_runner, c->variant[i]);
    const struct at_tally *model = &c->model[i];
    print_message("%s/%s: %lld runs, %lld declined; model %lld of %lld equal; worst error/limit %.3g\n", v->family,
                  v->name, (long long)model->runs, (long long)model->declined, (long long)model->exact,
                  (long long)model->elements, c->limit[i].worst);
    return v;
}
