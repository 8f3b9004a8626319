/* Opening the CUDA driver's library; its errors as text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/driver.h"

#include <dlfcn.h>
#include <string.h>

at_status at_driver_open(const char *library, struct at_driver *driver) {
    *driver = (struct at_driver){ .library = dlopen(library, RTLD_NOW | RTLD_LOCAL) };
    if (!driver->library)
        return AT_FAIL(AT_ENVIRONMENT, "no CUDA driver: %s", dlerror());
    /* ISO C has no conversion from an address to a function's. */
    void *found;
#define X(member, parameters, name) \
    found = dlsym(driver->library, name); \
    if (!found) \
        return AT_FAIL(AT_ENVIRONMENT, "%s has no %s; wanted a driver for CUDA 12.4 or newer", library, name); \
    memcpy(&driver->member, &found, sizeof found);
    AT_DRIVER_LIST(X)
#undef X
    return AT_OK;
}

at_status at_driver_said(const struct at_driver *driver, int code, const char *doing) {
    const char *name = NULL, *text = NULL;
    if (code == 0)
        return AT_OK;
    if (driver->error_name(code, &name) != 0 || driver->error_string(code, &text) != 0)
        name = text = NULL;
    return AT_FAIL(AT_ENVIRONMENT, "%s: %s (%d): %s", doing, name ? name : "an error of the driver", code,
                   text ? text : "it has no text for it");
}

at_status at_driver_ask(struct at_driver *driver) {
    int device = 0, major = 0, minor = 0;
    AT_TRY(at_driver_said(driver, driver->device(&device), "asking for the device"));
    AT_TRY(at_driver_said(driver, driver->device_is(&major, AT_DEVICE_MAJOR, device), "asking for its architecture"));
    AT_TRY(at_driver_said(driver, driver->device_is(&minor, AT_DEVICE_MINOR, device), "asking for its architecture"));
    AT_TRY(at_driver_said(driver, driver->device_is(&driver->multiprocessors, AT_DEVICE_MULTIPROCESSORS, device),
                          "asking for its multiprocessors"));
    driver->sm = 10 * major + minor;
    return AT_OK;
}

void at_driver_close(struct at_driver *driver) {
    if (driver->library)
        dlclose(driver->library);
    driver->library = NULL;
}
