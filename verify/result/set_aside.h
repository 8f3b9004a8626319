/* A variant that is judged no further because it hung or crashed too often: how its results say so.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SET_ASIDE_H
#define AT_SET_ASIDE_H

#include <string.h>

#include "verify/result/result.h"

/* How the cause of such a job begins, whose state is SKIPPED; the reason follows. */
#define AT_SET_ASIDE "set aside: "

static inline int at_result_is_set_aside(const struct at_result *r) {
    return r->state == AT_STATE_SKIPPED && strncmp(r->cause, AT_SET_ASIDE, sizeof AT_SET_ASIDE - 1) == 0;
}
/* A result that counts towards setting its variant aside. */
static inline int at_result_broke(const struct at_result *r) {
    return r->state == AT_STATE_CRASHED || r->state == AT_STATE_HUNG;
}

#endif
