/* Where case files, recorded activations and measurements are: always those that belong to the running program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attest/program_dir.h"

#ifdef AT_SOURCE_DIR
/* Is the program one that lies in the folder it was built in? Copies and installations bring their own data or have none. */
static int in_build_tree(void) {
    char build[PATH_MAX];
    if (!realpath(AT_BUILD_DIR, build))
        return 0;
    const size_t n = strlen(build);
    const char *dir = at_program_dir();
    return strncmp(dir, build, n) == 0 && (dir[n] == 0 || dir[n] == '/');
}
#endif

const char *at_datasets_dir(void) {
    static _Thread_local char dir[PATH_MAX + 16];
    const char *given = getenv("AT_DATASETS");
    if (given && *given)
        return given;
#ifdef AT_SOURCE_DIR
    if (in_build_tree())
        return AT_SOURCE_DIR "/datasets";
#endif
    snprintf(dir, sizeof dir, "%s/datasets", at_program_dir());
    return access(dir, R_OK) == 0 ? dir : at_program_share();
}
