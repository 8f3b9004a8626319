/* Defaults of the scalar parameters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/problem.h"

struct at_params at_params_default(void) {
    struct at_params params = {
#define X(type, name, value, meaning) .name = (value),
        AT_PARAM_LIST(X)
#undef X
    };
    return params;
}
