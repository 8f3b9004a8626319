/* The readers of safetensors, npy and npz under libFuzzer; no part of `make check`.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Ireference -I. \
 *       $(pkg-config --cflags hdf5) tests/fuzz/fuzz_reader.c tests/support/reader_*.c datasets/reader*.c \
 *       reference/attest/{status,format,names}.c -o /tmp/fuzz_reader $(pkg-config --libs hdf5 jansson zlib) -lm
 *   mkdir -p /tmp/corpus && AT_FUZZ_WRITE=/tmp/corpus /tmp/fuzz_reader -runs=0 && /tmp/fuzz_reader -max_len=4096
 * /tmp/corpus
 *
 * HDF5 is left out: its parsing is the library's, runs in a child process, and is fuzzed by test_reader_fuzz. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/reader_exercise.h"
#include "tests/support/reader_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The suffix decides for files without a magic number, so every input is tried as safetensors at least. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct at_bytes bytes = { 0 };
    int opened;
    at_bytes_add(&bytes, data, n);
    const char *broken = at_reader_exercise(at_temp_file("f.safetensors", &bytes), &opened);
    at_bytes_release(&bytes);
    if (broken) {
        fprintf(stderr, "fuzz_reader: %s\n", broken);
        abort();
    }
    return 0;
}

static void write_seed(const char *folder, const char *name, struct at_bytes *bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes->data, 1, bytes->n, out) != bytes->n || fclose(out) != 0)
        abort();
    at_bytes_release(bytes);
}

/* With AT_FUZZ_WRITE=FOLDER: one good file of each type, to start from. */
/* NOLINTNEXTLINE(readability-non-const-parameter): libFuzzer's signature */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const char *folder = getenv("AT_FUZZ_WRITE");
    struct at_bytes array = { 0 }, archive = { 0 }, tensors = { 0 };
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    if (!folder)
        return 0;
    at_make_npy(&array, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data, sizeof data);
    const struct at_zip_source members[] = { { "q.npy", &array, 1, 0 }, { "k.npy", &array, 0, 1 } };
    at_make_zip(&archive, members, 2, 1);
    at_make_safetensors(&tensors, "{\"q\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", data,
                        sizeof data);
    write_seed(folder, "seed.npy", &array);
    write_seed(folder, "seed.npz", &archive);
    write_seed(folder, "seed.safetensors", &tensors);
    return 0;
}
