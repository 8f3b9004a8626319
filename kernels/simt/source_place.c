/* Source lines by libdw, from the running program's own debug information.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/source_place.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static Dwfl *debug_information(void) {
    static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
                                              .find_debuginfo = dwfl_standard_find_debuginfo };
    static Dwfl *dwfl;
    if (!dwfl) {
        dwfl = dwfl_begin(&callbacks);
        if (dwfl && (dwfl_linux_proc_report(dwfl, getpid()) != 0 || dwfl_report_end(dwfl, NULL, NULL) != 0)) {
            dwfl_end(dwfl);
            dwfl = NULL;
        }
    }
    return dwfl;
}

struct at_simt_place at_source_place(const void *address) {
    static char file[256];
    struct at_simt_place place = { NULL, 0 };
    Dwfl *dwfl = debug_information();
    Dwfl_Line *line = dwfl ? dwfl_getsrc(dwfl, (Dwarf_Addr)(uintptr_t)address - 1) : NULL;
    const char *name = line ? dwfl_lineinfo(line, NULL, &place.line, NULL, NULL, NULL) : NULL;
    if (!name)
        return place;
    const char *kernels = strstr(name, "kernels/");
    snprintf(file, sizeof file, "%s", kernels ? kernels : name);
    place.file = file;
    return place;
}
