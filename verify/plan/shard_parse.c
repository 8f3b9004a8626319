/* Which shard this is: by the command line, or by what a test runner or a Slurm array leaves in the environment.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify/plan/plan.h"

/* 1 and *value for a whole number up to a million that is set; 0 for a name that is not set, or empty, and -1 else. */
static int env_int(const char *name, int *value) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return 0;
    long parsed = strtol(text, &end, 10);
    if (*end || parsed < 0 || parsed > 1000000)
        return -1;
    *value = (int)parsed;
    return 1;
}

/* The number of shards that `name` asks for; 0 when it does not. What cannot be read must not pass for "not set": then
 * every process would judge everything. */
static at_status env_count(const char *name, int *shards) {
    *shards = 0;
    if (env_int(name, shards) < 0)
        return AT_FAIL(AT_USAGE, "%s is \"%.40s\", wanted a whole number", name, getenv(name));
    return AT_OK;
}

static at_status shard_of_text(const char *text, int *shard, int *shards) {
    long long i, n;
    char tail;
    if (sscanf(text, "%lld/%lld%c", &i, &n, &tail) != 2 || i < 1 || i > n || n > INT_MAX)
        return AT_FAIL(AT_USAGE, "--shard: found \"%s\", wanted i/N with 1 <= i <= N", text);
    *shard = (int)i - 1;
    *shards = (int)n;
    return AT_OK;
}

/* Tasks MIN, MIN + STEP, ... of a Slurm array. */
static at_status shard_of_array(int *shard, int shards) {
    int id, first, last, step = 1;
    if (env_int("SLURM_ARRAY_TASK_ID", &id) != 1 || env_int("SLURM_ARRAY_TASK_MIN", &first) != 1)
        return AT_FAIL(AT_USAGE, "SLURM_ARRAY_TASK_COUNT is %d, but SLURM_ARRAY_TASK_ID and _MIN are no numbers",
                       shards);
    if (env_int("SLURM_ARRAY_TASK_STEP", &step) < 0 || step < 1)
        return AT_FAIL(AT_USAGE, "SLURM_ARRAY_TASK_STEP is no whole number above 0");
    if (env_int("SLURM_ARRAY_TASK_MAX", &last) == 1 && last != first + (int64_t)(shards - 1) * step)
        return AT_FAIL(AT_USAGE,
                       "the Slurm array has gaps (%d tasks from %d to %d): wanted --array=A-B, or --shard i/N on the "
                       "command line",
                       shards, first, last);
    if (id < first || (id - first) % step || (id - first) / step >= shards)
        return AT_FAIL(AT_USAGE, "SLURM_ARRAY_TASK_ID %d is outside the array of %d tasks from %d", id, shards, first);
    *shard = (id - first) / step;
    return AT_OK;
}

at_status at_shard_parse(const char *text, int *shard, int *shards) {
    *shard = 0;
    *shards = 1;
    if (text)
        return shard_of_text(text, shard, shards);
    AT_TRY(env_count("TEST_TOTAL_SHARDS", shards));
    if (*shards > 0) {
        if (env_int("TEST_SHARD_INDEX", shard) != 1 || *shard >= *shards)
            return AT_FAIL(AT_USAGE, "TEST_TOTAL_SHARDS is %d, but TEST_SHARD_INDEX is not in 0..%d", *shards,
                           *shards - 1);
        return AT_OK;
    }
    AT_TRY(env_count("SLURM_ARRAY_TASK_COUNT", shards));
    if (*shards > 0)
        return shard_of_array(shard, *shards);
    *shards = 1; /* a count of 0 in the environment means no sharding */
    return AT_OK;
}
