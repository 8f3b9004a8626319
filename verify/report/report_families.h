/* The results of a run by family, in the order of the families' first results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_FAMILIES_H
#define AT_REPORT_FAMILIES_H

#include "verify/result/record.h"

struct at_family_rows {
    char name[sizeof(((struct at_result *)0)->family)];
    int64_t *rows; /* places in the record, ascending */
    int64_t n, capacity;
};

struct at_families {
    struct at_family_rows *list;
    int n;
};

/* One pass over the record; 8 bytes of memory a result. AT_NO_MEMORY; release it in either case. */
at_status at_families_open(const struct at_run_record *record, struct at_families *families);
void at_families_release(struct at_families *families);

#endif
