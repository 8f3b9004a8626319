/* attest study tensor-core: every instruction that the runner has, on patterns by stratum, against the model; then the
 * probes. Without a device: the model against golden vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/tensor_core/study_tensor_core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fnmatch.h>

#include "attest/env.h"
#include "datasets/language/case.h"
#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"

enum { MAX_ROWS = 1024 };

struct study {
    struct at_study_devices devices;
    int64_t patterns; /* of an instruction, all strata together */
    uint64_t seed;
    int threads, n;
    struct at_tc_study_row rows[MAX_ROWS];
};

/* ---- one stratum ---- */

struct operands {
    uint32_t *a, *b;
    float *c, *d;
    double *model;
};

static void release(struct operands *o) {
    free(o->a);
    free(o->b);
    free(o->c);
    free(o->d);
    free(o->model);
}

static at_status allocate(const struct at_tc_study_row *row, struct operands *o) {
    const size_t n = (size_t)row->patterns + 1, k = (size_t)row->instruction->k;
    *o = (struct operands){ malloc(n * k * 4), malloc(n * k * 4), malloc(n * 4), malloc(n * 4), malloc(n * 8) };
    if (!o->a || !o->b || !o->c || !o->d || !o->model)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld patterns", (long long)row->patterns);
    return AT_OK;
}

static int same(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

static void show_mismatch(struct at_tc_study_row *row, const struct operands *o, int64_t i) {
    const int k = row->instruction->k;
    size_t at = (size_t)snprintf(row->example, sizeof row->example, "pattern %lld: c %a, got %a, model %a; a b",
                                 (long long)i, (double)o->c[i], (double)o->d[i], o->model[i]);
    for (int t = 0; t < k && at + 24 < sizeof row->example; t++)
        at += (size_t)snprintf(row->example + at, sizeof row->example - at, " %x*%x", o->a[i * k + t], o->b[i * k + t]);
}

struct filling {
    const struct at_tc_study_row *row;
    struct operands *o;
};

static at_status fill(void *context, int64_t begin, int64_t end, int worker) {
    const struct filling *f = context;
    (void)worker;
    at_tc_pattern_rows(f->row->instruction, f->row->stratum, f->row->seed, begin, end, f->o->a, f->o->b, f->o->c);
    return AT_OK;
}

static at_status study_row(const struct study *s, struct at_runner *runner, int variant, struct at_tc_study_row *row) {
    const struct at_tc_instruction *t = row->instruction;
    struct operands o = { 0 };
    struct filling filling = { row, &o };
    at_status status = AT_OK;
    AT_TRY_OUT(allocate(row, &o));
    AT_TRY_OUT(at_parallel(row->patterns, 1024, s->threads, fill, &filling));
    AT_TRY_OUT(at_tc_study_launch(runner, variant, t, row->patterns, o.a, o.b, o.c, o.d));
    AT_TRY_OUT(at_tc_study_model(row, 1, s->threads, o.model));
    for (int64_t i = 0; i < row->patterns; i++) {
        if (same((double)o.d[i], o.model[i]))
            continue;
        if (row->mismatches++ == 0)
            show_mismatch(row, &o, i);
    }
    for (int64_t i = 0; i < row->patterns; i++)
        o.model[i] = (double)o.d[i];
    at_tc_study_digest(o.model, row->patterns, row);
out:
    release(&o);
    return status;
}

/* ---- runs ---- */

struct strata {
    const struct study *study;
    int variant;
    struct at_tc_study_row *rows; /* [AT_TC_STRATA] */
};

static at_status study_stratum(void *context, int64_t i, struct at_runner *runner) {
    const struct strata *s = context;
    return study_row(s->study, runner, s->variant, &s->rows[i]);
}

static at_status study_instruction(struct study *s, int variant, const struct at_tc_instruction *t, int *bad) {
    struct at_tc_stratum_row printed[AT_TC_STRATA];
    struct strata strata = { s, variant, &s->rows[s->n] };
    if (s->n + AT_TC_STRATA > MAX_ROWS)
        return AT_FAIL(AT_NO_MEMORY, "study: more than %d rows", (int)MAX_ROWS);
    for (int k = 0; k < AT_TC_STRATA; k++)
        strata.rows[k] =
            (struct at_tc_study_row){ t, (enum at_tc_stratum)k, s->seed, .patterns = s->patterns / AT_TC_STRATA };
    AT_TRY(at_study_devices_run(&s->devices, AT_TC_STRATA, study_stratum, &strata));
    for (int k = 0; k < AT_TC_STRATA; k++) {
        *bad += strata.rows[k].mismatches > 0;
        printed[k] = at_tc_study_stratum(&strata.rows[k]);
    }
    s->n += AT_TC_STRATA;
    *bad += !at_tc_study_print(printed, AT_TC_STRATA, stdout);
    return AT_OK;
}

static at_status study_device(struct study *s, const struct at_args *args, int *bad) {
    const char *glob = at_args_get(args, "--instructions"), *golden = at_args_get(args, "--golden");
    const char *out = at_args_get(args, "--out");
    const char *device = s->devices.device;
    const char *written[] = { golden, out };
    struct at_tc_probe_row probes[AT_TC_PROBES];
    int ran = 0, wrong = 0;
    AT_TRY(at_atomic_check_files(written, 2, NULL, 0));
    printf("%s\n", device);
    at_tc_study_head(stdout);
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        const struct at_tc_instruction *t = at_tc_instruction_at(i);
        if (glob && fnmatch(glob, t->name, 0) != 0)
            continue;
        int variant;
        AT_TRY(at_tc_study_variant(&s->devices, t, &variant));
        if (variant >= 0)
            AT_TRY(study_instruction(s, variant, t, bad));
    }
    if (s->n == 0)
        return AT_FAIL(AT_USAGE, "study: this runner has no variant for an instruction that matches '%s'",
                       glob ? glob : "*");
    printf("\n");
    AT_TRY(at_tc_study_probes(&s->devices, probes, &ran, &wrong));
    printf("%d probes, %d not as predicted\n", ran, wrong);
    *bad += wrong;
    if (golden)
        AT_TRY(at_tc_golden_write(golden, s->rows, s->n, device));
    return out ? at_tc_study_archive(out, device, s->seed, s->rows, s->n, probes, ran) : AT_OK;
}

/* The model makes the golden results again: those of a file, or, "", the ones that come with attest. */
static at_status study_golden(struct study *s, const char *path, int *bad) {
    at_status status = AT_OK;
    double *values = NULL;
    char own[4200];
    snprintf(own, sizeof own, "%s/measurements/h200_tensor_core.txt", at_datasets_dir());
    path = *path ? path : own;
    AT_TRY(at_tc_golden_read(path, s->rows, MAX_ROWS, &s->n));
    for (int i = 0; i < s->n; i++) {
        struct at_tc_study_row made = s->rows[i];
        free(values);
        values = malloc(((size_t)made.patterns + 1) * sizeof *values);
        if (!values)
            AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory for %lld patterns", (long long)made.patterns);
        AT_TRY_OUT(at_tc_study_model(&made, 0, s->threads, values));
        at_tc_study_digest(values, made.patterns, &made);
        const int equal = made.hash == s->rows[i].hash && !memcmp(made.first, s->rows[i].first, sizeof made.first);
        printf("%-30s %-14s %9lld %s\n", made.instruction->name, at_tc_stratum_name(made.stratum),
               (long long)made.patterns, equal ? "as on the device" : "DIFFERENT from the device");
        *bad += !equal;
    }
    printf("%d strata of golden vectors, %d differ\n", s->n, *bad);
    if (s->n == 0)
        AT_FAIL_OUT(AT_USAGE, "%s: holds no vectors", path);
out:
    free(values);
    return status;
}

static at_status study(const struct at_args *args, int *bad) {
    const char *runner = at_args_get(args, "--runner"), *golden = at_args_get(args, "--golden");
    int64_t seed;
    at_status status = AT_OK;
    struct study *s = calloc(1, sizeof *s);
    if (!s)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory");
    s->threads = at_threads();
    AT_TRY_OUT(at_args_int(args, "--patterns", AT_TC_STRATA, (int64_t)1 << 26, (int64_t)1 << 20, &s->patterns));
    AT_TRY_OUT(at_args_int(args, "--seed", 0, INT64_MAX, 1, &seed));
    s->seed = (uint64_t)seed;
    if (!runner && at_args_get(args, "--out"))
        AT_FAIL_OUT(AT_USAGE, "study tensor-core: --out wants --runner R: without one there is nothing new to keep");
    if (!runner && !golden)
        AT_FAIL_OUT(AT_USAGE, "study tensor-core: wants --runner R, or --golden FILE for the model against a file");
    if (runner && golden && !*golden)
        AT_FAIL_OUT(AT_USAGE, "study tensor-core: with --runner, --golden wants the FILE to write");
    if (runner) {
        AT_TRY_OUT(at_study_devices_open(args, &s->devices));
        AT_TRY_OUT(study_device(s, args, bad));
    } else {
        AT_TRY_OUT(study_golden(s, golden, bad));
    }
out:
    at_study_devices_close(&s->devices);
    free(s);
    return status;
}

static int run_study(const struct at_args *args) {
    int bad = 0;
    const at_status status = study(args, &bad);
    if (status != AT_OK)
        return at_report_failure(status);
    return bad ? 1 : 0;
}

static const struct at_content *const contents[] = { &at_content_tensor_core, &at_content_probes, NULL };
const struct at_study at_study_tensor_core = { .name = "tensor-core", .run = run_study, .contents = contents };
