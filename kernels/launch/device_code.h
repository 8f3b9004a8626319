/* The device code of a launch file on a device: loaded, launched, unloaded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_CODE_H
#define AT_DEVICE_CODE_H

#include "attest/kernel.h"
#include "kernels/launch/driver.h"
#include "kernels/launch/launch_plan.h"

struct at_device_code {
    const struct at_plan *plan;
    const struct at_driver *driver;
    void *module; /* NULL: not loaded */
    void *functions[AT_PLAN_KERNELS];
};

/* Loads the module anew, finds its kernels and compares their parameters with the file's arguments, by number and bytes.
 * AT_ENVIRONMENT: what the driver said, a compiler's log included; AT_USAGE: the file, the field and what does not fit. */
at_status at_device_code_load(struct at_device_code *code);
/* And what it kept in global variables is gone. Nothing of it runs any more. */
at_status at_device_code_unload(struct at_device_code *code);

/* Why the file's device code does not take the problem, in `why`: 1; 0: it does. AT_USAGE when an expression has no value. */
at_status at_device_code_declines(const struct at_device_code *code, const struct at_problem *problem, int *declines,
                                  char *why, size_t size);
/* Bytes of workspace that a launch wants. */
at_status at_device_code_workspace(const struct at_device_code *code, const struct at_problem *problem, int64_t *bytes);
/* Puts the file's kernels on the stream, in their order; those whose grid has a 0 or whose `when` is 0 are passed over. *launches
 * counts those that were put. AT_USAGE with the field and its value; AT_ENVIRONMENT: what the driver said. */
at_status at_device_code_launch(const struct at_device_code *code, const struct at_launch *launch, int64_t *launches);

/* The tensor map of a job (code_tensor_map.c). AT_USAGE with the field that cannot be said, AT_ENVIRONMENT. */
at_status at_device_code_map(const struct at_device_code *code, const struct at_plan_map *map,
                             const struct at_launch_expression_values *values, struct at_driver_map *out);
/* An expression's value of least to most, by the name of its field. */
at_status at_device_code_value(const struct at_device_code *code, const char *field,
                               const struct at_launch_expression *expression,
                               const struct at_launch_expression_values *values, int64_t least, int64_t most,
                               int64_t *value);

#endif
