/* What every test program includes: cmocka, and assertions that treat NaN, infinities and signed zero
 * as what they are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_H
#define AT_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attest/format.h"
#include "attest/status.h"

/* 1 for AT_EFFORT=fast, `full` otherwise: multiplies counts of inputs, never drops an assertion. */
static inline long at_test_effort(long full) {
    const char *effort = getenv("AT_EFFORT");
    return effort && strcmp(effort, "fast") == 0 ? 1 : full;
}

#define at_assert_ok(call) \
    do { \
        at_status at_s_ = (call); \
        if (at_s_ != AT_OK) \
            fail_msg("%s: %s\n%s", #call, at_status_name(at_s_), at_error_trail()); \
    } while (0)

/* The call fails with exactly this status, and its message contains `part`. */
#define at_assert_fails(call, want, part) \
    do { \
        at_status at_s_ = (call); \
        if (at_s_ != (want)) \
            fail_msg("%s: %s, wanted %s\n%s", #call, at_status_name(at_s_), at_status_name(want), \
                     at_s_ == AT_OK ? "" : at_error_trail()); \
        if (!strstr(at_error_message(), (part))) \
            fail_msg("%s: message \"%s\" does not say \"%s\"", #call, at_error_message(), (part)); \
    } while (0)

/* Same bits, except that all NaNs are one. */
#define at_assert_same(got, want) \
    do { \
        double at_g_ = (got), at_w_ = (want); \
        int at_eq_ = (isnan(at_g_) && isnan(at_w_)) || (at_g_ == at_w_ && signbit(at_g_) == signbit(at_w_)); \
        if (!at_eq_) \
            fail_msg("%s = %a (%.17g), wanted %a (%.17g)", #got, at_g_, at_g_, at_w_, at_w_); \
    } while (0)

/* |got - want| <= bound, in the accepting form: a NaN anywhere fails. */
#define at_assert_within(got, want, bound) \
    do { \
        double at_g_ = (got), at_w_ = (want), at_b_ = (bound); \
        if (!(fabs(at_g_ - at_w_) <= at_b_)) \
            fail_msg("%s = %.17g, wanted %.17g within %.3g (off by %.3g)", #got, at_g_, at_w_, at_b_, \
                     fabs(at_g_ - at_w_)); \
    } while (0)

#define at_assert_true(condition, ...) \
    do { \
        if (!(condition)) { \
            print_error("%s is false: ", #condition); \
            fail_msg(__VA_ARGS__); \
        } \
    } while (0)

#endif
