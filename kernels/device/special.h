/* The special-function unit: ex2, rcp, rsqrt, sqrt, lg2, sin, cos and tanh .approx.f32 of PTX.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_NAME_approx(x)       subnormal arguments and results count as they are
 *   at_NAME_approx_ftz(x)   each of them counts as a zero of its sign (not tanh)
 *
 * The vendor promises an error, not bits (PTX ISA 9.1, 9.7.3: ex2 within 2 units in the last place, rcp 1, lg2 2^-22, ...). The
 * SIMT machine has the bits of an H200, those of every argument (reference/special/special.h). NaN is 0x7fffffff. */
#ifndef AT_DEVICE_SPECIAL_H
#define AT_DEVICE_SPECIAL_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
#include "kernels/device/special_cuda.h"
#else
#include "kernels/simt/special_simt.h"
#endif

#endif
