/* Made-up evidence about one output.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/verdict_scene.h"

#include "tests/at_test.h"

static const struct at_tensor_spec specs[] = {
    { "o", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "output" }
};

static int64_t own_rows(const struct at_problem *p) { return p->sizes.tokens * p->sizes.h; }
static void own_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)tensor;
    *first = row * p->sizes.d;
    *count = p->sizes.d;
}

static const struct at_op op = {
    .name = "test", .tensors = specs, .n_tensors = 1, .rows = own_rows, .row_span = own_span
};

void at_scene_set_up(struct at_scene *s, enum at_scene_mode mode) {
    static const char *const names[] = { "alpha", "beta", "gamma" };
    memset(s, 0, sizeof *s);
    s->problem = (struct at_problem){ .op = &op, .sizes = { .tokens = 2, .h = 2, .d = 4 }, .dtype = AT_F32 };
    at_problem_shape(&s->problem);
    s->got = s->problem.tensors[AT_SCENE_O];
    s->got.data = s->data;
    s->numerics = at_numerics_default();
    s->numerics.repeats = s->numerics.batch_invariant = 1;
    s->answer = (struct at_answer){ .problem = &s->problem,
                                    .rows = 4,
                                    .n_outputs = 1,
                                    .count = { AT_SCENE_N },
                                    .value = { s->want },
                                    .n_sample = 4,
                                    .sample = s->sample,
                                    .sample_count = { AT_SCENE_N },
                                    .n_decoys = AT_SCENE_DECOYS };
    s->judgement.has_model = mode == AT_WITH_MODEL;
    s->judgement.has_classes = mode == AT_WITH_CLASSES;
    s->decoys.n = s->decoys.counted = s->decoys.rejected = AT_SCENE_DECOYS;
    snprintf(s->decoys.fate, sizeof s->decoys.fate, "rrr");
    for (int d = 0; d < AT_SCENE_DECOYS; d++)
        s->answer.decoys[d] = (struct at_decoy){ names[d], "a fault", { s->decoy[d] } };
    for (int i = 0; i < AT_SCENE_N; i++) {
        s->data[i] = (float)(i + 1);
        s->want[i] = s->model[i] = i + 1;
        s->limit[i] = 0.5;
        for (int d = 0; d < AT_SCENE_DECOYS; d++)
            s->decoy[d][i] = i + 11 + 10 * d;
    }
    for (int r = 0; r < 4; r++)
        s->sample[r] = r;
    s->comparison = (struct at_comparison){ .got = &s->got,
                                            .want = s->want,
                                            .limit = s->limit,
                                            .model = mode == AT_WITH_MODEL ? s->model : NULL,
                                            .interval = mode == AT_WITH_MODEL ? s->interval : NULL,
                                            .classes = mode == AT_WITH_CLASSES ? s->model : NULL,
                                            .count = AT_SCENE_N };
    s->evidence = (struct at_evidence){ .numerics = &s->numerics,
                                        .answer = &s->answer,
                                        .judgement = &s->judgement,
                                        .comparison = &s->comparison,
                                        .decoys = &s->decoys,
                                        .tensor = AT_SCENE_O,
                                        .other_data = "",
                                        .required_inert = "" };
    s->result.compared = s->result.rerun_compared = s->result.batch_compared = AT_SCENE_N;
    snprintf(s->result.cause, sizeof s->result.cause, "left over");
    s->result.state = AT_STATE_HUNG;
}

void at_scene_expect(struct at_scene *s, enum at_state state, const char *says) {
    at_verdict(&s->evidence, &s->result);
    at_assert_true(s->result.state == state && (says[0] ? strstr(s->result.cause, says) != NULL : !s->result.cause[0]),
                   "%s \"%s\", wanted %s \"%s\"", at_state_name(s->result.state), s->result.cause, at_state_name(state),
                   says);
}
