/* What every kind of export works from: the tables of one archive and the folder that files go to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EXPORT_H
#define AT_EXPORT_H

#include <stddef.h>

#include "verify/archive/frame.h"
#include "verify/result/atomic_file.h"

struct at_export {
    const char *archive; /* its path, as it was given */
    const char *dir;     /* exists */
    char name[128];      /* of the archive, without folder and suffix: names of files begin with it */
    const char
        *cells; /* ipynb: a Python file whose cells stand in place of ours, and which names the file; NULL: none */
    struct at_frames frames;                /* of CSV, large tables are open (frame.h): their values come by windows */
    struct at_distributions *distributions; /* NULL: the archive has none */
    int files;                              /* written so far */
};

/* Reads the archive. AT_USAGE when it has nothing to export. Release in any case. `most`: tables of more rows are open, their
 * values come by windows (at_frame_window); -1: none. */
at_status at_export_open(const char *archive, const char *dir, int64_t most, struct at_export *e);
void at_export_release(struct at_export *e);

/* The name of a file without its folder and suffix. */
void at_export_name(const char *path, const char *suffix, char *name, size_t size);

/* The kinds. Each file appears whole or not at all; files of other names are left alone. */
at_status at_export_csv(struct at_export *e);
at_status at_export_svg(struct at_export *e);
at_status at_export_html(struct at_export *e);
at_status at_export_ipynb(struct at_export *e);

/* Begins DIR/NAME_<what>.<suffix> ("" what: DIR/NAME.<suffix>), and ends it; counts and prints its path. */
at_status at_export_begin(const struct at_export *e, const char *what, const char *suffix, struct at_atomic_file *file);
at_status at_export_end(struct at_export *e, struct at_atomic_file *file);

/* ---- results with what they refer to ---- */

/* Columns of a result's own row, of its case and of its kernel; NULL where the archive has none. */
struct at_export_results {
    const struct at_frame *results, *cases, *kernels;
    const struct at_frame_column *case_of, *kernel_of;
};
/* AT_USAGE when a result refers to a row that is not there. results is NULL when the archive has no results. */
at_status at_export_results_of(const struct at_export *e, struct at_export_results *r);
/* The same of the rows that a window has; at_export_results_of() looks at those of tables that are not open. */
at_status at_export_check(const struct at_export *e, const struct at_export_results *r);
/* Row of /cases or /kernels that result i belongs to. */
int64_t at_export_case(const struct at_export_results *r, int64_t i);
int64_t at_export_kernel(const struct at_export_results *r, int64_t i);

#endif
