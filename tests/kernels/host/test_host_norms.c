/* Norms, cache writes, rotations, gated products and decaying states: C baselines beside the references, as those of attention in
 * test_host_variants.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "tests/support/judge_variants.h"

/* A problem of a norm, a cache write, a gated product or a rotation: activations N(0,2), parameters around 1, every third problem with an empty
 * batch or one channel, every third with 256; tokens go to every third slot but a few, and stand at every third position.
 * `memory` is owned by the caller. */
static void make_norm(const struct at_op *op, uint64_t n, struct at_problem *problem, void **memory) {
    static const enum at_format dtypes[] = { AT_BF16, AT_F16, AT_F32, AT_BF16 };
    struct at_test_random random = { n * 0x9e3779b97f4a7c15u + 777u };
    at_problem_init(problem, op, dtypes[n % 4]);
    problem->sizes = (struct at_sizes){ .tokens = n % 3 ? 1 + at_test_below(&random, 20) : (int64_t)(n % 2),
                                        .channels = n % 3 == 2 ? 1 + at_test_below(&random, 600)
                                                    : n % 3    ? 256
                                                               : 1,
                                        .h = 4,
                                        .hk = 2,
                                        .d = n % 3 < 2 ? 64 : 2 + at_test_below(&random, 63) };
    problem->sizes.slots = problem->sizes.max_sk = 3 * problem->sizes.tokens;
    problem->params.from = n % 5 == 4 ? AT_FROM_EXACT : AT_FROM_ROUNDED;
    static const struct {
        const char *name;
        int every;
    } choices[] = { { "gamma_per", 3 }, { "halves", 2 }, { "style", 4 } };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (at_op_scalar(op, choices[i].name))
            at_scalar_set(problem, at_op_scalar(op, choices[i].name), (double)(n / (uint64_t)choices[i].every % 2));
    if (op->complete)
        op->complete(problem, 0);
    at_problem_shape(problem);
    int64_t bytes = 0;
    for (int t = 0; t < op->n_tensors; t++)
        bytes += at_test_count(problem, t) * 4;
    *memory = calloc(1, (size_t)bytes + 1);
    assert_non_null(*memory);
    uint8_t *at = *memory;
    for (int t = 0; t < op->n_tensors; t++) {
        struct at_tensor *tensor = &problem->tensors[t];
        int64_t count = at_test_count(problem, t);
        if (op->tensors[t].role == AT_OUT || count == 0)
            continue;
        tensor->data = at;
        at += count * 4;
        double middle = op->tensors[t].format == AT_FORMAT_F32, spread = middle != 0 ? 0.5 : 2;
        for (int64_t i = 0; i < count; i++)
            if (op->tensors[t].format == AT_FORMAT_I32)
                ((int32_t *)tensor->data)[i] =
                    i % 7 == 5 && op->tensors[t].fill == AT_FILL_SLOT_MAPPING ? -1 : (int32_t)(3 * (count - 1 - i));
            else if (op->tensors[t].fill == AT_FILL_UNIFORM)
                at_store(tensor->format, tensor->data, (size_t)i, at_test_uniform(&random));
            else
                at_store(tensor->format, tensor->data, (size_t)i, middle + spread * at_test_normal(&random));
    }
    at_assert_ok(op->check(problem));
}

/* States that decay: by the unit's ex2 to the bit, by the library's exponential within what it declares. */
static void test_lightning(void **state) {
    (void)state;
    const uint64_t problems = (uint64_t)(30 * at_test_effort(2));
    static struct at_candidates all;
    at_collect_family("lightning_decode", &all);
    for (uint64_t n = 0; n < problems; n++) {
        static const char *const formats[] = { "f32", "f16", "bf16" };
        char line[160];
        snprintf(line, sizeof line, "lightning_decode b=%d h=%d d=%d e=%d steps=%d outer=%s dtype=%s seed=%d",
                 1 + (int)n % 3, 1 + (int)n / 2 % 3, 1 + (int)n * 37 % 140, 1 + (int)n * 17 % 72, 1 + (int)n / 3 % 3,
                 n / 4 % 2 ? "rounded" : "exact", formats[n % 3], (int)n);
        struct at_built_case built = at_build_line(line);
        at_judge_all(&all, &built.data.problem, n, INT64_MAX);
        at_drop_case(&built);
    }
    for (int i = 0; i < all.n; i++) {
        const struct at_variant *v = at_tell(&all, i);
        at_assert_true(all.model[i].runs > 2 && all.limit[i].elements > 0, "%s/%s was not judged", v->family, v->name);
        at_assert_true(v->numerics.exp == AT_EXP_LIBM || all.model[i].exact == all.model[i].elements, "%s/%s",
                       v->family, v->name);
    }
    assert_true(all.n >= 7);
}

/* Every variant of every family whose operator is no attention, state, product or elementwise function: all declare their order, so all are judged
 * to the bit, but for the exponential of a C library. */
static void test_norms(void **state) {
    (void)state;
    const uint64_t problems = (uint64_t)(36 * at_test_effort(2));
    int variants = 0;
    for (int i = 0; i < at_family_count(); i++) {
        const struct at_family *family = at_family_at(i);
        /* tensor_core has patterns of its own: tests/cli/test_study.sh; counts are compared with those of recordings:
         * tests/reference/score_counts/test_score_counts_oracle.c */
        if (strstr(family->op, "attention") || strcmp(family->op, "dot_product_add") == 0 ||
            strcmp(family->op, "lightning_decode") == 0 || strcmp(family->op, "gemm") == 0 ||
            strcmp(family->op, "exp2") == 0 || strcmp(family->op, "special_function") == 0 ||
            strcmp(family->op, "score_counts") == 0)
            continue;
        static struct at_candidates all;
        at_collect_family(family->name, &all);
        for (uint64_t n = 0; n < problems; n++) {
            struct at_problem problem;
            void *memory;
            make_norm(at_op_find(family->op), n, &problem, &memory);
            at_judge_all(&all, &problem, n, INT64_MAX);
            free(memory);
        }
        for (int k = 0; k < all.n; k++) {
            const struct at_variant *v = at_tell(&all, k);
            at_assert_true(all.model[k].runs > 4 && all.model[k].elements > 0, "%s/%s was not judged", v->family,
                           v->name);
            const int of_library = strcmp(family->op, "silu_mul") == 0 && v->numerics.exp == AT_EXP_LIBM;
            assert_true(of_library || all.model[k].exact == all.model[k].elements);
        }
        variants += all.n;
    }
    assert_true(variants >= 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lightning),
        cmocka_unit_test(test_norms),
    };
    return cmocka_run_group_tests(tests, at_open_host_runner, at_close_host_runner);
}
