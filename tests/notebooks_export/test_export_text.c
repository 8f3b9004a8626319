/* The texts that exports are made of: fields of CSV, numbers that read back, escapes of XML, notebooks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "notebooks_export/csv_write.h"
#include "notebooks_export/notebook.h"
#include "notebooks_export/templates.h"
#include "notebooks_export/plots/svg.h"
#include "tests/support/splitmix.h"

/* What `put` writes for a text; the caller frees it. */
static char *written(void (*put)(FILE *, const char *), const char *text) {
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream(&out, &size);
    assert_non_null(f);
    put(f, text);
    fclose(f);
    return out;
}

static void test_csv_text(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        { "", "" },
        { "plain text", "plain text" },
        { "a,b", "\"a,b\"" },
        { "say \"so\"", "\"say \"\"so\"\"\"" },
        { "two\nlines", "\"two\nlines\"" },
        { "carriage\rreturn", "\"carriage\rreturn\"" },
        { " blank", "\" blank\"" },
        { "blank ", "\"blank \"" },
        { "\xc3\xbc", "\xc3\xbc" },
        { "\"", "\"\"\"\"" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *got = written(at_csv_text, pairs[i][0]);
        assert_string_equal(got, pairs[i][1]);
        free(got);
    }
}

static void test_numbers_read_back(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } all[] = { { 0.1, "0.1" },        { 1, "1" },      { -0.0, "-0" },    { NAN, "" }, { INFINITY, "inf" },
                { -INFINITY, "-inf" }, { 1 / 3.0, "" }, { 65504, "65504" } };
    char text[32];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        at_number_text(all[i].value, text, sizeof text);
        if (i == 6) /* 15 digits do not bring a third back */
            at_assert_true(strlen(text) == 18 && strtod(text, NULL) == 1 / 3.0, "%s", text);
        else
            assert_string_equal(text, all[i].text);
    }
    struct splitmix random = { 11 };
    for (long i = 0; i < 20000 * at_test_effort(10); i++) {
        const uint64_t bits = splitmix_next(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        at_number_text(value, text, sizeof text);
        at_assert_same(strtod(text, NULL), value);
    }
}

static void test_escapes(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        { "<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" },
        { "a & \"b\"", "a &amp; &quot;b&quot;" },
        { "\x1b[31m\x7f\x01", "?[31m??" },
        { "tab\tline\n", "tab\tline\n" },
        { "\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", "??\xef\xbf\xbd" }, /* XML has neither U+FFFE nor U+FFFF */
        { "&lt;", "&amp;lt;" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *got = written(at_svg_escape, pairs[i][0]);
        assert_string_equal(got, pairs[i][1]);
        free(got);
    }
}

/* ---- notebooks ---- */

static const char *const lines[] = { "left out",
                                     "# %% [markdown]",
                                     "# # @TITLE@",
                                     "#",
                                     "# text @GROUP@",
                                     "",
                                     "# %%",
                                     "x = \"@ARCHIVE@\"",
                                     "",
                                     "y = 1  # @nothing@",
                                     "",
                                     "",
                                     "# %%",
                                     NULL };

static const char *text_of(const struct at_notebook *n, size_t cell, size_t line) {
    return json_string_value(json_array_get(json_object_get(json_array_get(n->cells, cell), "source"), line));
}

static void test_notebook(void **state) {
    (void)state;
    const struct at_notebook_words words = { .title = "<b>a\"_b</b>", .archive = "../a \"b\\c\n.h5", .group = NULL };
    struct at_notebook notebook;
    char *text = NULL, *again = NULL;
    at_assert_ok(at_notebook_init(&notebook));
    at_assert_ok(at_notebook_add(&notebook, "some", lines, &words));
    assert_int_equal(json_array_size(notebook.cells), 3);
    assert_string_equal(text_of(&notebook, 0, 0), "# ?b?a?_b?/b?\n"); /* markdown may hold HTML */
    assert_string_equal(text_of(&notebook, 0, 1), "\n");
    assert_string_equal(text_of(&notebook, 0, 2), "text ");
    assert_null(text_of(&notebook, 0, 3));
    assert_string_equal(text_of(&notebook, 1, 0), "x = \"../a \\\"b\\\\c\\n.h5\"\n");
    assert_string_equal(text_of(&notebook, 1, 2), "y = 1  # @nothing@");
    assert_null(text_of(&notebook, 1, 3));
    assert_null(text_of(&notebook, 2, 0));
    assert_string_equal(json_string_value(json_object_get(json_array_get(notebook.cells, 1), "id")), "some-2");
    assert_string_equal(json_string_value(json_object_get(json_array_get(notebook.cells, 0), "cell_type")), "markdown");
    at_assert_ok(at_notebook_text(&notebook, &text));
    at_assert_ok(at_notebook_text(&notebook, &again));
    assert_string_equal(text, again);
    json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_integer_value(json_object_get(whole, "nbformat")), 4);
    assert_int_equal(json_integer_value(json_object_get(whole, "nbformat_minor")), 5);
    json_decref(whole);
    free(text);
    free(again);
    at_notebook_release(&notebook);
}

/* The templates went through the shell into C: quotes, backslashes and all lines are what they are in the files. */
static void test_templates(void **state) {
    (void)state;
    int n = 0;
    for (; at_templates[n].name; n++) {
        char path[256], *line = NULL;
        size_t size = 0;
        int i = 0;
        snprintf(path, sizeof path, "notebooks_export/templates/%s", at_templates[n].name);
        FILE *f = fopen(path, "re");
        at_assert_true(f != NULL, "no %s", path);
        for (; getline(&line, &size, f) >= 0; i++) {
            line[strcspn(line, "\n")] = 0;
            at_assert_true(at_templates[n].lines[i] != NULL, "%s ends at line %d", path, i + 1);
            assert_string_equal(at_templates[n].lines[i], line);
        }
        assert_null(at_templates[n].lines[i]);
        free(line);
        fclose(f);
    }
    at_assert_true(n >= 5, "%d templates", n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv_text), cmocka_unit_test(test_numbers_read_back), cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_notebook), cmocka_unit_test(test_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
