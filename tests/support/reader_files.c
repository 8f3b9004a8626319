/* Tensor files made byte by byte for the tests of the readers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/reader_files.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "attest/format.h"

static void give_up(const char *what) {
    fprintf(stderr, "reader_files: %s failed\n", what);
    abort();
}

void at_bytes_add(struct at_bytes *bytes, const void *data, size_t n) {
    if (bytes->n + n > bytes->capacity) {
        bytes->capacity = 2 * (bytes->n + n) + 64;
        bytes->data = realloc(bytes->data, bytes->capacity);
        if (!bytes->data)
            give_up("realloc");
    }
    if (n)
        memcpy(bytes->data + bytes->n, data, n);
    bytes->n += n;
}

void at_bytes_le(struct at_bytes *bytes, uint64_t value, int n) {
    at_bytes_add(bytes, "\0\0\0\0\0\0\0", (size_t)n);
    at_bytes_set_le(bytes, bytes->n - (size_t)n, value, n);
}

void at_bytes_set_le(struct at_bytes *bytes, size_t at, uint64_t value, int n) {
    for (int i = 0; i < n; i++)
        bytes->data[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

void at_bytes_release(struct at_bytes *bytes) {
    free(bytes->data);
    *bytes = (struct at_bytes){ 0 };
}

/* ---- files ---- */

static char folder[64];
static pid_t owner;

static void remove_folder(void) {
    char command[128];
    if (getpid() != owner) /* a forked child leaves the folder to its parent */
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "reader_files: %s stays behind\n", folder);
}

const char *at_temp_path(const char *name) {
    static char path[4][192];
    static int turn;
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/dev/shm/at_reader_XXXXXX"); /* memory: the fuzz tests write thousands */
        if (!mkdtemp(folder))
            snprintf(folder, sizeof folder, "/tmp/at_reader_XXXXXX");
        if (strncmp(folder, "/tmp/", 5) == 0 && !mkdtemp(folder))
            give_up("mkdtemp");
        owner = getpid();
        atexit(remove_folder);
    }
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

const char *at_temp_file(const char *name, const struct at_bytes *bytes) {
    const char *path = at_temp_path(name);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes->data, 1, bytes->n, out) != bytes->n || fclose(out) != 0)
        give_up(path);
    return path;
}

/* ---- safetensors, npy ---- */

void at_make_safetensors(struct at_bytes *out, const char *header, const void *data, size_t n) {
    at_bytes_le(out, strlen(header), 8);
    at_bytes_add(out, header, strlen(header));
    at_bytes_add(out, data, n);
}

void at_make_npy(struct at_bytes *out, int version, const char *dictionary, const void *data, size_t n) {
    int field = version == 1 ? 2 : 4;
    size_t start = 8 + (size_t)field, text = strlen(dictionary) + 1, padded = (start + text + 63) / 64 * 64 - start;
    at_bytes_add(out, "\x93NUMPY", 6);
    at_bytes_le(out, (uint64_t)version, 1);
    at_bytes_le(out, 0, 1);
    at_bytes_le(out, padded, field);
    at_bytes_add(out, dictionary, text - 1);
    for (size_t i = text - 1; i + 1 < padded; i++)
        at_bytes_add(out, " ", 1);
    at_bytes_add(out, "\n", 1);
    at_bytes_add(out, data, n);
}

/* ---- zip ---- */

static void deflate_bytes(const struct at_bytes *content, struct at_bytes *packed) {
    z_stream stream = { 0 };
    if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        give_up("deflateInit2");
    uLong bound = deflateBound(&stream, content->n);
    uint8_t *to = malloc(bound);
    if (!to)
        give_up("malloc");
    stream.next_in = content->data;
    stream.avail_in = (uInt)content->n;
    stream.next_out = to;
    stream.avail_out = (uInt)bound;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        give_up("deflate");
    at_bytes_add(packed, to, stream.total_out);
    deflateEnd(&stream);
    free(to);
}

/* What the local header and the directory's entry have in common, from "version needed" to the name's length. */
static void add_common(struct at_bytes *out, const struct at_zip_source *m, size_t packed, int local) {
    uLong crc = crc32(crc32(0, NULL, 0), m->content->data, (uInt)m->content->n);
    at_bytes_le(out, m->zip64 ? 45 : 20, 2);
    at_bytes_le(out, 0, 2);
    at_bytes_le(out, m->deflate ? 8 : 0, 2);
    at_bytes_le(out, 0x00210000, 4);
    at_bytes_le(out, crc, 4);
    at_bytes_le(out, m->zip64 ? UINT32_MAX : packed, 4);
    at_bytes_le(out, m->zip64 ? UINT32_MAX : m->content->n, 4);
    at_bytes_le(out, strlen(m->name), 2);
    at_bytes_le(out, m->zip64 ? (local ? 20 : 28) : 0, 2);
}

static void add_zip64(struct at_bytes *out, const struct at_zip_source *m, size_t packed, size_t header, int local) {
    if (!m->zip64)
        return;
    at_bytes_le(out, 1, 2);
    at_bytes_le(out, local ? 16 : 24, 2);
    at_bytes_le(out, m->content->n, 8);
    at_bytes_le(out, packed, 8);
    if (!local)
        at_bytes_le(out, header, 8);
}

static void add_entry(struct at_bytes *out, const struct at_zip_source *m, size_t packed, size_t header) {
    at_bytes_add(out, "PK\1\2", 4);
    at_bytes_le(out, 45, 2);
    add_common(out, m, packed, 0);
    at_bytes_le(out, 0, 8); /* comment 2, disk 2, internal attributes 2, */
    at_bytes_le(out, 0, 2); /* external attributes 4 */
    at_bytes_le(out, m->zip64 ? UINT32_MAX : header, 4);
    at_bytes_add(out, m->name, strlen(m->name));
    add_zip64(out, m, packed, header, 0);
}

static void add_end(struct at_bytes *out, int n, size_t directory, int with_zip64) {
    size_t bytes = out->n - directory, end64 = out->n;
    if (with_zip64) {
        at_bytes_add(out, "PK\6\6", 4);
        at_bytes_le(out, 44, 8);
        at_bytes_le(out, 45 | 45 << 16, 4);
        at_bytes_le(out, 0, 8);
        at_bytes_le(out, (uint64_t)n, 8);
        at_bytes_le(out, (uint64_t)n, 8);
        at_bytes_le(out, bytes, 8);
        at_bytes_le(out, directory, 8);
        at_bytes_add(out, "PK\6\7", 4);
        at_bytes_le(out, 0, 4);
        at_bytes_le(out, end64, 8);
        at_bytes_le(out, 1, 4);
    }
    at_bytes_add(out, "PK\5\6", 4);
    at_bytes_le(out, 0, 4);
    at_bytes_le(out, (uint64_t)n, 2);
    at_bytes_le(out, (uint64_t)n, 2);
    at_bytes_le(out, with_zip64 ? UINT32_MAX : bytes, 4);
    at_bytes_le(out, with_zip64 ? UINT32_MAX : directory, 4);
    at_bytes_le(out, 0, 2);
}

void at_make_zip(struct at_bytes *out, const struct at_zip_source *members, int n, int with_zip64) {
    size_t header[16], packed[16];
    if (n > 16)
        give_up("at_make_zip");
    for (int i = 0; i < n; i++) {
        struct at_bytes content = { 0 };
        if (members[i].deflate)
            deflate_bytes(members[i].content, &content);
        else
            at_bytes_add(&content, members[i].content->data, members[i].content->n);
        header[i] = out->n;
        packed[i] = content.n;
        at_bytes_add(out, "PK\3\4", 4);
        add_common(out, &members[i], packed[i], 1);
        at_bytes_add(out, members[i].name, strlen(members[i].name));
        add_zip64(out, &members[i], packed[i], header[i], 1);
        at_bytes_add(out, content.data, content.n);
        at_bytes_release(&content);
    }
    size_t directory = out->n;
    for (int i = 0; i < n; i++)
        add_entry(out, &members[i], packed[i], header[i]);
    add_end(out, n, directory, with_zip64);
}

/* ---- HDF5 ---- */

double at_sample_value(int64_t i) { return (double)(i * 5 % 15 - 7); }

/* A custom float: h5py calls the first of these float16. */
static hid_t make_float(size_t bytes, size_t exponent_bits, size_t mantissa_bits, size_t bias) {
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 8 * bytes - 1, mantissa_bits, exponent_bits, 0, mantissa_bits);
    H5Tset_size(type, bytes);
    H5Tset_ebias(type, bias);
    return type;
}

static hid_t type_of(enum at_format format) {
    switch (format) {
    case AT_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case AT_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case AT_F16:
        return make_float(2, 5, 10, 15);
    case AT_BF16:
        return make_float(2, 8, 7, 127);
    case AT_E4M3:
        return make_float(1, 4, 3, 7);
    case AT_E5M2:
        return make_float(1, 5, 2, 15);
    default:
        return H5Tcopy(H5T_STD_I32LE);
    }
}

/* Writes codes of `format` as a dataset of `type`; n_codes 0: creates and never writes it. */
static void add_dataset(hid_t file, const char *name, hid_t type, enum at_format format, int rank, const hsize_t *shape,
                        const hsize_t *chunk, int written) {
    double values[105];
    _Alignas(8) uint8_t codes[105 * 8] = { 0 };
    for (int i = 0; i < 105; i++)
        values[i] = at_sample_value(i);
    at_encode_array(format, 105, values, codes);
    hid_t space = H5Screate_simple(rank, shape, NULL), links = H5Pcreate(H5P_LINK_CREATE);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    if (chunk) {
        H5Pset_chunk(plist, rank, chunk);
        H5Pset_shuffle(plist);
        H5Pset_deflate(plist, 6);
    }
    hid_t set = H5Dcreate2(file, name, type, space, links, plist, H5P_DEFAULT);
    if (set < 0 || (written && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) < 0))
        give_up(name);
    H5Dclose(set);
    H5Pclose(plist);
    H5Pclose(links);
    H5Sclose(space);
}

void at_make_hdf5(const char *path) {
    static const enum at_format formats[] = { AT_F64, AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2, AT_I32 };
    const hsize_t shape[3] = { 7, 5, 3 }, chunk[3] = { 3, 2, 2 }, few = 8, none[2] = { 0, 4 };
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        give_up(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        hid_t type = type_of(formats[i]);
        add_dataset(file, at_format_info(formats[i])->name, type, formats[i], 3, shape, NULL, 1);
        H5Tclose(type);
    }
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 8);
    add_dataset(file, "chunked", H5T_IEEE_F32LE, AT_F32, 3, shape, chunk, 1);
    add_dataset(file, "layers/0/q", H5T_IEEE_F32LE, AT_F32, 3, shape, NULL, 1);
    add_dataset(file, "scalar", H5T_IEEE_F32LE, AT_F32, 0, NULL, NULL, 1);
    add_dataset(file, "empty", H5T_IEEE_F32LE, AT_F32, 2, none, NULL, 0);
    add_dataset(file, "be", H5T_IEEE_F32BE, AT_F32, 3, shape, NULL, 1);
    add_dataset(file, "i64", H5T_STD_I64LE, AT_F64, 1, &few, NULL, 1);
    add_dataset(file, "text", text, AT_F64, 1, &few, NULL, 1);
    add_dataset(file, "unwritten", H5T_IEEE_F32LE, AT_F32, 3, shape, chunk, 0);
    H5Tclose(text);
    H5Fclose(file);
}
