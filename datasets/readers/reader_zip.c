/* The directory of a zip archive, as npz files have it: where each member lies and how long it is.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source: PKWARE's APPNOTE, zip64 included. Taken: one disk, members stored or deflated, not encrypted.
 * The central directory alone is believed, after it is checked against the file's size and each member's
 * local header; members that share bytes (overlapping bombs) are refused. */
#include "datasets/readers/reader_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MAX_COMMENT = 65535,
    MAX_MEMBERS = 4096,
    MAX_DIRECTORY = 64 << 20,
    DEFLATE_RATIO = 1032 /* deflate codes at most 258 bytes in 2 bits */
};

struct directory {
    int64_t offset, bytes, members;
};

static int has_signature(const uint8_t *bytes, uint8_t a, uint8_t b) {
    return bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == a && bytes[3] == b;
}

/* The end record: the last place whose comment reaches exactly to the end of the file. */
static at_status find_end(const struct at_input *input, uint8_t end[END_BYTES], int64_t *at) {
    int64_t n = input->size < END_BYTES + MAX_COMMENT ? input->size : END_BYTES + MAX_COMMENT;
    uint8_t *tail = malloc((size_t)n + 1);
    if (!tail)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for the end of the archive", input->path);
    at_status status = at_input_read(input, input->size - n, n, tail);
    *at = -1;
    for (int64_t i = n - END_BYTES; status == AT_OK && *at < 0 && i >= 0; i--)
        if (has_signature(tail + i, 5, 6) && i + END_BYTES + (int64_t)at_read_le(tail + i + 20, 2) == n) {
            memcpy(end, tail + i, END_BYTES);
            *at = input->size - n + i;
        }
    free(tail);
    if (status == AT_OK && *at < 0)
        status = AT_FAIL(AT_USAGE, "%s: no zip end record in the last %" PRId64 " bytes: the archive is cut short",
                         input->path, n);
    return status;
}

/* Fields of the zip64 end record, when there is a locator before the end record. */
static at_status read_end64(const struct at_input *input, int64_t end_at, struct directory *d, int64_t *limit) {
    uint8_t locator[LOCATOR_BYTES], end64[END64_BYTES];
    if (end_at < LOCATOR_BYTES)
        return AT_OK;
    AT_TRY(at_input_read(input, end_at - LOCATOR_BYTES, LOCATOR_BYTES, locator));
    if (!has_signature(locator, 6, 7))
        return AT_OK;
    uint64_t at = at_read_le(locator + 8, 8);
    if (end_at < LOCATOR_BYTES + END64_BYTES || at > (uint64_t)(end_at - LOCATOR_BYTES - END64_BYTES))
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": zip64 end record at %" PRIu64 ", beyond its place",
                       input->path, end_at - LOCATOR_BYTES, at);
    AT_TRY(at_input_read(input, (int64_t)at, END64_BYTES, end64));
    if (!has_signature(end64, 6, 6))
        return AT_FAIL(AT_USAGE, "%s: offset %" PRIu64 ": no zip64 end record there", input->path, at);
    uint64_t members = at_read_le(end64 + 32, 8), bytes = at_read_le(end64 + 40, 8), offset = at_read_le(end64 + 48, 8);
    if (members > MAX_MEMBERS || bytes > MAX_DIRECTORY || offset > (uint64_t)input->size)
        return AT_FAIL(AT_USAGE,
                       "%s: offset %" PRIu64 ": zip64 directory of %" PRIu64 " members, %" PRIu64 " bytes at %" PRIu64
                       "; wanted at most %d, %d and %" PRId64,
                       input->path, at, members, bytes, offset, MAX_MEMBERS, MAX_DIRECTORY, input->size);
    *d = (struct directory){ (int64_t)offset, (int64_t)bytes, (int64_t)members };
    *limit = (int64_t)at;
    return AT_OK;
}

static at_status find_directory(const struct at_input *input, struct directory *d) {
    uint8_t end[END_BYTES];
    int64_t end_at = 0;
    AT_TRY(find_end(input, end, &end_at));
    if (at_read_le(end + 4, 2) != at_read_le(end + 6, 2) || at_read_le(end + 8, 2) != at_read_le(end + 10, 2))
        return AT_FAIL(AT_UNSUPPORTED, "%s: offset %" PRId64 ": a zip archive over several disks", input->path, end_at);
    d->members = (int64_t)at_read_le(end + 10, 2);
    d->bytes = (int64_t)at_read_le(end + 12, 4);
    d->offset = (int64_t)at_read_le(end + 16, 4);
    int64_t limit = end_at;
    AT_TRY(read_end64(input, end_at, d, &limit));
    if (d->bytes > MAX_DIRECTORY || d->offset > limit || d->bytes != limit - d->offset)
        return AT_FAIL(AT_USAGE,
                       "%s: offset %" PRId64 ": zip directory of %" PRId64 " bytes at %" PRId64
                       ", wanted it to end at %" PRId64 " and at most %d bytes",
                       input->path, end_at, d->bytes, d->offset, limit, MAX_DIRECTORY);
    if (d->members > MAX_MEMBERS || d->members > d->bytes / ENTRY_BYTES)
        return AT_FAIL(AT_USAGE,
                       "%s: offset %" PRId64 ": zip directory of %" PRId64 " bytes for %" PRId64
                       " members, wanted at most %d of %d bytes or more each",
                       input->path, end_at, d->bytes, d->members, MAX_MEMBERS, ENTRY_BYTES);
    return AT_OK;
}

/* Replaces fields that are all ones by those of the zip64 extra field, in the order the format fixes. */
static at_status apply_zip64(const char *where, const uint8_t *extra, int64_t n, uint64_t *fields[3]) {
    int wanted = 0;
    for (int i = 0; i < 3; i++)
        wanted += *fields[i] == UINT32_MAX;
    for (int64_t at = 0; wanted && at + 4 <= n;) {
        int64_t size = (int64_t)at_read_le(extra + at + 2, 2), end = at + 4 + size;
        if (end > n)
            break;
        if (at_read_le(extra + at, 2) == 1 && size >= 8 * wanted) {
            const uint8_t *value = extra + at + 4;
            for (int i = 0; i < 3; i++)
                if (*fields[i] == UINT32_MAX) {
                    *fields[i] = at_read_le(value, 8);
                    value += 8;
                }
            return AT_OK;
        }
        at = end;
    }
    if (wanted)
        return AT_FAIL(AT_USAGE, "%s: sizes said to be in a zip64 field that is not there or too short", where);
    return AT_OK;
}

/* The sizes of a member against each other and against where the directory begins. */
static at_status set_sizes(const char *where, struct at_zip_member *m, const uint64_t fields[3], int64_t limit) {
    uint64_t unpacked = fields[0], packed = fields[1], header = fields[2];
    if (header > (uint64_t)limit || packed > (uint64_t)limit - header)
        return AT_FAIL(AT_USAGE, "%s: %" PRIu64 " bytes at offset %" PRIu64 ", wanted them before %" PRId64, where,
                       packed, header, limit);
    /* packed < 2^63 / 2^11 for any file that exists; the product cannot wrap after this */
    uint64_t most = !m->deflated ? packed : packed > (uint64_t)INT64_MAX / DEFLATE_RATIO ? 0 : packed * DEFLATE_RATIO;
    if (unpacked > most || (!m->deflated && unpacked != packed))
        return AT_FAIL(AT_USAGE, "%s: says %" PRIu64 " bytes come out of %" PRIu64 " %s ones, more or less than can",
                       where, unpacked, packed, m->deflated ? "deflated" : "stored");
    m->unpacked = (int64_t)unpacked;
    m->packed = (int64_t)packed;
    m->header = (int64_t)header;
    return AT_OK;
}

/* Reads the entry at *at of the directory and moves past it. */
static at_status parse_entry(const struct at_input *input, const struct directory *d, const uint8_t *bytes, int64_t *at,
                             struct at_zip_member *m) {
    char where[1024];
    const uint8_t *e = bytes + *at;
    if (*at + ENTRY_BYTES > d->bytes || !has_signature(e, 1, 2))
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": no entry of the zip directory there", input->path,
                       d->offset + *at);
    int64_t name = (int64_t)at_read_le(e + 28, 2), extra = (int64_t)at_read_le(e + 30, 2);
    int64_t comment = (int64_t)at_read_le(e + 32, 2), next = *at + ENTRY_BYTES + name + extra + comment;
    if (next > d->bytes)
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": entry of the zip directory beyond the directory's end",
                       input->path, d->offset + *at);
    struct at_file_tensor checked; /* for the rules of names */
    AT_TRY(at_name_set(input->path, &checked, (const char *)e + ENTRY_BYTES, (size_t)name));
    memcpy(m->name, checked.name, sizeof m->name);
    snprintf(where, sizeof where, "%s: member '%s'", input->path, m->name);
    uint64_t flags = at_read_le(e + 8, 2), method = at_read_le(e + 10, 2);
    if (flags & 0x2041) /* encrypted, strongly encrypted, masked headers */
        return AT_FAIL(AT_UNSUPPORTED, "%s: is encrypted", where);
    if (method != 0 && method != 8)
        return AT_FAIL(AT_UNSUPPORTED, "%s: compression method %" PRIu64 ", wanted 0 (stored) or 8 (deflate)", where,
                       method);
    m->deflated = method == 8;
    m->crc = (uint32_t)at_read_le(e + 16, 4);
    uint64_t fields[3] = { at_read_le(e + 24, 4), at_read_le(e + 20, 4), at_read_le(e + 42, 4) };
    AT_TRY(apply_zip64(where, e + ENTRY_BYTES + name, extra, (uint64_t *[3]){ &fields[0], &fields[1], &fields[2] }));
    AT_TRY(set_sizes(where, m, fields, d->offset));
    *at = next;
    return AT_OK;
}

/* The local header gives where the bytes begin; it must name the same member and method. */
static at_status read_local(const struct at_input *input, int64_t limit, struct at_zip_member *m) {
    uint8_t local[LOCAL_BYTES];
    char name[AT_READER_NAME_BYTES];
    size_t length = strlen(m->name);
    AT_TRY(at_input_read(input, m->header, LOCAL_BYTES, local));
    if (!has_signature(local, 3, 4) || at_read_le(local + 26, 2) != length ||
        at_read_le(local + 8, 2) != (m->deflated ? 8U : 0U))
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": no local header of member '%s' there", input->path, m->header,
                       m->name);
    AT_TRY(at_input_read(input, m->header + LOCAL_BYTES, (int64_t)length, name));
    if (memcmp(name, m->name, length) != 0)
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": the local header names another member than '%s'", input->path,
                       m->header, m->name);
    m->data = m->header + LOCAL_BYTES + (int64_t)length + (int64_t)at_read_le(local + 28, 2);
    if (m->data > limit || m->packed > limit - m->data)
        return AT_FAIL(AT_USAGE, "%s: member '%s': its %" PRId64 " bytes at offset %" PRId64 " reach past %" PRId64,
                       input->path, m->name, m->packed, m->data, limit);
    return AT_OK;
}

static int by_header(const void *a, const void *b) {
    const struct at_zip_member *x = a, *y = b;
    return x->header < y->header ? -1 : x->header > y->header;
}

static at_status parse_members(const struct at_input *input, const struct directory *d, const uint8_t *bytes,
                               struct at_zip_member *members) {
    int64_t at = 0, end = 0;
    for (int64_t i = 0; i < d->members; i++) {
        AT_TRY(parse_entry(input, d, bytes, &at, &members[i]));
        AT_TRY(read_local(input, d->offset, &members[i]));
    }
    if (at != d->bytes)
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": %" PRId64 " bytes of zip directory after its last entry",
                       input->path, d->offset + at, d->bytes - at);
    qsort(members, (size_t)d->members, sizeof *members, by_header);
    for (int64_t i = 0; i < d->members; i++) {
        if (members[i].header < end)
            return AT_FAIL(AT_USAGE, "%s: member '%s': begins at %" PRId64 ", inside the one before", input->path,
                           members[i].name, members[i].header);
        end = members[i].data + members[i].packed;
    }
    return AT_OK;
}

at_status at_zip_list(const struct at_input *input, struct at_zip_member **members, int64_t *n) {
    at_status status = AT_OK;
    struct directory d;
    *members = NULL;
    AT_TRY(find_directory(input, &d));
    uint8_t *bytes = malloc((size_t)d.bytes + 1);
    struct at_zip_member *made = calloc((size_t)d.members + 1, sizeof *made);
    if (!bytes || !made)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for a directory of %" PRId64 " members", input->path, d.members);
    AT_TRY_OUT(at_input_read(input, d.offset, d.bytes, bytes));
    AT_TRY_OUT(parse_members(input, &d, bytes, made));
    *members = made;
    *n = d.members;
out:
    free(bytes);
    if (status != AT_OK)
        free(made);
    return status;
}
