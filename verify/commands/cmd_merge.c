/* attest merge: the shards of a run become the archive that one process would have written.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/archive/witness.h"
#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/cli/progress.h"
#include "verify/commands/content.h"
#include "verify/run/journal.h"
#include "verify/result/result_heap.h"

static const struct at_option options[] = {
    { "--out", "RUN.h5", "the archive to write" },
    { NULL, NULL, NULL },
};

/* What a shard's journal says of the run, and whether the journal ended. */
struct shard {
    struct at_run_record head, witness; /* no results; where what it kept lies */
    char text[32];                      /* "2/5" */
    int finished;
};

struct shards {
    const struct at_args *args;
    struct at_run_record whole; /* request, provenance, folders of witnesses; no results */
    struct at_result_heap heap;
    pthread_mutex_t lock; /* of the heap and the progress, while shards are read by several threads */
    struct at_progress progress;
    struct shard *shard;
    int n, parts;
};

/* A result of the shard that is being read. */
struct reading {
    struct shards *s;
    const struct at_run_record *witness;
};

static at_status take(void *context, const struct at_result *result) {
    const struct reading *r = context;
    char path[4352], packed[AT_PACKED_RESULT_BYTES];
    if (result->kept)
        AT_TRY(at_witness_find(r->witness, result, path, sizeof path));
    const size_t bytes = at_result_pack(result, packed);
    pthread_mutex_lock(&r->s->lock);
    const at_status status = at_result_heap_add_packed(&r->s->heap, result, packed, bytes);
    pthread_mutex_unlock(&r->s->lock);
    return status;
}

/* An archive does not say which shard it is; its journal, beside it, does. What was kept lies there too. */
static at_status read_shard(const char *path, struct shards *s, struct shard *shard) {
    char journal[4096], witness[4096];
    struct reading reading = { s, &shard->witness };
    if (snprintf(journal, sizeof journal, "%s.jsonl", path) >= (int)sizeof journal)
        return AT_FAIL(AT_USAGE, "merge: the path is too long");
    AT_TRY(at_witness_folder(path, witness, sizeof witness));
    AT_TRY(at_run_record_add_witness(&shard->witness, witness));
    AT_TRY(at_journal_visit(journal, take, &reading, &shard->head, shard->text, &shard->finished));
    return shard->finished ? AT_OK
                           : AT_FAIL(AT_USAGE, "%s: this shard's run did not end; finish it with --resume", journal);
}

static at_status read_shards(void *context, int64_t begin, int64_t end, int worker) {
    struct shards *s = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        AT_TRY(read_shard(s->args->words[i], s, &s->shard[i]));
        pthread_mutex_lock(&s->lock);
        at_progress_step(&s->progress, 1, 0, s->args->words[i]);
        pthread_mutex_unlock(&s->lock);
    }
    return AT_OK;
}

/* All are of one run, whose request and provenance the first gives. */
static at_status join_heads(struct shards *s) {
    struct at_run_record *first = &s->shard[0].head;
    s->whole.request = first->request;
    s->whole.provenance = first->provenance;
    first->request = first->provenance = NULL;
    for (int i = 0; i < s->n; i++) {
        if (i > 0)
            AT_TRY(at_run_record_same_run(&s->whole, &s->shard[i].head, i));
        AT_TRY(at_run_record_add_witness(&s->whole, s->shard[i].witness.witness[0]));
    }
    return AT_OK;
}

static at_status check_parts(const struct at_args *args, struct shards *s) {
    char *seen = NULL;
    at_status status = AT_OK;
    for (int i = 0; i < s->n; i++) {
        int shard, parts;
        if (sscanf(s->shard[i].text, "%d/%d", &shard, &parts) != 2 || shard < 1 || shard > parts)
            AT_FAIL_OUT(AT_USAGE, "%s: is a whole run, not a shard", args->words[i]);
        if (!seen) {
            s->parts = parts;
            seen = calloc((size_t)parts + 1, 1);
            if (!seen)
                AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d shards", parts);
        }
        if (parts != s->parts)
            AT_FAIL_OUT(AT_USAGE, "%s: is a shard of %d, the others are of %d", args->words[i], parts, s->parts);
        if (seen[shard]++)
            AT_FAIL_OUT(AT_USAGE, "%s: shard %d/%d is given twice", args->words[i], shard, parts);
    }
    for (int k = 1; seen && k <= s->parts; k++)
        if (!seen[k])
            AT_FAIL_OUT(AT_USAGE, "merge: shard %d/%d is missing", k, s->parts);
out:
    free(seen);
    return status;
}

static at_status check_out(const struct at_args *args) {
    const char *out = at_args_get(args, "--out");
    if (!out)
        return AT_FAIL(AT_USAGE, "merge: wants --out RUN.h5");
    return at_atomic_check_files(&out, 1, args->words, args->n_words);
}

/* A result for the archive, which asks for each once. */
static at_status next_result(void *context, int64_t i, const struct at_result **result) {
    enum { ROWS = 4096 };
    struct shards *s = context;
    if (i % ROWS == ROWS - 1)
        at_progress_step(&s->progress, ROWS, 0, "");
    return at_result_heap_get(&s->heap, i, result);
}

static at_status read_all(struct shards *s) {
    at_progress_start(&s->progress, "shards read", s->n);
    const at_status status = at_parallel(s->n, 1, at_threads(), read_shards, s);
    at_progress_end(&s->progress);
    return status;
}

static at_status write_all(struct shards *s, const char *out) {
    const struct at_result_source source = { s->heap.n, next_result, s };
    at_progress_start(&s->progress, "results written", s->heap.n);
    const at_status status = at_archive_write_from(&s->whole, &source, out);
    at_progress_end(&s->progress);
    return status;
}

static at_status merge(const struct at_args *args, struct shards *s) {
    const char *out = at_args_get(args, "--out");
    AT_TRY(check_out(args));
    s->heap.scratch.beside = out;
    AT_TRY(read_all(s));
    AT_TRY(join_heads(s));
    AT_TRY(check_parts(args, s));
    AT_TRY(at_result_heap_sort(&s->heap));
    AT_TRY(write_all(s, out));
    printf("%s: %lld results of %d shards\n", out, (long long)s->heap.n, s->parts);
    return AT_OK;
}

static at_status merge_content(const struct at_content *content, const struct at_args *args) {
    const char *out = at_args_get(args, "--out");
    AT_TRY(check_out(args));
    if (!content->merge)
        return AT_FAIL(AT_USAGE, "%s: has %s, which are not written in shards", args->words[0], content->what);
    AT_TRY(content->merge(args->words, args->n_words, out));
    printf("%s: %s of %d shards\n", out, content->what, args->n_words);
    return AT_OK;
}

static int merge_run(const struct at_args *args) {
    struct shards s = { .args = args, .n = args->n_words };
    at_status status = AT_OK;
    at_run_record_init(&s.whole);
    pthread_mutex_init(&s.lock, NULL);
    s.shard = calloc((size_t)s.n, sizeof *s.shard);
    if (!s.shard)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d shards", s.n);
    for (int i = 0; i < s.n; i++) {
        at_run_record_init(&s.shard[i].head);
        at_run_record_init(&s.shard[i].witness);
    }
    status = merge(args, &s);
out:
    for (int i = 0; s.shard && i < s.n; i++) {
        at_run_record_release(&s.shard[i].head);
        at_run_record_release(&s.shard[i].witness);
    }
    free(s.shard);
    pthread_mutex_destroy(&s.lock);
    at_result_heap_release(&s.heap);
    at_run_record_release(&s.whole);
    return status == AT_OK ? 0 : at_report_failure(status);
}

/* The first file says what the others must be. */
static int run(const struct at_args *args) {
    const struct at_content *c;
    for (int i = 0; (c = at_content_at(i)); i++)
        if (c->is && c->is(args->words[0])) {
            const at_status status = merge_content(c, args);
            return status == AT_OK ? 0 : at_report_failure(status);
        }
    return merge_run(args);
}

const struct at_command at_command_merge = {
    .name = "merge",
    .synopsis = "merge SHARD.h5... --out RUN.h5",
    .summary = "join the shards of one run or recording into the archive one process would have written",
    .example = "attest merge shard1.h5 shard2.h5 --out run.h5",
    .options = options,
    .min_words = 1,
    .max_words = AT_MAX_WORDS,
    .reads_archives = 1,
    .run = run,
};
