/* Where the running program lies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/program_dir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *at_program_dir(void) {
    static _Thread_local char dir[4096];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n <= 0)
        return ".";
    dir[n] = 0;
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = 0;
    return dir;
}

const char *at_program_share(void) {
    static _Thread_local char share[4096 + 32];
    const char *dir = at_program_dir(), *slash = strrchr(dir, '/');
    snprintf(share, sizeof share, "%.*s/share/attest", slash ? (int)(slash - dir) : 1, slash ? dir : ".");
    return share;
}

static int readable(char *path, size_t size, const char *folder, const char *name) {
    const int n = snprintf(path, size, "%s/%s", folder, name);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

int at_program_file(const char *name, char *path, size_t size) {
    if (readable(path, size, at_program_dir(), name) || readable(path, size, at_program_share(), name))
        return 1;
    snprintf(path, size, "%s/%s", at_program_dir(), name);
    return 0;
}
