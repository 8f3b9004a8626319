/* Which jobs failed in an earlier run, and a plan of those alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/last_failed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/run/journal.h"

enum {
    KEY_BYTES = sizeof((struct at_result *)0)->case_id + sizeof((struct at_result *)0)->family +
                sizeof((struct at_result *)0)->variant
};

struct keys {
    char (*items)[KEY_BYTES];
    int64_t n;
};

static void make_key(char key[KEY_BYTES], const char *family, const char *variant, const char *case_id) {
    snprintf(key, KEY_BYTES, "%s/%s %s", family, variant, case_id);
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* One for each result: those of a job's tensors are alike, which no search minds. */
static at_status read_failed(const char *archive, int strict, struct keys *keys) {
    char path[4096], shard[32];
    struct at_run_record record;
    int finished;
    if (snprintf(path, sizeof path, "%s.jsonl", archive) >= (int)sizeof path)
        return AT_FAIL(AT_USAGE, "--last-failed: the path is too long");
    AT_TRY(at_journal_read(path, &record, shard, &finished));
    keys->items = calloc((size_t)record.n + 1, sizeof *keys->items);
    for (int64_t i = 0; keys->items && i < record.n; i++) {
        const struct at_result *r = &record.results[i];
        if (at_state_fails(r->state, r->expect, strict))
            make_key(keys->items[keys->n++], r->family, r->variant, r->case_id);
    }
    at_run_record_release(&record);
    if (!keys->items)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the jobs that failed in %s", archive);
    qsort(keys->items, (size_t)keys->n, sizeof *keys->items, by_text);
    return AT_OK;
}

static int has(const struct keys *keys, const struct at_variant *v, const struct at_case *c) {
    char key[KEY_BYTES];
    make_key(key, v->family, v->name, c->id);
    return bsearch(key, keys->items, (size_t)keys->n, sizeof *keys->items, by_text) != NULL;
}

/* Places in the plan are counted anew: it is a run of its own. What it goes on from, with --resume, must have the same ones, so
 * the variants are part of the hash. */
static void keep(const struct keys *keys, const struct at_runner *runner, struct at_plan *plan) {
    int64_t kept = 0;
    plan->n_jobs = 0;
    plan->cases_hash = AT_HASH_START;
    for (int64_t i = 0; i < plan->n_items; i++) {
        struct at_plan_case item = plan->items[i];
        int n = 0;
        for (int v = 0; v < item.n_variants; v++)
            if (has(keys, at_runner_variant(runner, item.variants[v]), item.c)) {
                const char *name = at_runner_variant(runner, item.variants[v])->name;
                item.variants[n++] = item.variants[v];
                plan->cases_hash = at_hash_bytes(name, strlen(name) + 1, plan->cases_hash);
            }
        if (n == 0) {
            free(item.variants);
            continue;
        }
        item.n_variants = n;
        item.first_index = plan->n_jobs;
        plan->n_jobs += n;
        plan->cases_hash = at_hash_bytes(item.c->id, strlen(item.c->id) + 1, plan->cases_hash);
        plan->items[kept++] = item;
    }
    plan->n_items = kept;
}

at_status at_last_failed_keep(const char *archive, int strict, const struct at_runner *runner, struct at_plan *plan) {
    struct keys keys = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(read_failed(archive, strict, &keys));
    keep(&keys, runner, plan);
    if (keys.n == 0)
        fprintf(stderr, "attest: nothing failed in %s\n", archive);
    else if (plan->n_jobs == 0)
        fprintf(stderr,
                "attest: of what failed in %s nothing is selected; --cases and GLOBs as in that run select it\n",
                archive);
out:
    free(keys.items);
    return status;
}
