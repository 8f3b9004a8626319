/* Claims against planted measurements: arithmetic, rules, the file of claims, and what a changed or missing row makes of a claim.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/archive_files.h"

#include <sys/stat.h>

#include "datasets/language/expression.h"
#include "verify/reproduce/finding.h"
#include "verify/reproduce/terms.h"

/* ---- arithmetic and rules ---- */

/* a = 3, ab = 5 */
static at_status three_and_five(const void *context, const char *at, int length, double *value) {
    *value = length == 1 ? 3 : 5;
    return strncmp(at, context, (size_t)length) == 0 ? AT_OK
                                                     : AT_FAIL(AT_USAGE, "found %.*s, wanted a or ab", length, at);
}
static const struct at_expression_names all = { three_and_five, "ab" };

static double value_of(const char *text) {
    double value;
    at_assert_ok(at_expression_value(text, "here:1", &all, &value));
    return value;
}

static void test_arithmetic(void **state) {
    (void)state;
    double value;
    at_assert_same(value_of("41.64 / 33.07"), 41.64 / 33.07);
    at_assert_same(value_of("1 + 2 * ab - a / 2"), 9.5);
    at_assert_same(value_of("(1 + 2) * (ab - a) "), 6);
    at_assert_same(value_of("8 - 4 - 2"), 2);
    at_assert_same(value_of("16 / 4 / 2"), 2);
    at_assert_same(value_of("1.79e12"), 1.79e12);
    at_assert_same(value_of("a / 0"), NAN); /* above no bound */
    at_assert_fails(at_expression_value("a / b", "f:3", &all, &value), AT_USAGE, "found b, wanted a or ab");
    at_assert_fails(at_expression_value("1 /", "f:3", &all, &value), AT_USAGE, "found \"the end\" at column 4");
    at_assert_fails(at_expression_value("(1", "f:3", &all, &value), AT_USAGE, "wanted a closing parenthesis");
    at_assert_fails(at_expression_value("1 2", "f:3", &all, &value), AT_USAGE, "wanted an operation or the end");
    at_assert_fails(at_expression_value(".5", "f:3", &all, &value), AT_USAGE, "f:3: found \".5\" at column 1");
    char deep[128] = "";
    memset(deep, '(', 100);
    at_assert_fails(at_expression_value(deep, "f:3", &all, &value), AT_USAGE, "at most 32 parentheses");
}

static int meets(const char *rule, double figure, double ours, char why[200]) {
    struct at_claim claim = { .figure = figure };
    at_assert_ok(at_rule_parse(rule, "here:1", &claim));
    return at_rule_meets(&claim, ours, why, 200);
}

static void test_rules(void **state) {
    (void)state;
    char why[200];
    struct at_claim claim = { .figure = 2 };
    assert_false(meets("above 1.03", 2, 1.03, why));
    assert_true(meets("above 1.03", 2, 1.04, why));
    assert_true(meets("above 65504", NAN, INFINITY, why));
    assert_false(meets("below 0.97", 2, 0.97, why));
    assert_true(meets("between 0.97 1.03", 1, 0.97, why));
    assert_false(meets("between 0.97 1.03", 1, 1.031, why));
    assert_true(meets("equals 65504", NAN, 65504, why));
    assert_false(meets("equals 65504", NAN, 65503, why));
    assert_true(meets("within 1.5", 2, 3, why) && meets("within 1.5", 3, 2, why));
    assert_false(meets("within 1.5", 2, 3.01, why));
    assert_false(meets("within 1.5", 2, 1.33, why));
    /* Each condition by itself fails; what is said names those that do. */
    assert_false(meets("above 1.03 and within 1.5", 3, 1.02, why));
    assert_string_equal(why, "ours is not above 1.03, not within a factor 1.5 of 3");
    assert_false(meets("above 1.03 and within 1.5", 3, 1.9, why));
    assert_string_equal(why, "the direction holds, not the size: ours is not within a factor 1.5 of 3");
    static const char *const rules[] = { "above 1", "below 1", "between 0 9", "equals 1", "within 2" };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_false(meets(rules[i], 2, NAN, why));

    at_assert_fails(at_rule_parse("abov 1", "f:4", &claim), AT_USAGE,
                    "f:4: rule: found \"abov 1\", did you mean 'above'?");
    claim.n_rule = 0;
    at_assert_fails(at_rule_parse("above", "f:4", &claim), AT_USAGE, "found \"the end\", wanted a number");
    claim.n_rule = 0;
    at_assert_fails(at_rule_parse("above nan", "f:4", &claim), AT_USAGE, "wanted a number");
    claim.n_rule = 0;
    at_assert_fails(at_rule_parse("between 2 1", "f:4", &claim), AT_USAGE, "the lesser end first");
    claim.n_rule = 0;
    at_assert_fails(at_rule_parse("above 1 or below 2", "f:4", &claim), AT_USAGE, "wanted `and` or the end");
    claim = (struct at_claim){ .figure = (double)NAN };
    at_assert_fails(at_rule_parse("within 2", "f:4", &claim), AT_USAGE, "of a figure above 0");
}

/* ---- the file of claims ---- */

static void write_text(const char *file, const char *text) { store(file, text, strlen(text)); }

static void refuses(const char *text, const char *said) {
    struct at_claims claims;
    char want[256];
    write_text(path, text);
    snprintf(want, sizeof want, "%s:%s", path, said);
    at_assert_fails(at_claims_load(path, &claims), AT_USAGE, want);
    at_claims_release(&claims);
}

#define GOOD "claim one\nsource 000 1\nwhat any\nfigure 2 x\nlet a = format f16 max\nours a\nrule above 1\n"

static void test_malformed_claims(void **state) {
    (void)state;
    struct at_claims claims;
    write_text(path, "# a comment\n\n" GOOD);
    at_assert_ok(at_claims_load(path, &claims));
    assert_int_equal(claims.n, 1);
    at_assert_same(claims.items[0].figure, 2);
    assert_string_equal(claims.items[0].unit, "x");
    at_claims_release(&claims);

    refuses("figure 1\n", "1: found \"figure\" before the first `claim`");
    refuses("claim Not_This\n", "1: claim: found \"Not_This\", wanted small letters");
    refuses(GOOD GOOD, "8: claim one: is there twice, first at ");
    refuses("claim a\nsource 000\n", "2: source: found \"000\", wanted a key and a section");
    refuses("claim a\nwhta b\n", "2: found \"whta\", did you mean 'what'?");
    refuses("claim a\nwhat\n", "2: found \"what\" with nothing behind it");
    refuses("claim a\nwhat b\nwhat c\n", "3: found a second `what`");
    refuses("claim a\nfigure x / 1\n", "2: found \"x\", wanted a number");
    refuses("claim a\nlet a b\n", "2: let: found \"a\", wanted NAME = KIND WORD...");
    refuses("claim a\nlet a = bensh b\n", "2: let: found \"bensh\", did you mean 'bench'?");
    refuses("claim a\nlet a = bench gemm hot m=1\n", "2: bench: found \"gemm\", wanted FAMILY/VARIANT");
    refuses("claim a\nlet a = bench gemm/01 hod m=1\n", "2: bench: found column \"hod\", did you mean 'hot'?");
    refuses("claim a\nlet a = bench gemm/01 variant m=1\n", "2: bench: found column \"variant\", ");
    refuses("claim a\nlet a = bench gemm/01 hot m\n", "2: bench: found \"m\", wanted FAMILY/VARIANT COLUMN KEY=VALUE");
    refuses("claim a\nlet a = row nothing hot a=1\n", "2: row: found \"nothing\", wanted a table");
    refuses("claim a\nlet a = row bench hot nothing=1\n", "2: row: found column \"nothing\"");
    refuses("claim a\nlet a = resource gemm/01 registers sm_90 b\n",
            "2: resource: found \"sm_90\", wanted arch= or entry=");
    refuses("claim a\nlet a = count gemm/01 atomic gemm m=1\n", "2: count: found \"atomic\", did you mean 'atomics'?");
    refuses("claim a\nlet a = count gemm/01 atomics gemm m=1,2 n=8 k=8\n",
            "2: count: found \"gemm m=1,2 n=8 k=8\", wanted one case");
    refuses("claim a\nlet a = add f16_k1 4 1 1\n", "2: add: found \"f16_k1\", did you mean 'f16_k8'?");
    refuses("claim a\nlet a = add f16_k16 4 1 0.1\n",
            "2: add: found \"0.1\", wanted a number that the mode's operands");
    refuses("claim a\nlet a = study f16_k16 pq err_mean asynct_decode sk=4\n", "2: study: found \"pq\"");
    refuses("claim a\nlet a = ledger scor zero asynct_decode sk=4\n", "2: ledger: found \"scor\"");
    refuses("claim a\nlet a = zeros ones reglu channels=16\n", "2: zeros: found \"ones\"");
    refuses("claim a\nsource 000 1\n", "1: claim a: wanted a line `what`");
    refuses("claim a\nsource 000 1\nwhat b\n", "1: claim a: wanted a line `ours`, or `unseen` with the reason");
    refuses("claim a\nsource 000 1\nwhat b\nours 1.5\nrule above 1\n",
            "1: claim a: found no `let`, wanted ours to come");
    refuses("claim a\nsource 000 1\nwhat b\nlet a = format f16 max\nours a / b\nrule above 1\n" GOOD,
            "1: found \"b\", wanted the name of a term");
    refuses(GOOD "unseen why\n", "1: claim one: found `unseen` beside `ours`");
    refuses("# nothing\n", " has no claims");
}

/* ---- planted measurements ---- */

#define CLAIM \
    "claim slow\nsource 000 1\nwhat any\nfigure 2 x\nlet a = bench gemm/01_fast hot m=8 k=16\n" \
    "let b = bench gemm/02_slow hot m=8 k=16\nours b / a\nrule above 1.03 and within 1.5\n"

struct planted {
    const char *variant, *line;
    double hot;
};

/* An archive of a benchmark with these rows, and keys that came later left out of their cases. */
static void plant(const char *file, const struct planted *rows, int n) {
    struct at_bench_run run = { .rows = calloc((size_t)n + 1, sizeof *run.rows), .n = n };
    at_run_record_init(&run.record);
    run.record.request = strdup("{}");
    run.record.provenance = strdup("{\"commit\":\"0123456789abcdef\",\"device\":\"A Card, sm_1\"}");
    for (int i = 0; i < n; i++) {
        struct at_bench_row *row = &run.rows[i];
        row->hot = row->cold = rows[i].hot;
        row->flops = row->scores = row->source_seconds = (double)NAN;
        row->timed = !isnan(rows[i].hot);
        snprintf(row->family, sizeof row->family, "gemm");
        snprintf(row->variant, sizeof row->variant, "%s", rows[i].variant);
        snprintf(row->case_id, sizeof row->case_id, "%s", rows[i].line);
        snprintf(row->verdict, sizeof row->verdict, "%s", row->timed ? "MODEL-EXACT" : "UNSUPPORTED: not here");
    }
    at_assert_ok(at_bench_run_write(&run, file));
    at_bench_run_release(&run);
}

static struct at_finding found; /* of the last call */

/* The claim text against the archives `from`. */
static enum at_claim_verdict hold(const char *text, const char *from) {
    static struct at_claims claims;
    struct at_evidence evidence;
    struct at_finding *findings;
    int n;
    char file[128];
    snprintf(file, sizeof file, "%s/claims", folder);
    write_text(file, text);
    at_claims_release(&claims);
    at_assert_ok(at_claims_load(file, &claims));
    at_assert_ok(at_evidence_load(from, &evidence));
    at_assert_ok(at_findings_make(&claims, "\1", &evidence, &findings, &n));
    assert_int_equal(n, 1);
    found = findings[0];
    free(findings);
    at_evidence_release(&evidence);
    unlink(file);
    return found.verdict;
}

static const char line8[] = "gemm m=8 n=8 k=16 dtype=f16";

static void test_a_row_decides(void **state) {
    (void)state;
    struct planted rows[] = { { "01_fast", line8, 1e-6 },
                              { "02_slow", line8, 2.5e-6 },
                              { "02_slow", "gemm m=9 n=8 k=16", 1 } };
    plant(path, rows, 3);
    assert_int_equal(hold(CLAIM, path), AT_SUPPORTED);
    at_assert_within(found.ours, 2.5, 1e-12);
    assert_string_equal(found.device, "A Card");
    assert_string_equal(found.commit, "0123456789abcdef");
    assert_string_equal(found.file, "run.h5");
    rows[1].hot = 0.5e-6; /* another direction */
    plant(path, rows, 3);
    assert_int_equal(hold(CLAIM, path), AT_REFUTED);
    at_assert_within(found.ours, 0.5, 1e-12);
    rows[1].hot = 9e-6; /* another size */
    plant(path, rows, 3);
    assert_int_equal(hold(CLAIM, path), AT_REFUTED);
    assert_non_null(strstr(found.why, "the direction holds"));
    rows[1].hot = NAN; /* not timed */
    plant(path, rows, 3);
    assert_int_equal(hold(CLAIM, path), AT_NOT_SEEN);
    at_assert_same(found.ours, NAN);
    assert_non_null(strstr(found.why, "UNSUPPORTED: not here"));
    plant(path, rows, 1); /* not there */
    assert_int_equal(hold(CLAIM, path), AT_NOT_SEEN);
    assert_string_equal(found.why, "not measured: no row gemm/02_slow with m=8 k=16");
    at_assert_same(found.ours, NAN);
}

/* m=8 is not m=80; a key that the archive's language did not have yet has its default. */
static void test_keys(void **state) {
    (void)state;
    const struct planted rows[] = { { "01_fast", "gemm m=80 n=8 k=16 dtype=f16", 1e-6 }, { "02_slow", line8, 2e-6 } };
    plant(path, rows, 2);
    assert_int_equal(hold(CLAIM, path), AT_NOT_SEEN);
    const struct planted whole[] = { { "01_fast", line8, 1e-6 }, { "02_slow", line8, 2e-6 } };
    plant(path, whole, 2);
    assert_int_equal(
        hold("claim slow\nsource 000 1\nwhat any\nlet a = bench gemm/01_fast hot m=8 out=f16\nours a\nrule above 0\n",
             path),
        AT_SUPPORTED);
    assert_int_equal(
        hold("claim slow\nsource 000 1\nwhat any\nlet a = bench gemm/01_fast hot m=8 out=f32\nours a\nrule above 0\n",
             path),
        AT_NOT_SEEN);
}

static void test_two_rows(void **state) {
    (void)state;
    struct at_claims claims;
    struct at_evidence evidence;
    struct at_finding *findings;
    int n;
    const struct planted rows[] = { { "01_fast", line8, 1e-6 }, { "01_fast", "gemm m=8 n=9 k=16 dtype=f16", 2e-6 } };
    plant(path, rows, 2);
    write_text(other, CLAIM);
    at_assert_ok(at_claims_load(other, &claims));
    at_assert_ok(at_evidence_load(path, &evidence));
    at_assert_fails(at_findings_make(&claims, "\1", &evidence, &findings, &n), AT_USAGE,
                    "5: a: run.h5 has two rows of it");
    free(findings);
    at_evidence_release(&evidence);
    at_claims_release(&claims);
}

/* Times of two runs are not divided by each other; of two runs that have both rows the newer counts. */
static void test_one_run(void **state) {
    (void)state;
    const struct planted rows[] = { { "01_fast", line8, 1e-6 }, { "02_slow", line8, 2e-6 } };
    const struct planted later[] = { { "01_fast", line8, 1e-6 }, { "02_slow", line8, 8e-6 } };
    char page[128], from[300];
    plant(path, rows, 1);
    plant(other, rows + 1, 1);
    snprintf(from, sizeof from, "%s,%s", path, other);
    assert_int_equal(hold(CLAIM, from), AT_NOT_SEEN);
    plant(path, rows, 2);
    plant(other, later, 2);
    snprintf(page, sizeof page, "%s/README.md", folder);
    write_text(page, "| `other.h5` | x | y | 2026-01-02 | z |\n| `run.h5` | x | y | 2026-01-03 | z |\n");
    assert_int_equal(hold(CLAIM, folder), AT_SUPPORTED);
    assert_string_equal(found.date, "2026-01-03");
    write_text(page, "| `other.h5` | x | y | 2026-01-02 | z |\n| `run.h5` | x | y | 2025-12-31 | z |\n");
    assert_int_equal(hold(CLAIM, folder), AT_REFUTED);
    assert_string_equal(found.file, "other.h5");
    unlink(page);
    assert_int_equal(hold(CLAIM, from), AT_SUPPORTED); /* no dates: by name backwards */
    assert_string_equal(found.date, "");
}

static void test_resources(void **state) {
    (void)state;
    static const char claim[] =
        "claim slow\nsource 000 1\nwhat any\nlet a = resource gemm/01_fast registers arch=sm_1 entry=k<1>\n"
        "ours a\nrule equals 40\n";
    char table[128];
    const struct planted rows[] = { { "01_fast", line8, 1e-6 } };
    plant(path, rows, 1);
    assert_int_equal(hold(claim, folder), AT_NOT_SEEN);
    snprintf(table, sizeof table, "%s/resources.tsv", folder);
    write_text(table, "source\tentry\tarch\tregisters\nkernels/gemm/01_fast.cu\tk<1>\tsm_1\t40\nkernels/gemm/"
                      "01_fast.cu\tk<1>\tsm_2\t41\n");
    assert_int_equal(hold(claim, folder), AT_SUPPORTED);
    assert_string_equal(found.file, "resources.tsv");
    write_text(table, "source\tentry\tarch\tregisters\nkernels/gemm/01_fast.cu\tk<1>\tsm_1\t44\n");
    assert_int_equal(hold(claim, path), AT_REFUTED);
    unlink(table);
}

/* One computed term, which must give what is known of it. */
static void gives(const char *term, double low, double high) {
    char text[512];
    snprintf(text, sizeof text, "claim one\nsource 000 1\nwhat any\nlet a = %s\nours a\nrule between %.17g %.17g\n",
             term, low, high);
    const enum at_claim_verdict verdict = hold(text, path);
    at_assert_true(verdict == AT_SUPPORTED, "%s: %.17g, wanted %g to %g; %s", term, found.ours, low, high, found.why);
    assert_string_equal(found.file, "computed here");
}

static void test_computed(void **state) {
    (void)state;
    const struct planted rows[] = { { "01_fast", line8, 1e-6 } };
    plant(path, rows, 1);
    gives("bytes gemv m=1 n=72 k=40 layout=kn dtype=bf16", 2 * (40 + 40 * 72 + 72), 2 * (40 + 40 * 72 + 72));
    gives("ledger p count asynct_decode b=2 h=2 hk=2 sk=100 d=16 dtype=f16", 400, 400);
    gives("ledger p zero asynct_decode b=2 h=2 hk=2 sk=1000 d=16 dtype=f16 data=sparse70", 0.6 * 4000, 0.8 * 4000);
    gives("ledger score above_65504 asynct_decode b=1 h=1 hk=1 sk=64 d=16 dtype=f16 data=normal", 0, 0);
    gives("ledger score max_abs asynct_decode b=1 h=1 hk=1 sk=64 d=16 dtype=f16 data=normal", 1, 100);
    gives("zeros elements reglu tokens=32 channels=64 dtype=bf16", 2048, 2048);
    gives("zeros zero reglu tokens=32 channels=64 dtype=bf16", 0.4 * 2048, 0.6 * 2048);
    gives("zeros zero_blocks reglu tokens=32 channels=64 dtype=bf16", 0, 0);
    gives("study f32_fma qk sums softmax_decode b=1 h=1 hk=1 sk=64 d=16 dtype=f16", 64, 64);
    gives("study f16_k16 qk err_max softmax_decode b=1 h=1 hk=1 sk=64 d=64 dtype=f16", 1e-6, 1e-2);
    gives("add f16_k16 4096 4 2", 32768, 32768);
    gives("format bf16 precision", 8, 8);
    gives("format f16 u", 0x1p-11, 0x1p-11);
}

/* Sums over an archive's rows, and one of them. */
static void test_rows_of_any_table(void **state) {
    (void)state;
    static const char head[] = "claim one\nsource 000 1\nwhat any\nlet a = ";
    const struct planted rows[] = { { "01_fast", line8, 1 },
                                    { "02_slow", line8, 2 },
                                    { "02_slow", "gemm m=9 n=8 k=16", 4 } };
    char text[512];
    plant(path, rows, 3);
    snprintf(text, sizeof text, "%ssum bench hot family=gemm\nours a\nrule equals 7\n", head);
    assert_int_equal(hold(text, path), AT_SUPPORTED);
    snprintf(text, sizeof text, "%ssum bench hot variant=02_slow timed=1\nours a\nrule equals 6\n", head);
    assert_int_equal(hold(text, path), AT_SUPPORTED);
    snprintf(text, sizeof text, "%srow bench hot variant=01_fast\nours a\nrule equals 1\n", head);
    assert_int_equal(hold(text, path), AT_SUPPORTED);
    snprintf(text, sizeof text, "%srow bench hot variant=03_none\nours a\nrule equals 1\n", head);
    assert_int_equal(hold(text, path), AT_NOT_SEEN);
    assert_non_null(strstr(found.why, "no hot of table bench with variant=03_none"));
}

/* ---- the committed claims ---- */

/* Does a file of peers in Python have a variant of this name? */
static int peers_have(const char *name) {
    char command[1400];
    snprintf(command, sizeof command, "grep -qF '\"%s\"' '%s'/../kernels/runner/python/peers/*.py", name,
             at_datasets_dir());
    return system(command) == 0;
}

/* What can be measured can also be asked for: each row that a claim wants is one kernel of the tree, or a peer, on one case of
 * the benchmark. */
static void test_committed_terms(void **state) {
    (void)state;
    struct at_case_list cases = { 0 };
    struct at_claims claims;
    char file[1200], family[192];
    int benched = 0;
    snprintf(file, sizeof file, "%s/bench", at_datasets_dir());
    at_assert_ok(at_case_load_dir(file, &cases));
    snprintf(file, sizeof file, "%s/bench/claims.txt", at_datasets_dir());
    at_assert_ok(at_claims_load(file, &claims));
    assert_true(claims.n >= 30);
    for (int i = 0; i < claims.n; i++)
        for (int t = 0; t < claims.items[i].n_terms; t++) {
            const struct at_term *term = &claims.items[i].terms[t];
            int hits = 0;
            if (!term->kind->benched)
                continue;
            benched++;
            snprintf(family, sizeof family, "%.*s", (int)strcspn(term->words[0], "/"), term->words[0]);
            for (int64_t c = 0; c < cases.n; c++)
                hits += strcmp(cases.items[c].family->name, family) == 0 &&
                        at_term_takes(term, family, strchr(term->words[0], '/') + 1, cases.items[c].id);
            at_assert_true(hits == 1, "%s: %s: %d cases of datasets/bench, wanted one", term->where, term->words[0],
                           hits);
            snprintf(file, sizeof file, "%s/../kernels/%s.cu", at_datasets_dir(), term->words[0]);
            at_assert_true(access(file, R_OK) == 0 || peers_have(strchr(term->words[0], '/') + 1),
                           "%s: no kernel %s, and no peer of that name", term->where, file);
        }
    assert_true(benched > 100);
    at_claims_release(&claims);
    at_case_list_release(&cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_rules),
        with_folder(test_malformed_claims),
        with_folder(test_a_row_decides),
        with_folder(test_keys),
        with_folder(test_two_rows),
        with_folder(test_one_run),
        with_folder(test_resources),
        with_folder(test_computed),
        with_folder(test_rows_of_any_table),
        cmocka_unit_test(test_committed_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
