/* Arrays of every format to HDF5 and back, and the arrays, rows and files of a witness.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <hdf5.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "tests/support/sample_record.h"
#include "verify/archive/reader_hdf5.h"
#include "verify/archive/witness.h"
#include "verify/judge/judge.h"

static char folder[64], path[160];

static int make_folder(void **state) {
    (void)state;
    at_reader_hdf5_register();
    snprintf(folder, sizeof folder, "/tmp/at_witness_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return at_witness_clear(folder, 1) == AT_OK && rmdir(folder) == 0 ? 0 : -1;
}

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct at_array array_of(const char *name, enum at_format format, int rank, const int64_t *shape,
                                const void *data) {
    static const char *const axes[] = { "token", "head", "kv_head", "channel" };
    struct at_array a = { .group = "witness", .units = "1", .format = format, .rank = rank, .data = data };
    snprintf(a.name, sizeof a.name, "%s", name);
    snprintf(a.long_name, sizeof a.long_name, "an array");
    for (int r = 0; r < rank; r++) {
        snprintf(a.axes[r], sizeof a.axes[r], "%s", axes[r]);
        a.shape[r] = shape[r];
    }
    return a;
}

/* Tensors lie in the file as they are: in one piece, without a filter. */
static void assert_plain(const char *name, hsize_t bytes) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t list = H5Dget_create_plist(dataset);
    assert_true(file >= 0 && dataset >= 0 && list >= 0);
    assert_int_equal(H5Pget_layout(list), H5D_CONTIGUOUS);
    assert_int_equal(H5Pget_nfilters(list), 0);
    assert_int_equal(H5Dget_storage_size(dataset), bytes);
    H5Pclose(list);
    H5Dclose(dataset);
    H5Fclose(file);
}

/* Every code of the 16-bit formats, and codes of the others, comes back as it was: NaNs with their payloads, both
 * zeros. The formats are recognised, axes are shared. */
static void codes_come_back(void **state) {
    (void)state;
    enum { N = 65536 };
    static const int64_t shape[] = { 16, 2, 4, 512 };
    static const enum at_format formats[] = { AT_F16, AT_BF16, AT_F32, AT_I32, AT_F64 };
    static uint16_t narrow[N], back16[N];
    static uint64_t wide[N], back64[N];
    struct at_array arrays[6];
    for (int i = 0; i < N; i++) {
        narrow[i] = (uint16_t)i;
        wide[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
    }
    for (int f = 0; f < 5; f++)
        arrays[f] = array_of(at_format_info(formats[f])->name, formats[f], 4, shape,
                             f < 2 ? (const void *)narrow : (const void *)wide);
    static const int64_t count[] = { N };
    arrays[5] = array_of("long", AT_I32, 1, count, wide); /* a page table of many requests */
    snprintf(arrays[5].axes[0], sizeof arrays[5].axes[0], "bound");
    at_assert_ok(at_arrays_write(in_folder("000001_a.b.h5"), arrays, 6));
    struct at_reader *reader;
    at_assert_ok(at_reader_open(path, &reader));
    for (int f = 0; f < 5; f++) {
        char name[64];
        snprintf(name, sizeof name, "witness.%s", at_format_info(formats[f])->name);
        const int i = at_reader_find(reader, name);
        assert_true(i >= 0);
        const struct at_file_tensor *t = at_reader_tensor(reader, i);
        at_assert_true(t->supported && t->format == formats[f], "%s is read as %s", name, t->type_name);
        assert_int_equal(t->rank, 4);
        assert_memory_equal(t->shape, shape, sizeof shape);
        void *back = f < 2 ? (void *)back16 : (void *)back64;
        at_assert_ok(at_reader_read(reader, i, 0, N, back));
        assert_memory_equal(back, arrays[f].data, (size_t)N * at_format_info(formats[f])->bytes);
        snprintf(name, sizeof name, "/witness/%s", arrays[f].name);
        assert_plain(name, (hsize_t)t->bytes);
    }
    assert_plain("/witness/long", 4 * (hsize_t)N);
    assert_int_equal(at_reader_count(reader), 6 + 5); /* and a scale an axis */
    at_reader_close(reader);
}

static void arrays_that_cannot_be(void **state) {
    (void)state;
    static const int64_t shape[] = { 2 }, other[] = { 3 };
    static const float data[3] = { 0 };
    struct at_array arrays[] = { array_of("a", AT_F32, 1, shape, data), array_of("b", AT_F32, 1, other, data) };
    at_assert_fails(at_arrays_write(in_folder("000002_a.b.h5"), arrays, 2), AT_BUG, "axis token has 2 places");
    assert_int_not_equal(access(path, F_OK), 0);
    arrays[0].format = AT_TF32;
    at_assert_fails(at_arrays_write(path, arrays, 1), AT_BUG, "tf32");
}

static void *write_many(void *context) {
    static const int64_t shape[] = { 64 };
    static const float data[64] = { 0 };
    const struct at_array a = array_of("a", AT_F32, 1, shape, data);
    for (int i = 0; i < 20; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s/%06d_t.%d.h5", folder, i, *(int *)context);
        if (at_arrays_write(name, &a, 1) != AT_OK)
            return context;
    }
    return NULL;
}

/* Jobs keep their tensors on threads of their own. */
static void written_from_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    int number[4];
    for (int i = 0; i < 4; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &number[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* In one group no two arrays, and no array and axis, may have one name: of every operator. */
static void names_do_not_collide(void **state) {
    (void)state;
    static struct at_array arrays[AT_WITNESS_ARRAYS];
    int tensor[AT_WITNESS_ARRAYS];
    enum at_witness_part part[AT_WITNESS_ARRAYS];
    for (int o = 0; o < at_op_count(); o++) {
        const struct at_op *op = at_op_at(o);
        const int n = at_witness_layout(op, arrays, tensor, part);
        int outputs = 0;
        for (int t = 0; t < op->n_tensors; t++)
            outputs += op->tensors[t].role != AT_IN;
        assert_int_equal(n, op->n_tensors + 4 * outputs);
        for (int i = 0; i < n; i++) {
            const struct at_tensor_spec *spec = &op->tensors[tensor[i]];
            assert_true(arrays[i].long_name[0] && arrays[i].units[0] && strstr(arrays[i].name, spec->name));
            for (int k = 0; k < n; k++)
                at_assert_true(k == i || strcmp(arrays[i].name, arrays[k].name) != 0, "%s: two arrays %s", op->name,
                               arrays[i].name);
            for (int r = 0; r < AT_MAX_RANK && spec->dims[r] != AT_DIM_NONE; r++) {
                at_assert_true(arrays[i].axes[r][0] && strcmp(arrays[i].axes[r], "index") != 0, "%s: axis %d of %s",
                               op->name, r, arrays[i].name);
                for (int k = 0; k < n; k++) {
                    at_assert_true(strcmp(arrays[i].axes[r], arrays[k].name) != 0, "%s: axis and array %s", op->name,
                                   arrays[k].name);
                    /* one axis name, one dimension */
                    for (int s = 0; s < AT_MAX_RANK && op->tensors[tensor[k]].dims[s] != AT_DIM_NONE; s++)
                        assert_int_equal(strcmp(arrays[i].axes[r], arrays[k].axes[s]) == 0,
                                         spec->dims[r] == op->tensors[tensor[k]].dims[s]);
                }
            }
        }
    }
}

static void rows_are_names_of_files(void **state) {
    (void)state;
    struct at_result r;
    char row[AT_WITNESS_ROW_BYTES], short_path[12];
    at_sample_result(&r, 0);
    r.plan_index = 17;
    at_witness_row(&r, row);
    assert_string_equal(row, "000017_asynct_decode.00_blas_f32");
    r.plan_index = 1234567;
    snprintf(r.family, sizeof r.family, "../a b");
    snprintf(r.variant, sizeof r.variant, "\xc3\xbc/x:y");
    at_witness_row(&r, row);
    assert_string_equal(row, "1234567_.._a_b.___x_y");
    memset(r.family, 'f', sizeof r.family - 1);
    memset(r.variant, 'v', sizeof r.variant - 1);
    r.family[sizeof r.family - 1] = r.variant[sizeof r.variant - 1] = 0;
    r.plan_index = INT64_MAX;
    at_witness_row(&r, row);
    assert_int_equal(strlen(row), 19 + 1 + 63 + 1 + 95); /* nothing is cut off */
    at_assert_ok(at_witness_folder("a.h5", path, sizeof path));
    assert_string_equal(path, "a.h5.witness");
    at_assert_fails(at_witness_folder("a.h5", short_path, sizeof short_path), AT_USAGE, "too long");
}

static void touch(const char *name) {
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fclose(file);
}

static void files_are_looked_for_in_every_folder(void **state) {
    (void)state;
    struct at_run_record record;
    char found[160];
    assert_true(at_sample_record(&record, 6));
    at_assert_ok(at_witness_check(&record)); /* nothing was kept */
    record.results[2].kept = record.results[3].kept = 1;
    at_assert_fails(at_witness_check(&record), AT_NOT_FOUND, "000001_asynct_decode.00_blas_p_bf16.h5 is missing");
    at_assert_ok(at_run_record_add_witness(&record, "/nowhere"));
    at_assert_ok(at_run_record_add_witness(&record, folder));
    at_assert_fails(at_witness_check(&record), AT_NOT_FOUND, folder);
    touch("000001_asynct_decode.00_blas_p_bf16.h5");
    at_assert_ok(at_witness_check(&record));
    at_assert_ok(at_witness_find(&record, &record.results[2], found, sizeof found));
    assert_string_equal(found, path);
    /* a file that is none is refused when the archive is written, and nothing is left of that */
    char archive[160];
    snprintf(archive, sizeof archive, "%s/run.h5", folder);
    at_assert_fails(at_archive_write(&record, archive), AT_USAGE, "000001_asynct_decode.00_blas_p_bf16.h5");
    assert_int_not_equal(access(archive, F_OK), 0);
    at_run_record_release(&record);
}

static void clearing_leaves_what_is_not_ours(void **state) {
    (void)state;
    static const char *const names[] = { "000001_a.b.h5", "1234567_a.b.h5.99.tmp", "notes.h5", "12_a.h5" };
    for (int i = 0; i < 4; i++)
        touch(names[i]);
    at_assert_ok(at_witness_clear(folder, 0));
    assert_int_equal(access(in_folder(names[0]), F_OK), 0);
    assert_int_not_equal(access(in_folder(names[1]), F_OK), 0);
    touch(names[1]);
    at_assert_ok(at_witness_clear(folder, 1));
    assert_int_not_equal(access(in_folder(names[0]), F_OK), 0);
    assert_int_not_equal(access(in_folder(names[1]), F_OK), 0);
    assert_int_equal(unlink(in_folder(names[2])), 0);
    assert_int_equal(unlink(in_folder(names[3])), 0);
    at_assert_fails(at_witness_clear("/nowhere", 1), AT_IO, "/nowhere");
}

static void words_of_keep(void **state) {
    (void)state;
    for (int i = 0; i < AT_KEEP_COUNT; i++) {
        enum at_keep keep = AT_KEEP_COUNT;
        at_assert_ok(at_keep_parse(at_keep_name((enum at_keep)i), &keep));
        assert_int_equal(keep, i);
    }
    enum at_keep keep;
    at_assert_fails(at_keep_parse("some", &keep), AT_USAGE, "wanted never, wrong or all");
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(codes_come_back),
        with_folder(arrays_that_cannot_be),
        with_folder(written_from_threads),
        cmocka_unit_test(names_do_not_collide),
        cmocka_unit_test(rows_are_names_of_files),
        with_folder(files_are_looked_for_in_every_folder),
        with_folder(clearing_leaves_what_is_not_ours),
        cmocka_unit_test(words_of_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
