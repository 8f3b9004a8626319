/* The bytes of one zip member, read forwards in bounded memory, and the proof of its size and CRC.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/readers/reader_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PACKED_PIECE = 16384, UNPACKED_PIECE = 16384 };

struct at_unzip {
    const struct at_input *input;
    const struct at_zip_member *member;
    z_stream stream;
    int started; /* the stream has memory of zlib's */
    int ended;   /* zlib saw the end of the deflated data */
    int64_t fed; /* packed bytes given to the stream */
    int64_t at;  /* unpacked bytes that came out */
    uint8_t packed[PACKED_PIECE], scratch[UNPACKED_PIECE];
};

at_status at_unzip_open(const struct at_input *input, const struct at_zip_member *member, struct at_unzip **unzip) {
    *unzip = calloc(1, sizeof **unzip);
    if (!*unzip)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory to unpack member '%s'", input->path, member->name);
    (*unzip)->input = input;
    (*unzip)->member = member;
    return AT_OK;
}

void at_unzip_close(struct at_unzip *unzip) {
    if (unzip && unzip->started)
        inflateEnd(&unzip->stream);
    free(unzip);
}

static at_status rewind_stream(struct at_unzip *u) {
    int code = u->started ? inflateReset(&u->stream) : inflateInit2(&u->stream, -MAX_WBITS);
    if (code != Z_OK)
        return AT_FAIL(AT_NO_MEMORY, "%s: member '%s': zlib cannot start: %s", u->input->path, u->member->name,
                       zError(code));
    u->started = 1;
    u->ended = 0;
    u->fed = u->at = 0;
    u->stream.avail_in = 0;
    return AT_OK;
}

/* At most n further bytes of a deflated member; *got is less only at its end. */
static at_status inflate_some(struct at_unzip *u, int64_t n, uint8_t *out, int64_t *got) {
    const struct at_zip_member *m = u->member;
    *got = 0;
    while (*got < n && !u->ended) {
        if (u->stream.avail_in == 0) {
            int64_t take = m->packed - u->fed < PACKED_PIECE ? m->packed - u->fed : PACKED_PIECE;
            AT_TRY(at_input_read(u->input, m->data + u->fed, take, u->packed));
            u->stream.next_in = u->packed;
            u->stream.avail_in = (unsigned)take;
            u->fed += take;
        }
        unsigned room = n - *got < UNPACKED_PIECE ? (unsigned)(n - *got) : UNPACKED_PIECE;
        u->stream.next_out = out + *got;
        u->stream.avail_out = room;
        int code = inflate(&u->stream, Z_NO_FLUSH);
        *got += room - u->stream.avail_out;
        u->at += room - u->stream.avail_out;
        u->ended = code == Z_STREAM_END;
        if (code != Z_OK && code != Z_STREAM_END)
            return AT_FAIL(AT_USAGE, "%s: member '%s': damaged at unpacked byte %" PRId64 ": %s", u->input->path,
                           m->name, u->at, code == Z_BUF_ERROR ? "the deflated data is cut short" : zError(code));
    }
    return AT_OK;
}

/* Exactly n bytes from where the stream is. */
static at_status next_bytes(struct at_unzip *u, int64_t n, uint8_t *out) {
    int64_t got = 0;
    AT_TRY(inflate_some(u, n, out, &got));
    if (got != n)
        return AT_FAIL(AT_USAGE, "%s: member '%s': unpacks to %" PRId64 " bytes, says %" PRId64, u->input->path,
                       u->member->name, u->at, u->member->unpacked);
    return AT_OK;
}

at_status at_unzip_read(struct at_unzip *u, int64_t offset, int64_t n, void *out) {
    const struct at_zip_member *m = u->member;
    if (offset < 0 || n < 0 || offset > m->unpacked || n > m->unpacked - offset)
        return AT_FAIL(AT_USAGE, "%s: member '%s': %" PRId64 " bytes from %" PRId64 " wanted, it has %" PRId64,
                       u->input->path, m->name, n, offset, m->unpacked);
    if (!m->deflated) {
        AT_TRY(at_input_read(u->input, m->data + offset, n, out));
        return AT_OK;
    }
    if (!u->started || u->at > offset)
        AT_TRY(rewind_stream(u));
    while (u->at < offset) {
        int64_t skip = offset - u->at < UNPACKED_PIECE ? offset - u->at : UNPACKED_PIECE;
        AT_TRY(next_bytes(u, skip, u->scratch));
    }
    AT_TRY(next_bytes(u, n, out));
    return AT_OK;
}

/* After the last declared byte: the deflated data ends there too, with no packed byte left over. */
static at_status check_end(struct at_unzip *u) {
    const struct at_zip_member *m = u->member;
    int64_t got = 0;
    uint8_t beyond;
    if (!u->started) /* an empty member was not read from */
        AT_TRY(rewind_stream(u));
    AT_TRY(inflate_some(u, 1, &beyond, &got));
    int64_t left = m->packed - u->fed + u->stream.avail_in;
    if (got != 0 || left != 0)
        return AT_FAIL(AT_USAGE, "%s: member '%s': %s after the %" PRId64 " bytes it says it has", u->input->path,
                       m->name, got != 0 ? "unpacks to more" : "deflated data is left over", m->unpacked);
    return AT_OK;
}

at_status at_unzip_verify(struct at_unzip *u) {
    const struct at_zip_member *m = u->member;
    uLong crc = crc32(0, NULL, 0);
    for (int64_t at = 0; at < m->unpacked;) {
        int64_t take = m->unpacked - at < UNPACKED_PIECE ? m->unpacked - at : UNPACKED_PIECE;
        AT_TRY(at_unzip_read(u, at, take, u->scratch));
        crc = crc32(crc, u->scratch, (uInt)take);
        at += take;
    }
    if (m->deflated)
        AT_TRY(check_end(u));
    if (crc != m->crc)
        return AT_FAIL(AT_USAGE, "%s: member '%s': CRC %08lx, wanted %08" PRIx32 ": its bytes are damaged",
                       u->input->path, m->name, crc, m->crc);
    return AT_OK;
}
