/* attest merge: the shards of a run become the archive that one process would have written.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/witness.h"
#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/commands/content.h"
#include "verify/run/journal.h"
#include "verify/result/result_heap.h"

static const struct at_option options[] = {
    { "--out", "RUN.h5", "the archive to write" },
    { NULL, NULL, NULL },
};

struct shards {
    struct at_run_record whole; /* request, provenance, folders of witnesses; no results */
    struct at_result_heap heap;
    char (*text)[32]; /* "2/5" */
    int n, parts;
};

/* A result of the shard that is being read. */
struct reading {
    struct shards *s;
    struct at_run_record witness; /* its folder */
};

static at_status take(void *context, const struct at_result *result) {
    struct reading *r = context;
    char path[4352];
    if (result->kept)
        AT_TRY(at_witness_find(&r->witness, result, path, sizeof path));
    return at_result_heap_add(&r->s->heap, result);
}

/* An archive does not say which shard it is; its journal, beside it, does. What was kept lies there too. */
static at_status read_shard(const char *path, struct shards *s, int i) {
    char journal[4096], witness[4096];
    struct reading reading = { .s = s };
    struct at_run_record head;
    at_status status = AT_OK;
    int finished = 0;
    at_run_record_init(&head);
    at_run_record_init(&reading.witness);
    if (snprintf(journal, sizeof journal, "%s.jsonl", path) >= (int)sizeof journal)
        AT_FAIL_OUT(AT_USAGE, "merge: the path is too long");
    AT_TRY_OUT(at_witness_folder(path, witness, sizeof witness));
    AT_TRY_OUT(at_run_record_add_witness(&reading.witness, witness));
    AT_TRY_OUT(at_run_record_add_witness(&s->whole, witness));
    AT_TRY_OUT(at_journal_visit(journal, take, &reading, &head, s->text[i], &finished));
    if (!finished)
        AT_FAIL_OUT(AT_USAGE, "%s: this shard's run did not end; finish it with --resume", journal);
    if (i > 0)
        AT_TRY_OUT(at_run_record_same_run(&s->whole, &head, i));
    if (i == 0) {
        s->whole.request = head.request;
        s->whole.provenance = head.provenance;
        head.request = head.provenance = NULL;
    }
out:
    at_run_record_release(&head);
    at_run_record_release(&reading.witness);
    return status;
}

static at_status check_parts(const struct at_args *args, struct shards *s) {
    char *seen = NULL;
    at_status status = AT_OK;
    for (int i = 0; i < s->n; i++) {
        int shard, parts;
        if (sscanf(s->text[i], "%d/%d", &shard, &parts) != 2 || shard < 1 || shard > parts)
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

static at_status merge(const struct at_args *args, struct shards *s) {
    const char *out = at_args_get(args, "--out");
    AT_TRY(check_out(args));
    s->heap.scratch.beside = out;
    for (int i = 0; i < s->n; i++)
        AT_TRY(read_shard(args->words[i], s, i));
    AT_TRY(check_parts(args, s));
    AT_TRY(at_result_heap_sort(&s->heap));
    const struct at_result_source source = { s->heap.n, at_result_heap_get, &s->heap };
    AT_TRY(at_archive_write_from(&s->whole, &source, out));
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
    struct shards s = { .n = args->n_words };
    at_status status = AT_OK;
    at_run_record_init(&s.whole);
    s.text = calloc((size_t)s.n, sizeof *s.text);
    if (!s.text)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d shards", s.n);
    status = merge(args, &s);
out:
    free(s.text);
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
