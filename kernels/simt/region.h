/* Memory that the runner lends to a job.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_REGION_H
#define AT_SIMT_REGION_H

#include <stdint.h>

/* Memory a kernel may touch. Unwritten: its first bytes hold nothing yet (outputs, workspace). */
struct at_simt_region {
    const char *name;
    uint8_t *base;
    int64_t bytes;
    int read_only, unwritten;
};

#endif
