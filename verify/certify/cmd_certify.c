/* attest certify: which of a variant's bits stay the same whatever else is in the launch.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "verify/certify/certify_report.h"
#include "verify/cli/commands.h"
#include "verify/run/session.h"

static const struct at_option options[] = {
    { "--cases", "GLOB",
      "which cases of datasets/certify, as role:id (default 'certify:*'; 'long:*' has long prefixes)" },
    { "--case", "LINE", "one case given as text" },
    { "--runner", "R", "cpu (default), cuda, or a command line that speaks the protocol" },
    { "--with", "VARIANT",
      "property row: the same rows by this variant of the runner (family/variant), a decode kernel beside a "
      "prefill kernel or the other way round" },
    { "--properties", "LIST", "only these, with commas: batch, split, chunk, page, pad, row (default: all)" },
    { "--want", "LIST", "properties that each variant must be certified for: exit 1 unless they are `yes`" },
    { "--capacities", "LIST", "split: factors of the case's capacity (default 2,4,8,16)" },
    { "--batches", "LIST", "split: requests in all, filled up with empty ones (default 8,32,128)" },
    { "--pieces", "LIST", "chunk: pieces of a prompt (default 2,3,7)" },
    { "--one-by-one", "N", "chunk: prompts of at most N queries are also cut into single ones (default 64)" },
    { "--pages", "LIST", "page: keys a page, 0 for none (default 0,8,16,32,64)" },
    { "--counts", NULL, "a line for each property: elements, settings, cases, and what is declared" },
    { "--out", "CERT.h5", "write the archive" },
    { "--junit", "F.xml", "write JUnit XML, a test case a property" },
    { "--json", "F.jsonl", "write a JSON object a line, one for each property" },
    { "--jobs", "N", "cases at the same time (default: processors)" },
    { "--seed", "S", "of marks, guard bytes and the order of pages" },
    { "--timeout", "SECONDS", "of a launch, as for verify" },
    { NULL, NULL, NULL },
};

static at_status read_property(const char *word, size_t length, const char *option, unsigned *bits) {
    const char *names[AT_PROPERTY_COUNT];
    char text[32];
    for (int p = 0; p < AT_PROPERTY_COUNT; p++) {
        names[p] = at_property_name(p);
        if (strlen(names[p]) == length && strncmp(names[p], word, length) == 0) {
            *bits |= 1u << p;
            return AT_OK;
        }
    }
    snprintf(text, sizeof text, "%.*s", (int)(length < 30 ? length : 30), word);
    const char *nearest = at_nearest_name(text, names, AT_PROPERTY_COUNT);
    return AT_FAIL(AT_USAGE, "%s: found '%s'%s%s%s, wanted some of batch, split, chunk, page, pad, row", option, text,
                   nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status read_properties(const struct at_args *args, const char *option, unsigned *bits) {
    const char *text = at_args_get(args, option);
    if (!text)
        return AT_OK;
    *bits = 0;
    for (size_t length; *text || !*bits; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        AT_TRY(read_property(text, length, option, bits));
    }
    return AT_OK;
}

/* Whole numbers with commas, each larger than the one before. */
static at_status read_numbers(const struct at_args *args, const char *option, int64_t low, int64_t high,
                              struct at_certify_numbers *numbers) {
    const char *text = at_args_get(args, option), *all = text;
    char *end;
    if (!text)
        return AT_OK;
    numbers->n = 0;
    do {
        const long long value = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',') || value < low || value > high ||
            (numbers->n && value <= numbers->of[numbers->n - 1]) || numbers->n == AT_CERTIFY_MAX)
            return AT_FAIL(AT_USAGE,
                           "%s: found '%.60s', wanted up to %d whole numbers from %lld to %lld, ascending, with commas",
                           option, all, AT_CERTIFY_MAX, (long long)low, (long long)high);
        numbers->of[numbers->n++] = value;
        text = end + 1;
    } while (*end);
    return AT_OK;
}

static at_status read_options(const struct at_args *args, struct at_certify_options *o, unsigned *wanted) {
    const char *text;
    int64_t seed, jobs;
    *o = at_certify_defaults();
    *wanted = 0;
    o->selection.globs = args->words;
    o->selection.n_globs = args->n_words;
    o->selection.case_line = at_args_get(args, "--case");
    if ((text = at_args_get(args, "--cases")) != NULL)
        o->selection.cases_glob = strcmp(text, "*") == 0 ? "*:*" : text;
    if (o->selection.case_line && text)
        return AT_FAIL(AT_USAGE, "--case and --cases exclude each other");
    if ((text = at_args_get(args, "--runner")) != NULL)
        o->runner = text;
    o->with = at_args_get(args, "--with");
    AT_TRY(read_properties(args, "--properties", &o->properties));
    AT_TRY(read_properties(args, "--want", wanted));
    if (!o->with && at_args_get(args, "--properties") && o->properties >> AT_PROPERTY_row & 1)
        return AT_FAIL(AT_USAGE, "--properties row wants --with VARIANT");
    if (!o->with)
        o->properties &= ~(1u << AT_PROPERTY_row);
    if (*wanted & ~o->properties)
        return AT_FAIL(
            AT_USAGE,
            "--want names a property that is not looked at: --properties has it not, or row wants --with VARIANT");
    AT_TRY(read_numbers(args, "--capacities", 2, 65536, &o->capacities));
    AT_TRY(read_numbers(args, "--batches", 1, 65536, &o->batches));
    AT_TRY(read_numbers(args, "--pieces", 2, 65536, &o->pieces));
    AT_TRY(read_numbers(args, "--pages", 0, 65536, &o->pages));
    AT_TRY(at_args_int(args, "--one-by-one", 0, 65536, o->one_by_one, &o->one_by_one));
    AT_TRY(at_args_int(args, "--jobs", 1, 256, o->jobs, &jobs));
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX - 1, 0, &seed));
    AT_TRY(at_args_real(args, "--timeout", 0.001, 1e6, 0, &o->timeout));
    o->jobs = (int)jobs;
    o->seed = (uint64_t)seed;
    return AT_OK;
}

static at_status write_files(const struct at_args *args, const struct at_certify_run *run, unsigned wanted) {
    const char *out = at_args_get(args, "--out"), *json = at_args_get(args, "--json"),
               *junit = at_args_get(args, "--junit");
    const struct at_table_rows table = { &at_certify_table, run->rows, run->n };
    if (out)
        AT_TRY(at_archive_write_tables(&table, 1, &run->record, out));
    if (json)
        AT_TRY(at_certify_put_json(run->rows, run->n, json));
    return junit ? at_certify_put_junit(run->rows, run->n, wanted, junit) : AT_OK;
}

static int exit_code(const struct at_certify_run *run, const struct at_certify_sum *sum) {
    int64_t shown = 0, failed = 0;
    for (int p = 0; p < AT_PROPERTY_COUNT; p++) {
        failed += sum->of[p][AT_CERTIFIED_FAILED];
        shown += sum->of[p][AT_CERTIFIED_YES] + sum->of[p][AT_CERTIFIED_NO];
    }
    if (run->record.signal) {
        fprintf(stderr, "attest: interrupted: nothing is certified\n");
        return 128 + run->record.signal;
    }
    if (failed || sum->disagree || sum->unmet)
        return 1;
    if (!shown)
        fprintf(stderr, "attest: nothing was judged: no property could be shown on any case\n");
    return shown ? 0 : 4;
}

static int run(const struct at_args *args) {
    struct at_certify_options o;
    struct at_certify_run certified = { .n = 0 };
    unsigned wanted;
    const char *const files[] = { at_args_get(args, "--out"), at_args_get(args, "--json"),
                                  at_args_get(args, "--junit") };
    at_run_record_init(&certified.record);
    at_status status = read_options(args, &o, &wanted);
    if (status == AT_OK)
        status = at_atomic_check_files(files, 3, NULL, 0);
    if (status == AT_OK)
        status = at_certify_run(&o, &certified);
    const struct at_certify_sum sum = at_certify_sum_of(certified.rows, certified.n, wanted);
    if (status == AT_OK && !certified.record.signal) {
        at_certify_put(certified.rows, certified.n, at_args_has(args, "--counts"), stdout);
        at_certify_put_sum(&sum, stdout);
        status = write_files(args, &certified, wanted);
    }
    const int code = status == AT_OK ? exit_code(&certified, &sum) : at_report_failure(status);
    at_certify_run_release(&certified);
    return code;
}

const struct at_command at_command_certify = {
    .name = "certify",
    .synopsis = "certify GLOB... [options]",
    .summary = "certificates of invariance: the same bits alone and in any batch, however a launch is split, a prompt "
               "cut, keys "
               "paged, a graph padded",
    .example = "attest certify 'softmax_decode/*' --want batch,pad --out cert.h5",
    .options = options,
    .min_words = 1,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
