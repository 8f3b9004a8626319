/* The host as a device: kernels run in this process, on the block itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HOST_DEVICE_H
#define AT_HOST_DEVICE_H

#include "kernels/runner/serve.h"

/* Owns its scratch memory. */
struct at_host_device {
    struct at_device device;
    uint8_t *scratch;
    int64_t capacity; /* of scratch, the guard behind it not counted */
    int64_t wanted;   /* bytes of the workspace in use */
    int fail_each;    /* before a job its kernel is launched with each of its calls to the device failing in turn */
};
void at_host_device_init(struct at_host_device *host);
void at_host_device_release(struct at_host_device *host);

/* The processor's name, as the kernel of the machine gives it. */
void at_host_device_text(char *text, size_t size);

#endif
