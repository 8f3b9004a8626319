/* Of cases that each take some branches, few that take as many, in little time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_FEWEST_H
#define AT_COVER_FEWEST_H

#include <stdint.h>

#include "verify/coverage/cover.h"

/* chosen[i] = 1: the i-th of n cases is one of them. Together they take every branch, and call every function, that all
 * cases do. each[i]: what case i reaches by itself; seconds[i] > 0: what it takes. In turn the case with most that is new for
 * each second; then those go that the others have made superfluous, the dearest first. */
at_status at_cover_fewest(const struct at_cover *each, const double *seconds, int64_t n, char *chosen);

#endif
