/* What the last launch of this thread said of its choice.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/way.h"

static _Thread_local const char *taken = "";

void at_took_way(const char *name) { taken = name; }
const char *at_way_taken(void) { return taken; }
void at_way_forget(void) { taken = ""; }
