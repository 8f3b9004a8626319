/* Score distributions: bins and classes, summaries, quantiles, and the archive's writer and reader.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/splitmix.h"
#include "verify/archive/distributions.h"

static char folder[64], path[128], other[128];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/at_dist_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/d.h5", folder);
    snprintf(other, sizeof other, "%s/other.h5", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static const enum at_format formats[] = { AT_F16, AT_BF16 };

/* ---- bins ---- */

static void test_bins(void **state) {
    (void)state;
    assert_int_equal(at_dist_bins(AT_F16), 63490);
    assert_int_equal(at_dist_bins(AT_BF16), 65282);
    for (int f = 0; f < 2; f++) {
        const int64_t n = at_dist_bins(formats[f]);
        at_assert_same(at_dist_value_of(formats[f], 0), -(double)INFINITY);
        at_assert_same(at_dist_value_of(formats[f], n - 1), (double)INFINITY);
        int64_t seen = 0;
        for (int code = 0; code < 65536; code++)
            if (!isnan(at_decode(formats[f], (uint64_t)code))) {
                const int64_t bin = at_dist_bin_of(formats[f], (uint16_t)code);
                assert_in_range(bin, 0, n - 1);
                assert_int_equal(at_dist_code_of(formats[f], bin), code);
                seen++;
            }
        assert_int_equal(seen, n);
        for (int64_t bin = 1; bin < n; bin++) { /* ascending; the two zeros are neighbours, minus first */
            const double below = at_dist_value_of(formats[f], bin - 1), here = at_dist_value_of(formats[f], bin);
            if (!(below < here))
                at_assert_true(below == 0 && here == 0 && signbit(below) && !signbit(here), "bin %lld", (long long)bin);
        }
    }
}

/* The upper byte of the ascending code, computed from the code itself. */
static void test_classes(void **state) {
    (void)state;
    assert_int_equal(at_dist_classes(AT_F16), 250);
    assert_int_equal(at_dist_classes(AT_BF16), 256);
    for (int f = 0; f < 2; f++) {
        const int64_t n = at_dist_bins(formats[f]), classes = at_dist_classes(formats[f]);
        int lowest = -1;
        for (int64_t bin = 0; bin < n; bin++) {
            const uint16_t code = at_dist_code_of(formats[f], bin);
            const int upper = (uint16_t)(code & 0x8000 ? ~code : code | 0x8000) >> 8;
            lowest = lowest < 0 ? upper : lowest;
            assert_int_equal(at_dist_class_of(formats[f], bin), upper - lowest);
        }
        for (int64_t c = 0; c < classes; c++) {
            const int64_t first = at_dist_class_first(formats[f], c);
            assert_int_equal(at_dist_class_of(formats[f], first), c);
            assert_true(first == 0 || at_dist_class_of(formats[f], first - 1) == c - 1);
        }
    }
}

static void test_distances(void **state) {
    (void)state;
    const int64_t want[] = { 0, 1, 2, 2, 3, 3, 3, 3, 4 };
    for (int64_t i = 0; i < 9; i++)
        assert_int_equal(at_dist_distance_of(i), want[i]);
    for (int64_t bin = 0; bin < 40; bin++)
        assert_int_equal(at_dist_distance_of(at_dist_distance_edge(bin)), bin);
    assert_int_equal(at_dist_distances(0), 1);
    assert_int_equal(at_dist_distances(7), 4);
}

/* ---- summaries ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Against the values themselves, added up in long double; quantiles against the sorted values. */
static void test_summary(void **state) {
    (void)state;
    enum { N = 5000 };
    for (int f = 0; f < 2; f++) {
        struct splitmix random = { 7 };
        double *x = malloc(N * sizeof *x);
        uint64_t *counts = calloc((size_t)at_dist_bins(formats[f]), sizeof *counts);
        long double sum = 0, square = 0;
        uint64_t zero = 0, subnormal = 0;
        for (int i = 0; i < N; i++) {
            const double u = (double)(int64_t)(splitmix_next(&random) >> 11) * 0x1p-53 - 0.5;
            x[i] = at_round(formats[f], i % 7 == 0 ? 0.0 : i % 5 == 0 ? u * 0x1p-15 : u * 300);
            sum += x[i];
            zero += x[i] == 0;
            subnormal += x[i] != 0 && fabs(x[i]) < (formats[f] == AT_F16 ? 0x1p-14 : 0x1p-126);
            counts[at_dist_bin_of(formats[f], (uint16_t)at_encode(formats[f], x[i]))]++;
        }
        for (int i = 0; i < N; i++)
            square += (x[i] - sum / N) * (x[i] - sum / N);
        const struct at_dist_tally tally = { .nan = 3, .masked = 4, .overflow = 5, .n_empty = 6 };
        struct at_dist_summary s;
        at_dist_summarize(formats[f], counts, &tally, &s);
        qsort(x, N, sizeof *x, compare);
        assert_int_equal(s.n, N + 3);
        assert_int_equal(s.nan, 3);
        assert_int_equal(s.masked, 4);
        assert_int_equal(s.overflow, 5);
        assert_int_equal(s.n_empty, 6);
        assert_int_equal(s.zero, zero);
        assert_int_equal(s.subnormal, subnormal);
        at_assert_within(s.mean, (double)(sum / N), 1e-13);
        at_assert_within(s.std, (double)sqrtl(square / N), 1e-12);
        at_assert_same(s.min, x[0]);
        at_assert_same(s.max, x[N - 1]);
        at_assert_same(s.abs_max, fmax(-x[0], x[N - 1]));
        at_assert_same(s.headroom, log2(65504 / fmax(-x[0], x[N - 1])));
        for (int i = 0; i <= 100; i++) {
            const int64_t rank = (int64_t)ceil(i / 100.0 * N);
            const int64_t bin = at_dist_quantile(formats[f], counts, i / 100.0);
            assert_true(at_dist_value_of(formats[f], bin) == x[rank > 0 ? rank - 1 : 0]);
        }
        free(counts);
        free(x);
    }
}

static void test_nothing(void **state) {
    (void)state;
    uint64_t *counts = calloc((size_t)at_dist_bins(AT_F16), sizeof *counts);
    const struct at_dist_tally none = { 0 };
    struct at_dist_summary s;
    at_dist_summarize(AT_F16, counts, &none, &s);
    assert_int_equal(s.n, 0);
    at_assert_same(s.mean, (double)NAN);
    at_assert_same(s.headroom, (double)NAN);
    assert_int_equal(at_dist_quantile(AT_F16, counts, 0.5), -1);
    counts[at_dist_bins(AT_F16) - 1] = 2; /* infinities alone: no moments */
    at_dist_summarize(AT_F16, counts, &none, &s);
    assert_int_equal(s.n, 2);
    at_assert_same(s.max, (double)NAN);
    free(counts);
}

/* ---- files ---- */

static const int64_t layer_numbers[] = { 2, 5, 9 };

static struct at_dist_shape small_shape(void) {
    return (struct at_dist_shape){ .n_layers = 3,
                                   .h = 4,
                                   .hk = 2,
                                   .requests = 5,
                                   .n_groups = 5,
                                   .n_distances = 6,
                                   .bins = AT_F16,
                                   .what = 1u << AT_DIST_raw | 1u << AT_DIST_k | 1u << AT_DIST_entropy };
}

/* Sums that differ from place to place. */
static void fill(struct at_dist_layer *layer, uint64_t seed) {
    struct splitmix random = { seed };
    const struct at_dist_shape *s = &layer->shape;
    for (int w = 0; w < AT_DIST_COUNT; w++)
        for (int64_t x = 0; layer->counts[w] && x < at_dist_heads(s, (enum at_dist_what)w); x++) {
            for (int i = 0; i < 300; i++) {
                const int64_t bin = (int64_t)(splitmix_next(&random) % (uint64_t)at_dist_bins(s->bins));
                const int64_t group = (int64_t)(splitmix_next(&random) % (uint64_t)s->n_groups);
                const int64_t classes = at_dist_classes(s->bins);
                layer->counts[w][x * at_dist_bins(s->bins) + bin] += 3;
                layer->coarse[w][(x * s->n_groups + group) * classes + at_dist_class_of(s->bins, bin)] += 3;
            }
            layer->tally[w][x] = (struct at_dist_tally){ 1 + (uint64_t)x, 2, 3, seed };
        }
    for (int64_t i = 0; i < s->h * s->n_distances; i++)
        layer->mass[i] = splitmix_next(&random) >> 8;
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        for (int64_t x = 0; x < at_dist_zero_heads(s, (enum at_dist_zero)z); x++)
            layer->zero[z][x] = splitmix_next(&random) >> 8;
    for (int64_t i = 0; i < s->h * AT_DIST_STAGES; i++)
        layer->ledger[i] = (struct at_ledger_row){ .count = seed + (uint64_t)i,
                                                   .max_abs = (double)i,
                                                   .to_inf = 1,
                                                   .has_first = i % 2 != 0,
                                                   .first = { 1, i % 2 ? 2 : 0, 3, i, -1 } };
    for (int64_t i = 0; i < s->h * AT_DIST_STAGES; i += 2)
        layer->ledger[i].first = (struct at_place){ 0 };
}

static void write_file(const char *file, const struct at_run_record *record) {
    const struct at_dist_shape shape = small_shape();
    const struct at_dist_head head = { shape, layer_numbers, "asynct", "made up", record };
    const struct at_dist_unit_row units[] = { { 2, 0, 7, 9, "0123456789abcdef" }, { 9, 4, 1, 2, "fedcba9876543210" } };
    struct at_dist_writer *writer;
    struct at_dist_layer layer;
    at_assert_ok(at_dist_layer_init(&shape, &layer));
    at_assert_ok(at_dist_writer_open(file, &head, &writer));
    fill(&layer, 11);
    at_assert_ok(at_dist_writer_put(writer, 0, &layer));
    at_dist_layer_clear(&layer);
    fill(&layer, 12);
    at_assert_ok(at_dist_writer_put(writer, 2, &layer)); /* and nothing for layer 5 */
    at_assert_ok(at_dist_writer_save(writer, units, 2));
    at_dist_layer_release(&layer);
}

static struct at_run_record small_record(void) {
    struct at_run_record record;
    at_run_record_init(&record);
    record.request = strdup("{\"record\":\"made up\"}");
    record.provenance = strdup("{\"tool\":\"test\"}");
    return record;
}

static void assert_same_layer(const struct at_dist_layer *got, const struct at_dist_layer *want) {
    const struct at_dist_shape *s = &want->shape;
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const size_t heads = (size_t)at_dist_heads(s, (enum at_dist_what)w);
        if (!want->counts[w])
            continue;
        assert_memory_equal(got->counts[w], want->counts[w], heads * (size_t)at_dist_bins(s->bins) * 8);
        assert_memory_equal(got->coarse[w], want->coarse[w],
                            heads * (size_t)(s->n_groups * at_dist_classes(s->bins)) * 8);
        assert_memory_equal(got->tally[w], want->tally[w], heads * sizeof *want->tally[w]);
    }
    assert_memory_equal(got->mass, want->mass, (size_t)(s->h * s->n_distances) * 8);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        assert_memory_equal(got->zero[z], want->zero[z], (size_t)at_dist_zero_heads(s, (enum at_dist_zero)z) * 8);
    for (int64_t i = 0; i < s->h * AT_DIST_STAGES; i++) {
        assert_int_equal(got->ledger[i].count, want->ledger[i].count);
        assert_int_equal(got->ledger[i].has_first, want->ledger[i].has_first);
        assert_int_equal(at_place_compare(&got->ledger[i].first, &want->ledger[i].first), 0);
        at_assert_same(got->ledger[i].max_abs, want->ledger[i].max_abs);
    }
}

static void test_round_trip(void **state) {
    (void)state;
    struct at_run_record record = small_record();
    struct at_distributions d;
    struct at_dist_layer got, want;
    write_file(path, &record);
    assert_true(at_distributions_is(path));
    at_assert_ok(at_distributions_open(path, &d));
    const struct at_dist_shape shape = small_shape();
    assert_int_equal(d.shape.n_layers, shape.n_layers);
    assert_int_equal(d.shape.h, shape.h);
    assert_int_equal(d.shape.hk, shape.hk);
    assert_int_equal(d.shape.what, shape.what);
    assert_int_equal(d.shape.bins, shape.bins);
    assert_int_equal(d.shape.requests, shape.requests);
    assert_int_equal(d.shape.n_groups, shape.n_groups);
    assert_int_equal(d.shape.n_distances, shape.n_distances);
    assert_string_equal(d.attention, "asynct");
    assert_string_equal(d.source, "made up");
    assert_string_equal(d.record.request, record.request);
    assert_memory_equal(d.layer, layer_numbers, sizeof layer_numbers);
    assert_int_equal(d.n_units, 2);
    assert_int_equal(d.units[1].layer, 9);
    assert_string_equal(d.units[1].hash, "fedcba9876543210");
    at_assert_ok(at_dist_layer_init(&shape, &got));
    at_assert_ok(at_dist_layer_init(&shape, &want));
    for (int i = 0; i < 3; i++) {
        at_dist_layer_clear(&got);
        at_dist_layer_clear(&want);
        at_assert_ok(at_distributions_add(&d, i, &got));
        if (i != 1)
            fill(&want, i == 0 ? 11 : 12);
        assert_same_layer(&got, &want);
    }
    at_assert_fails(at_distributions_counts(&d, AT_DIST_v, 0, 0, got.counts[AT_DIST_k]), AT_NOT_FOUND,
                    "no counts of v");
    at_dist_layer_release(&got);
    at_dist_layer_release(&want);
    at_distributions_close(&d);
    at_run_record_release(&record);
}

static void test_same_bytes(void **state) {
    (void)state;
    struct at_run_record record = small_record();
    struct stat a, b;
    write_file(path, &record);
    write_file(other, &record);
    assert_int_equal(stat(path, &a) | stat(other, &b), 0);
    assert_int_equal(a.st_size, b.st_size);
    FILE *x = fopen(path, "rb"), *y = fopen(other, "rb");
    for (off_t i = 0; i < a.st_size; i++)
        assert_int_equal(fgetc(x), fgetc(y));
    fclose(x);
    fclose(y);
    at_run_record_release(&record);
}

static hid_t open_group(hid_t *file) {
    *file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(*file >= 0);
    return H5Gopen2(*file, "distributions", H5P_DEFAULT);
}

/* Of a head that counts in few places, the chunks of those places and no others are in the file. */
static void test_chunks(void **state) {
    (void)state;
    const struct at_dist_shape shape = small_shape();
    const int64_t bins = at_dist_bins(AT_F16), places[] = { 4095, 4096, 5000, 40960, bins - 1 };
    struct at_run_record record = small_record();
    const struct at_dist_head head = { shape, layer_numbers, "asynct", "made up", &record };
    struct at_dist_writer *writer;
    struct at_dist_layer layer;
    struct at_distributions d;
    hsize_t chunks = 0;
    hid_t file;
    at_assert_ok(at_dist_layer_init(&shape, &layer));
    uint64_t *want = layer.counts[AT_DIST_raw] + 2 * bins, *got = calloc((size_t)bins, sizeof *got);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        want[places[i]] = i + 1;
    at_assert_ok(at_dist_writer_open(path, &head, &writer));
    at_assert_ok(at_dist_writer_put(writer, 1, &layer));
    at_assert_ok(at_dist_writer_save(writer, NULL, 0));
    at_assert_ok(at_distributions_open(path, &d));
    at_assert_ok(at_distributions_counts(&d, AT_DIST_raw, 1, 2, got));
    assert_memory_equal(got, want, (size_t)bins * sizeof *want);
    at_distributions_close(&d);
    hid_t group = open_group(&file), counts = H5Dopen2(group, "raw/counts", H5P_DEFAULT), space = H5Dget_space(counts);
    assert_true(H5Dget_num_chunks(counts, space, &chunks) >= 0);
    assert_int_equal(chunks, 4); /* two of the places share one */
    H5Sclose(space);
    H5Dclose(counts);
    H5Gclose(group);
    H5Fclose(file);
    free(got);
    at_dist_layer_release(&layer);
    at_run_record_release(&record);
}

/* ---- hostile and foreign files ---- */

static void set_text(hid_t object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Adelete(object, name);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, &text) >= 0);
    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
}

/* A dataset of uint64 in the place of another. */
static void replace(hid_t group, const char *name, int rank, const hsize_t *dims, const hsize_t *chunk) {
    hid_t space = H5Screate_simple(rank, dims, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Ldelete(group, name, H5P_DEFAULT) >= 0);
    H5Pset_chunk(list, rank, chunk);
    hid_t dataset = H5Dcreate2(group, name, H5T_STD_U64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
}

static void assert_refused(at_status want, const char *part) {
    struct at_distributions d;
    at_assert_fails(at_distributions_open(path, &d), want, part);
}

static void test_hostile(void **state) {
    (void)state;
    struct at_run_record record = small_record();
    struct at_distributions d;
    hid_t file, group;
    write_file(path, &record);
    group = open_group(&file);
    set_text(group, "encoding-version", "2.0.0");
    H5Gclose(group);
    H5Fclose(file);
    assert_refused(AT_UNSUPPORTED, "2.0.0");

    write_file(path, &record);
    group = open_group(&file);
    set_text(group, "bins", "f8");
    H5Gclose(group);
    H5Fclose(file);
    assert_refused(AT_USAGE, "f8");

    write_file(path, &record); /* a scale that claims a billion heads, which take no room */
    group = open_group(&file);
    replace(group, "head", 1, (hsize_t[]){ 1 << 20 }, (hsize_t[]){ 1 << 10 });
    H5Gclose(group);
    H5Fclose(file);
    assert_refused(AT_USAGE, "claims");

    /* one chunk of all counts, or of several heads: reading a head would take all of it; one of a bin takes for ever; one
     * of a head is what archives had at first */
    const hsize_t dims[] = { 3, 4, 63490 };
    const hsize_t chunks[][3] = { { 3, 4, 63490 }, { 1, 2, 4096 }, { 1, 1, 1 }, { 1, 1, 63490 } };
    for (int i = 0; i < 4; i++) {
        write_file(path, &record);
        group = open_group(&file);
        replace(group, "raw/counts", 3, dims, chunks[i]);
        H5Gclose(group);
        H5Fclose(file);
        if (i < 3)
            assert_refused(AT_USAGE, "chunks");
    }
    at_assert_ok(at_distributions_open(path, &d));
    at_distributions_close(&d);

    write_file(path, &record); /* what a later minor version may add */
    group = open_group(&file);
    hid_t more = H5Gcreate2(group, "something_new", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(more);
    H5Gclose(group);
    H5Fclose(file);
    at_assert_ok(at_distributions_open(path, &d));
    at_distributions_close(&d);

    write_file(path, &record);
    assert_int_equal(truncate(path, 20000), 0);
    assert_refused(AT_USAGE, "");
    assert_false(at_distributions_is(path));
    at_run_record_release(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),       cmocka_unit_test(test_classes), cmocka_unit_test(test_distances),
        cmocka_unit_test(test_summary),    cmocka_unit_test(test_nothing), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_chunks),  cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
