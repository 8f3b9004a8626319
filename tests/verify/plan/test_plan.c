/* The plan of a run: what globs select, in which order, which shard takes what, and what the environment says.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner, whose variants are planned for and never launched. */
#include "tests/at_test.h"

#include <math.h>

#include "attest/buffer.h"
#include "tests/support/case_folder.h"
#include "tests/support/runner_rig.h"
#include "verify/plan/cost.h"
#include "verify/plan/nearest.h"

/* ---- the runner's variants and the case files ---- */

static int never(const struct at_launch *launch) {
    (void)launch;
    return 1;
}

static const struct at_kernel_entry *entry_at(int i) {
    static const struct at_kernel kernel = { .summary = "never launched",
                                             .source = "a test",
                                             .numerics = { .qk_lanes = 1, .p = AT_F32, .pv_chunk = 1 },
                                             .launch = never };
    static const struct at_kernel_entry entries[] = {
        { "asynct_decode", "00_plain", "", &kernel, "" },    { "asynct_decode", "07_split_k", "", &kernel, "" },
        { "asynct_decode", "08_split_v", "", &kernel, "" },  { "asynct_prefill", "00_plain", "", &kernel, "" },
        { "softmax_decode", "00_plain", "", &kernel, "" },   { "rms_norm", "00_plain", "", &kernel, "" },
        { "asynct_prefill", "01_split_k", "", &kernel, "" },
    };
    return &entries[i];
}

enum { VARIANTS = 7 };

static struct at_runner *runner;

static const char *const environment[] = { "TEST_TOTAL_SHARDS",    "TEST_SHARD_INDEX",     "SLURM_ARRAY_TASK_COUNT",
                                           "SLURM_ARRAY_TASK_ID",  "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
                                           "SLURM_ARRAY_TASK_STEP" };

static void clear_environment(void) {
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        unsetenv(environment[i]);
}

/* Two files, whose names are not in the order they are written in; the second repeats a case of the first. */
static int open_all(void **state) {
    (void)state;
    clear_environment();
    if (at_case_folder_open() != 0)
        return -1;
    at_case_folder_write("zeta.cases", "asynct_decode sk=1..9 d=64\nsoftmax_decode sk=4,5 d=64\n");
    at_case_folder_write("alpha.cases",
                         "# nothing\nrms_norm tokens=2,3 channels=64\nasynct_prefill sq=5 sk=7,8,9 d=64\n"
                         "uclip_norm tokens=2 channels=64\nasynct_decode sk=30 d=32 data=exact require=zeros\n");
    return at_rig_open_self(&runner) == AT_OK ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    at_runner_close(runner);
    return at_case_folder_close();
}

/* ---- selection ---- */

static struct at_plan plan_of(const char *const *globs, int n, const char *cases, int shard, int shards) {
    struct at_selection s = { .globs = globs, .n_globs = n, .cases_glob = cases, .shard = shard, .shards = shards };
    struct at_plan plan;
    at_assert_ok(at_plan_make(&s, runner, &plan));
    return plan;
}

/* "case:variant variant|case:..." with a case's word that tells it from the others. */
static void describe(const struct at_plan *plan, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (int64_t i = 0; i < plan->n_items && at < size; i++) {
        const struct at_plan_case *item = &plan->items[i];
        const char *sk = strstr(item->c->id, " sk="), *tokens = strstr(item->c->id, " tokens=");
        const char *word = sk ? sk + 4 : tokens ? tokens + 8 : "?";
        at += (size_t)snprintf(text + at, size - at, "%s%.3s:%s:%.*s:", i ? "|" : "", item->c->role,
                               item->c->family->name, (int)strcspn(word, " "), word);
        for (int v = 0; v < item->n_variants && at < size; v++) {
            const struct at_variant *variant = at_runner_variant(runner, item->variants[v]);
            assert_string_equal(variant->family, item->c->family->name);
            at += (size_t)snprintf(text + at, size - at, "%s%.2s", v ? " " : "", variant->name);
        }
    }
}

static void assert_plan(const char *const *globs, int n, const char *cases, const char *want) {
    char text[2048];
    struct at_plan plan = plan_of(globs, n, cases, 0, 1);
    describe(&plan, text, sizeof text);
    assert_string_equal(text, want);
    at_plan_release(&plan);
}

#define PLAN(cases, want, ...) \
    assert_plan((const char *const[]){ __VA_ARGS__ }, \
                (int)(sizeof(const char *const[]){ __VA_ARGS__ } / sizeof(const char *)), cases, want)

/* Files by name, lines as they stand, rightmost key fastest, variants as the runner lists them; a case without a
 * variant of its family is no part of the plan. */
static void everything_in_order(void **state) {
    (void)state;
    assert_plan(NULL, 0, "*:*",
                "alp:rms_norm:2:00|alp:rms_norm:3:00|alp:asynct_prefill:7:00 01|alp:asynct_prefill:8:00 01|"
                "alp:asynct_prefill:9:00 01|alp:asynct_decode:30:00 07 08|zet:asynct_decode:1:00 07 08|"
                "zet:asynct_decode:2:00 07 08|zet:asynct_decode:3:00 07 08|zet:asynct_decode:4:00 07 08|"
                "zet:asynct_decode:5:00 07 08|zet:asynct_decode:6:00 07 08|zet:asynct_decode:7:00 07 08|"
                "zet:asynct_decode:8:00 07 08|zet:asynct_decode:9:00 07 08|zet:softmax_decode:4:00|"
                "zet:softmax_decode:5:00");
}

static void globs_select(void **state) {
    (void)state;
    PLAN("*:*", "zet:softmax_decode:4:00|zet:softmax_decode:5:00", "softmax_decode/00_plain");
    PLAN("alpha:*",
         "alp:asynct_prefill:7:01|alp:asynct_prefill:8:01|alp:asynct_prefill:9:01|"
         "alp:asynct_decode:30:07",
         "*/*_split_k");
    PLAN("*:*sk=[12] *", "zet:asynct_decode:1:07 08|zet:asynct_decode:2:07 08", "asynct_*/0[78]*");
    PLAN("*:*sk=3 *", "zet:asynct_decode:3:00 08", "*/@(00|08)_*");
    /* each adds its own; one that hits nothing a case needs is no error, as long as it hits a variant */
    PLAN("zeta:softmax*", "zet:softmax_decode:4:00|zet:softmax_decode:5:00", "softmax*/*", "rms_norm/*");
    PLAN("@(alpha|none):*data=exact*", "alp:asynct_decode:30:08", "*/08*", "rms_norm/*");
    PLAN("zeta:*", "", "rms_norm/*"); /* cases there are, for other families */
}

static void names_the_nearest_variant(void **state) {
    (void)state;
    static const char *const globs[] = { "*/*", "asynct_decode/07_splitk" };
    struct at_selection s = { .globs = globs, .n_globs = 2, .cases_glob = "*:*", .shards = 1 };
    struct at_plan plan;
    at_assert_fails(at_plan_make(&s, runner, &plan), AT_NOT_FOUND, "nearest is 'asynct_decode/07_split_k';");
    assert_int_equal(plan.n_items, 0);
    assert_null(plan.items);
    at_assert_fails(at_plan_make(&s, runner, &plan), AT_NOT_FOUND, "matches 'asynct_decode/07_splitk'");
}

static void names_the_nearest_case(void **state) {
    (void)state;
    static const struct {
        const char *glob, *says;
    } rows[] = {
        { "zeat:*", "nearest is 'zeta:*'" },
        { "zeta", "nearest is 'zeta:*'" },
        { "*:*data=exatc*", "nearest is '*:*data=exact*'" },
        { "*:*sk=3 *data=exatc*", "'*:*sk=3 *data=exatc*'; wanted" }, /* mended, it matches nothing either */
        { "none:*", "no case matches 'none:*'; wanted a glob for role:id, the roles are alpha, zeta" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_selection s = { .cases_glob = rows[i].glob, .shards = 1 };
        struct at_plan plan;
        at_assert_fails(at_plan_make(&s, runner, &plan), AT_NOT_FOUND, rows[i].says);
        assert_null(plan.items);
    }
}

/* Part of a glob is replaced by part of a name, and only where the outcome matches something. */
static void mends_globs(void **state) {
    (void)state;
    static const char *const names[] = { "asynct_decode/00_split_k", "asynct_decode/07_split_v", "rms_norm/00_plain" };
    static const struct {
        const char *glob, *want; /* NULL: nothing is near */
    } rows[] = {
        { "asynct_decoed/*", "asynct_decode/*" },
        { "asynct_decode", "asynct_decode/*" },
        { "*/07_spilt*", "*/07_split*" },
        { "rms_nrom/[0-9]*", "rms_norm/[0-9]*" },
        { "rms_norm/00_plane", "rms_norm/00_plain" },
        { "@(rms_nrom|asynct_x)/*", "@(rms_norm|asynct_x)/*" },
        { "rms_norm/07_*", NULL }, /* every word is there, but not together */
        { "nothing/like_it", NULL },
        { "*/x*", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256] = "";
        const int found = at_glob_nearest(rows[i].glob, "/*", names, 3, "/_", text, sizeof text);
        assert_int_equal(found, rows[i].want != NULL);
        if (found)
            assert_string_equal(text, rows[i].want);
    }
}

static void a_case_given_as_text(void **state) {
    (void)state;
    char text[512];
    static const char *const globs[] = { "*/00*" };
    struct at_selection s = {
        .globs = globs, .n_globs = 1, .cases_glob = "none:*", .case_line = "asynct_decode sk=3,2 d=64", .shards = 1
    };
    struct at_plan plan;
    at_assert_ok(at_plan_make(&s, runner, &plan));
    describe(&plan, text, sizeof text);
    assert_string_equal(text, "lin:asynct_decode:3:00|lin:asynct_decode:2:00");
    at_plan_release(&plan);
    s.case_line = "asynct_decode sk=2 d=64 require=zeros,no_such_decoy";
    at_assert_fails(at_plan_make(&s, runner, &plan), AT_USAGE, "'no_such_decoy'");
    assert_null(plan.items);
    s.case_line = "rms_norm tokens=2 channels=64 require=other_head"; /* norms have no heads */
    at_assert_fails(at_plan_make(&s, runner, &plan), AT_USAGE, "require=other_head");
}

/* ---- shards ---- */

enum { CASES = 17, JOBS = 40 };

/* Over every number of shards: each job in one shard only, in the whole plan's order, with its case, variant and hash. */
static void every_job_in_one_shard(void **state) {
    (void)state;
    struct at_plan whole = plan_of(NULL, 0, "*:*", 0, 1);
    for (int shards = 1; shards <= 50; shards++) {
        int seen[JOBS] = { 0 };
        for (int shard = 0; shard < shards; shard++) {
            struct at_plan part = plan_of(NULL, 0, "*:*", shard, shards);
            int64_t next = 0, jobs = 0;
            int at = 0;
            assert_true(part.cases_hash == whole.cases_hash);
            for (int64_t i = 0; i < part.n_items; i++) {
                const struct at_plan_case *item = &part.items[i];
                while (at < CASES && whole.items[at].c->hash != item->c->hash)
                    at++;
                at_assert_true(at < CASES, "shard %d/%d: %s is out of order", shard, shards, item->c->id);
                assert_true(item->n_variants > 0 && item->first_index >= next);
                for (int v = 0; v < item->n_variants; v++) {
                    const int64_t job = item->first_index + v;
                    assert_int_equal(item->variants[v], whole.items[at].variants[job - whole.items[at].first_index]);
                    seen[job]++;
                }
                next = item->first_index + item->n_variants;
                jobs += item->n_variants;
            }
            assert_int_equal(jobs, part.n_jobs);
            at_plan_release(&part);
        }
        for (int i = 0; i < JOBS; i++)
            at_assert_true(seen[i] == 1, "%d shards: job %d is in %d of them", shards, i, seen[i]);
    }
    at_plan_release(&whole);
}

static double cost_of(const struct at_plan *plan) {
    struct at_plan_cost c;
    double cost = 0;
    for (int64_t i = 0; i < plan->n_items; i++) {
        at_assert_ok(at_plan_cost_make(&plan->items[i], runner, 1, &c));
        cost += c.shared;
        for (int v = 0; v < plan->items[i].n_variants; v++)
            cost += c.variant[v];
        at_plan_cost_release(&c);
    }
    return cost;
}

static void shards_cost_alike(void **state) {
    (void)state;
    at_case_folder_write("more.cases", "asynct_decode b=2 h=8 hk=4 sk=2048,1..400 d=64\n");
    double sum = 0, most = 0;
    for (int shard = 0; shard < 8; shard++) {
        struct at_plan part = plan_of(NULL, 0, "more:*", shard, 8);
        sum += cost_of(&part);
        most = fmax(most, cost_of(&part));
        at_plan_release(&part);
    }
    at_assert_true(most <= 1.25 * sum / 8, "the slowest of 8 shards costs %.3f of the mean", most * 8 / sum);
    /* A case that is most of the run is cut between its variants. */
    at_case_folder_write("more.cases", "asynct_decode b=2 h=8 hk=4 sk=100000,1..4 d=64\n");
    struct at_plan first = plan_of(NULL, 0, "more:*", 0, 2), second = plan_of(NULL, 0, "more:*", 1, 2);
    const double x = cost_of(&first), y = cost_of(&second);
    at_assert_true(fmax(x, y) <= 0.75 * (x + y), "shards of %g and %g s", x, y);
    at_plan_release(&first);
    at_plan_release(&second);
    at_case_folder_write("more.cases", "# nothing\n");
}

static void positions_count_the_jobs(void **state) {
    (void)state;
    struct at_plan plan = plan_of(NULL, 0, "*:*", 0, 1);
    int64_t next = 0;
    for (int64_t i = 0; i < plan.n_items; i++) {
        assert_int_equal(plan.items[i].first_index, next);
        next += plan.items[i].n_variants;
    }
    assert_int_equal(next, plan.n_jobs);
    at_plan_release(&plan);
}

static uint64_t hash_of(const char *const *globs, int n, const char *cases) {
    struct at_plan plan = plan_of(globs, n, cases, 0, 1);
    uint64_t hash = plan.cases_hash;
    at_plan_release(&plan);
    return hash;
}

/* The hash says which cases are judged, whatever file, glob and variants brought them in; and in which order. */
static void the_hash_is_of_the_selected_cases(void **state) {
    (void)state;
    static const char *const split[] = { "*/*_split_k" }, *const decode[] = { "asynct_*/*" },
                             *const norm[] = { "rms_norm/*" };
    const uint64_t all = hash_of(NULL, 0, "*:*");
    assert_true(all == hash_of(NULL, 0, "*"));
    assert_true(all != hash_of(NULL, 0, "zeta:*"));
    assert_true(all != hash_of(split, 1, "*:*"));
    assert_true(hash_of(split, 1, "zeta:*") == hash_of(decode, 1, "zeta:asynct*"));
    assert_true(hash_of(norm, 1, "zeta:*") == AT_HASH_START);
    at_case_folder_write("more.cases", "asynct_decode sk=400,500 d=64\n");
    const uint64_t before = hash_of(NULL, 0, "more:*");
    assert_true(hash_of(NULL, 0, "*:*") != all);
    at_case_folder_write("more.cases", "asynct_decode sk=500,400 d=64\n");
    assert_true(hash_of(NULL, 0, "more:*") != before);
    at_case_folder_write("more.cases", "asynct_decode sk=40 d=64\n");
    assert_true(hash_of(NULL, 0, "more:*") != before);
    at_case_folder_write("more.cases", "# nothing\n");
    assert_true(hash_of(NULL, 0, "*:*") == all);
}

/* ---- which shard this is ---- */

/* Sets the environment from "NAME=value NAME=value"; every other name of it is unset. */
static void set_environment(const char *text) {
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    clear_environment();
    for (char *rest = copy, *word; (word = strsep(&rest, " "));) {
        char *equals = strchr(word, '=');
        if (equals) {
            *equals = 0;
            setenv(word, equals + 1, 1);
        }
    }
}

static void assert_shard(const char *text, const char *variables, int want_shard, int want_shards) {
    int shard = -1, shards = -1;
    set_environment(variables);
    at_assert_ok(at_shard_parse(text, &shard, &shards));
    at_assert_true(shard == want_shard && shards == want_shards, "%s with %s: %d of %d, wanted %d of %d",
                   text ? text : "nothing", variables, shard, shards, want_shard, want_shards);
    clear_environment();
}

static void refuse_shard(const char *text, const char *variables, const char *says) {
    int shard, shards;
    set_environment(variables);
    at_assert_fails(at_shard_parse(text, &shard, &shards), AT_USAGE, says);
    clear_environment();
}

static void shards_from_the_command_line(void **state) {
    (void)state;
    assert_shard("1/1", "", 0, 1);
    assert_shard("1/4", "", 0, 4);
    assert_shard("4/4", "", 3, 4);
    static const char *const bad[] = { "0/4",   "5/4", "-1/4",   "1/0",          "1/-4",        "1",
                                       "",      "/4",  "1/",     "1/4x",         "x1/4",        "1/4/5",
                                       "1.5/4", "a/b", "2 of 4", "4294967297/8", "1/4294967304" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_shard(bad[i], "", "wanted i/N");
    /* what is typed counts, not the environment */
    assert_shard("2/3", "TEST_TOTAL_SHARDS=9 TEST_SHARD_INDEX=8", 1, 3);
}

static void shards_from_a_test_runner(void **state) {
    (void)state;
    assert_shard(NULL, "", 0, 1);
    assert_shard(NULL, "TEST_TOTAL_SHARDS=4 TEST_SHARD_INDEX=0", 0, 4);
    assert_shard(NULL, "TEST_TOTAL_SHARDS=4 TEST_SHARD_INDEX=3", 3, 4);
    assert_shard(NULL, "TEST_TOTAL_SHARDS=0 TEST_SHARD_INDEX=0", 0, 1);
    assert_shard(NULL, "TEST_TOTAL_SHARDS= TEST_SHARD_INDEX=", 0, 1);
    refuse_shard(NULL, "TEST_TOTAL_SHARDS=4 TEST_SHARD_INDEX=4", "not in 0..3");
    refuse_shard(NULL, "TEST_TOTAL_SHARDS=4", "not in 0..3");
    refuse_shard(NULL, "TEST_TOTAL_SHARDS=4 TEST_SHARD_INDEX=1x", "not in 0..3");
    refuse_shard(NULL, "TEST_TOTAL_SHARDS=4 TEST_SHARD_INDEX=-1", "not in 0..3");
    /* a number that cannot be read is no reason to judge everything in every process */
    refuse_shard(NULL, "TEST_TOTAL_SHARDS=four TEST_SHARD_INDEX=1", "TEST_TOTAL_SHARDS");
    refuse_shard(NULL, "TEST_TOTAL_SHARDS=-4 TEST_SHARD_INDEX=1", "TEST_TOTAL_SHARDS");
    /* a test runner inside a Slurm array divides by its own count */
    assert_shard(NULL, "TEST_TOTAL_SHARDS=4 TEST_SHARD_INDEX=2 SLURM_ARRAY_TASK_COUNT=9 SLURM_ARRAY_TASK_ID=8", 2, 4);
}

static void shards_from_a_slurm_array(void **state) {
    (void)state;
    assert_shard(NULL, "SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0", 0, 4);
    assert_shard(NULL, "SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_ID=10 SLURM_ARRAY_TASK_MIN=7", 3, 4);
    /* --array=0-10:5 */
    for (int i = 0; i < 3; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_ID=%d SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_STEP=5",
                 5 * i);
        assert_shard(NULL, text, i, 3);
    }
    refuse_shard(NULL, "SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_ID=11 SLURM_ARRAY_TASK_MIN=7", "outside the array");
    refuse_shard(NULL, "SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_MIN=7", "outside the array");
    refuse_shard(NULL, "SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_ID");
    /* --array=1,2,9: task 2 of them would pass for the second of three, and nobody would be the third */
    refuse_shard(NULL, "SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=9",
                 "gaps");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_rig_serve_list(&(struct at_kernel_list){ VARIANTS, entry_at });
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_order),
        cmocka_unit_test(globs_select),
        cmocka_unit_test(names_the_nearest_variant),
        cmocka_unit_test(names_the_nearest_case),
        cmocka_unit_test(mends_globs),
        cmocka_unit_test(a_case_given_as_text),
        cmocka_unit_test(every_job_in_one_shard),
        cmocka_unit_test(shards_cost_alike),
        cmocka_unit_test(positions_count_the_jobs),
        cmocka_unit_test(the_hash_is_of_the_selected_cases),
        cmocka_unit_test(shards_from_the_command_line),
        cmocka_unit_test(shards_from_a_test_runner),
        cmocka_unit_test(shards_from_a_slurm_array),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
