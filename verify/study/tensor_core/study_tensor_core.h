/* attest study tensor-core: hardware against the model, pattern by pattern.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_TENSOR_CORE_H
#define AT_STUDY_TENSOR_CORE_H

#include <stdio.h>

#include "datasets/fill/tc_patterns.h"
#include "verify/cli/options.h"
#include "verify/study/study_devices.h"
#include "verify/study/study_list.h"
#include "verify/runner/runner.h"

/* Patterns of one instruction and stratum: what ran, and what neighbours of the model would have said. */
struct at_tc_study_row {
    const struct at_tc_instruction *instruction;
    enum at_tc_stratum stratum;
    uint64_t seed;
    int64_t patterns, mismatches;
    uint64_t hash;                       /* of the hardware's results as f32 words, NaNs all one */
    uint32_t first[8];                   /* the first of them */
    int64_t neighbour[AT_TC_NEIGHBOURS]; /* patterns on which it differs from the model; -1: it cannot */
    char example[512];                   /* the first mismatch; "" when there is none */
};

/* Results for the patterns of a row (instruction, stratum, seed, patterns): the model's, and with `neighbours` in how
 * many each of those differs, which takes eight times as long. values: patterns doubles. Over threads; the same for any
 * number of them. AT_NO_MEMORY. */
at_status at_tc_study_model(struct at_tc_study_row *row, int neighbours, int threads, double *values);
/* Hash and first results of values. */
void at_tc_study_digest(const double *values, int64_t n, struct at_tc_study_row *row);

/* The runners' variant that launches an instruction, -1 if none does; one that fails is named on stderr. A runner that dies or
 * hangs is no answer: AT_CRASHED, AT_HUNG, AT_ENVIRONMENT. */
at_status at_tc_study_variant(struct at_study_devices *devices, const struct at_tc_instruction *instruction,
                              int *variant);
/* Launches the patterns (codes a, b [patterns k], addends c [patterns]) and brings the results back. */
at_status at_tc_study_launch(struct at_runner *runner, int variant, const struct at_tc_instruction *instruction,
                             int64_t patterns, uint32_t *a, uint32_t *b, float *c, float *d);

struct at_tc_probe_row {
    char name[8], what[48], instruction[40];
    double predicted, model, runner;
    int right;
};
enum { AT_TC_PROBES = 64 };
/* The probes: a few operands each, whose result tells one parameter of the model from its neighbours. Prints a line for
 * each, and fills rows[*ran] for those that the runner has a variant for; *wrong counts results that are not as
 * predicted. */
at_status at_tc_study_probes(struct at_study_devices *devices, struct at_tc_probe_row rows[AT_TC_PROBES], int *ran,
                             int *wrong);

/* A row as an archive has it; neighbours -1: it cannot be told. */
struct at_tc_stratum_row {
    char instruction[40], stratum[32], example[512];
    uint64_t seed, hash;
    int64_t patterns, mismatches, kept_less, kept_more, block_half, block_twice, other_rounding, floor_less, floor_more,
        addend_leading;
};
struct at_tc_stratum_row at_tc_study_stratum(const struct at_tc_study_row *row);
/* The table: its head; and a line for the n rows of one instruction with its mismatches. 0 when some neighbour is told
 * in less than 1 % of every stratum. */
void at_tc_study_head(FILE *out);
int at_tc_study_print(const struct at_tc_stratum_row *rows, int64_t n, FILE *out);
/* verify/archive: /studies/tensor_core and /studies/probes. */
at_status at_tc_study_archive(const char *path, const char *device, uint64_t seed, const struct at_tc_study_row *rows,
                              int n, struct at_tc_probe_row *probes, int n_probes);

/* A line of a file of golden vectors for each row, and back; `#` begins a comment. */
at_status at_tc_golden_write(const char *path, const struct at_tc_study_row *rows, int n, const char *device);
at_status at_tc_golden_read(const char *path, struct at_tc_study_row *rows, int most, int *n);

extern const struct at_study at_study_tensor_core;
/* clang-format off */
#define AT_STUDY_TENSOR_CORE_OPTIONS                                                                                         \
    { "--instructions", "GLOB", "tensor-core: which (default: all that the runner has); special: which, as PTX names them: 'rcp*'" },                                  \
    { "--patterns", "N", "tensor-core: of each instruction, over all strata (default 1048576)" },                           \
    { "--golden", "[FILE]", "tensor-core: with a runner, write its results; without, the model against the file. special: the same, hashes over all arguments. Without FILE: those of an H200 that come with attest; with a runner nothing is written" }
/* clang-format on */

extern const struct at_table at_study_table_tensor_core, at_study_table_probes;
extern const struct at_content at_content_tensor_core, at_content_probes;

#endif
