/* Demonstrations of what accumulators do: stalls, the end of f16's range, cancellation within and across steps.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every figure in a line is computed when it is printed; the words around it say what was asked, not what came out. */
#include <math.h>
#include <stdlib.h>

#include "verify/study/accumulate/study.h"

/* ---- stalls: a = b = 1/16 for ever ---- */

struct stall {
    double *value;    /* after each step */
    int64_t last_use; /* last step that changed the accumulator, from 1; 0: none */
};

static void watch_stall(void *context, const struct at_study_step *step) {
    struct stall *s = context;
    s->value[step->index] = step->stored;
    if (step->stored != step->before)
        s->last_use = step->index + 1;
}

static at_status show_stall(const char *name, FILE *out) {
    enum { STEPS = 4096 };
    const struct at_study_mode *mode = at_study_mode_find(name);
    const int64_t n = (int64_t)STEPS * mode->step;
    double *a = malloc((size_t)n * sizeof *a), magnitude;
    struct stall s = { .value = malloc(STEPS * sizeof(double)) };
    const struct at_study_observer observer = { watch_stall, &s };
    if (!a || !s.value) {
        free(a);
        free(s.value);
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld products", (long long)n);
    }
    for (int64_t i = 0; i < n; i++)
        a[i] = 0.0625;
    const double end = at_study_add(mode, n, a, a, &observer, NULL);
    const int64_t before = s.last_use - s.last_use / 32;
    fprintf(out, "  stall   %-9s a = b = 1/16, %d product%s a step: %g after %lld steps, %g after %lld, ", name,
            mode->step, mode->step == 1 ? "" : "s", before ? s.value[before - 1] : 0.0, (long long)before,
            s.last_use ? s.value[s.last_use - 1] : 0.0, (long long)s.last_use);
    if (s.last_use < STEPS)
        fprintf(out, "still %g after %d; right: %g\n", end, STEPS, at_study_exact(n, a, a, &magnitude));
    else
        fprintf(out, "and growing; right: %g\n", at_study_exact(n, a, a, &magnitude));
    free(a);
    free(s.value);
    return AT_OK;
}

static at_status show_promotion(const char *name, FILE *out) {
    const struct at_study_mode *mode = at_study_mode_find(name);
    const int64_t n = 4096 * (int64_t)mode->step;
    double *a = malloc((size_t)n * sizeof *a), magnitude;
    if (!a)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld products", (long long)n);
    for (int64_t i = 0; i < n; i++)
        a[i] = 0.0625;
    fprintf(out, "  stall   %s, a = b = 1/16: %g after 4096 steps; right: %g\n", name,
            at_study_add(mode, n, a, a, NULL, NULL), at_study_exact(n, a, a, &magnitude));
    free(a);
    return AT_OK;
}

/* ---- the end of the range ---- */

enum { MAX_SHOWN = 4 };
struct shown_steps {
    int n;
    double value[MAX_SHOWN];
};

static void watch_steps(void *context, const struct at_study_step *step) {
    struct shown_steps *s = context;
    if (s->n < MAX_SHOWN)
        s->value[s->n++] = step->computed;
}

/* At most 64 products x[i] * 1, x[0] > 0, by a mode: "  what: x0 + x1 ...: steps ...: sum; right: exact". */
static void show_sum(const char *what, const char *name, int n, const double *x, FILE *out) {
    double ones[64];
    struct shown_steps s = { 0 };
    const struct at_study_observer observer = { watch_steps, &s };
    double magnitude;
    int64_t guarded;
    for (int i = 0; i < n; i++)
        ones[i] = 1;
    const double sum = at_study_add(at_study_mode_find(name), n, x, ones, &observer, &guarded);
    fprintf(out, "  %-7s %s:", what, name);
    for (int i = 0; i < n; i++)
        if (x[i] != 0)
            fprintf(out, " %s%g", i == 0 ? "" : x[i] < 0 ? "- " : "+ ", fabs(x[i]));
    fprintf(out, " over %d step%s:", s.n, s.n == 1 ? "" : "s");
    for (int i = 0; i < s.n; i++)
        fprintf(out, "%s %g", i ? "," : "", s.value[i]);
    fprintf(out, "; %s %g", guarded ? "guarded" : "sum", isnan(sum) ? (double)NAN : sum); /* without a NaN's sign */
    fprintf(out, "; right: %g\n", at_study_exact(n, x, ones, &magnitude));
}

static void show_range(FILE *out) {
    static const char *const modes[] = { "f16_k16", "f16_k16_isinf", "f16_k16_nan_safe", "f16_k16_saturate" };
    const double below[16] = { 65504, 15 }, at[16] = { 65504, 16 }, one[16] = { 60000, 60000, -60000 };
    double two[32] = { 60000, 60000 }, blocks[64] = { 60000, 60000 };
    two[16] = -60000;
    blocks[32] = blocks[33] = -60000;
    show_sum("range", "f16_k16", 16, below, out);
    show_sum("range", "f16_k16", 16, at, out);
    show_sum("cancel", "f16_k16", 16, one, out);
    for (int i = 0; i < 4; i++)
        show_sum("cancel", modes[i], 32, two, out);
    show_sum("cancel", "f16_k16", 64, blocks, out); /* one accumulator: finite products beside Inf leave it Inf */
    show_sum("cancel", "f16_k16_block32", 64, blocks, out);
}

at_status at_study_demos(FILE *out) {
    static const char *const stalls[] = { "e8m13_k32", "f16_k16", "f16_k8", "f16_fma" };
    fprintf(out, "demonstrations\n");
    for (size_t i = 0; i < sizeof stalls / sizeof *stalls; i++)
        AT_TRY(show_stall(stalls[i], out));
    AT_TRY(show_promotion("e8m13_k32_every128", out));
    AT_TRY(show_promotion("f16_k16_block128", out));
    show_range(out);
    return at_study_attention_demos(out);
}
