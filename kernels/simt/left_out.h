/* The synchronisation call that a job leaves out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_LEFT_OUT_H
#define AT_SIMT_LEFT_OUT_H

#include "kernels/simt/simt.h"

/* From now on the synchronisation call at this place of a kernel's source does nothing, as if it had been deleted; line
 * 0: every call counts. The text of the file is not copied. A place without such a call changes nothing. */
void at_simt_leave_out(struct at_simt_place place);
/* Whether the call at this place is the one. */
int at_simt_leaves_out(struct at_simt_place place);

#endif
