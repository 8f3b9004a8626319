/* mma: fragments from all lanes of a warp, products by the rule of the instruction, results to all lanes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * m16n8: with n elements a 32-bit register, lane 4 g + t holds
 *   a, register r, element j:  row g + 8 (r % 2), column n t + j + 4 n (r / 2)
 *   b, register r, element j:  row n t + j + 4 n r, column g
 *   c and d:                   rows g (first half) and g + 8, columns 2 t and 2 t + 1 of each; in f16 both columns of a
 *                              row share one register, the lower column in the lower half
 *
 * Arithmetic: reference/tensor_core. A NaN comes out as the one code the hardware has, 0x7fffffff or 0x7fff. */
#include "kernels/simt/mma.h"

#include <math.h>
#include <string.h>

#include "kernels/simt/warp.h"

enum { ROWS = 16, COLUMNS = 8 };

static const char *const names[AT_SIMT_MMA_KINDS] = {
    [AT_SIMT_MMA_K16_F16_F32] = "hopper_mma_k16_f16_f32",
    [AT_SIMT_MMA_K16_BF16_F32] = "hopper_mma_k16_bf16_f32",
    [AT_SIMT_MMA_K16_F16_F16] = "hopper_mma_k16_f16_f16",
    [AT_SIMT_MMA_K8_F16_F32] = "hopper_mma_k8_f16_f32",
    [AT_SIMT_MMA_K8_BF16_F32] = "hopper_mma_k8_bf16_f32",
    [AT_SIMT_MMA_K8_F16_F16] = "hopper_mma_k8_f16_f16",
    [AT_SIMT_MMA_K8_TF32_F32] = "hopper_mma_k8_tf32_f32",
    [AT_SIMT_MMA_K32_E4M3_F32] = "hopper_mma_k32_e4m3_f32",
    [AT_SIMT_MMA_K32_E4M3_F16] = "hopper_mma_k32_e4m3_f16",
    [AT_SIMT_MMA_K32_E5M2_F32] = "hopper_mma_k32_e5m2_f32",
    [AT_SIMT_MMA_K32_E5M2_F16] = "hopper_mma_k32_e5m2_f16",
    [AT_SIMT_WGMMA_K16_F16_F32] = "hopper_wgmma_k16_f16_f32",
    [AT_SIMT_WGMMA_K16_BF16_F32] = "hopper_wgmma_k16_bf16_f32",
    [AT_SIMT_WGMMA_K16_F16_F16] = "hopper_wgmma_k16_f16_f16",
    [AT_SIMT_WGMMA_K8_TF32_F32] = "hopper_wgmma_k8_tf32_f32",
    [AT_SIMT_WGMMA_K32_E4M3_F32] = "hopper_wgmma_k32_e4m3_f32",
    [AT_SIMT_WGMMA_K32_E4M3_F16] = "hopper_wgmma_k32_e4m3_f16",
    [AT_SIMT_WGMMA_K32_E4M3_E5M2_F32] = "hopper_wgmma_k32_e4m3_e5m2_f32",
    [AT_SIMT_WGMMA_K32_E4M3_E5M2_F16] = "hopper_wgmma_k32_e4m3_e5m2_f16",
    [AT_SIMT_WGMMA_K32_E5M2_E4M3_F32] = "hopper_wgmma_k32_e5m2_e4m3_f32",
    [AT_SIMT_WGMMA_K32_E5M2_E4M3_F16] = "hopper_wgmma_k32_e5m2_e4m3_f16",
    [AT_SIMT_WGMMA_K32_E5M2_F32] = "hopper_wgmma_k32_e5m2_f32",
    [AT_SIMT_WGMMA_K32_E5M2_F16] = "hopper_wgmma_k32_e5m2_f16",
};

/* What a lane hands in. */
struct fragments {
    const uint32_t *a, *b, *c;
    uint32_t *d;
};

/* The operands of a warp, put together. */
struct matrices {
    struct at_tc_row a[ROWS], b[COLUMNS]; /* b by columns */
    double c[ROWS][COLUMNS];
};

const struct at_tc_instruction *at_mma_instruction(int kind, const struct at_tc_rule **rule) {
    static const struct at_tc_instruction *found[AT_SIMT_MMA_KINDS];
    static const struct at_tc_rule *rules[AT_SIMT_MMA_KINDS];
    if (!found[kind]) {
        found[kind] = at_tc_instruction_find(names[kind]);
        rules[kind] = at_tc_instruction_rule(found[kind]);
    }
    *rule = rules[kind];
    return found[kind];
}

static uint64_t encoded(enum at_format format, double x) {
    if (isnan(x))
        return format == AT_F32 ? 0x7fffffffu : 0x7fffu;
    return at_encode(format, x);
}

static void gather(const struct at_tc_instruction *t, enum at_format sum, int lane, const struct fragments *f,
                   struct matrices *m) {
    const int n = 4 / (int)at_format_info(t->a)->bytes, group = lane / 4, place = lane % 4;
    for (int r = 0; r < t->k / n / 2; r++) /* 16 rows of k, n a register, 32 lanes */
        for (int j = 0; j < n; j++)
            m->a[group + 8 * (r % 2)].x[n * place + j + 4 * n * (r / 2)] = at_mma_element(t->a, f->a[r], j);
    for (int r = 0; r < t->k / n / 4; r++)
        for (int j = 0; j < n; j++)
            m->b[group].x[n * place + j + 4 * n * r] = at_mma_element(t->b, f->b[r], j);
    for (int i = 0; i < 4; i++)
        m->c[group + 8 * (i / 2)][2 * place + i % 2] =
            sum == AT_F32 ? at_mma_decode(AT_F32, f->c[i]) : at_mma_element(AT_F16, f->c[i / 2], i % 2);
}

void at_mma_put(enum at_format sum, uint32_t *d, int i, double x) {
    const uint32_t code = (uint32_t)encoded(sum, x);
    if (sum == AT_F32)
        d[i] = code;
    else
        d[i / 2] = i % 2 ? d[i / 2] | code << 16 : code;
}

static void multiply(struct at_simt_thread *const *members, int n) {
    struct matrices m;
    const struct at_tc_rule *rule;
    const struct at_tc_instruction *t = at_mma_instruction(members[0]->from, &rule);
    for (int lane = 0; lane < n; lane++)
        gather(t, rule->out, lane, members[lane]->deposit, &m);
    for (int row = 0; row < ROWS; row++)
        at_tc_row_know(t->a, &m.a[row], t->k);
    for (int column = 0; column < COLUMNS; column++)
        at_tc_row_know(t->b, &m.b[column], t->k);
    for (int lane = 0; lane < n; lane++) {
        const struct fragments *f = members[lane]->deposit;
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            at_mma_put(rule->out, f->d, i, at_tc_multiply_add_rows(t, rule, &m.a[row], &m.b[column], m.c[row][column]));
        }
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written when the warp has met */
void at_simt_mma(enum at_simt_mma_kind kind, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d,
                 struct at_simt_place place) {
    const struct fragments mine = { a, b, c, d };
    at_warp_operation(AT_SIMT_MMA, 0xffffffffu, 0, (int)kind, &mine, multiply, place);
}
