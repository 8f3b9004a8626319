/* The toy operator on a GPU: a block a line, its threads take the places in turn.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation. Launch: a block of 128 threads a line; no shared memory.
 * Limits: f32 alone. Source: ours. */
#include "attest/kernel.h"
#include "kernels/device/device.h"
#include "ramp/ramp.h"

namespace {

constexpr int THREADS = 128;

__global__ void __launch_bounds__(THREADS) add(int places, float slope, const float *x, float *y) {
    for (int place = (int)threadIdx.x; place < places; place += THREADS) {
        const int64_t i = (int64_t)blockIdx.x * places + place;
        y[i] = x[i] + slope * (float)place;
    }
}

const char *supports(const struct at_problem *p) { return p->dtype == AT_F32 ? nullptr : "f32 alone"; }

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_ramp_own z = at_ramp_own_of(p);
    return at_launch(add, dim3{ (unsigned)z.lines, 1, 1 }, dim3{ THREADS, 1, 1 }, 0, launch->stream, (int)z.places,
                     z.slope, static_cast<const float *>(p->tensors[AT_RAMP_X].data),
                     static_cast<float *>(p->tensors[AT_RAMP_Y].data));
}

} // namespace

AT_KERNEL(ramp, 01_thread_per_place) = {
    .summary = "a block a line",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
