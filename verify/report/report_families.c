/* Results by family.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/report_families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static at_status add_row(struct at_family_rows *f, int64_t row) {
    if (f->n == f->capacity) {
        const int64_t capacity = f->capacity ? 2 * f->capacity : 64;
        int64_t *grown = realloc(f->rows, (size_t)capacity * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows of a family", (long long)capacity);
        f->rows = grown;
        f->capacity = capacity;
    }
    f->rows[f->n++] = row;
    return AT_OK;
}

at_status at_families_open(const struct at_run_record *record, struct at_families *families) {
    int last = 0;
    *families = (struct at_families){ 0 };
    for (int64_t i = 0; i < record->n; i++) {
        const char *name = at_run_record_at(record, i)->family;
        if (last == families->n || strcmp(families->list[last].name, name) != 0)
            for (last = 0; last < families->n && strcmp(families->list[last].name, name) != 0;)
                last++;
        if (last == families->n) {
            struct at_family_rows *grown = realloc(families->list, ((size_t)families->n + 1) * sizeof *grown);
            if (!grown)
                return AT_FAIL(AT_NO_MEMORY, "no memory for the families of a run");
            families->list = grown;
            grown[families->n] = (struct at_family_rows){ 0 };
            snprintf(grown[families->n].name, sizeof grown[0].name, "%s", name);
            families->n++;
        }
        AT_TRY(add_row(&families->list[last], i));
    }
    return AT_OK;
}

void at_families_release(struct at_families *families) {
    for (int i = 0; i < families->n; i++)
        free(families->list[i].rows);
    free(families->list);
    *families = (struct at_families){ 0 };
}
