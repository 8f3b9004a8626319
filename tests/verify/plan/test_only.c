/* Lines `only` of a selection: which variants they leave to a case, and what they leave alone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner, whose variants are planned for and never launched. */
#include "tests/at_test.h"

#include "tests/support/case_folder.h"
#include "tests/support/runner_rig.h"
#include "verify/plan/plan.h"

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
        { "asynct_decode", "00_plain", "", &kernel, "" },
        { "rms_norm", "00_plain", "", &kernel, "" },
        { "asynct_decode", "07_split_k", "", &kernel, "" },
        { "asynct_decode", "08_split_v", "", &kernel, "" },
        { "rms_norm", "07_split_k", "", &kernel, "" },
        /* of a runner of mutants */
        { "asynct_decode", "m0012_07_split_k", "", &kernel, "" },
        { "asynct_decode", "21_last_key_left_out", "", &kernel, "" },
        { "rms_norm", "m0003_00_plain", "", &kernel, "" },
    };
    return &entries[i];
}

enum { VARIANTS = 5, MUTANTS = 3 };

static const struct at_kernel_entry *mutant_at(int i) { return entry_at(VARIANTS + i); }

static const char *mutant_of(const struct at_kernel_entry *entry) {
    static const char *const made_of[MUTANTS] = { "asynct_decode/07_split_k", "asynct_decode/08_split_v",
                                                  "rms_norm/00_plain" };
    for (int i = 0; i < MUTANTS; i++)
        if (entry == mutant_at(i))
            return made_of[i];
    return "";
}

static const char ONLY_MUTANTS[] = "AT_TEST_ONLY_MUTANTS"; /* to this program as a runner */
static struct at_runner *runner;

static int open_all(void **state) {
    (void)state;
    if (at_case_folder_open() != 0)
        return -1;
    at_case_folder_write("zeta.cases", "asynct_decode sk=1..3 d=64\n");
    at_case_folder_write("alpha.cases", "rms_norm tokens=2 channels=64\nuclip_norm tokens=2 channels=64\n");
    setenv("AT_OURS", "1", 1); /* this program is no runner by name */
    return at_rig_open_self(&runner) == AT_OK ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    at_runner_close(runner);
    unsetenv("AT_OURS");
    return at_case_folder_close();
}

/* Takes a runner that has mutants (serve()) in the place of the one of variants, which is returned for give_back(). */
static struct at_runner *take_mutants(const char *how) {
    struct at_runner *const variants = runner;
    setenv(ONLY_MUTANTS, how, 1);
    at_assert_ok(at_rig_open_self(&runner));
    unsetenv(ONLY_MUTANTS);
    return variants;
}

static void give_back(struct at_runner *variants) {
    at_runner_close(runner);
    runner = variants;
}

/* "SIZE:variant variant|SIZE:..." with the case's keys or rows. */
static void describe(const struct at_plan *plan, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (int64_t i = 0; i < plan->n_items && at < size; i++) {
        const struct at_plan_case *item = &plan->items[i];
        const char *sk = strstr(item->c->id, " sk="), *tokens = strstr(item->c->id, " tokens=");
        const char *word = sk ? sk + 4 : tokens ? tokens + 8 : "?";
        at += (size_t)snprintf(text + at, size - at, "%s%.*s:", i ? "|" : "", (int)strcspn(word, " "), word);
        for (int v = 0; v < item->n_variants && at < size; v++)
            at += (size_t)snprintf(text + at, size - at, "%s%.2s", v ? " " : "",
                                   at_runner_variant(runner, item->variants[v])->name);
    }
}

/* The plan of @some on the variants of `glob` (NULL: all); its hash. */
static uint64_t plan_of(const char *selection, const char *glob, const char *cases, const char *line_of,
                        const char *want) {
    const char *globs[] = { glob };
    struct at_selection s = {
        .globs = globs, .n_globs = glob != NULL, .cases_glob = cases, .line_of = line_of, .shards = 1
    };
    char text[512];
    struct at_plan plan;
    at_case_folder_write("some.selection", selection);
    at_assert_ok(at_plan_make(&s, runner, &plan));
    describe(&plan, text, sizeof text);
    assert_string_equal(text, want);
    int64_t jobs = 0;
    for (int64_t i = 0; i < plan.n_items; i++) {
        assert_int_equal(plan.items[i].first_index, jobs);
        jobs += plan.items[i].n_variants;
    }
    assert_int_equal(plan.n_jobs, jobs);
    const uint64_t hash = plan.cases_hash;
    at_plan_release(&plan);
    return hash;
}

static void leaves_some_variants(void **state) {
    (void)state;
    const uint64_t all = plan_of("*:*\n", NULL, "@some", NULL, "2:00 07|1:00 07 08|2:00 07 08|3:00 07 08");
    const uint64_t some = plan_of("*:*\nonly asynct_decode/07* zeta:*sk=2 *\n", NULL, "@some", NULL,
                                  "2:00 07|1:00 07 08|2:07|3:00 07 08");
    /* in an archive the places of results are those of a plan */
    assert_true(all != some);
    assert_true(some !=
                plan_of("*:*\nonly */08* zeta:*sk=2 *\n", NULL, "@some", NULL, "2:00 07|1:00 07 08|2:08|3:00 07 08"));
    /* wherever it stands, whatever spaces there are, of whichever lines the case is; with another it adds up */
    plan_of("only  */@(00|08)*\tzeta:*sk=[23] * # dear\n*:*\nonly */07* *sk=3 *\nzeta:*sk=2 *\n", NULL, "@some", NULL,
            "2:00 07|1:00 07 08|2:00 08|3:00 07 08");
    /* nothing is selected by it */
    plan_of("zeta:*sk=1 *\nonly */07* *sk=2 *\n", NULL, "@some", NULL, "1:00 07 08");
}

static void meets_chosen_variants(void **state) {
    (void)state;
    static const char text[] = "*:*\nonly */07* zeta:*sk=@(1|2) *\nonly rms_norm/* alpha:*\n";
    plan_of(text, "*/0[78]*", "@some", NULL, "2:07|1:07|2:07|3:07 08");
    plan_of(text, "*/08*", "@some", NULL, "3:08"); /* none of those that may is chosen */
}

/* Kernels that no line names are judged on everything; so are those of another family. */
static void leaves_others_alone(void **state) {
    (void)state;
    plan_of("*:*\nonly asynct_decode/31* *sk=2 *\n", NULL, "@some", NULL, "2:00 07|1:00 07 08|2:00 07 08|3:00 07 08");
    plan_of("*:*\nonly asynct_decode/31* *sk=2 *\nonly rms_norm/07* *sk=2 *\n", NULL, "@some", NULL,
            "2:00 07|1:00 07 08|2:00 07 08|3:00 07 08");
}

/* Somebody else's kernels are judged on everything, whatever they call themselves, or what they say that they were made of. */
static void judges_strangers_on_everything(void **state) {
    (void)state;
    unsetenv("AT_OURS");
    const uint64_t whole = plan_of("*:*\n", NULL, "@some", NULL, "2:00 07|1:00 07 08|2:00 07 08|3:00 07 08");
    assert_true(whole == plan_of("*:*\nonly asynct_decode/07* zeta:*sk=2 *\n", NULL, "@some", NULL,
                                 "2:00 07|1:00 07 08|2:00 07 08|3:00 07 08"));
    struct at_runner *const all = take_mutants("1");
    plan_of("*:*\nonly asynct_decode/07* zeta:*sk=2 *\n", NULL, "@some", NULL, "2:m0|1:m0 21|2:m0 21|3:m0 21");
    give_back(all);
    setenv("AT_OURS", "1", 1);
}

/* What `make mutate` and selftest say of a mutant holds for the cases that its original is judged on: neither others, nor less. */
static void knows_mutants_by_their_originals(void **state) {
    (void)state;
    struct at_runner *const all = take_mutants("1");
    assert_string_equal(at_runner_variant(runner, 1)->mutant_of, "asynct_decode/08_split_v");
    plan_of("*:*\n", NULL, "@some", NULL, "2:m0|1:m0 21|2:m0 21|3:m0 21");
    plan_of("*:*\nonly asynct_decode/07* zeta:*sk=2 *\nonly */08* zeta:*sk=3 *\n", NULL, "@some", NULL,
            "2:m0|1:m0 21|2:m0|3:21");
    /* by its original's name, not by its own */
    plan_of("*:*\nonly */21* zeta:*sk=2 *\nonly */!(m*) zeta:*sk=3 *\n", NULL, "@some", NULL, "2:m0|1:m0 21|3:m0 21");
    /* their originals are not there, and they are no strangers */
    plan_of("*:*\nonly */31* @(alpha:*|*sk=2 *)\n", NULL, "@some", NULL, "1:m0 21|3:m0 21");
    give_back(all);
}

/* A mutant that is named makes no stranger of the kernels beside it, nor does it take their place. */
static void knows_mutants_beside_strangers(void **state) {
    (void)state;
    struct at_runner *const all = take_mutants("beside");
    plan_of("*:*\nonly asynct_decode/08* zeta:*\n", NULL, "@some", NULL, "2:00 07 m0|1:07 21|2:07 21|3:07 21");
    give_back(all);
}

/* A line of a selection that is run by itself. */
static void holds_for_one_line(void **state) {
    (void)state;
    static const char text[] = "alpha:*\nzeta:*\nonly */07* *sk=2 *\n";
    plan_of(text, NULL, "zeta:*", "@some", "1:00 07 08|2:07|3:00 07 08");
    plan_of(text, NULL, "zeta:*", NULL, "1:00 07 08|2:00 07 08|3:00 07 08");
}

static void refuse(const char *selection, at_status status, const char *says) {
    struct at_selection s = { .cases_glob = "@some", .shards = 1 };
    struct at_plan plan;
    at_case_folder_write("some.selection", selection);
    at_assert_fails(at_plan_make(&s, runner, &plan), status, says);
    assert_null(plan.items);
}

/* That a line names no variant of ours is refused, too, but of attest-cpu alone: tests/cli/test_exit_codes.sh. */
static void refuses_what_it_cannot_read(void **state) {
    (void)state;
    refuse("*:*\nonly\n", AT_USAGE, "some.selection:2: found 'only ', wanted only FAMILY/VARIANT CASES, a glob each");
    refuse("only */07*\n*:*\n", AT_USAGE, "some.selection:1: found 'only */07*', wanted");
    refuse("*:*\nonly zeta:*sk=2 d=64/*\n", AT_USAGE, "some.selection:2: found 'only zeta:*sk=2 d=64/*', wanted");
    refuse("*:*\nonly */07* zeta:*sk=4 *\n", AT_NOT_FOUND, "some.selection:2: no case matches 'zeta:*sk=4 *'");
    refuse("only */07* zeta:*\n", AT_USAGE, "some.selection: selects nothing");
}

/* Variants, mutants, or, of ONLY_MUTANTS=beside, of asynct_decode a kernel that no line names, and the mutants. */
static const struct at_kernel_entry *beside_at(int i) {
    static const int which[] = { 1, 2, 4, 5, 6, 7 };
    return entry_at(which[i]);
}

static int serve(void) {
    const char *how = getenv(ONLY_MUTANTS);
    struct at_kernel_list list = { VARIANTS, entry_at, mutant_of };
    if (how)
        list = strcmp(how, "beside") == 0 ? (struct at_kernel_list){ 6, beside_at, mutant_of }
                                          : (struct at_kernel_list){ MUTANTS, mutant_at, mutant_of };
    return at_rig_serve_list(&list);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return serve();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_some_variants),
        cmocka_unit_test(meets_chosen_variants),
        cmocka_unit_test(leaves_others_alone),
        cmocka_unit_test(judges_strangers_on_everything),
        cmocka_unit_test(knows_mutants_by_their_originals),
        cmocka_unit_test(knows_mutants_beside_strangers),
        cmocka_unit_test(holds_for_one_line),
        cmocka_unit_test(refuses_what_it_cannot_read),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
