/* HDF5 files that are written as they grow, through a driver that never fails.
 * SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 1.10 cannot close a file whose own write failed: it tries again, or ends the process. So HDF5 sees a device that takes
 * everything. What the real one refuses is kept in memory from the first failure on, and read back from there; that is little,
 * as whoever writes is told soon. The features are those of the driver that builds files in memory, which decide where things lie
 * in the file: both give the same bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/archive/h5util.h"
#include "verify/result/atomic_file.h"
#include "verify/result/scratch.h"

struct device;

/* Bytes that could not be written. */
struct refused {
    struct refused *before; /* written earlier */
    haddr_t at;
    size_t n;
    char bytes[];
};

struct at_h5_out {
    struct at_atomic_file file;
    int fd; /* of the file, or of a scratch file where the file is a device */
    int is_scratch;
    int failed;                  /* errno of the first write that failed */
    int lost;                    /* no memory for what was refused: what is read may be wrong */
    const struct device *device; /* while it is open */
    struct refused *last;
};

/* What HDF5 knows of it; `base` is first, as HDF5 wants. */
struct device {
    H5FD_t base;
    struct at_h5_out *out;
    haddr_t eoa, eof;
};

struct device_info {
    struct at_h5_out *out;
};

static hid_t driver = H5I_INVALID_HID;

/* ---- reading and writing ---- */

static void keep_refused(struct at_h5_out *out, haddr_t at, size_t n, const void *bytes) {
    struct refused *r = malloc(sizeof *r + n);
    if (!r) {
        out->lost = 1;
        return;
    }
    *r = (struct refused){ .before = out->last, .at = at, .n = n };
    memcpy(r->bytes, bytes, n);
    out->last = r;
}

static herr_t device_write(H5FD_t *base, H5FD_mem_t type, hid_t list, haddr_t at, size_t n, const void *bytes) {
    struct device *d = (struct device *)base;
    struct at_h5_out *out = d->out;
    size_t done = 0;
    (void)type;
    (void)list;
    while (done < n && !out->failed) {
        const ssize_t written = pwrite(out->fd, (const char *)bytes + done, n - done, (off_t)(at + done));
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            out->failed = written == 0 ? ENOSPC : errno;
    }
    if (done < n)
        keep_refused(out, at + done, n - done, (const char *)bytes + done);
    if (at + n > d->eof)
        d->eof = at + n;
    return 0;
}

/* What was refused later lies over what was refused before. */
static void lay_over(const struct refused *r, haddr_t at, size_t n, char *bytes) {
    if (!r)
        return;
    lay_over(r->before, at, n, bytes);
    const haddr_t from = r->at > at ? r->at : at, to = r->at + r->n < at + n ? r->at + r->n : at + n;
    if (from < to)
        memcpy(bytes + (from - at), r->bytes + (from - r->at), (size_t)(to - from));
}

/* What was never written reads as zeros. */
static herr_t device_read(H5FD_t *base, H5FD_mem_t type, hid_t list, haddr_t at, size_t n, void *bytes) {
    struct at_h5_out *out = ((struct device *)base)->out;
    size_t done = 0;
    (void)type;
    (void)list;
    while (done < n) {
        const ssize_t got = pread(out->fd, (char *)bytes + done, n - done, (off_t)(at + done));
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            break;
    }
    memset((char *)bytes + done, 0, n - done);
    lay_over(out->last, at, n, bytes);
    return 0;
}

/* ---- the rest of a driver ---- */

/* HDF5 first tries to open what has the name already. */
static H5FD_t *device_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    const struct device_info *info = H5Pget_driver_info(access);
    (void)name;
    (void)most;
    if (!(flags & H5F_ACC_CREAT) || !info)
        return NULL;
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->out = info->out;
    d->out->device = d;
    return (H5FD_t *)d;
}

static herr_t device_close(H5FD_t *base) {
    struct device *d = (struct device *)base;
    d->out->device = NULL;
    free(d);
    return 0;
}

static int device_compare(const H5FD_t *a, const H5FD_t *b) { return (a > b) - (a < b); }

static herr_t device_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t device_get_eoa(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const struct device *)base)->eoa;
}

static herr_t device_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t at) {
    (void)type;
    ((struct device *)base)->eoa = at;
    return 0;
}

static haddr_t device_get_eof(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const struct device *)base)->eof;
}

static herr_t device_truncate(H5FD_t *base, hid_t list, hbool_t closing) {
    struct device *d = (struct device *)base;
    (void)list;
    (void)closing;
    d->eof = d->eoa;
    return 0;
}

static const H5FD_class_t device_class = {
    .name = "attest",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(struct device_info),
    .open = device_open,
    .close = device_close,
    .cmp = device_compare,
    .query = device_query,
    .get_eoa = device_get_eoa,
    .set_eoa = device_set_eoa,
    .get_eof = device_get_eof,
    .read = device_read,
    .write = device_write,
    .truncate = device_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- files ---- */

static at_status set_driver(const char *path, hid_t access, void *context) {
    const struct device_info info = { context };
    if (driver < 0 && (driver = H5FDregister(&device_class)) < 0)
        return at_h5_fail(AT_IO, path, "set up", "a driver");
    return H5Pset_driver(access, driver, &info) < 0 ? at_h5_fail(AT_IO, path, "set up", "a driver") : AT_OK;
}

static void release(struct at_h5_out *out) {
    for (struct refused *r = out->last, *before; r; r = before) {
        before = r->before;
        free(r);
    }
    if (out->is_scratch)
        close(out->fd);
    at_atomic_abandon(&out->file);
    free(out);
}

at_status at_h5_create_out(const char *path, struct at_h5_out **made, hid_t *id) {
    struct at_h5_out *out = calloc(1, sizeof *out);
    at_status status = AT_OK;
    *made = NULL;
    *id = H5I_INVALID_HID;
    if (!out)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory to write it", path);
    AT_TRY_OUT(at_atomic_open(path, &out->file));
    if (out->file.temp) {
        /* opened to write alone; the driver reads, too */
        out->fd = fileno(out->file.stream);
    } else {
        AT_TRY_OUT(at_scratch_file(path, &out->fd));
        out->is_scratch = 1;
    }
    AT_TRY_OUT(at_h5_create_on(path, set_driver, out, id));
    *made = out;
out:
    if (status != AT_OK)
        release(out);
    return status;
}

at_status at_h5_out_failed(const struct at_h5_out *out) {
    return out->failed ? AT_FAIL(AT_IO, "cannot write %s: %s", out->file.path, strerror(out->failed)) : AT_OK;
}

/* A device gets the bytes in order. */
static at_status copy_to_device(struct at_h5_out *out, haddr_t end) {
    static char bytes[1 << 16];
    for (haddr_t at = 0; at < end;) {
        const haddr_t left = end - at;
        const ssize_t got = pread(out->fd, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, (off_t)at);
        if (got <= 0)
            return AT_FAIL(AT_IO, "%s: cannot read the temporary file: %s", out->file.path, strerror(errno));
        fwrite(bytes, 1, (size_t)got, out->file.stream); /* a failure stays with the stream, and commit reports it */
        at += (haddr_t)got;
    }
    return AT_OK;
}

at_status at_h5_save_out(struct at_h5_out *out, hid_t id) {
    at_status status = AT_OK;
    /* the room taken when all is written, as the driver for memory counts; closing gives some of it back */
    haddr_t end = 0;
    if (H5Fflush(id, H5F_SCOPE_GLOBAL) < 0)
        status = at_h5_fail(AT_IO, out->file.path, "finish", "the archive");
    else
        end = out->device->eoa;
    if (H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_BUG, out->file.path, "close", "the archive");
    if (out->failed)
        status = at_h5_out_failed(out);
    if (status == AT_OK && ftruncate(out->fd, (off_t)end) != 0)
        status = AT_FAIL(AT_IO, "cannot write %s: %s", out->file.path, strerror(errno));
    if (status == AT_OK && out->is_scratch)
        status = copy_to_device(out, end);
    if (status == AT_OK)
        status = at_atomic_commit(&out->file);
    release(out);
    return status;
}

void at_h5_abandon_out(struct at_h5_out *out, hid_t id) {
    H5Fclose(id);
    release(out);
}
