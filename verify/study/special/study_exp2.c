/* attest study special: every variant of family exp2 that the runner can run, over all codes of f32 or each N-th.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/special/study_exp2.h"

#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/cli/progress.h"
#include "verify/study/special/study_launch.h"

enum { CHUNK = 1 << 22, MAX_VARIANTS = 16, PIECE = 1 << 14 };
static const int64_t CODES = (int64_t)1 << 32;

struct study {
    struct at_runner *runner;
    int64_t step, inputs; /* of a variant */
    int threads, n, variants, skipped, broken;
    double *value, *limit; /* of a chunk */
    struct at_progress progress;
    struct at_exp2_row rows[MAX_VARIANTS * AT_EXP2_CLASSES];
};

/* ---- one chunk ---- */

struct chunk_work {
    struct at_problem *problem;
    const struct at_numerics *numerics;
    struct at_eval eval;
};

static at_status evaluate(void *context, int64_t begin, int64_t end, int worker) {
    struct chunk_work *w = context;
    (void)worker;
    return w->problem->op->evaluate(w->problem, w->numerics, begin, end, &w->eval);
}

/* Runs a variant on chunk->n inputs from chunk->first on. Where it declines, or breaks on its way, chunk->got is NULL and *why
 * says why. */
static at_status run_chunk(struct study *s, int variant, struct at_exp2_chunk *chunk, char *why, size_t size) {
    struct at_problem p;
    struct at_run_reply reply;
    const struct at_special_codes codes = { chunk->first, chunk->step, chunk->n };
    const int broken = s->broken;
    chunk->got = NULL;
    at_problem_init(&p, at_op_find("exp2"), AT_F32);
    AT_TRY(at_special_launch(s->runner, variant, &codes, s->threads, &p, &reply));
    if (!at_special_ran(&reply, why, size, &s->broken)) {
        s->skipped += s->broken == broken;
        return AT_OK;
    }
    const int y = at_op_tensor_index(p.op, "y");
    struct chunk_work w = { .problem = &p, .numerics = &at_runner_variant(s->runner, variant)->numerics };
    w.eval.value[y] = s->value;
    w.eval.limit[y] = s->limit;
    AT_TRY(at_parallel(chunk->n, PIECE, s->threads, evaluate, &w));
    chunk->got = p.tensors[y].data;
    chunk->value = s->value;
    chunk->limit = s->limit;
    return AT_OK;
}

/* ---- one variant ---- */

static at_status study_variant(struct study *s, int variant) {
    const struct at_variant *v = at_runner_variant(s->runner, variant);
    struct at_exp2_row *rows = &s->rows[s->n];
    struct at_exp2_chunk chunk = { .step = s->step };
    char name[192], why[600] = "";
    snprintf(name, sizeof name, "%s/%s", v->family, v->name);
    at_exp2_rows_init(name, s->step, rows);
    at_progress_start(&s->progress, "study special", s->inputs);
    for (; chunk.first < s->inputs; chunk.first += chunk.n) {
        chunk.n = s->inputs - chunk.first < CHUNK ? s->inputs - chunk.first : CHUNK;
        AT_TRY(run_chunk(s, variant, &chunk, why, sizeof why));
        if (!chunk.got) {
            at_progress_end(&s->progress);
            printf("%s: %s\n", name, why);
            return AT_OK;
        }
        AT_TRY(at_exp2_compare(&chunk, s->threads, rows));
        chunk.has_before = 1;
        chunk.before = chunk.got[chunk.n - 1];
        int64_t bad = 0;
        for (int k = 0; k < AT_EXP2_CLASSES; k++)
            bad += rows[k].wrong_class + rows[k].beyond_limit;
        at_progress_step(&s->progress, chunk.n, bad - s->progress.failed, name);
    }
    at_progress_end(&s->progress);
    at_exp2_print(rows, AT_EXP2_CLASSES, stdout);
    fflush(stdout);
    s->n += AT_EXP2_CLASSES;
    s->variants++;
    return AT_OK;
}

/* ---- the run ---- */

static at_status study_all(struct study *s) {
    printf("%s\n", at_runner_device(s->runner));
    for (int i = 0; i < at_runner_variant_count(s->runner); i++) {
        if (strcmp(at_runner_variant(s->runner, i)->family, "exp2") != 0)
            continue;
        if (s->variants == MAX_VARIANTS)
            return AT_FAIL(AT_USAGE, "study special: this runner has more than %d variants of exp2", (int)MAX_VARIANTS);
        AT_TRY(study_variant(s, i));
    }
    if (s->variants + s->broken == 0)
        return AT_FAIL(AT_USAGE, "study special: this runner has no variant of family exp2 that runs; %d left out",
                       s->skipped);
    return AT_OK;
}

static at_status study(const struct at_args *args, int64_t *bad) {
    const char *runner = at_args_get(args, "--runner"), *out = at_args_get(args, "--out");
    at_status status = AT_OK;
    struct study *s = calloc(1, sizeof *s);
    if (!s)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory");
    s->threads = at_threads();
    AT_TRY_OUT(at_args_int(args, "--step", 1, CODES - 1, 1, &s->step));
    if (out)
        AT_TRY_OUT(at_atomic_check(out));
    s->inputs = (CODES + s->step - 1) / s->step;
    s->value = malloc(CHUNK * sizeof *s->value);
    s->limit = malloc(CHUNK * sizeof *s->limit);
    if (!s->value || !s->limit)
        AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory for %d results", (int)CHUNK);
    AT_TRY_OUT(at_runner_open(runner ? runner : "cpu", &s->runner));
    AT_TRY_OUT(study_all(s));
    for (int i = 0; i < s->n; i++)
        *bad += s->rows[i].wrong_class + s->rows[i].beyond_limit;
    *bad += s->broken;
    if (out)
        AT_TRY_OUT(at_exp2_archive(out, at_runner_device(s->runner), s->rows, s->n));
out:
    at_progress_end(&s->progress);
    if (s->runner)
        at_runner_close(s->runner);
    free(s->value);
    free(s->limit);
    free(s);
    return status;
}

int at_study_exp2_run(const struct at_args *args) {
    int64_t bad = 0;
    const at_status status = study(args, &bad);
    if (status != AT_OK)
        return at_report_failure(status);
    return bad ? 1 : 0;
}

/* The name of before; archives are read by `special`. */
static int run_by_old_name(const struct at_args *args) {
    fprintf(stderr, "attest study exp2: is now `attest study special`, and this name goes with the next version\n");
    return at_study_exp2_run(args);
}
const struct at_study at_study_exp2 = { .name = "exp2", .run = run_by_old_name };
