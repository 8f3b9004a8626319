/* Names that the archive's writer and reader share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LAYOUT_H
#define AT_LAYOUT_H

/* Version of every group. A new column raises the minor, a change of meaning the major. */
#define AT_ARCHIVE_VERSION "1.10.0"
enum { AT_ARCHIVE_MAJOR = 1 };

#define AT_GROUP_PROVENANCE "provenance"
#define AT_GROUP_CASES "cases"
#define AT_GROUP_KERNELS "kernels"
#define AT_GROUP_RESULTS "results"
#define AT_GROUP_LEDGER "ledger"
#define AT_GROUP_WITNESS "witness"
#define AT_GROUP_DISTRIBUTIONS "distributions"
#define AT_GROUP_TOTALS "totals" /* inside the ledger */

#endif
