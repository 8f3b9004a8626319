/* One call left out of a kernel: what its deletion would do, without compiling it again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/left_out.h"

#include <string.h>

static struct at_simt_place left_out;

/* Headers are included as ./kernels/... too. */
static const char *from_kernels(const char *file) {
    const char *found = strstr(file, "kernels/");
    return found ? found : file;
}

void at_simt_leave_out(struct at_simt_place place) { left_out = place; }

int at_simt_leaves_out(struct at_simt_place place) {
    return place.line == left_out.line && left_out.line > 0 &&
           strcmp(from_kernels(place.file), from_kernels(left_out.file)) == 0;
}
