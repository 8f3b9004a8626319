/* attest export: the content of an archive as CSV, notebook, plots or one page of HTML.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attest/names.h"
#include "notebooks_export/export.h"
#include "verify/cli/commands.h"

static const struct at_option options[] = {
    { "--to", "KIND", "csv, ipynb, svg or html" },
    { "--out", "DIR", "folder of the files, made when it is not there; files of the same names are replaced" },
    { "--cells", "FILE.py", "ipynb: cells of your own instead of those for the content; lines \"# %%\" begin them" },
    { NULL, NULL, NULL },
};

static const struct kind {
    const char *name;
    at_status (*export)(struct at_export *e);
} kinds[] = {
    { "csv", at_export_csv },
    { "ipynb", at_export_ipynb },
    { "svg", at_export_svg },
    { "html", at_export_html },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static at_status find_kind(const char *name, const struct kind **kind) {
    const char *names[N_KINDS];
    if (!name)
        return AT_FAIL(AT_USAGE, "export wants --to csv, ipynb, svg or html");
    for (int i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i].name;
        *kind = &kinds[i];
        if (strcmp(name, names[i]) == 0)
            return AT_OK;
    }
    const char *nearest = at_nearest_name(name, names, N_KINDS);
    return AT_FAIL(AT_USAGE, "--to: found '%.64s', wanted csv, ipynb, svg or html%s%s%s", name,
                   nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static at_status make_folder(const char *dir) {
    struct stat info;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return AT_FAIL(AT_IO, "--out %s: %s", dir, strerror(errno));
    if (stat(dir, &info) != 0)
        return AT_FAIL(AT_IO, "--out %s: %s", dir, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return AT_FAIL(AT_USAGE, "--out %s is a file, wanted a folder", dir);
    if (access(dir, W_OK | X_OK) != 0)
        return AT_FAIL(AT_IO, "--out %s: %s", dir, strerror(errno));
    return AT_OK;
}

/* The archive is read before the folder is made: bad input leaves nothing behind. */
static at_status export(const struct at_args *args) {
    const char *dir = at_args_get(args, "--out");
    const struct kind *kind;
    struct at_export e = { 0 };
    at_status status = AT_OK;
    AT_TRY(find_kind(at_args_get(args, "--to"), &kind));
    if (!dir)
        return AT_FAIL(AT_USAGE, "export wants --out DIR");
    if (at_args_has(args, "--cells") && kind->export != at_export_ipynb)
        return AT_FAIL(AT_USAGE, "--cells goes with --to ipynb");
    AT_TRY_OUT(at_export_open(args->words[0], dir, kind->export == at_export_csv ? AT_FRAME_ROWS : -1, &e));
    e.cells = at_args_get(args, "--cells");
    AT_TRY_OUT(make_folder(dir));
    AT_TRY_OUT(kind->export(&e));
    fprintf(stderr, "%d file%s in %s\n", e.files, e.files == 1 ? "" : "s", dir);
out:
    at_export_release(&e);
    return status;
}

static int run(const struct at_args *args) {
    const at_status status = export(args);
    return status == AT_OK ? 0 : at_report_failure(status);
}

const struct at_command at_command_export = {
    .name = "export",
    .synopsis = "export RUN.h5 --to csv|ipynb|svg|html --out DIR",
    .summary = "an archive as CSV, as a notebook, as plots, or as one page of HTML",
    .example = "attest export run.h5 --to html --out report",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .reads_archives = 1,
    .run = run,
};
