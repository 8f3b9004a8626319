/* A glob that selects nothing: the message, with what was probably meant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NEAREST_H
#define AT_NEAREST_H

#include "verify/plan/plan.h"

/* For a glob that matches none of the names: with `more` behind it (":*", when it has no ':'), the nearest whole name, or
 * with the nearest part of a name in the place of one of its words; parts of names end at the letters of `ends`. 1 with a
 * text that matches one of the names; 0: nothing is near. */
int at_glob_nearest(const char *glob, const char *more, const char *const *names, int64_t n, const char *ends,
                    char *text, size_t size);

/* AT_NOT_FOUND with the nearest variant, family or word of a name. */
at_status at_no_variant(const struct at_runner *runner, const char *glob);
/* AT_NOT_FOUND with the nearest role or word of a case, or with all roles. */
at_status at_no_case(const struct at_case_list *cases, const char *glob);

#endif
