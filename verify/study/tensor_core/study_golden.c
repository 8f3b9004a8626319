/* Golden vectors: what a device's tensor cores gave, as one line a stratum.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Operands follow from instruction, stratum and seed; of the results a hash of all and the first few are kept. A
 * machine without the device makes them again by the model and compares. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verify/study/tensor_core/study_tensor_core.h"

at_status at_tc_golden_write(const char *path, const struct at_tc_study_row *rows, int n, const char *device) {
    FILE *f = fopen(path, "w");
    if (!f)
        return AT_FAIL(AT_IO, "%s: cannot be written", path);
    fprintf(f,
            "# Results of tensor-core instructions on patterns of datasets/fill/tc_patterns.c; %s. "
            "SPDX-License-Identifier: "
            "Apache-2.0\n# instruction, stratum, seed, patterns, results that differ from the model, hash of all, the "
            "first as f32 words\n",
            device);
    for (int i = 0; i < n; i++) {
        const struct at_tc_study_row *r = &rows[i];
        fprintf(f, "%s %s %" PRIu64 " %" PRId64 " %" PRId64 " %016" PRIx64, r->instruction->name,
                at_tc_stratum_name(r->stratum), r->seed, r->patterns, r->mismatches, r->hash);
        for (size_t k = 0; k < sizeof r->first / sizeof *r->first; k++)
            fprintf(f, " %08" PRIx32, r->first[k]);
        fprintf(f, "\n");
    }
    const int broken = ferror(f);
    if (fclose(f) || broken)
        return AT_FAIL(AT_IO, "%s: writing failed; is the disk full?", path);
    return AT_OK;
}

static int stratum_named(const char *name) {
    for (int s = 0; s < AT_TC_STRATA; s++)
        if (strcmp(at_tc_stratum_name((enum at_tc_stratum)s), name) == 0)
            return s;
    return -1;
}

static at_status read_line(const char *path, int number, const char *line, struct at_tc_study_row *r) {
    char instruction[64], stratum[32];
    uint32_t *w = r->first;
    memset(r, 0, sizeof *r);
    const int n = sscanf(line,
                         "%63s %31s %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNx64 " %" SCNx32 " %" SCNx32 " %" SCNx32
                         " %" SCNx32 " %" SCNx32 " %" SCNx32 " %" SCNx32 " %" SCNx32,
                         instruction, stratum, &r->seed, &r->patterns, &r->mismatches, &r->hash, &w[0], &w[1], &w[2],
                         &w[3], &w[4], &w[5], &w[6], &w[7]);
    if (n != 14)
        return AT_FAIL(AT_USAGE, "%s:%d: found %d fields, wanted 14", path, number, n < 0 ? 0 : n);
    r->instruction = at_tc_instruction_find(instruction);
    const int s = stratum_named(stratum);
    if (!r->instruction || s < 0)
        return AT_FAIL(AT_USAGE, "%s:%d: no instruction %s with a stratum %s", path, number, instruction, stratum);
    if (r->patterns < 0 || r->patterns > (int64_t)1 << 32)
        return AT_FAIL(AT_USAGE, "%s:%d: %" PRId64 " patterns, wanted 0 to 2^32", path, number, r->patterns);
    r->stratum = (enum at_tc_stratum)s;
    return AT_OK;
}

at_status at_tc_golden_read(const char *path, struct at_tc_study_row *rows, int most, int *n) {
    at_status status = AT_OK;
    char line[512];
    int number = 0;
    FILE *f = fopen(path, "r");
    *n = 0;
    if (!f)
        return AT_FAIL(AT_IO, "%s: cannot be opened", path);
    while (fgets(line, sizeof line, f)) {
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (*n == most)
            AT_FAIL_OUT(AT_USAGE, "%s:%d: more than %d lines", path, number, most);
        AT_TRY_OUT(read_line(path, number, line, &rows[*n]));
        ++*n;
    }
out:
    fclose(f);
    return status;
}
