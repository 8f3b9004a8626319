/* A folder of case files that a test writes itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/case_folder.h"

#include "tests/at_test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[512], cases[520];

int at_case_folder_open(void) {
    const char *parent = getenv("TMPDIR");
    const int n = snprintf(folder, sizeof folder, "%s/attest-cases-XXXXXX", parent && *parent ? parent : "/tmp");
    if (n < 0 || (size_t)n >= sizeof folder || !mkdtemp(folder))
        return -1;
    snprintf(cases, sizeof cases, "%s/cases", folder);
    return mkdir(cases, 0777) == 0 && setenv("AT_DATASETS", folder, 1) == 0 ? 0 : -1;
}

void at_case_folder_write(const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", cases, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

int at_case_folder_close(void) {
    char path[1024];
    DIR *all = opendir(cases);
    const struct dirent *entry;
    unsetenv("AT_DATASETS");
    while (all && (entry = readdir(all))) {
        snprintf(path, sizeof path, "%s/%s", cases, entry->d_name);
        unlink(path); /* . and .. are no files */
    }
    if (all)
        closedir(all);
    return rmdir(cases) == 0 && rmdir(folder) == 0 ? 0 : -1;
}
