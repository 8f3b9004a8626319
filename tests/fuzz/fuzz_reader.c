/* The readers of files under libFuzzer (make fuzz); no part of `make check`.
 * SPDX-License-Identifier: Apache-2.0
 *
 * AT_FUZZ_FORMAT says which reader: safetensors, npy, npz, hdf5, archive or distributions. AT_FUZZ_WRITE=FOLDER puts
 * one good file of it there to start from. HDF5 runs in this process here, not in a child as in attest: only so are its
 * paths seen. The library is not instrumented and not ours; what it keeps or does to itself on a damaged file is its
 * own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/reader_exercise.h"
#include "tests/support/reader_files.h"
#include "tests/support/sample_record.h"
#include "verify/archive/distributions.h"
#include "verify/archive/frame.h"
/* For release(), as attest ends the process instead. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "verify/archive/h5tensors.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

enum { SAFETENSORS, NPY, NPZ, HDF5, ARCHIVE, DISTRIBUTIONS, FORMATS };
static const char *const formats[FORMATS] = { "safetensors", "npy", "npz", "hdf5", "archive", "distributions" };
static int format;

/* --- HDF5 without the child --- */

static at_status open_here(const char *path, void **handle, struct at_file_tensor **tensors, int *n) {
    struct at_h5_file *file = NULL;
    struct at_file_tensor *listed = NULL;
    AT_TRY(at_h5_file_open(path, &file, &listed, n));
    *tensors = calloc((size_t)*n + 1, sizeof **tensors); /* at_reader_close() frees them */
    if (*tensors && *n > 0)
        memcpy(*tensors, listed, (size_t)*n * sizeof **tensors);
    *handle = file;
    return AT_OK;
}

static at_status read_here(void *handle, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n,
                           void *out) {
    AT_TRY(at_h5_file_read(handle, tensors, i, first, n, out));
    return AT_OK;
}

static void close_here(void *handle) {
    struct at_h5_file *file = handle;
    at_h5_close(file->type);
    at_h5_close(file->dataset);
    release(file);
}

static const struct at_reader_type here = { .name = "hdf5",
                                            .suffixes = { ".hdf5" },
                                            .magics = { "\x89HDF" },
                                            .open = open_here,
                                            .read = read_here,
                                            .close = close_here };

/* --- archives --- */

static const char *read_frames(const char *path) {
    struct at_frames frames;
    at_error_clear();
    const at_status status = at_frames_read(path, &frames);
    at_frames_release(&frames);
    if (status != AT_OK && !strstr(at_error_message(), path))
        return "a failure does not name the file";
    return strchr(at_error_message(), '\n') ? "a failure has more than one line" : NULL;
}

static const char *read_archive(const char *path) {
    struct at_run_record record;
    const char *broken = read_frames(path);
    if (broken)
        return broken;
    at_error_clear();
    at_status status = at_archive_read(path, &record);
    if (status == AT_OK) {
        at_run_record_release(&record);
        return NULL;
    }
    if (record.results || record.request || record.provenance)
        return "a failure left a record";
    if (!strstr(at_error_message(), path))
        return "a failure does not name the file";
    return strchr(at_error_message(), '\n') ? "a failure has more than one line" : NULL;
}

/* --- distributions --- */

static const char *read_distributions(const char *path) {
    struct at_distributions d;
    at_error_clear();
    const at_status status = at_distributions_open(path, &d);
    if (status != AT_OK) {
        if (d.file || d.layer || d.record.request)
            return "a failure left distributions";
        if (!strstr(at_error_message(), path))
            return "a failure does not name the file";
        return strchr(at_error_message(), '\n') ? "a failure has more than one line" : NULL;
    }
    uint64_t *counts = calloc((size_t)at_dist_bins(d.shape.bins), sizeof *counts);
    for (int w = 0; counts && w < AT_DIST_COUNT; w++)
        if (at_dist_has(&d.shape, (enum at_dist_what)w))
            for (int64_t head = 0; head < at_dist_heads(&d.shape, (enum at_dist_what)w) && head < 4; head++) {
                (void)at_distributions_counts(&d, (enum at_dist_what)w, d.shape.n_layers - 1, head, counts);
                at_error_clear();
            }
    free(counts);
    at_distributions_close(&d);
    return NULL;
}

/* One layer, two heads, some counts. */
static void write_distributions(const char *path) {
    static const int64_t layers[] = { 0 };
    const struct at_dist_shape shape = { 1, 2, 1, 1, 1, 3, AT_F16, 1u << AT_DIST_raw | 1u << AT_DIST_k };
    struct at_run_record record;
    at_run_record_init(&record);
    const struct at_dist_head head = { shape, layers, "asynct", "seed", &record, 0 };
    const struct at_dist_unit_row unit = { 0, 0, 3, 4, "0123456789abcdef" };
    struct at_dist_writer *writer;
    struct at_dist_layer layer;
    if (at_dist_layer_init(&shape, &layer) != AT_OK || at_dist_writer_open(path, &head, &writer) != AT_OK)
        abort();
    layer.counts[AT_DIST_raw][30000] = layer.counts[AT_DIST_k][40000] = 5;
    if (at_dist_writer_put(writer, 0, &layer) != AT_OK || at_dist_writer_save(writer, &unit, 1) != AT_OK)
        abort();
    at_dist_layer_release(&layer);
}

/* --- libFuzzer's side --- */

/* The suffix decides for files without a magic number, so damage there stays with its reader. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct at_bytes bytes = { 0 };
    int opened;
    char name[32];
    snprintf(name, sizeof name, "f.%s", formats[format]);
    at_bytes_add(&bytes, data, n);
    const char *path = at_temp_file(name, &bytes);
    const char *broken = format == ARCHIVE         ? read_archive(path)
                         : format == DISTRIBUTIONS ? read_distributions(path)
                                                   : at_reader_exercise(path, &opened);
    at_bytes_release(&bytes);
    if (broken) {
        fprintf(stderr, "fuzz_reader: %s: %s\n", broken, at_error_message());
        abort();
    }
    return 0;
}

/* One good file of the format. */
static void write_seed(const char *path) {
    static const float data[6] = { 1, 2, 3, 4, 5, 6 };
    struct at_bytes array = { 0 }, bytes = { 0 };
    struct at_run_record record;
    at_make_npy(&array, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data, sizeof data);
    const struct at_zip_source members[] = { { "q.npy", &array, 1, 0 }, { "k.npy", &array, 0, 1 } };
    if (format == HDF5) {
        at_make_hdf5(path);
    } else if (format == DISTRIBUTIONS) {
        write_distributions(path);
    } else if (format == ARCHIVE) {
        if (!at_sample_record(&record, 2) || at_archive_write(&record, path) != AT_OK)
            abort();
        at_run_record_release(&record);
    } else {
        if (format == SAFETENSORS)
            at_make_safetensors(&bytes, "{\"q\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", data,
                                sizeof data);
        else if (format == NPZ)
            at_make_zip(&bytes, members, 2, 1);
        else
            at_bytes_add(&bytes, array.data, array.n);
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(bytes.data, 1, bytes.n, out) != bytes.n || fclose(out) != 0)
            abort();
    }
    at_bytes_release(&array);
    at_bytes_release(&bytes);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): libFuzzer's signature */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const char *wanted = getenv("AT_FUZZ_FORMAT"), *folder = getenv("AT_FUZZ_WRITE");
    for (format = 0; wanted && format < FORMATS && strcmp(formats[format], wanted) != 0;)
        format++;
    if (!wanted || format == FORMATS) {
        fprintf(stderr,
                "fuzz_reader: AT_FUZZ_FORMAT is %s, wanted safetensors, npy, npz, hdf5, archive or distributions\n",
                wanted ? wanted : "not set");
        exit(2);
    }
    at_reader_register(&here);
    if (folder) {
        char path[512];
        snprintf(path, sizeof path, "%s/seed.%s", folder, formats[format]);
        write_seed(path);
    }
    return 0;
}
