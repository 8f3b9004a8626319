/* Tensor maps of a launch file, encoded for a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/device_code.h"

#include "attest/op.h"

#include <stdio.h>

enum { BOX_MAX = 256 };

/* CUtensorMapDataType of a format; -1: there is none. */
static int data_type(enum at_format format) {
    enum { UINT8 = 0, INT32 = 3, FLOAT16 = 6, FLOAT32, FLOAT64, BFLOAT16 };
    switch (format) {
    case AT_E4M3:
    case AT_E5M2:
        return UINT8;
    case AT_F16:
        return FLOAT16;
    case AT_BF16:
        return BFLOAT16;
    case AT_F32:
    case AT_TF32:
        return FLOAT32;
    case AT_F64:
        return FLOAT64;
    case AT_I32:
        return INT32;
    default:
        return -1;
    }
}

/* The driver's own words for them: 0, 1, 2, 3. */
static int swizzle_code(int bytes) { return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : 3; }
static int promotion_code(int bytes) { return bytes == 0 ? 0 : bytes == 64 ? 1 : bytes == 128 ? 2 : 3; }

at_status at_device_code_map(const struct at_device_code *code, const struct at_plan_map *map,
                             const struct at_launch_expression_values *values, struct at_driver_map *out) {
    const struct at_tensor *t = &values->problem->tensors[map->tensor];
    const int64_t element = (int64_t)at_format_info(t->format)->bytes;
    uint64_t dims[AT_PLAN_MAP_DIMS], strides[AT_PLAN_MAP_DIMS] = { 0 };
    unsigned box[AT_PLAN_MAP_DIMS], steps[AT_PLAN_MAP_DIMS];
    int64_t value, bytes = element;
    char field[128], doing[128];
    if (!t->data)
        return AT_FAIL(AT_USAGE, "%s: tensor_maps.%s: this job has no %s", code->plan->path, map->name,
                       code->plan->op->tensors[map->tensor].name);
    for (int i = 0; i < map->rank; i++) {
        snprintf(field, sizeof field, "tensor_maps.%s.dims[%d]", map->name, i);
        AT_TRY(at_device_code_value(code, field, &map->dims[i], values, 1, INT64_C(1) << 32, &value));
        dims[i] = (uint64_t)value;
        if (i > 0 && map->has_strides) {
            snprintf(field, sizeof field, "tensor_maps.%s.strides[%d]", map->name, i - 1);
            AT_TRY(at_device_code_value(code, field, &map->strides[i], values, 0, INT64_C(1) << 40, &bytes));
        }
        if (i > 0) /* the driver's begin at dimension 1 */
            strides[i - 1] = (uint64_t)bytes;
        if (!map->has_strides && __builtin_mul_overflow(bytes, value, &bytes))
            return AT_FAIL(AT_USAGE, "%s: tensor_maps.%s.dims: more bytes than 64 bits hold", code->plan->path,
                           map->name);
        snprintf(field, sizeof field, "tensor_maps.%s.box[%d]", map->name, i);
        AT_TRY(at_device_code_value(code, field, &map->box[i], values, 1, BOX_MAX, &value));
        box[i] = (unsigned)value;
        steps[i] = 1;
    }
    snprintf(doing, sizeof doing, "making tensor map %s", map->name);
    return at_driver_said(code->driver,
                          code->driver->encode_map(out, data_type(t->format), (unsigned)map->rank, t->data, dims,
                                                   strides, box, steps, 0, swizzle_code(map->swizzle),
                                                   promotion_code(map->l2), map->oob_nan),
                          doing);
}
