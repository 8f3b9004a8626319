/* Families by a misspelt name, or by that of their operator.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/family_advice.h"

#include <stdio.h>
#include <string.h>

#include "attest/names.h"
#include "attest/op.h"

void at_family_advice(const char *name, char *text, size_t size) {
    const char *names[128];
    const int n = at_family_count() < 128 ? at_family_count() : 128;
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        names[i] = at_family_at(i)->name;
        if (strcmp(at_family_at(i)->op, name) != 0 || at >= size)
            continue;
        if (at == 0)
            at += (size_t)snprintf(text, size, "; %.64s is an operator; its families are", name);
        if (at < size)
            at += (size_t)snprintf(text + at, size - at, " %s", names[i]);
    }
    const char *nearest = text[0] ? NULL : at_nearest_name(name, names, n);
    if (nearest)
        snprintf(text, size, "; did you mean %s?", nearest);
}
