/* A device whose kernels are functions of a shared library: the host's or CUDA's, with other launches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SO_DEVICE_H
#define AT_SO_DEVICE_H

#include "kernels/runner/serve.h"
#include "kernels/runner/so_library.h"

/* Everything but the launch itself is the inner device's. One in a process. */
struct at_so_device {
    struct at_device device;
    struct at_device *inner;
    const struct at_so_library *library;
    int device_type; /* as in struct at_so_place */
};

/* Makes kernels of the library's variants, launched on `inner`. */
void at_so_device_init(struct at_so_device *so, struct at_device *inner, int device_type,
                       struct at_so_library *library);

#endif
