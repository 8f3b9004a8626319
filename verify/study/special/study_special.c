/* attest study special: variants of exp2 over all of f32; the model of every function against what a device gave; its neighbours.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/special/study_special.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "datasets/language/case.h"
#include "verify/cli/commands.h"
#include "verify/cli/progress.h"
#include "verify/study/special/study_exp2.h"

enum { PIECE = 1 << 14, CHUNK = 1 << 27 };
static const int64_t CODES = (int64_t)1 << 32;

/* ---- all arguments ---- */

struct sweep_work {
    enum at_special_function function;
    int ftz;
    int64_t first;
    struct at_special_sweep *of_worker;
};

static at_status sweep_piece(void *context, int64_t begin, int64_t end, int worker) {
    const struct sweep_work *w = context;
    uint32_t x[PIECE] = { 0 }, y[PIECE], other[PIECE];
    struct at_special_sweep *to = &w->of_worker[worker];
    for (int64_t i = begin; i < end; i++)
        x[i - begin] = (uint32_t)(w->first + i);
    at_special_each(w->function, NULL, w->ftz, end - begin, x, y);
    if (w->ftz)
        at_special_each(w->function, NULL, 0, end - begin, x, other);
    for (int64_t i = 0; i < end - begin; i++) {
        to->hash += at_special_mixed(x[i], y[i]);
        to->changed += w->ftz && y[i] != other[i];
    }
    return AT_OK;
}

at_status at_special_sweep(enum at_special_function function, int ftz, int threads, struct at_special_sweep *sweep) {
    struct sweep_work w = { .function = function, .ftz = ftz };
    struct at_progress progress;
    at_status status = AT_OK;
    memset(sweep, 0, sizeof *sweep);
    w.of_worker = calloc((size_t)threads, sizeof *w.of_worker);
    if (!w.of_worker)
        return AT_FAIL(AT_NO_MEMORY, "study special: no memory");
    at_progress_start(&progress, "study special", CODES);
    for (; w.first < CODES && status == AT_OK; w.first += CHUNK) {
        status = at_parallel(CHUNK, PIECE, threads, sweep_piece, &w);
        at_progress_step(&progress, CHUNK, 0, at_special_name(function));
    }
    at_progress_end(&progress);
    for (int i = 0; i < threads; i++) {
        sweep->hash += w.of_worker[i].hash;
        sweep->changed += w.of_worker[i].changed;
    }
    free(w.of_worker);
    return status;
}

/* ---- against a device ---- */

struct instruction {
    char name[32]; /* "ex2.approx.ftz.f32" */
};

static struct instruction instruction_of(int function, int ftz) {
    struct instruction i;
    snprintf(i.name, sizeof i.name, "%s.approx%s.f32", at_special_name((enum at_special_function)function),
             ftz ? ".ftz" : "");
    return i;
}

/* Which function, and whether with ftz; -1 for what the model does not have. */
static int function_of(const char *instruction, int *ftz) {
    for (int f = 0; f < AT_SPECIAL_FUNCTIONS; f++)
        for (*ftz = 0; *ftz < 2; ++*ftz)
            if (strcmp(instruction_of(f, *ftz).name, instruction) == 0)
                return f;
    return -1;
}

static const struct {
    const char *name;
    uint16_t (*result)(uint16_t x);
} narrow[] = {
    { "ex2.approx.f16", at_special_ex2_f16 },           { "ex2.approx.f16x2", at_special_ex2_f16 },
    { "ex2.approx.ftz.bf16", at_special_ex2_bf16_ftz }, { "ex2.approx.ftz.bf16x2", at_special_ex2_bf16_ftz },
    { "tanh.approx.f16", at_special_tanh_f16 },         { "tanh.approx.f16x2", at_special_tanh_f16 },
    { "tanh.approx.bf16", at_special_tanh_bf16 },       { "tanh.approx.bf16x2", at_special_tanh_bf16 },
};

/* *hash of the results in a format of 16 bits; 0: the model does not have the instruction. */
static int narrow_hash(const char *instruction, uint64_t *hash) {
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        if (strcmp(narrow[i].name, instruction) != 0)
            continue;
        *hash = 0;
        for (uint32_t x = 0; x < 1 << 16; x++)
            *hash += at_special_mixed(x, narrow[i].result((uint16_t)x));
        return 1;
    }
    return 0;
}

static void print_golden(const char *instruction, uint64_t made, uint64_t hash) {
    printf("%-22s %016" PRIx64 "  %s", instruction, made,
           made == hash ? "as on the device" : "DIFFERENT from the device");
}

static at_status golden_line(const char *instruction, uint64_t hash, int threads, int *compared, int *bad) {
    struct at_special_sweep sweep;
    int ftz = 0;
    const int function = function_of(instruction, &ftz);
    if (function >= 0) {
        AT_TRY(at_special_sweep((enum at_special_function)function, ftz, threads, &sweep));
    } else if (!narrow_hash(instruction, &sweep.hash)) {
        printf("%-22s %016" PRIx64 "  no model\n", instruction, hash);
        return AT_OK;
    }
    print_golden(instruction, sweep.hash, hash);
    if (function >= 0 && ftz)
        printf("; ftz changes %" PRId64 " results", sweep.changed);
    printf("\n");
    fflush(stdout);
    ++*compared;
    *bad += sweep.hash != hash;
    return AT_OK;
}

at_status at_special_golden(const char *path, const char *glob, int threads, int *bad) {
    char line[256], name[64], more;
    int compared = 0, number = 0;
    uint64_t hash;
    at_status status = AT_OK;
    FILE *file = fopen(path, "r");
    if (!file)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        number++;
        if (*line == '#' || *line == '\n')
            continue;
        if (sscanf(line, "%63s %16" SCNx64 " %c", name, &hash, &more) != 2)
            AT_FAIL_OUT(AT_USAGE, "%s:%d: wanted an instruction and its hash of 16 hexadecimal digits", path, number);
        if (fnmatch(glob, name, 0) == 0)
            AT_TRY_OUT(golden_line(name, hash, threads, &compared, bad));
    }
    if (!compared)
        AT_FAIL_OUT(AT_USAGE, "%s: holds no instruction of the model that matches '%s'", path, glob);
    printf("%d instruction%s on all their arguments, %d differ\n", compared, compared == 1 ? "" : "s", *bad);
out:
    fclose(file);
    return status;
}

/* ---- neighbours ---- */

static at_status neighbours(const char *glob, int threads, int *bad) {
    struct at_special_neighbourhood found;
    int seen = 0;
    for (int f = 0; f < AT_SPECIAL_FUNCTIONS; f++) {
        if (fnmatch(glob, instruction_of(f, 0).name, 0) != 0)
            continue;
        seen++;
        AT_TRY(at_special_neighbours((enum at_special_function)f, threads, &found));
        printf("%s: %d rows; of %" PRId64 " arguments none tells a bias from %" PRId64 " to %" PRId64 "; others:\n",
               instruction_of(f, 0).name, at_special_shapes[f].n_rows, found.items[0].of, found.least_bias,
               found.most_bias);
        for (int i = 0; i < AT_SPECIAL_NEIGHBOURS; i++) {
            const struct at_special_neighbour *n = &found.items[i];
            printf("  %-10s  %9" PRId64 " tell, %7" PRId64 " in the row with fewest%s\n", n->name, n->told, n->least,
                   n->told ? "" : "  NOT TOLD");
            *bad += !n->told;
        }
        fflush(stdout);
    }
    return seen ? AT_OK : AT_FAIL(AT_USAGE, "study special: no instruction of the model matches '%s'", glob);
}

static at_status study(const struct at_args *args, int *bad) {
    const char *golden = at_args_get(args, "--golden"), *given = at_args_get(args, "--instructions");
    const char *glob = given ? given : "*";
    char path[4200];
    if (at_args_has(args, "--runner") || at_args_has(args, "--out") || at_args_has(args, "--step"))
        return AT_FAIL(AT_USAGE, "study special: --golden and --neighbours are about the model on all arguments: no "
                                 "--runner, --out, --step");
    if (golden) {
        snprintf(path, sizeof path, "%s/measurements/h200_special.txt", at_datasets_dir());
        AT_TRY(at_special_golden(*golden ? golden : path, glob, at_threads(), bad));
    }
    return at_args_has(args, "--neighbours") ? neighbours(glob, at_threads(), bad) : AT_OK;
}

static int run_study(const struct at_args *args) {
    int bad = 0;
    if (!at_args_has(args, "--golden") && !at_args_has(args, "--neighbours"))
        return at_study_exp2_run(args);
    const at_status status = study(args, &bad);
    return status != AT_OK ? at_report_failure(status) : bad != 0;
}

static const struct at_content *const contents[] = { &at_content_exp2, NULL };
const struct at_study at_study_special = { .name = "special", .run = run_study, .contents = contents };
