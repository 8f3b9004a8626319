/* Children are looked for in /proc.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/find_child.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pid_t at_find_child(void) {
    DIR *all = opendir("/proc");
    pid_t found = 0;
    if (!all)
        return -1;
    for (struct dirent *entry; !found && (entry = readdir(all));) {
        char path[300];
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *in = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (in && fscanf(in, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == (int)getpid())
            found = (pid_t)strtol(entry->d_name, NULL, 10);
        if (in)
            fclose(in);
    }
    closedir(all);
    return found;
}
