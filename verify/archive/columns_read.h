/* Columns of an archive back into the structs that field tables describe.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COLUMNS_READ_H
#define AT_COLUMNS_READ_H

#include "verify/archive/h5util.h"
#include "verify/result/record.h"

/* Rows of a group that is being read. row_of: the struct that row i fills; `context` is its own. */
struct at_archive_source {
    const char *file;
    hid_t group;
    hsize_t n;
    char *(*row_of)(const struct at_archive_source *source, hsize_t i);
    void *context;
};

/* Where a row keeps a place: offsets of its flag and of itself, and the columns' prefix. */
struct at_archive_place {
    size_t has, place;
    const char *prefix;
};

/* Opens the archive after looking that it is a regular file; its size in bytes, which bounds what it can hold. */
at_status at_archive_open(const char *path, hid_t *id, uint64_t *bytes);
/* AT_USAGE unless `object` is of this encoding-type, AT_UNSUPPORTED when its version is a newer major. */
at_status at_archive_check_version(const char *file, hid_t object, const char *type, const char *name);
at_status at_archive_open_group(const char *file, hid_t parent, const char *name, const char *type, hid_t *group);

/* Request and build of a file, which are the caller's to release with the record. */
at_status at_archive_read_provenance(const char *file, hid_t root, struct at_run_record *record);

at_status at_archive_read_field(const struct at_archive_source *source, const struct at_field *field);
/* Places of the rows whose flag is set already. */
at_status at_archive_read_places(const struct at_archive_source *source, const struct at_archive_place *place);

#endif
