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
#include "verify/result/atomic_file.h"
#include "verify/study/special/study_exp2.h"

enum { PIECE = 1 << 14, CHUNK = 1 << 27 };

/* ---- all arguments ---- */

struct sweep_work {
    const struct at_special_instruction *instruction;
    int64_t first;
    struct at_special_sweep *of_worker;
};

static at_status sweep_piece(void *context, int64_t begin, int64_t end, int worker) {
    const struct sweep_work *w = context;
    const struct at_special_instruction *t = w->instruction;
    const int other_too = t->ftz && !t->narrow;
    uint32_t x[PIECE] = { 0 }, y[PIECE], other[PIECE];
    struct at_special_sweep *to = &w->of_worker[worker];
    for (int64_t i = begin; i < end; i++)
        x[i - begin] = (uint32_t)(w->first + i);
    at_special_results(t, end - begin, x, y);
    if (other_too)
        at_special_each(t->function, NULL, 0, end - begin, x, other);
    for (int64_t i = 0; i < end - begin; i++) {
        to->hash += at_special_mixed(x[i], y[i]);
        to->changed += other_too && y[i] != other[i];
    }
    return AT_OK;
}

at_status at_special_sweep(const struct at_special_instruction *instruction, int threads,
                           struct at_special_sweep *sweep) {
    const int64_t arguments = at_special_arguments(instruction), chunk = arguments < CHUNK ? arguments : CHUNK;
    struct sweep_work w = { .instruction = instruction };
    struct at_progress progress;
    at_status status = AT_OK;
    memset(sweep, 0, sizeof *sweep);
    w.of_worker = calloc((size_t)threads, sizeof *w.of_worker);
    if (!w.of_worker)
        return AT_FAIL(AT_NO_MEMORY, "study special: no memory");
    at_progress_start(&progress, "study special", arguments);
    for (; w.first < arguments && status == AT_OK; w.first += chunk) {
        status = at_parallel(chunk, PIECE, threads, sweep_piece, &w);
        at_progress_step(&progress, chunk, 0, instruction->name);
    }
    at_progress_end(&progress);
    for (int i = 0; i < threads; i++) {
        sweep->hash += w.of_worker[i].hash;
        sweep->changed += w.of_worker[i].changed;
    }
    free(w.of_worker);
    return status;
}

/* ---- against a device's hashes ---- */

static void print_golden(const char *instruction, uint64_t made, uint64_t hash) {
    printf("%-22s %016" PRIx64 "  %s", instruction, made,
           made == hash ? "as on the device" : "DIFFERENT from the device");
}

static at_status golden_line(const char *name, uint64_t hash, int threads, int *compared, int *bad) {
    struct at_special_sweep sweep;
    const struct at_special_instruction *instruction = at_special_instruction_find(name);
    if (!instruction) {
        printf("%-22s %016" PRIx64 "  no model\n", name, hash);
        return AT_OK;
    }
    AT_TRY(at_special_sweep(instruction, threads, &sweep));
    print_golden(name, sweep.hash, hash);
    if (instruction->ftz && !instruction->narrow)
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
    for (int k = 0; k < at_special_instruction_count(); k++) {
        const struct at_special_instruction *t = at_special_instruction_at(k);
        if (t->ftz || t->narrow || fnmatch(glob, t->name, 0) != 0)
            continue;
        seen++;
        AT_TRY(at_special_neighbours(t->function, threads, &found));
        printf("%s: %d rows; of %" PRId64 " arguments none tells a bias from %" PRId64 " to %" PRId64 "; others:\n",
               t->name, at_special_shapes[t->function].n_rows, found.items[0].of, found.least_bias, found.most_bias);
        for (int i = 0; i < AT_SPECIAL_NEIGHBOURS; i++) {
            const struct at_special_neighbour *n = &found.items[i];
            const int told = n->of_each_row ? n->least > 0 : n->told > 0;
            printf("  %-10s  %9" PRId64 " tell, %7" PRId64 " in the row with fewest%s\n", n->name, n->told, n->least,
                   told ? "" : "  NOT TOLD");
            *bad += !told;
        }
        fflush(stdout);
    }
    return seen ? AT_OK : AT_FAIL(AT_USAGE, "study special: no instruction of the model matches '%s'", glob);
}

/* The unit itself, where there is a runner. */
static at_status measure(const struct at_args *args, const char *glob, int *bad) {
    const char *path = at_args_get(args, "--golden");
    struct at_study_devices devices;
    int64_t step;
    if (at_args_has(args, "--out"))
        return AT_FAIL(AT_USAGE, "study special: --golden with --runner writes a file of hashes, no archive: no --out");
    AT_TRY(at_args_int(args, "--step", 1, ((int64_t)1 << 32) - 1, 1, &step));
    if (*path && step > 1)
        return AT_FAIL(AT_USAGE, "study special: a file of hashes is of all arguments: --golden FILE or --step");
    if (*path)
        AT_TRY(at_atomic_check(path));
    AT_TRY(at_study_devices_open(args, &devices));
    const at_status status = at_special_measure(&devices, glob, step, *path ? path : NULL, at_threads(), bad);
    at_study_devices_close(&devices);
    return status;
}

static at_status study(const struct at_args *args, int *bad) {
    const char *golden = at_args_get(args, "--golden"), *given = at_args_get(args, "--instructions");
    const char *glob = given ? given : "*";
    char path[4200];
    if (golden && at_args_has(args, "--runner")) {
        AT_TRY(measure(args, glob, bad));
    } else if (at_args_has(args, "--runner") || at_args_has(args, "--out") || at_args_has(args, "--step")) {
        return AT_FAIL(AT_USAGE,
                       "study special: --neighbours, and --golden without --runner, are about the model on all "
                       "arguments: no --runner, --out, --step");
    } else if (golden) {
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
