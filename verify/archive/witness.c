/* What a witness consists of, what its file is called, and /witness of the archive.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/witness.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "verify/archive/columns.h"
#include "verify/archive/h5array.h"
#include "verify/archive/layout.h"

enum { PATH_BYTES = 4352 };

/* ---- the arrays of a job ---- */

static const struct {
    const char *prefix, *meaning; /* the meaning of a tensor is its own */
} parts[AT_WITNESS_PARTS] = {
    [AT_WITNESS_TENSOR] = { "", NULL },
    [AT_WITNESS_REF] = { "ref_", "exact value of the operator on the stored inputs" },
    [AT_WITNESS_LIMIT] = { "limit_", "limit of |kernel - exact|; inf: none" },
    [AT_WITNESS_MODEL] = { "model_", "value of the declared arithmetic" },
    [AT_WITNESS_INTERVAL] = { "interval_", "deviation from the model still allowed" },
};

static void describe(const struct at_op *op, const struct at_tensor_spec *spec, enum at_witness_part part,
                     struct at_array *a) {
    memset(a, 0, sizeof *a);
    snprintf(a->group, sizeof a->group, "%s", AT_GROUP_WITNESS);
    snprintf(a->name, sizeof a->name, "%s%s", parts[part].prefix, spec->name);
    snprintf(a->units, sizeof a->units, "1");
    snprintf(a->long_name, sizeof a->long_name, "%s", parts[part].meaning ? parts[part].meaning : spec->meaning);
    a->format = AT_F64;
    for (int r = 0; r < AT_MAX_RANK && spec->dims[r] != AT_DIM_NONE; r++) {
        snprintf(a->axes[r], sizeof a->axes[r], "%s", at_dim_word(op, spec->dims[r]));
        for (char *c = a->axes[r]; (c = strchr(c, ' '));)
            *c = '_';
    }
}

int at_witness_layout(const struct at_op *op, struct at_array *arrays, int *tensor, enum at_witness_part *part) {
    int n = 0;
    for (int t = 0; t < op->n_tensors; t++)
        for (int p = AT_WITNESS_TENSOR; p < (op->tensors[t].role == AT_IN ? AT_WITNESS_REF : AT_WITNESS_PARTS); p++) {
            describe(op, &op->tensors[t], (enum at_witness_part)p, &arrays[n]);
            tensor[n] = t;
            part[n++] = (enum at_witness_part)p;
        }
    return n;
}

/* ---- files ---- */

void at_witness_row(const struct at_result *result, char row[AT_WITNESS_ROW_BYTES]) {
    snprintf(row, AT_WITNESS_ROW_BYTES, "%06" PRId64 "_%s.%s", result->plan_index, result->family, result->variant);
    /* names come from runners; the row is a file and a link of HDF5 */
    for (char *c = row; *c; c++)
        if (!isascii((unsigned char)*c) || (!isalnum((unsigned char)*c) && !strchr("._-", *c)))
            *c = '_';
}

at_status at_witness_folder(const char *out, char *path, size_t size) {
    if (snprintf(path, size, "%s.witness", out) >= (int)size)
        return AT_FAIL(AT_USAGE, "--out: the path is too long");
    return AT_OK;
}

/* "000017_family.variant.h5", and with a suffix what verify/result/atomic_file.c has not renamed yet. Anything else that lies
 * in the folder is somebody's own. */
static int is_ours(const char *name, int rows) {
    const size_t digits = strspn(name, "0123456789");
    const char *end = digits >= 6 && name[digits] == '_' ? strstr(name + digits, ".h5") : NULL;
    return end && (end[3] == '.' || (rows && end[3] == 0));
}

at_status at_witness_clear(const char *folder, int rows) {
    char path[PATH_BYTES];
    at_status status = AT_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return AT_FAIL(AT_IO, "cannot read %s: %s", folder, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (is_ours(entry->d_name, rows) &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path && unlink(path) != 0)
            status = AT_FAIL(AT_IO, "cannot delete %s: %s", path, strerror(errno));
    closedir(dir);
    return status;
}

at_status at_witness_find(const struct at_run_record *record, const struct at_result *result, char *path, size_t size) {
    char row[AT_WITNESS_ROW_BYTES];
    at_witness_row(result, row);
    snprintf(path, size, "%s.h5", row);
    for (int i = 0; i < record->n_witness; i++) {
        if (snprintf(path, size, "%s/%s.h5", record->witness[i], row) >= (int)size)
            return AT_FAIL(AT_USAGE, "%s: the path is too long", record->witness[i]);
        if (access(path, R_OK) == 0)
            return AT_OK;
    }
    return AT_FAIL(AT_NOT_FOUND, "%s is missing: the journal says that the tensors of %s/%s on '%.200s' were kept",
                   path, result->family, result->variant, result->case_id);
}

at_status at_witness_check(const struct at_run_record *record) {
    char path[PATH_BYTES];
    for (int64_t i = 0; i < record->n; i++)
        if (at_run_record_at(record, i)->kept)
            AT_TRY(at_witness_find(record, at_run_record_at(record, i), path, sizeof path));
    return AT_OK;
}

/* ---- /witness ---- */

/* Array `a` of a job from its file into the group; one that the job does not have is not there. */
static at_status copy_array(const char *file, hid_t group, const char *path, struct at_reader *reader,
                            struct at_array *a) {
    char name[sizeof a->group + sizeof a->name];
    snprintf(name, sizeof name, "%s.%s", a->group, a->name); /* as the reader calls it */
    const int i = at_reader_find(reader, name);
    if (i < 0)
        return AT_OK;
    const struct at_file_tensor *from = at_reader_tensor(reader, i);
    int axes = 0;
    while (axes < AT_MAX_RANK && a->axes[axes][0])
        axes++;
    if (!from->supported || from->rank != axes)
        return AT_FAIL(AT_USAGE, "%s: %s is %s with %d axes, wanted %d", path, a->name, from->type_name, from->rank,
                       axes);
    a->format = from->format;
    a->rank = from->rank;
    for (int r = 0; r < a->rank; r++)
        a->shape[r] = from->shape[r];
    void *data = malloc((size_t)from->bytes + 1);
    if (!data)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " bytes of %s", path, from->bytes, a->name);
    at_status status = at_reader_read(reader, i, 0, from->count, data);
    a->data = data;
    if (status == AT_OK)
        status = at_h5_write_array(file, group, a);
    a->data = NULL;
    free(data);
    return status;
}

static at_status write_row(const char *file, hid_t parent, const struct at_run_record *record,
                           const struct at_result *result) {
    char path[PATH_BYTES], row[AT_WITNESS_ROW_BYTES];
    at_status status = AT_OK;
    const struct at_op *op = at_op_find(result->op);
    struct at_array *arrays = calloc(AT_WITNESS_ARRAYS, sizeof *arrays);
    int tensor[AT_WITNESS_ARRAYS];
    enum at_witness_part part[AT_WITNESS_ARRAYS];
    struct at_reader *reader = NULL;
    hid_t group = H5I_INVALID_HID;
    if (!arrays)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for a witness", file);
    if (!op)
        AT_FAIL_OUT(AT_USAGE, "%s: there is no operator %s, whose tensors were kept", file, result->op);
    AT_TRY_OUT(at_witness_find(record, result, path, sizeof path));
    AT_TRY_OUT(at_reader_open(path, &reader));
    at_witness_row(result, row);
    AT_TRY_OUT(at_h5_group(file, parent, row, "attest.witness_row", "NXcollection", &group));
    AT_TRY_OUT(at_h5_attr_text(file, group, "case_id", result->case_id));
    AT_TRY_OUT(at_h5_attr_text(file, group, "family", result->family));
    AT_TRY_OUT(at_h5_attr_text(file, group, "variant", result->variant));
    for (int i = 0, n = at_witness_layout(op, arrays, tensor, part); i < n; i++)
        AT_TRY_OUT(copy_array(file, group, path, reader, &arrays[i]));
out:
    at_h5_close(group);
    if (reader)
        at_reader_close(reader);
    free(arrays);
    return status;
}

at_status at_archive_write_witness(const char *file, hid_t root, const struct at_run_record *record,
                                   const struct at_result *const *kept, int64_t n) {
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    for (int64_t i = 0; i < n; i++) {
        if (group < 0)
            AT_TRY_OUT(at_h5_group(file, root, AT_GROUP_WITNESS, "attest.witness", "NXcollection", &group));
        AT_TRY_OUT(write_row(file, group, record, kept[i]));
    }
out:
    at_h5_close(group);
    return status;
}
