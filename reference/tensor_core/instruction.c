/* The table of tensor-core instructions, and what one of them computes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sources: those of tensor_core/fdpa.h; that mma.sync of fp8 is made of f16 steps on Hopper and sm_100: the vendor's
 * answer in CUTLASS issue 1986 and public disassembly, its order: published vectors. Not described, because nothing
 * public describes them: sparse mma, m8n8k4 on sm_90, f64, block-scaled (mx) formats. The rows of CDNA3 are a public
 * model's, which nothing here has been held against; no kernel has them. */
#include "tensor_core/instruction.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tensor_core/cdna3.h"

/* name, sm, kind, k, a, b, rule, order */
/* clang-format off */
static const struct at_tc_instruction instructions[] = {
    { "volta_mma_k4_f16_f32", 70, AT_TC_MMA, 4, AT_F16, AT_F16, "volta_f16_f32", AT_TC_CHUNKS },
    { "volta_mma_k4_f16_f16", 70, AT_TC_MMA, 4, AT_F16, AT_F16, "volta_f16_f16", AT_TC_CHUNKS },
    { "turing_mma_k8_f16_f32", 75, AT_TC_MMA, 8, AT_F16, AT_F16, "turing_f16_f32", AT_TC_CHUNKS },
    { "turing_mma_k8_f16_f16", 75, AT_TC_MMA, 8, AT_F16, AT_F16, "turing_f16_f16", AT_TC_CHUNKS },
    { "ampere_mma_k16_f16_f32", 80, AT_TC_MMA, 16, AT_F16, AT_F16, "ampere_f16_f32", AT_TC_CHUNKS },
    { "ampere_mma_k16_bf16_f32", 80, AT_TC_MMA, 16, AT_BF16, AT_BF16, "ampere_f16_f32", AT_TC_CHUNKS },
    { "ampere_mma_k16_f16_f16", 80, AT_TC_MMA, 16, AT_F16, AT_F16, "ampere_f16_f16", AT_TC_CHUNKS },
    { "ampere_mma_k8_tf32_f32", 80, AT_TC_MMA, 8, AT_TF32, AT_TF32, "ampere_tf32_f32", AT_TC_CHUNKS },
    { "ada_mma_k32_e4m3_f32", 89, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "ada_fp8_f32", AT_TC_CHUNKS },
    { "ada_mma_k32_e4m3_f16", 89, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "ada_fp8_f16", AT_TC_CHUNKS },
    { "ada_mma_k32_e5m2_f32", 89, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "ada_fp8_f32", AT_TC_CHUNKS },
    { "ada_mma_k32_e5m2_f16", 89, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "ada_fp8_f16", AT_TC_CHUNKS },
    { "hopper_mma_k16_f16_f32", 90, AT_TC_MMA, 16, AT_F16, AT_F16, "hopper_f16_f32", AT_TC_CHUNKS },
    { "hopper_mma_k16_bf16_f32", 90, AT_TC_MMA, 16, AT_BF16, AT_BF16, "hopper_bf16_f32", AT_TC_CHUNKS },
    { "hopper_mma_k16_f16_f16", 90, AT_TC_MMA, 16, AT_F16, AT_F16, "hopper_mma_f16_f16", AT_TC_CHUNKS },
    { "hopper_mma_k8_tf32_f32", 90, AT_TC_MMA, 8, AT_TF32, AT_TF32, "hopper_tf32_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k16_f16_f32", 90, AT_TC_WGMMA, 16, AT_F16, AT_F16, "hopper_f16_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k16_bf16_f32", 90, AT_TC_WGMMA, 16, AT_BF16, AT_BF16, "hopper_bf16_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k16_f16_f16", 90, AT_TC_WGMMA, 16, AT_F16, AT_F16, "hopper_wgmma_f16_f16", AT_TC_CHUNKS },
    { "hopper_wgmma_k8_tf32_f32", 90, AT_TC_WGMMA, 8, AT_TF32, AT_TF32, "hopper_tf32_f32", AT_TC_CHUNKS },
    { "hopper_mma_k8_f16_f32", 90, AT_TC_MMA, 8, AT_F16, AT_F16, "hopper_f16_f32", AT_TC_CHUNKS },
    { "hopper_mma_k8_bf16_f32", 90, AT_TC_MMA, 8, AT_BF16, AT_BF16, "hopper_bf16_f32", AT_TC_CHUNKS },
    { "hopper_mma_k8_f16_f16", 90, AT_TC_MMA, 8, AT_F16, AT_F16, "hopper_mma_f16_f16", AT_TC_CHUNKS },
    { "hopper_mma_k4_tf32_f32", 90, AT_TC_MMA, 4, AT_TF32, AT_TF32, "hopper_tf32_f32", AT_TC_CHUNKS },
    { "hopper_mma_k32_e4m3_f32", 90, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "hopper_f16_f32", AT_TC_FP8_BY_F16 },
    { "hopper_mma_k32_e4m3_f16", 90, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "hopper_mma_f16_f16", AT_TC_FP8_BY_F16 },
    { "hopper_mma_k32_e5m2_f32", 90, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "hopper_f16_f32", AT_TC_FP8_BY_F16 },
    { "hopper_mma_k32_e5m2_f16", 90, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "hopper_mma_f16_f16", AT_TC_FP8_BY_F16 },
    { "hopper_wgmma_k32_e4m3_f32", 90, AT_TC_WGMMA, 32, AT_E4M3, AT_E4M3, "hopper_wgmma_fp8_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e4m3_f16", 90, AT_TC_WGMMA, 32, AT_E4M3, AT_E4M3, "hopper_wgmma_fp8_f16", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e4m3_e5m2_f32", 90, AT_TC_WGMMA, 32, AT_E4M3, AT_E5M2, "hopper_wgmma_fp8_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e4m3_e5m2_f16", 90, AT_TC_WGMMA, 32, AT_E4M3, AT_E5M2, "hopper_wgmma_fp8_f16", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e5m2_e4m3_f32", 90, AT_TC_WGMMA, 32, AT_E5M2, AT_E4M3, "hopper_wgmma_fp8_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e5m2_e4m3_f16", 90, AT_TC_WGMMA, 32, AT_E5M2, AT_E4M3, "hopper_wgmma_fp8_f16", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e5m2_f32", 90, AT_TC_WGMMA, 32, AT_E5M2, AT_E5M2, "hopper_wgmma_fp8_f32", AT_TC_CHUNKS },
    { "hopper_wgmma_k32_e5m2_f16", 90, AT_TC_WGMMA, 32, AT_E5M2, AT_E5M2, "hopper_wgmma_fp8_f16", AT_TC_CHUNKS },
    { "blackwell_mma_k16_f16_f32", 120, AT_TC_MMA, 16, AT_F16, AT_F16, "blackwell_f16_f32", AT_TC_CHUNKS },
    { "blackwell_mma_k16_bf16_f32", 120, AT_TC_MMA, 16, AT_BF16, AT_BF16, "blackwell_f16_f32", AT_TC_CHUNKS },
    { "blackwell_mma_k16_f16_f16", 120, AT_TC_MMA, 16, AT_F16, AT_F16, "blackwell_mma_f16_f16", AT_TC_CHUNKS },
    { "blackwell_mma_k8_tf32_f32", 120, AT_TC_MMA, 8, AT_TF32, AT_TF32, "blackwell_tf32_f32", AT_TC_CHUNKS },
    { "blackwell_mma_k32_e4m3_f32", 120, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "blackwell_f8f6f4_f32", AT_TC_CHUNKS },
    { "blackwell_mma_k32_e4m3_f16", 120, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "blackwell_mma_f8f6f4_f16", AT_TC_CHUNKS },
    { "blackwell_sm100_mma_k32_e4m3_f32", 100, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "blackwell_f16_f32", AT_TC_FP8_BY_F16 },
    { "blackwell_sm100_mma_k32_e4m3_f16", 100, AT_TC_MMA, 32, AT_E4M3, AT_E4M3, "blackwell_mma_f16_f16", AT_TC_FP8_BY_F16 },
    { "blackwell_tcgen05_k32_e4m3_f32", 100, AT_TC_TCGEN05, 32, AT_E4M3, AT_E4M3, "blackwell_f8f6f4_f32", AT_TC_CHUNKS },
    { "blackwell_tcgen05_k32_e4m3_f16", 100, AT_TC_TCGEN05, 32, AT_E4M3, AT_E4M3, "blackwell_tcgen05_f8f6f4_f16", AT_TC_CHUNKS },
    { "blackwell_mma_k32_e5m2_f32", 120, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "blackwell_f8f6f4_f32", AT_TC_CHUNKS },
    { "blackwell_mma_k32_e5m2_f16", 120, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "blackwell_mma_f8f6f4_f16", AT_TC_CHUNKS },
    { "blackwell_sm100_mma_k32_e5m2_f32", 100, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "blackwell_f16_f32", AT_TC_FP8_BY_F16 },
    { "blackwell_sm100_mma_k32_e5m2_f16", 100, AT_TC_MMA, 32, AT_E5M2, AT_E5M2, "blackwell_mma_f16_f16", AT_TC_FP8_BY_F16 },
    { "blackwell_tcgen05_k32_e5m2_f32", 100, AT_TC_TCGEN05, 32, AT_E5M2, AT_E5M2, "blackwell_f8f6f4_f32", AT_TC_CHUNKS },
    { "blackwell_tcgen05_k32_e5m2_f16", 100, AT_TC_TCGEN05, 32, AT_E5M2, AT_E5M2, "blackwell_tcgen05_f8f6f4_f16", AT_TC_CHUNKS },
    { "blackwell_tcgen05_k16_f16_f32", 100, AT_TC_TCGEN05, 16, AT_F16, AT_F16, "blackwell_f16_f32", AT_TC_CHUNKS },
    { "blackwell_tcgen05_k16_bf16_f32", 100, AT_TC_TCGEN05, 16, AT_BF16, AT_BF16, "blackwell_f16_f32", AT_TC_CHUNKS },
    { "blackwell_tcgen05_k16_f16_f16", 100, AT_TC_TCGEN05, 16, AT_F16, AT_F16, "blackwell_tcgen05_f16_f16", AT_TC_CHUNKS },
    { "blackwell_tcgen05_k8_tf32_f32", 100, AT_TC_TCGEN05, 8, AT_TF32, AT_TF32, "blackwell_tf32_f32", AT_TC_CHUNKS },
    /* behind the others: a problem has an instruction's place in this table */
    { "ada_mma_k16_f16_f32", 89, AT_TC_MMA, 16, AT_F16, AT_F16, "ampere_f16_f32", AT_TC_CHUNKS },
    { "ada_mma_k16_bf16_f32", 89, AT_TC_MMA, 16, AT_BF16, AT_BF16, "ampere_f16_f32", AT_TC_CHUNKS },
    { "ada_mma_k16_f16_f16", 89, AT_TC_MMA, 16, AT_F16, AT_F16, "ampere_f16_f16", AT_TC_CHUNKS },
    { "ada_mma_k8_tf32_f32", 89, AT_TC_MMA, 8, AT_TF32, AT_TF32, "ampere_tf32_f32", AT_TC_CHUNKS },
    /* model only, not measured */
    { "cdna3_mfma_k16_f16_f32", 942, AT_TC_MFMA, 16, AT_F16, AT_F16, "cdna3_f16_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k8_f16_f32", 942, AT_TC_MFMA, 8, AT_F16, AT_F16, "cdna3_f16_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k4_f16_f32", 942, AT_TC_MFMA, 4, AT_F16, AT_F16, "cdna3_f16_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k16_bf16_f32", 942, AT_TC_MFMA, 16, AT_BF16, AT_BF16, "cdna3_f16_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k8_bf16_f32", 942, AT_TC_MFMA, 8, AT_BF16, AT_BF16, "cdna3_f16_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k4_bf16_f32", 942, AT_TC_MFMA, 4, AT_BF16, AT_BF16, "cdna3_f16_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k8_xf32_f32", 942, AT_TC_MFMA, 8, AT_TF32, AT_TF32, "cdna3_xf32_f32", AT_TC_CDNA3 },
    { "cdna3_mfma_k4_xf32_f32", 942, AT_TC_MFMA, 4, AT_TF32, AT_TF32, "cdna3_xf32_f32", AT_TC_CDNA3 },
};
/* clang-format on */

int at_tc_instruction_count(void) { return (int)(sizeof instructions / sizeof instructions[0]); }

const struct at_tc_instruction *at_tc_instruction_at(int i) { return &instructions[i]; }

const struct at_tc_instruction *at_tc_instruction_find(const char *name) {
    for (int i = 0; i < at_tc_instruction_count(); i++)
        if (strcmp(instructions[i].name, name) == 0)
            return &instructions[i];
    return NULL;
}

/* Found by name once: every model asks for every sum. Threads may find it at the same time, and find the same. */
const struct at_tc_rule *at_tc_instruction_rule(const struct at_tc_instruction *instruction) {
    static _Atomic(const struct at_tc_rule *) found[sizeof instructions / sizeof instructions[0]];
    const uintptr_t at = ((uintptr_t)instruction - (uintptr_t)instructions) / sizeof *instruction;
    if (at >= sizeof found / sizeof *found) /* not of the table */
        return at_tc_rule_find(instruction->rule_name);
    const struct at_tc_rule *rule = atomic_load_explicit(&found[at], memory_order_relaxed);
    if (!rule) {
        rule = at_tc_rule_find(instruction->rule_name);
        atomic_store_explicit(&found[at], rule, memory_order_relaxed);
    }
    return rule;
}

/* Values of e4m3 and e5m2 are normal in f16, or subnormal there with the same exponent rule. */
static double fp8_by_f16(const struct at_tc_instruction *t, const struct at_tc_rule *rule, const double *a,
                         const double *b, double c) {
    double sum = 0;
    for (int half = 0; half < 2; half++) {
        double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX];
        int n = 0;
        for (int i = 0; i < t->k; i++)
            if (i % 4 / 2 == half) {
                x[n] = a[i];
                y[n++] = b[i];
            }
        sum = at_fdpa(rule, AT_F16, x, 1, y, 1, n, sum);
    }
    return at_round(rule->out, c + sum); /* 53 >= 2 * 24 + 2 bits: rounding twice is rounding once */
}

static double cdna3(const struct at_tc_instruction *t, const struct at_tc_rule *rule, const double *a, const double *b,
                    double c) {
    for (int i = 0; i < t->k; i += rule->block)
        c = at_cdna3_multiply_add(rule, t->a, a + i, b + i, t->k - i < rule->block ? t->k - i : rule->block, c);
    return c;
}

double at_tc_multiply_add(const struct at_tc_instruction *t, const struct at_tc_rule *rule, const double *a,
                          const double *b, double c) {
    if (!rule)
        rule = at_tc_instruction_rule(t);
    if (t->order != AT_TC_CHUNKS)
        return t->order == AT_TC_CDNA3 ? cdna3(t, rule, a, b, c) : fp8_by_f16(t, rule, a, b, c);
    for (int i = 0; i < t->k; i += rule->block) {
        const int n = t->k - i < rule->block ? t->k - i : rule->block;
        c = at_fdpa_mixed(rule, t->a, t->b, a + i, 1, b + i, 1, n, c);
    }
    return c;
}

double at_tc_multiply_add_rows(const struct at_tc_instruction *t, const struct at_tc_rule *rule,
                               const struct at_tc_row *a, const struct at_tc_row *b, double c) {
    if (t->order != AT_TC_CHUNKS || !a->finite || !b->finite)
        return at_tc_multiply_add(t, rule, a->x, b->x, c);
    for (int i = 0; i < t->k; i += rule->block)
        c = at_fdpa_rows(rule, a, b, i, t->k - i < rule->block ? t->k - i : rule->block, c);
    return c;
}

const char *at_tc_neighbour_name(enum at_tc_neighbour which) {
    static const char *const names[] = { "F-1", "F+1", "L/2", "2L", "rounding", "e_zero-1", "e_zero+1", "c leads" };
    return names[which];
}

/* The floor acts on products that lie below it, and where what it cuts (2^(e_zero - F) and less) exists: the least
 * product of the operands is a multiple of the square of their smallest subnormals. */
static int floor_matters(const struct at_tc_instruction *t, const struct at_tc_rule *rule) {
    const struct at_format_info *a = at_format_info(t->a), *b = at_format_info(t->b);
    const int least = a->emin - a->precision + 1 + b->emin - b->precision + 1, lowest = a->emin + b->emin;
    return t->order == AT_TC_CHUNKS && lowest < rule->zero_exponent - 1 &&
           least < rule->zero_exponent - rule->kept_bits;
}

/* The exponent of a subnormal c acts where all products have lower ones, and where what it cuts exists. */
static int addend_matters(const struct at_tc_instruction *t, const struct at_tc_rule *rule) {
    const struct at_format_info *a = at_format_info(t->a), *b = at_format_info(t->b), *out = at_format_info(rule->out);
    const int least = a->emin - a->precision + 1 + b->emin - b->precision + 1;
    return t->order == AT_TC_CHUNKS && a->emin + b->emin < out->emin && least < out->emin - rule->kept_bits;
}

int at_tc_neighbour_of(const struct at_tc_instruction *t, enum at_tc_neighbour which, struct at_tc_rule *changed) {
    const int step = t->order == AT_TC_FP8_BY_F16 ? t->k / 2 : t->k; /* products that meet in one go */
    *changed = *at_tc_instruction_rule(t);
    switch (which) {
    case AT_TC_KEPT_LESS:
        changed->kept_bits--;
        return 1;
    case AT_TC_KEPT_MORE:
        changed->kept_bits++;
        return 1;
    case AT_TC_BLOCK_HALF:
        changed->block /= 2;
        return t->order != AT_TC_FP8_BY_F16 && changed->block < step;
    case AT_TC_BLOCK_TWICE:
        changed->block *= 2;
        return t->order != AT_TC_FP8_BY_F16 && changed->block <= step;
    case AT_TC_OTHER_ROUNDING:
        changed->rounding = changed->rounding == AT_TC_RZ ? AT_TC_RNE : AT_TC_RZ;
        return 1;
    case AT_TC_ADDEND_LEADING:
        changed->addend_exponent -= at_format_info(changed->out)->precision - 1;
        return addend_matters(t, changed);
    default:
        changed->zero_exponent += which == AT_TC_FLOOR_LESS ? -1 : 1;
        return floor_matters(t, changed);
    }
}
