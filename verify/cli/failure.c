/* How a command says that it failed: one line on stderr, and the exit code of its status.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "verify/cli/commands.h"

int at_report_failure(at_status status) {
    fprintf(stderr, "attest: %s\n", at_error_message());
    if (status == AT_BUG || getenv("AT_TRACE"))
        fprintf(stderr, "%s\n", at_error_trail());
    return at_status_exit_code(status);
}
