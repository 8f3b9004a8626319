/* Small tables of text: a line an item, `#` comments, as datasets/bench has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bench/bench.h"

at_status at_bench_table_load(const char *path, size_t size, at_bench_line *parse, void **items, int *n) {
    char line[256];
    at_status status = AT_OK;
    FILE *file = fopen(path, "re");
    *items = NULL;
    *n = 0;
    if (!file)
        return AT_FAIL(AT_NOT_FOUND, "%s: %s", path, strerror(errno));
    for (int number = 1; status == AT_OK && fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "#\n")] = 0;
        if (line[strspn(line, " \t")] == 0)
            continue;
        char *grown = realloc(*items, ((size_t)*n + 1) * size);
        if (!grown)
            AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory", path);
        *items = grown;
        status = parse(line, path, number, grown + (size_t)(*n)++ * size);
    }
out:
    fclose(file);
    return status;
}
