/* What `attest fit` says of one variant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FIT_SHOW_H
#define AT_FIT_SHOW_H

#include "verify/fit/fit.h"

/* How a variant stands. */
enum at_fit_state {
    AT_FIT_FOUND, /* a declaration fits */
    AT_FIT_NONE,  /* none of those that were tried does */
    AT_FIT_FREE,  /* its bits change from run to run: no order can fit */
    AT_FIT_WRONG, /* --check: its own declaration does not fit */
};
enum at_fit_state at_fit_state(const struct at_fit *fit);

void at_fit_put_text(const struct at_fit *fit);
/* One object on one line. */
void at_fit_put_json(const struct at_fit *fit);

#endif
