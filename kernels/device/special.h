/* The special-function unit: ex2, rcp, rsqrt, sqrt, lg2, sin, cos and tanh .approx.f32 of PTX.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_NAME_approx(x)       subnormal arguments and results count as they are
 *   at_NAME_approx_ftz(x)   each of them counts as a zero of its sign (not tanh)
 *   at_ex2_approx_f16, at_ex2_approx_ftz_bf16, at_tanh_approx_f16, at_tanh_approx_bf16: of a code of 16 bits, and of two in a
 *                           word with x2 behind the name; the forms in bf16 want sm_90
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
