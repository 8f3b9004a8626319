/* Source lines of return addresses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOURCE_PLACE_H
#define AT_SOURCE_PLACE_H

#include "kernels/simt/simt.h"

/* File (from kernels/ on) and line of the instruction before `address`; file NULL when the program has no such
 * information. The text stays valid until the next call. */
struct at_simt_place at_source_place(const void *address);

#endif
