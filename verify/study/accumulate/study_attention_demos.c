/* Demonstrations on attention: scores beyond f16 on outlier channels, what Inf does to a cache, what a clamp hides.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every figure in a line is computed when it is printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "verify/study/accumulate/study.h"

/* ---- scores beyond 65504 ---- */

struct beyond {
    int64_t sums, over, infinite;
    int64_t step; /* least step at which one left the range; -1: none */
    double largest;
};

static void watch_range(void *context, const struct at_study_step *step) {
    int64_t *first = context;
    if (*first < 0 && isinf(step->computed))
        *first = step->index;
}

/* All scores of the case with q and k `factor` times as large. */
static at_status count_beyond(const struct at_study_input *input, const char *name, double factor,
                              struct beyond *found) {
    const int64_t n = at_study_sum_count(input, AT_STUDY_qk);
    const size_t d = (size_t)at_study_sum_length(input, AT_STUDY_qk);
    double *a = malloc(2 * d * sizeof *a), magnitude;
    if (!a)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %zu products", d);
    double *b = a + d;
    *found = (struct beyond){ .sums = n, .step = -1 };
    for (int64_t i = 0; i < n; i++) {
        struct at_study_sum sum;
        int64_t first = -1;
        const struct at_study_observer observer = { watch_range, &first };
        at_study_sum_at(input, AT_STUDY_qk, i, a, b, &sum);
        for (int64_t c = 0; c < sum.n; c++) {
            a[c] *= factor;
            b[c] *= factor;
        }
        const double exact = at_study_exact(sum.n, a, b, &magnitude);
        const double got = at_study_add(at_study_mode_find(name), sum.n, a, b, &observer, NULL);
        found->largest = fmax(found->largest, fabs(exact));
        found->over += fabs(exact) > at_format_info(AT_F16)->max;
        found->infinite += !isfinite(got);
        if (first >= 0 && (found->step < 0 || first < found->step))
            found->step = first;
    }
    free(a);
    return AT_OK;
}

static at_status show_outliers(FILE *out) {
    struct at_study_input input;
    struct beyond found = { 0 };
    double first_largest = NAN;
    int64_t first_over = 0;
    int power = -1;
    at_status status =
        at_study_input_open("softmax_decode b=2 h=2 hk=2 sk=256 d=128 dtype=f16 data=outlier_channel seed=1", &input);
    while (status == AT_OK && found.infinite == 0 && power < 12) {
        status = count_beyond(&input, "f16_k16", ldexp(1.0, ++power), &found);
        if (power == 0) {
            first_largest = found.largest;
            first_over = found.over;
        }
    }
    at_study_input_release(&input);
    AT_TRY(status);
    fprintf(
        out,
        "  scores  f16_k16, q.k of outlier_channel, d 128: largest |S| %.1f, %lld of %lld beyond 65504; with q and k "
        "%g times as large: largest %.0f, %lld of %lld beyond, %lld not finite, the first at step %lld of 8\n",
        first_largest, (long long)first_over, (long long)found.sums, ldexp(1.0, power), found.largest,
        (long long)found.over, (long long)found.sums, (long long)found.infinite, (long long)found.step + 1);
    return AT_OK;
}

/* ---- models of whole rows ---- */

struct outputs {
    int64_t n, wrong, nonfinite;
    double error_max, rms;   /* error_max: of finite outputs, NaN: none; rms: of the exact ones */
    struct at_ledger ledger; /* of the declared arithmetic */
};

/* Outputs in declared arithmetic beside exact ones of the problem `truth`, in f16; wrong: 16 last places off or not
 * finite. */
static at_status evaluate(const struct at_problem *problem, const struct at_problem *truth,
                          const struct at_numerics *numerics, struct outputs *outputs) {
    const int o = at_op_tensor_index(problem->op, "o");
    const int64_t rows = at_attn_rows(problem), n = rows * problem->sizes.d;
    struct at_eval model = { 0 }, exact = { 0 };
    double squares = 0;
    at_status status = AT_OK;
    *outputs = (struct outputs){ .n = n, .error_max = NAN };
    at_ledger_init(&outputs->ledger);
    model.value[o] = calloc((size_t)n + 1, sizeof(double));
    exact.value[o] = calloc((size_t)n + 1, sizeof(double));
    if (!model.value[o] || !exact.value[o])
        AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory for %lld outputs", (long long)n);
    model.ledger = &outputs->ledger;
    AT_TRY_OUT(problem->op->model(problem, numerics, 0, rows, &model));
    AT_TRY_OUT(truth->op->evaluate(truth, NULL, 0, rows, &exact));
    for (int64_t i = 0; i < n; i++) {
        const double got = model.value[o][i], want = exact.value[o][i];
        outputs->nonfinite += !isfinite(got);
        outputs->wrong += !isfinite(got) || at_ulp_distance(AT_F16, got, want) > 16;
        if (isfinite(got) && !(fabs(got - want) <= outputs->error_max))
            outputs->error_max = fabs(got - want);
        squares += want * want;
    }
    outputs->rms = n ? sqrt(squares / (double)n) : 0;
out:
    free(model.value[o]);
    free(exact.value[o]);
    return status;
}

static void put_outputs(const struct outputs *outputs, FILE *out) {
    fprintf(out, "%lld of %lld outputs not finite, %lld wrong", (long long)outputs->nonfinite, (long long)outputs->n,
            (long long)outputs->wrong);
    if (!isnan(outputs->error_max))
        fprintf(out, ", largest error of a finite one %.3g beside an rms of %.3g", outputs->error_max, outputs->rms);
    fprintf(out, "\n");
}

static struct at_numerics tensor_core(enum at_unit qk, enum at_guard guard) {
    struct at_numerics numerics = at_numerics_default();
    numerics.qk_unit = qk;
    numerics.p = AT_F16;
    numerics.pv_unit = AT_UNIT_TC_F32;
    numerics.pv_chunk = 16;
    numerics.guard = guard;
    return numerics;
}

/* ---- what Inf does to a cache ---- */

enum { SPOILT_KEY = 17 };

static void spoil_value_rows(struct at_problem *problem, double value) {
    struct at_tensor *v = &problem->tensors[AT_ATTN_V];
    for (int64_t r = 0; r < problem->sizes.b; r++)
        for (int64_t x = 0; x < problem->sizes.hk; x++)
            for (int64_t c = 0; c < problem->sizes.d; c++)
                at_store(v->format, v->data, (size_t)(at_attn_kv_index(problem, r, SPOILT_KEY, x) + c), value);
}

static at_status show_cache(const char *attention, const char *data, enum at_pv_zero pv_zero, double value, FILE *out) {
    char line[160];
    struct at_study_input input = { 0 }, truth = { 0 };
    struct outputs outputs = { 0 };
    struct at_numerics numerics = tensor_core(AT_UNIT_TC_F32, AT_GUARD_NONE);
    at_status status = AT_OK;
    numerics.pv_unit = AT_UNIT_F32_FMA; /* a tensor core cannot skip a key */
    numerics.pv_chunk = 1;
    numerics.pv_zero = pv_zero;
    snprintf(line, sizeof line, "%s_decode b=8 h=4 hk=4 sk=64 d=64 dtype=f16 data=%s seed=1", attention, data);
    AT_TRY_OUT(at_study_input_open(line, &input));
    AT_TRY_OUT(at_study_input_open(line, &truth));
    spoil_value_rows(&input.data.problem, value);
    AT_TRY_OUT(evaluate(&input.data.problem, &truth.data.problem, &numerics, &outputs));
    fprintf(out, "  cache   %s, %s: V row %d of 64 holds %g, rows of p = 0 %s: ", attention, data, SPOILT_KEY, value,
            pv_zero == AT_PV_ZERO_SKIPPED ? "skipped" : "multiplied");
    put_outputs(&outputs, out);
out:
    at_study_input_release(&input);
    at_study_input_release(&truth);
    return status;
}

/* ---- what a clamp hides ----
 *
 * Every fourth key of `overflow` has a score beyond f16. A filter of 8 taps sees two of them: with infinities its sum
 * is Inf - Inf, and a clamp by fmin and fmax turns that NaN into a closed gate where the right one is open. */

static at_status show_clamp(FILE *out) {
    static const struct {
        const char *name;
        enum at_unit unit;
        enum at_guard guard;
        enum at_clamp clamp;
    } kinds[] = { { "f32 accumulator", AT_UNIT_TC_F32, AT_GUARD_NONE, AT_CLAMP_FMINMAX },
                  { "f16, no guard", AT_UNIT_TC_F16, AT_GUARD_NONE, AT_CLAMP_FMINMAX },
                  { "f16, no guard, clamp keeps NaN", AT_UNIT_TC_F16, AT_GUARD_NONE, AT_CLAMP_PROPAGATE },
                  { "f16, isinf each step", AT_UNIT_TC_F16, AT_GUARD_ISINF, AT_CLAMP_FMINMAX },
                  { "f16, saturate", AT_UNIT_TC_F16, AT_GUARD_SATURATE, AT_CLAMP_FMINMAX } };
    struct at_study_input input = { 0 };
    struct outputs outputs = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(
        at_study_input_open("asynct_decode b=2 h=4 hk=4 sk=256 d=64 dtype=f16 data=overflow seed=1 window=8", &input));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct at_numerics numerics = tensor_core(kinds[i].unit, kinds[i].guard);
        numerics.clamp = kinds[i].clamp;
        AT_TRY_OUT(evaluate(&input.data.problem, &input.data.problem, &numerics, &outputs));
        const struct at_ledger_row *score = &outputs.ledger.stage[AT_STAGE_score];
        fprintf(out,
                "  clamp   asynct, overflow, %s: %llu of %llu scores infinite, finite p of %llu keys that see them: ",
                kinds[i].name, (unsigned long long)score->inf, (unsigned long long)score->count,
                (unsigned long long)outputs.ledger.laundered);
        put_outputs(&outputs, out);
    }
out:
    at_study_input_release(&input);
    return status;
}

at_status at_study_attention_demos(FILE *out) {
    AT_TRY(show_outliers(out));
    AT_TRY(show_cache("asynct", "sparse70", AT_PV_ZERO_MULTIPLIED, INFINITY, out));
    AT_TRY(show_cache("asynct", "sparse70", AT_PV_ZERO_SKIPPED, INFINITY, out));
    AT_TRY(show_cache("asynct", "sparse70", AT_PV_ZERO_MULTIPLIED, 65504, out));
    AT_TRY(show_cache("softmax", "normal", AT_PV_ZERO_MULTIPLIED, INFINITY, out));
    AT_TRY(show_cache("softmax", "normal", AT_PV_ZERO_MULTIPLIED, 65504, out));
    return show_clamp(out);
}
