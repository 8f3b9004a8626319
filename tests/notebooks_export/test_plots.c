/* Plots: where axes end and what their ticks say; no mark outside its panel, no number that is none in the file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "notebooks_export/plots/axis.h"
#include "notebooks_export/plots/plots.h"
#include "notebooks_export/plots/svg.h"

static void assert_axis(enum at_axis_scale scale, double least, double most, int ticks, double first, double last,
                        double step) {
    const struct at_axis a = at_axis_of(scale, least, most, ticks);
    at_assert_within(a.first, first, 1e-12);
    at_assert_within(a.last, last, 1e-12);
    at_assert_within(a.step, step, 1e-12);
}

static void test_axes(void **state) {
    (void)state;
    assert_axis(AT_AXIS_POWERS_OF_2, 64, 4096, 7, 6, 12, 1);
    assert_axis(AT_AXIS_POWERS_OF_2, 64, 4096, 3, 6, 12, 2);
    assert_axis(AT_AXIS_POWERS_OF_2, 100, 100, 3, 6, 7, 1);
    assert_axis(AT_AXIS_POWERS_OF_10, 2e-7, 0.5, 5, -7, 0, 2);
    assert_axis(AT_AXIS_POWERS_OF_10, INFINITY, -INFINITY, 5, 0, 1, 1); /* nothing to show */
    assert_axis(AT_AXIS_PERCENT, 0.2, 0.3, 5, 0, 4, 1);
    assert_axis(AT_AXIS_LINEAR, -3.2, 17, 5, -5, 20, 5);
    assert_axis(AT_AXIS_LINEAR, 0, 100, 5, 0, 100, 20);
    assert_axis(AT_AXIS_LINEAR, 2, 2, 5, 1.4, 2.6, 0.2);
    assert_axis(AT_AXIS_LINEAR, INFINITY, -INFINITY, 5, 0, 1, 1);
    char text[32];
    const struct at_axis two = at_axis_of(AT_AXIS_POWERS_OF_2, 0.25, 16, 6),
                         line = at_axis_of(AT_AXIS_LINEAR, -1, 1, 4);
    at_assert_same(at_axis_tick(&two, 4, text, sizeof text), 1);
    assert_string_equal(text, "16");
    at_axis_tick(&two, -2, text, sizeof text);
    assert_string_equal(text, "2^-2");
    at_axis_tick(&line, 1e-17, text, sizeof text);
    assert_string_equal(text, "0");
    at_assert_same(at_axis_share(&two, 2), 0.5);
    at_assert_same(at_axis_share(&line, 0), 0.5);
    at_assert_true(!at_axis_takes(AT_AXIS_POWERS_OF_10, 0) && at_axis_takes(AT_AXIS_PERCENT, 0), "zero");
    at_assert_true(at_axis_takes(AT_AXIS_LINEAR, -1) && !at_axis_takes(AT_AXIS_LINEAR, INFINITY), "infinity");
    at_assert_true(!at_axis_takes(AT_AXIS_PERCENT, NAN) && !at_axis_takes(AT_AXIS_POWERS_OF_2, -1), "NaN");
}

/* ---- whole plots ---- */

struct image {
    char *text;
    size_t size;
    FILE *f;
};

static struct image *begin(struct image *image) {
    image->f = open_memstream(&image->text, &image->size);
    assert_non_null(image->f);
    return image;
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

static double attribute(const char *at, const char *name) {
    const char *found = strstr(at, name);
    at_assert_true(found != NULL, "no %s in %.60s", name, at);
    return strtod(found + strlen(name), NULL);
}

/* Balanced, no coordinate that is no number, every mark inside the image. */
static void assert_image(struct image *image) {
    fclose(image->f);
    const char *t = image->text;
    const double width = attribute(t, " width=\""), height = attribute(t, " height=\"");
    assert_int_equal(count(t, "<svg"), 1);
    assert_int_equal(count(t, "</svg>"), 1);
    assert_int_equal(count(t, "<text"), count(t, "</text>"));
    at_assert_true(!strstr(t, "\"nan") && !strstr(t, "\"-nan") && !strstr(t, "\"inf") && !strstr(t, "\"-inf"), "%s", t);
    at_assert_true(!strstr(t, " nan") && !strstr(t, "Mnan") && !strstr(t, "Hnan"), "%s", t);
    for (const char *at = t; (at = strstr(at, "<text")); at++) {
        const double x = attribute(at, " x=\""), y = attribute(at, " y=\"");
        at_assert_true(x >= 0 && x <= width && y >= 0 && y <= height, "a text at %g, %g of %g x %g", x, y, width,
                       height);
    }
    for (const char *at = t; (at = strstr(at, "<circle")); at++) {
        const double x = attribute(at, " cx=\""), y = attribute(at, " cy=\"");
        at_assert_true(x >= 0 && x <= width && y >= 0 && y <= height, "a point at %g, %g", x, y);
    }
}

static void fill(struct at_plot *plot, int panels) {
    char title[32];
    for (int p = 0; p < panels; p++) {
        snprintf(title, sizeof title, "panel <%d>", p);
        struct at_panel *panel = at_plot_add(plot, title);
        assert_non_null(panel);
        panel->n = 2;
        panel->curve[0].look = AT_LOOK_DOTS;
        panel->curve[1].look = AT_LOOK_PALE;
        panel->curve[1].steps = 1;
        for (int i = 0; i < 6; i++) {
            at_curve_add(&panel->curve[0], 1 << i, i == 2 ? NAN : i == 3 ? 0 : 0.01 * (i + 1));
            at_curve_add(&panel->curve[1], 1 << i, i == 4 ? INFINITY : 0.001 * (i + 1));
        }
    }
}

static void test_panels(void **state) {
    (void)state;
    struct at_plot plot = { .title = "a & b",
                            .x_title = "x",
                            .y_title = "y",
                            .x_scale = AT_AXIS_POWERS_OF_2,
                            .y_scale = AT_AXIS_POWERS_OF_10,
                            .legend = { [AT_LOOK_DOTS] = "points", [AT_LOOK_PALE] = "steps" },
                            .nothing = "nothing here",
                            .mark = NAN };
    plot.panels = calloc(AT_PLOT_PANELS, sizeof *plot.panels);
    assert_non_null(plot.panels);
    fill(&plot, 6);
    struct image sheet, alone, sample;
    at_plot_sheet(begin(&sheet)->f, &plot);
    assert_image(&sheet);
    assert_int_equal(count(sheet.text, "<circle"), 6 * 4 + 1); /* four of six points can be drawn; one in the legend */
    assert_non_null(strstr(sheet.text, "a &amp; b"));
    assert_non_null(strstr(sheet.text, "panel &lt;5&gt;"));
    assert_null(strstr(sheet.text, "nothing here"));
    at_plot_panel(begin(&alone)->f, &plot, 3);
    assert_image(&alone);
    assert_int_equal(count(alone.text, "<circle"), 4);
    at_plot_sample(begin(&sample)->f, AT_LOOK_RINGS);
    assert_image(&sample);
    free(sheet.text);
    free(alone.text);
    free(sample.text);
    plot.n_panels = 0;
    fill(&plot, AT_PLOT_PANELS);
    assert_null(at_plot_add(&plot, "one too many"));
    plot.n_panels = 1;
    plot.panels[0].n = 0;
    at_plot_sheet(begin(&sheet)->f, &plot);
    assert_image(&sheet);
    assert_non_null(strstr(sheet.text, "nothing here"));
    free(sheet.text);
    for (int i = 0; i < 2 * AT_PLOT_POINTS; i++)
        at_curve_add(&plot.panels[1].curve[0], i, i);
    assert_int_equal(plot.panels[1].curve[0].n, AT_PLOT_POINTS);
    free(plot.panels);
}

static void test_bars(void **state) {
    (void)state;
    struct at_bar items[] = { { "half", { 0.5, 1.0 } }, { "more than all", { 2.5, NAN } }, { "none", { NAN, NAN } } };
    struct at_bars bars = { .title = "t", .x_title = "x", .legend = { "pale", "dark" }, .n = 3, .bars = items };
    struct image image;
    at_plot_bars(begin(&image)->f, &bars);
    assert_image(&image);
    assert_int_equal(count(image.text, "<rect"), 1 + 2 + 3); /* paper, legend, bars */
    assert_non_null(strstr(image.text, ">300 %<"));
    free(image.text);
    bars.legend[1] = NULL;
    at_plot_bars(begin(&image)->f, &bars);
    assert_image(&image);
    assert_int_equal(count(image.text, "<rect"), 1 + 1 + 2);
    free(image.text);
}

static void test_heat(void **state) {
    (void)state;
    static const char *const rows[] = { "first", "second" }, *const cols[] = { "a", "a long name <&>", "c" };
    const double values[] = { 0, 5, 10, NAN, INFINITY, -INFINITY };
    const struct at_heat heat = { .title = "t",
                                  .x_title = "x",
                                  .y_title = "y",
                                  .rows = 2,
                                  .cols = 3,
                                  .row_names = rows,
                                  .col_names = cols,
                                  .values = values,
                                  .pale = 10,
                                  .dark = 0,
                                  .digits = 1 };
    struct image image;
    at_plot_heat(begin(&image)->f, &heat);
    assert_image(&image);
    assert_int_equal(count(image.text, "<rect"), 1 + 6 + 1);
    assert_int_equal(count(image.text, "fill=\"#ffffff\""), 3); /* 10, NaN and inf: the pale end */
    assert_int_equal(count(image.text, "fill=\"#898989\""), 2); /* 0 and -inf: the dark one, on which black is read */
    assert_int_equal(count(image.text, "fill=\"#fff\">"), 0);   /* so no text is white */
    assert_non_null(strstr(image.text, ">-<"));
    assert_non_null(strstr(image.text, ">-inf<"));
    assert_non_null(strstr(image.text, "a long name &lt;&amp;&gt;"));
    free(image.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_panels),
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_heat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
