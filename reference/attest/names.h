/* Names: the nearest known one to a misspelt one, for messages; names with a number.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NAMES_H
#define AT_NAMES_H

#include <stddef.h>

/* The one of names[0..n) that is fewest edits (insert, delete, replace, swap of neighbours; case does
 * not count) away from `wanted`; the first of equals. NULL when none is near enough to be what was
 * meant: more than a third of the longer name's letters, at least one, would have to change, or all
 * of them. NULL entries are skipped. */
const char *at_nearest_name(const char *wanted, const char *const *names, int n);

/* What stands in `name` behind `prefix` and a number of at least so many digits; NULL when it does not begin so. */
const char *at_name_past_number(const char *name, const char *prefix, size_t least_digits);

#endif
