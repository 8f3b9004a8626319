/* attest bench dispatch, and bench --tune: what dispatchers choose, written from times, and held against them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of the variants that are within a hundredth of a shape's fastest any will do, and times of one kernel differ by as much from run to
 * run: those are taken that the fewest variants make up, so that a new measurement changes no more rows than it must. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verify/bench/bench.h"
#include "verify/result/table.h"

/* Names the kernel that a dispatcher is, in every family that has one. */
static const char dispatcher[] = "39_dispatch";
static const double as_good = 1.01;

/* A case of a family: its rows, the fastest candidate, the chosen one, and the dispatcher's own; -1: none. */
struct shape {
    struct at_case_list cases;
    struct at_sizes sizes;
    enum at_format dtype;
    int first, end, fastest, chosen, dispatched;
};

struct tuning {
    const struct at_bench_row *rows;
    struct shape *shapes;
    int n;
};

static int is_timed(const struct at_bench_row *r) {
    return !r->peer && r->timed && !r->wrong && !isnan(r->cold) && (!r->state[0] || strcmp(r->state, "PASS") == 0);
}

/* Bits that change from launch to launch are nobody's choice. */
static int is_candidate(const struct at_bench_row *r) {
    struct at_numerics numerics;
    const int repeats = at_numerics_parse(r->numerics, &numerics) == AT_OK && numerics.repeats;
    at_error_clear();
    return is_timed(r) && repeats && strcmp(r->variant, dispatcher) != 0;
}

static at_status open_shape(const struct at_bench_row *rows, int first, int end, struct shape *s) {
    struct at_case_data data;
    *s = (struct shape){ .first = first, .end = end, .fastest = -1, .chosen = -1, .dispatched = -1 };
    AT_TRY(at_case_parse(rows[first].case_id, "bench", "a timed case", &s->cases));
    AT_TRY(at_case_outline(&s->cases.items[0], &data));
    s->sizes = data.problem.sizes;
    s->dtype = data.problem.dtype;
    at_case_data_release(&data);
    for (int i = first; i < end; i++) {
        if (is_candidate(&rows[i]) && (s->fastest < 0 || rows[i].cold < rows[s->fastest].cold))
            s->fastest = i;
        if (is_timed(&rows[i]) && strcmp(rows[i].variant, dispatcher) == 0)
            s->dispatched = i;
    }
    return AT_OK;
}

static void close_tuning(struct tuning *t) {
    for (int i = 0; i < t->n; i++)
        at_case_list_release(&t->shapes[i].cases);
    free(t->shapes);
    *t = (struct tuning){ 0 };
}

/* The family's cases of which some candidate was timed. Rows of a case follow one another. */
static at_status open_tuning(const struct at_bench_row *rows, int n, const char *family, struct tuning *t) {
    at_status status = AT_OK;
    *t = (struct tuning){ .rows = rows, .shapes = calloc((size_t)n + 1, sizeof *t->shapes) };
    if (!t->shapes)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d shapes", n);
    for (int i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && strcmp(rows[end].case_id, rows[i].case_id) == 0)
            end++;
        if (rows[i].peer || strcmp(rows[i].family, family) != 0)
            continue;
        AT_TRY_OUT(open_shape(rows, i, end, &t->shapes[t->n++]));
        if (t->shapes[t->n - 1].fastest < 0)
            at_case_list_release(&t->shapes[--t->n].cases);
    }
out:
    if (status != AT_OK)
        close_tuning(t);
    return status;
}

/* The row of a variant that is as good as the shape's fastest; -1: none. */
static int good_row(const struct tuning *t, const struct shape *s, const char *variant) {
    for (int i = s->first; i < s->end; i++)
        if (is_candidate(&t->rows[i]) && strcmp(t->rows[i].variant, variant) == 0 &&
            t->rows[i].cold <= as_good * t->rows[s->fastest].cold)
            return i;
    return -1;
}

/* Of the shapes that have none yet, how many the variant is good for. */
static int good_for(const struct tuning *t, const char *variant) {
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += t->shapes[i].chosen < 0 && good_row(t, &t->shapes[i], variant) >= 0;
    return n;
}

/* The variant that is good for most of the shapes left, of equals the first by name; then the same of the rest. */
static void choose(struct tuning *t) {
    for (;;) {
        const char *best = NULL;
        int most = 0;
        for (int i = 0; i < t->n; i++) {
            const struct shape *s = &t->shapes[i];
            for (int r = s->first; r < s->end && s->chosen < 0; r++) {
                const char *variant = t->rows[r].variant;
                const int n = good_row(t, s, variant) >= 0 ? good_for(t, variant) : 0;
                if (n > most || (n == most && n > 0 && strcmp(variant, best) < 0)) {
                    best = variant;
                    most = n;
                }
            }
        }
        if (!best)
            return;
        for (int i = 0; i < t->n; i++)
            if (t->shapes[i].chosen < 0)
                t->shapes[i].chosen = good_row(t, &t->shapes[i], best);
    }
}

static const char *enumerator(enum at_format format) {
    return format == AT_F16 ? "AT_F16" : format == AT_BF16 ? "AT_BF16" : "AT_F32";
}

static void put_table(const struct tuning *t, FILE *out) {
    fprintf(out, "/* Shapes that were timed, and the variant of each. Written by `attest bench --tune`: do not edit.\n"
                 " * SPDX-License-Identifier: Apache-2.0 */\n"
                 "#include \"kernels/dispatch/dispatch.h\"\n\n"
                 "/* clang-format off */\nstatic const struct at_dispatch_row rows[] = {\n"
                 "    /* dtype, b, h, hk, d, page, queries, keys, variant */\n");
    for (int i = 0; i < t->n; i++) {
        const struct shape *s = &t->shapes[i];
        fprintf(out, "    { %s, %lld, %lld, %lld, %lld, %lld, %lld, %lld, \"%s\" },\n", enumerator(s->dtype),
                (long long)s->sizes.b, (long long)s->sizes.h, (long long)s->sizes.hk, (long long)s->sizes.d,
                (long long)s->sizes.page, (long long)s->sizes.max_sq, (long long)s->sizes.capacity,
                t->rows[s->chosen].variant);
    }
    fprintf(out, "};\n/* clang-format on */\n");
}

static at_status write_table(const struct tuning *t, const char *folder, const char *family) {
    char path[1200], fresh[1210];
    snprintf(path, sizeof path, "%.1000s/%.64s", folder, family);
    if ((mkdir(folder, 0777) != 0 && errno != EEXIST) || (mkdir(path, 0777) != 0 && errno != EEXIST))
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    snprintf(path, sizeof path, "%.1000s/%.64s/dispatch_table.h", folder, family);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *out = fopen(fresh, "w");
    if (!out)
        return AT_FAIL(AT_IO, "%s: %s", fresh, strerror(errno));
    put_table(t, out);
    const int failed = ferror(out);
    if (fclose(out) != 0 || failed || rename(fresh, path) != 0)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    printf("wrote %s\n", path);
    return AT_OK;
}

static double ratio_of(const struct tuning *t, const struct shape *s) {
    return t->rows[s->dispatched].cold / t->rows[s->fastest].cold;
}

static void put_shapes(const struct tuning *t, const char *family) {
    printf("%s: cold us; RATIO: %s over the fastest\n  %-34s %-32s %8s %8s %6s  %s\n", family, dispatcher,
           "b h hk d page queries keys dtype", "FASTEST", "US", "DISPATCH", "RATIO", "CHOSEN");
    for (int i = 0; i < t->n; i++) {
        const struct shape *s = &t->shapes[i];
        char shape[64];
        snprintf(shape, sizeof shape, "%lld %lld %lld %lld %lld %lld %lld %s", (long long)s->sizes.b,
                 (long long)s->sizes.h, (long long)s->sizes.hk, (long long)s->sizes.d, (long long)s->sizes.page,
                 (long long)s->sizes.max_sq, (long long)s->sizes.capacity, at_format_info(s->dtype)->name);
        printf("  %-34s %-32s %8.2f", shape, t->rows[s->fastest].variant, t->rows[s->fastest].cold * 1e6);
        if (s->dispatched < 0)
            printf(" %8s %6s", "-", "-");
        else
            printf(" %8.2f %6.3f", t->rows[s->dispatched].cold * 1e6, ratio_of(t, s));
        printf("  %s\n", t->rows[s->chosen].variant);
    }
}

/* Whether the dispatcher was slower than `within` times the fastest somewhere. */
static int put_worst(const struct tuning *t, const char *family, double within) {
    int worst = -1, n = 0;
    for (int i = 0; i < t->n; i++) {
        if (t->shapes[i].dispatched < 0)
            continue;
        n++;
        if (worst < 0 || ratio_of(t, &t->shapes[i]) > ratio_of(t, &t->shapes[worst]))
            worst = i;
    }
    if (worst < 0) {
        printf("%s: %s was not timed\n", family, dispatcher);
        return within > 0;
    }
    printf("%s: %s at most %.3f of the fastest, at %d of %d shapes it was timed at\n", family, dispatcher,
           ratio_of(t, &t->shapes[worst]), n, t->n);
    return within > 0 && (n < t->n || !(ratio_of(t, &t->shapes[worst]) <= within));
}

at_status at_bench_dispatch(const struct at_bench_row *rows, int n, const char *folder, double within, int *fails) {
    at_status status = AT_OK;
    int families = 0;
    *fails = 0;
    for (int f = 0; f < at_family_count() && status == AT_OK; f++) {
        const char *family = at_family_at(f)->name;
        struct tuning t;
        AT_TRY(open_tuning(rows, n, family, &t));
        if (t.n > 0 && at_op_find(at_family_at(f)->op)->kind == AT_KIND_ATTENTION) {
            families++;
            choose(&t);
            put_shapes(&t, family);
            *fails |= put_worst(&t, family, within);
            if (folder)
                status = write_table(&t, folder, family);
        }
        close_tuning(&t);
    }
    if (status == AT_OK && families == 0)
        return AT_FAIL(AT_NOT_FOUND, "no variant of attention that repeats its bits was timed");
    return status;
}

static at_status of_archive(const struct at_args *args, int *fails) {
    struct at_table_rows table = { &at_bench_table_kernels, NULL, 0 };
    struct at_run_record record;
    double within = 0;
    at_status status = AT_OK;
    at_run_record_init(&record);
    AT_TRY_OUT(at_args_real(args, "--within", 1, 1000, 0, &within));
    AT_TRY_OUT(at_archive_read_tables(args->words[1], &table, 1, &record));
    if (table.n < 1)
        AT_FAIL_OUT(AT_USAGE, "%s: no times of kernels in it, wanted what `attest bench --out` writes", args->words[1]);
    AT_TRY_OUT(at_bench_dispatch(table.rows, (int)table.n, at_args_get(args, "--tune"), within, fails));
out:
    free(table.rows);
    at_run_record_release(&record);
    return status;
}

int at_bench_dispatch_of(const struct at_args *args) {
    int fails = 0;
    const at_status status = args->n_words == 2
                                 ? of_archive(args, &fails)
                                 : AT_FAIL(AT_USAGE, "bench dispatch: wanted one archive of `attest bench --out`");
    return status == AT_OK ? fails : at_report_failure(status);
}
