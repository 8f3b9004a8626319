/* The modes of accumulation and their arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/accumulate/study_modes.h"

#include <math.h>
#include <string.h>

#include "tensor_core/instruction.h"

/* name, meaning, operand, instruction, step, stored, every, guard, guard at the end */
/* clang-format off */
static const struct at_study_mode modes[] = {
    { "f32_fma", "f32 FMA chain",
      AT_F16, NULL, 1, AT_F32, 0, AT_GUARD_NONE, 0 },
    { "f32_k16", "tensor core, f32 accumulator, 16 products a step",
      AT_F16, "hopper_mma_k16_f16_f32", 16, AT_F32, 0, AT_GUARD_NONE, 0 },
    { "f16_fma", "f16 FMA chain",
      AT_F16, NULL, 1, AT_F16, 0, AT_GUARD_NONE, 0 },
    { "f16_k8", "tensor core, f16 accumulator, 8 products a step",
      AT_F16, "hopper_mma_k8_f16_f16", 8, AT_F16, 0, AT_GUARD_NONE, 0 },
    { "f16_k16", "tensor core, f16 accumulator, 16 products a step",
      AT_F16, "hopper_mma_k16_f16_f16", 16, AT_F16, 0, AT_GUARD_NONE, 0 },
    { "f16_k16_isinf", "f16_k16; an infinite sum becomes +-65504, a NaN stays",
      AT_F16, "hopper_mma_k16_f16_f16", 16, AT_F16, 0, AT_GUARD_ISINF, 1 },
    { "f16_k16_nan_safe", "f16_k16; an infinite sum becomes +-65504, a NaN 0",
      AT_F16, "hopper_mma_k16_f16_f16", 16, AT_F16, 0, AT_GUARD_NAN_SAFE, 1 },
    { "f16_k16_saturate", "f16_k16; each step saturates at +-65504",
      AT_F16, "hopper_mma_k16_f16_f16", 16, AT_F16, 0, AT_GUARD_SATURATE, 0 },
    { "f16_k16_block32", "f16_k16 within 32 products, the blocks in f32",
      AT_F16, "hopper_mma_k16_f16_f16", 16, AT_F16, 32, AT_GUARD_NONE, 0 },
    { "f16_k16_block128", "f16_k16 within 128 products, the blocks in f32",
      AT_F16, "hopper_mma_k16_f16_f16", 16, AT_F16, 128, AT_GUARD_NONE, 0 },
    { "bf16_fma", "bf16 chain: each sum rounded to bf16",
      AT_F16, NULL, 1, AT_BF16, 0, AT_GUARD_NONE, 0 },
    { "bf16_k16", "f32_k16, rounded to bf16 after each step",
      AT_F16, "hopper_mma_k16_f16_f32", 16, AT_BF16, 0, AT_GUARD_NONE, 0 },
    { "e8m13_k32", "e4m3 wgmma, E8M13 accumulator, 32 products a step",
      AT_E4M3, "hopper_wgmma_k32_e4m3_f32", 32, AT_F32, 0, AT_GUARD_NONE, 0 },
    { "e8m13_k32_every128", "e8m13_k32, promoted to f32 every 128 products",
      AT_E4M3, "hopper_wgmma_k32_e4m3_f32", 32, AT_F32, 128, AT_GUARD_NONE, 0 },
    { "e8m13_k32_every512", "e8m13_k32, promoted to f32 every 512 products",
      AT_E4M3, "hopper_wgmma_k32_e4m3_f32", 32, AT_F32, 512, AT_GUARD_NONE, 0 },
};
/* clang-format on */

int at_study_mode_count(void) { return (int)(sizeof modes / sizeof *modes); }

const struct at_study_mode *at_study_mode_at(int i) { return &modes[i]; }

const struct at_study_mode *at_study_mode_find(const char *name) {
    for (int i = 0; i < at_study_mode_count(); i++)
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    return NULL;
}

static const struct at_tc_rule *rule_of(const struct at_study_mode *mode) {
    return mode->instruction ? at_tc_instruction_rule(at_tc_instruction_find(mode->instruction)) : NULL;
}

/* x + y rounded once. The sum in double is made odd where it is not exact (Boldo & Melquiond 2008), so that the
 * second rounding sees on which side of a tie the exact sum lies: a double has more than two bits more than any
 * format here. */
static double add_once(enum at_format format, double x, double y) {
    double sum = x + y;
    if (isfinite(sum)) {
        const double back = sum - x, rest = (x - (sum - back)) + (y - back);
        uint64_t bits;
        memcpy(&bits, &sum, sizeof bits);
        if (rest != 0 && (bits & 1) == 0)
            sum = nextafter(sum, rest > 0 ? INFINITY : -INFINITY);
    }
    return at_round(format, sum);
}

static double step_of(const struct at_study_mode *mode, const struct at_tc_rule *rule, const double *a, const double *b,
                      int n, double acc) {
    if (!rule)
        return add_once(mode->stored, acc, a[0] * b[0]);
    const double sum = at_fdpa(rule, mode->operand, a, 1, b, 1, n, acc);
    return mode->stored == rule->out ? sum : at_round(mode->stored, sum);
}

/* 65504 is what the source's 65500 becomes when it is written as f16. */
static double guarded_value(enum at_guard guard, double x, int64_t *guarded) {
    const double largest = at_format_info(AT_F16)->max;
    const int is_nan = isnan(x), changes = is_nan ? guard == AT_GUARD_NAN_SAFE : fabs(x) > largest;
    if (guard == AT_GUARD_NONE || !changes)
        return x;
    if (guarded)
        ++*guarded;
    return is_nan ? 0.0 : copysign(largest, x);
}

double at_study_add(const struct at_study_mode *mode, int64_t n, const double *a, const double *b,
                    const struct at_study_observer *observer, int64_t *guarded) {
    const struct at_tc_rule *rule = rule_of(mode);
    const enum at_guard guard = mode->guard_at_the_end ? AT_GUARD_NONE : mode->guard;
    double acc = 0, promoted = 0;
    int64_t index = 0;
    if (guarded)
        *guarded = 0;
    for (int64_t i = 0; i < n; index++) {
        const int64_t left = n - i;
        struct at_study_step step = { .index = index, .first = i, .n = left < mode->step ? (int)left : mode->step };
        step.before = acc;
        step.computed = step_of(mode, rule, a + i, b + i, step.n, acc);
        step.stored = acc = guarded_value(guard, step.computed, guarded);
        if (observer)
            observer->see(observer->context, &step);
        i += step.n;
        if (mode->every && (i % mode->every == 0 || i == n)) {
            promoted = (double)((float)promoted + (float)acc);
            acc = 0;
        }
    }
    const double sum = mode->every ? promoted : acc;
    return mode->guard_at_the_end ? guarded_value(mode->guard, sum, guarded) : sum;
}

/* ---- what theory allows ----
 *
 * A step of n' products costs, relative to |acc| + sum of the step's |products|: an FMA u of the stored format; a
 * tensor core n' 2^-F of alignment and its conversion, 2^(1-p) where it truncates and 2^-p where it rounds to
 * nearest, p the bits of its result (reference/tensor_core/accumulate_error.c derives it); a rounding to `stored`
 * after it u more. m steps: (1 + step)^m - 1 <= expm1(m step). A chain and a tensor core that round to nearest have
 * m step outright (Jeannerod & Rump 2013; the tensor core but for a factor of 1 + 2^-23), which is less. Promotion:
 * (1 + inner)(1 + blocks u_f32) - 1, the first addition of a block to +0 being exact. Underflow: each rounding may lose
 * half the smallest subnormal, a truncation all of it; a tensor core's alignment counts a subnormal operand as 2^emin,
 * so its neighbours are cut at 2^(emin + e_largest - F). */

static double step_cost(const struct at_study_mode *mode, const struct at_tc_rule *rule) {
    const double stored = at_format_info(mode->stored)->u;
    if (!rule)
        return stored;
    const double convert = ldexp(1.0, (rule->rounding == AT_TC_RNE ? 0 : 1) - rule->out_bits);
    return mode->step * ldexp(1.0, -rule->kept_bits) + convert + (mode->stored == rule->out ? 0 : stored);
}

static double step_underflow(const struct at_study_mode *mode, const struct at_tc_rule *rule, double largest) {
    const double stored = at_format_info(mode->stored)->eta;
    if (!rule)
        return stored;
    const int emin = at_format_info(mode->operand)->emin, top = ilogb(fmax(largest, ldexp(1.0, emin)));
    const double floor = fmax(ldexp(1.0, emin + top), ldexp(1.0, rule->zero_exponent));
    return (mode->step + 1) * ldexp(floor, -rule->kept_bits) + 2 * at_format_info(rule->out)->eta + stored;
}

struct at_study_bound at_study_bound(const struct at_study_mode *mode, int64_t n, double largest) {
    const struct at_tc_rule *rule = rule_of(mode);
    const int64_t inner = mode->every && mode->every < n ? mode->every : n;
    const int64_t inner_steps = (inner + mode->step - 1) / mode->step;
    const int64_t promotions = mode->every ? (n + mode->every - 1) / mode->every : 0;
    const double steps = (double)inner_steps, blocks = (double)promotions, cost = step_cost(mode, rule);
    const double all_steps = mode->every ? steps * blocks : steps, u = at_format_info(AT_F32)->u;
    struct at_study_bound bound;
    const int nearest = !rule || (rule->rounding == AT_TC_RNE && mode->stored == rule->out);
    bound.worst = nearest ? steps * cost * (rule ? 1 + 0x1p-23 : 1) : expm1(steps * cost);
    bound.worst += (1 + bound.worst) * fmax(blocks - 1, 0) * u;
    bound.probable = sqrt(steps) * cost + sqrt(fmax(blocks - 1, 0)) * u;
    bound.eta = all_steps * step_underflow(mode, rule, largest) * (1 + bound.worst);
    return bound;
}
