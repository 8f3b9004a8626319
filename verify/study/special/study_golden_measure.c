/* attest study special --golden --runner R: the unit of a device on all arguments, beside its model, and the file of hashes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attest/env.h"
#include "verify/cli/progress.h"
#include "verify/result/atomic_file.h"
#include "verify/study/special/study_special.h"

enum { PIECE = 1 << 14, CHUNK = 1 << 22 };

/* ---- results beside the model ---- */

struct comparison {
    const struct at_special_instruction *instruction;
    const struct at_special_codes *codes;
    const void *y;
    struct at_special_measured *of_worker;
};

static int is_nan(const struct at_special_instruction *t, uint32_t y) {
    const uint32_t infinity = t->format == AT_SPECIAL_F32   ? 0x7f800000u
                              : t->format == AT_SPECIAL_F16 ? 0x7c00u
                                                            : 0x7f80u;
    return (y & (t->narrow ? 0x7fffu : 0x7fffffffu)) > infinity;
}

static void note(const struct at_special_measured *from, struct at_special_measured *to) {
    if (from->different && (!to->different || from->x < to->x)) {
        to->x = from->x;
        to->y = from->y;
        to->model = from->model;
    }
    to->arguments += from->arguments;
    to->different += from->different;
    to->other_nans += from->other_nans;
    to->hash += from->hash;
}

static at_status compare(void *context, int64_t begin, int64_t end, int worker) {
    const struct comparison *c = context;
    const struct at_special_instruction *t = c->instruction;
    struct at_special_measured found = { 0 };
    uint32_t x[PIECE] = { 0 }, model[PIECE];
    for (int64_t i = begin; i < end; i++)
        x[i - begin] = (uint32_t)((c->codes->first + i) * c->codes->step);
    at_special_results(t, end - begin, x, model);
    for (int64_t i = begin; i < end; i++) {
        const uint32_t y = t->narrow ? ((const uint16_t *)c->y)[i] : ((const uint32_t *)c->y)[i];
        const uint32_t unwritten = t->narrow ? 0xffff : UINT32_MAX;
        const uint32_t at = x[i - begin], wanted = model[i - begin], the_nan = t->narrow ? 0x7fff : 0x7fffffff;
        const int nan = is_nan(t, y), same = y == wanted || (nan && is_nan(t, wanted) && y != unwritten);
        if (!same && found.different++ == 0) {
            found.x = at;
            found.y = y;
            found.model = wanted;
        }
        found.other_nans += nan && y != the_nan;
        found.hash += at_special_mixed(at, nan ? the_nan : y);
    }
    found.arguments = end - begin;
    note(&found, &c->of_worker[worker]);
    return AT_OK;
}

at_status at_special_compare(const struct at_special_instruction *instruction, const struct at_special_codes *codes,
                             const void *y, int threads, struct at_special_measured *to) {
    struct comparison c = { instruction, codes, y, calloc((size_t)threads, sizeof *c.of_worker) };
    if (!c.of_worker)
        return AT_FAIL(AT_NO_MEMORY, "study special: no memory");
    const at_status status = at_parallel(codes->n, PIECE, threads, compare, &c);
    for (int i = 0; i < threads; i++)
        note(&c.of_worker[i], to);
    free(c.of_worker);
    return status;
}

/* ---- one instruction ---- */

struct measurement {
    struct at_study_devices *devices;
    int64_t step;
    int threads, measured, different, broken;
    FILE *file; /* of hashes; NULL: none is written */
};

/* What the chunks of an instruction share. */
struct sweep {
    const struct measurement *m;
    const struct at_special_instruction *instruction;
    int variant;
    int64_t arguments, step; /* its codes are [0, arguments) * step */
    pthread_mutex_t lock;    /* of what follows */
    struct at_progress progress;
    struct at_special_measured found;
    int declined, broken;
    char why[600]; /* it declines or breaks */
};

static int is_over(struct sweep *s) {
    pthread_mutex_lock(&s->lock);
    const int over = s->declined || s->broken;
    pthread_mutex_unlock(&s->lock);
    return over;
}

static at_status sweep_chunk(void *context, int64_t i, struct at_runner *runner) {
    struct sweep *s = context;
    const struct at_special_instruction *t = s->instruction;
    struct at_special_codes codes = { .first = i * CHUNK, .step = s->step };
    struct at_special_measured found = { 0 };
    struct at_problem p;
    struct at_run_reply reply;
    char why[sizeof s->why];
    int broken = 0;
    if (is_over(s))
        return AT_OK;
    at_problem_init(&p, at_op_find("special_function"), AT_F32);
    at_scalar_set(&p, at_op_scalar(p.op, "instruction"), (double)(t - at_special_instruction_at(0)));
    p.op->complete(&p, ~0u);
    codes.n = s->arguments - codes.first < CHUNK ? s->arguments - codes.first : CHUNK;
    AT_TRY(at_special_launch(runner, s->variant, &codes, s->m->threads, &p, &reply));
    const int ran = at_special_ran(&reply, why, sizeof why, &broken);
    if (ran)
        AT_TRY(at_special_compare(t, &codes, p.tensors[at_op_tensor_index(p.op, "y")].data, s->m->threads, &found));
    pthread_mutex_lock(&s->lock);
    if (!ran)
        snprintf(s->why, sizeof s->why, "%s", why);
    s->declined |= !ran && !broken;
    s->broken |= broken;
    note(&found, &s->found);
    at_progress_step(&s->progress, codes.n, s->found.different - s->progress.failed, t->name);
    pthread_mutex_unlock(&s->lock);
    return AT_OK;
}

/* All arguments, a chunk at a time, up to one of which the variant says that it declines, or where it breaks. */
static at_status sweep(const struct measurement *m, struct sweep *s) {
    s->m = m;
    s->step = s->instruction->narrow ? 1 : m->step;
    s->arguments = (at_special_arguments(s->instruction) + s->step - 1) / s->step;
    pthread_mutex_init(&s->lock, NULL);
    at_progress_start(&s->progress, "study special", s->arguments);
    const at_status status = at_study_devices_run(m->devices, (s->arguments - 1) / CHUNK + 1, sweep_chunk, s);
    at_progress_end(&s->progress);
    pthread_mutex_destroy(&s->lock);
    return status;
}

static void print(const struct at_special_instruction *t, const struct at_special_measured *found) {
    const int digits = t->narrow ? 4 : 8;
    printf("%-22s %016" PRIx64 "  ", t->name, found->hash);
    if (!found->different)
        printf("as the model");
    else
        printf("DIFFERENT from the model in %" PRId64 " of %" PRId64 " results, first of %0*" PRIx32 ": %0*" PRIx32
               ", model %0*" PRIx32,
               found->different, found->arguments, digits, found->x, digits, found->y, digits, found->model);
    if (found->other_nans)
        printf("; %" PRId64 " NaNs are not %s", found->other_nans, t->narrow ? "7fff" : "7fffffff");
    printf("\n");
    fflush(stdout);
}

static at_status instruction(struct measurement *m, int variant, const struct at_special_instruction *t) {
    struct sweep s = { .instruction = t, .variant = variant };
    AT_TRY(sweep(m, &s));
    m->broken += s.broken;
    if (s.broken)
        printf("%-22s %s\n", t->name, s.why);
    if (s.broken || s.declined)
        return AT_OK;
    print(t, &s.found);
    if (m->file)
        fprintf(m->file, "%s %016" PRIx64 "\n", t->name, s.found.hash);
    m->measured++;
    m->different += s.found.different > 0;
    return AT_OK;
}

/* ---- all of them ---- */

static at_status variants(struct measurement *m, const char *glob) {
    const int n = at_runner_variant_count(at_study_devices_first(m->devices));
    for (int i = 0; i < n; i++) {
        const struct at_variant *v = at_runner_variant(at_study_devices_first(m->devices), i);
        if (strcmp(v->family, "special_function") != 0)
            continue;
        printf("%s/%s\n", v->family, v->name);
        for (int k = 0; k < at_special_instruction_count(); k++)
            if (fnmatch(glob, at_special_instruction_at(k)->name, 0) == 0)
                AT_TRY(instruction(m, i, at_special_instruction_at(k)));
    }
    if (m->measured + m->broken == 0)
        return AT_FAIL(AT_USAGE, "study special: this runner has no variant for an instruction that matches '%s'",
                       glob);
    return AT_OK;
}

static void head(FILE *file, const char *device) {
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day))
        strftime(date, sizeof date, "%Y-%m-%d", &day);
    fprintf(file,
            "# Every argument through the special-function unit of %s, %s: the hash of all 2^32\n"
            "# arguments (2^16 of f16 and bf16) and results of an instruction, NaNs as one class "
            "(verify/study/special/study_special.h).\n",
            device, date);
}

at_status at_special_measure(struct at_study_devices *devices, const char *glob, int64_t step, const char *path,
                             int threads, int *bad) {
    struct measurement m = { .devices = devices, .step = step, .threads = threads };
    struct at_atomic_file file = { 0 };
    at_status status = AT_OK;
    if (path)
        AT_TRY(at_atomic_open(path, &file));
    m.file = file.stream;
    printf("%s\n", devices->device);
    if (m.file)
        head(m.file, devices->device);
    AT_TRY_OUT(variants(&m, glob));
    printf("%d instruction%s on %s, %d differ\n", m.measured, m.measured == 1 ? "" : "s",
           step == 1 ? "all their arguments" : "some of their arguments", m.different);
    if (m.broken)
        printf("%d broke\n", m.broken);
    *bad += m.different + m.broken;
    if (path)
        status = at_atomic_commit(&file);
out:
    if (path)
        at_atomic_abandon(&file);
    return status;
}
