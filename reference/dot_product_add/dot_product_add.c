/* d = c + sum a[i] b[i] over the k products of one tensor-core instruction, a row for each pattern of operands.
 * SPDX-License-Identifier: Apache-2.0
 *
 * a and b hold codes of the instruction's operand formats (tf32: the f32 word with 13 zero bits), so that no conversion
 * stands between a pattern and the hardware; c and d hold values of the accumulator's format, in f32.
 *
 * Limit of |d - exact|, chunk by chunk of L products: every term is cut by less than 2^(e_max - F), and what is stored
 * is off by one rounding of the accumulator. A cut or rounding moves the sum of later chunks by as much, no more. e_max
 * is the largest of the products' exponents, which are known, of e_zero, and of the accumulator's: at most that of all
 * terms' magnitudes and the error so far, at least emin. (fp8 by f16 has two chunks and one addition, which is a chunk
 * less its cuts. CDNA3 cuts the sum of products once more.) */
#include "dot_product_add/dot_product_add.h"

#include <math.h>

#include "tensor_core/cdna3.h"

static const char *instruction_name(int i) {
    return i >= 0 && i < at_tc_instruction_count() ? at_tc_instruction_at(i)->name : NULL;
}

/* clang-format off */
static const struct at_scalar own[] = {
    { "instruction", AT_SCALAR_CHOICE, AT_OWN_PLACE(at_dpa_own, instruction), 0,
      "NAME of a tensor-core instruction; default hopper_mma_k16_f16_f32 (cdna3_*: model only, not measured)", "instruction", .text = instruction_name },
};
static const char *const keys[] = { "tokens", "instruction", "stratum", "seed", "require", "expect", NULL };
static const struct at_factor patterns = { .name = "patterns", .meaning = "about a warp", .classes = AT_CLASSES("tokens=65", "tokens=127,128,129", "tokens=256,300"), .far = AT_CLASSES("tokens=31,32,33") };
static const struct at_factor of_instruction = { .name = "instruction", .meaning = "all there are", .classes = AT_CLASSES("instruction=hopper_mma_k16_f16_f32", "instruction=hopper_mma_k16_bf16_f32", "instruction=hopper_mma_k16_f16_f16", "instruction=hopper_mma_k8_tf32_f32", "instruction=hopper_wgmma_k16_f16_f32", "instruction=hopper_wgmma_k16_bf16_f32", "instruction=hopper_wgmma_k16_f16_f16", "instruction=hopper_wgmma_k8_tf32_f32", "instruction=hopper_mma_k8_f16_f32", "instruction=hopper_mma_k8_bf16_f32", "instruction=hopper_mma_k8_f16_f16", "instruction=hopper_mma_k4_tf32_f32", "instruction=hopper_mma_k32_e4m3_f32", "instruction=hopper_mma_k32_e4m3_f16", "instruction=hopper_mma_k32_e5m2_f32", "instruction=hopper_mma_k32_e5m2_f16", "instruction=hopper_wgmma_k32_e4m3_f32", "instruction=hopper_wgmma_k32_e4m3_f16", "instruction=hopper_wgmma_k32_e4m3_e5m2_f32", "instruction=hopper_wgmma_k32_e4m3_e5m2_f16", "instruction=hopper_wgmma_k32_e5m2_e4m3_f32", "instruction=hopper_wgmma_k32_e5m2_e4m3_f16", "instruction=hopper_wgmma_k32_e5m2_f32", "instruction=hopper_wgmma_k32_e5m2_f16") };
/* any_code, apart and near_overflow have sums past the largest output: an infinity as the instruction gives it is OVERFLOWED.
 * Not floor: for e5m2 and an f16 sum all that it gives is within its limit of 0, and nothing is shown. */
static const struct at_factor strata = { .name = "stratum", .meaning = "what the operands look like", .classes = AT_CLASSES("stratum=ordinary", "stratum=cancelling", "stratum=near_tie", "stratum=subnormal", "stratum=swamped", "stratum=low_addend", "stratum=low_operand", "stratum=cut_addend", "stratum=carried", "stratum=apart,near_overflow,any_code expect=OVERFLOWED"),
    .any = "stratum=special,specials" };
static const struct at_factor *const domain[] = { &patterns, &of_instruction, &strata, NULL };
static const struct at_tensor_spec tensors[] = {
    { "a", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens, AT_DIM_channels }, "codes of the first factors", AT_FILL_PATTERN_A },
    { "b", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens, AT_DIM_channels }, "codes of the second factors", AT_FILL_PATTERN_B },
    { "c", AT_IN, AT_FORMAT_F32, { AT_DIM_tokens }, "addends, values of the accumulator's format", AT_FILL_PATTERN_C },
    { "d", AT_OUT, AT_FORMAT_F32, { AT_DIM_tokens }, "results, values of the accumulator's format" },
};
static const struct at_decoy_spec decoys[] = {
    { "addend_dropped", "c is not added" },
    { "last_product_dropped", "the last product is not added" },
};
/* clang-format on */

enum { RIGHT = -1, ADDEND_DROPPED, LAST_PRODUCT_DROPPED };

const struct at_tc_instruction *at_dpa_instruction(const struct at_problem *p) {
    const int i = at_dpa_own_of(p).instruction;
    return i >= 0 && i < at_tc_instruction_count() ? at_tc_instruction_at(i) : NULL;
}

struct row {
    double a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX], c;
};

static void read_row(const struct at_problem *p, const struct at_tc_instruction *t, int64_t row, struct row *r) {
    for (int i = 0; i < t->k; i++) {
        const int64_t at = row * t->k + i;
        r->a[i] = at_decode(t->a, (uint32_t)at_tensor_i32(&p->tensors[AT_DPA_A], at));
        r->b[i] = at_decode(t->b, (uint32_t)at_tensor_i32(&p->tensors[AT_DPA_B], at));
    }
    r->c = at_tensor_get(&p->tensors[AT_DPA_C], row);
}

/* A double, unless products of bf16 or tf32 lie further apart than 64 bits: then it is off by less than the limit's
 * last bits. NaN and infinities as IEEE arithmetic has them. */
static double exact(const struct at_tc_instruction *t, const struct row *r, int fault) {
    long double sum = fault == ADDEND_DROPPED ? 0 : (long double)r->c;
    for (int i = 0; i < t->k - (fault == LAST_PRODUCT_DROPPED); i++)
        sum += (long double)r->a[i] * (long double)r->b[i];
    return (double)sum;
}

/* 2^exponent of an operand as the unit unpacks it: a subnormal's is emin. */
static double exponent_of(enum at_format format, double x) {
    return x == 0 ? 0 : fmax(ldexp(1, ilogb(x)), ldexp(1, at_format_info(format)->emin));
}

static double limit(const struct at_tc_instruction *t, const struct row *r) {
    const struct at_tc_rule *rule = at_tc_instruction_rule(t);
    const struct at_format_info *out = at_format_info(rule->out);
    const double u = ldexp(1, rule->rounding == AT_TC_RZ ? 1 - rule->out_bits : -rule->out_bits);
    const double grain = ldexp(1, out->emin - rule->out_bits + 1); /* the smallest value that is stored */
    double error = 0, reach = fabs(r->c), product = 0;
    for (int i = 0; i < t->k; i++) {
        reach += fabs(r->a[i] * r->b[i]);
        product = fmax(product, exponent_of(t->a, r->a[i]) * exponent_of(t->b, r->b[i]));
    }
    if (!isfinite(reach))
        return INFINITY;
    const int chunks = t->order == AT_TC_FP8_BY_F16 ? 3 : (t->k + rule->block - 1) / rule->block;
    for (int chunk = 0; chunk < chunks; chunk++) {
        const double top = fmax(fmax(product, reach + error), fmax(ldexp(1, out->emin), ldexp(1, rule->zero_exponent)));
        error += (double)(rule->block + 1) * ldexp(top, -rule->kept_bits);
        error += t->order == AT_TC_CDNA3 ? ldexp(top, -AT_CDNA3_SUM_BITS) : 0;
        error += fmax((reach + error) * u, grain);
    }
    return reach + error <= out->max ? error : INFINITY;
}

static void put(struct at_eval *eval, int64_t row, double value, double off) {
    if (eval->value[AT_DPA_D])
        eval->value[AT_DPA_D][row] = value;
    if (eval->limit[AT_DPA_D])
        eval->limit[AT_DPA_D][row] = off;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    const struct at_tc_instruction *t = at_dpa_instruction(p);
    struct row r = { 0 };
    for (int64_t row = row0; row < row1; row++) {
        read_row(p, t, row, &r);
        put(eval, row, exact(t, &r, RIGHT), eval->limit[AT_DPA_D] ? limit(t, &r) : 0);
    }
    return AT_OK;
}

static at_status model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval) {
    (void)numerics;
    const struct at_tc_instruction *t = at_dpa_instruction(p);
    struct row r = { 0 };
    for (int64_t row = row0; row < row1; row++) {
        read_row(p, t, row, &r);
        put(eval, row, at_tc_multiply_add(t, NULL, r.a, r.b, r.c), 0);
    }
    return AT_OK;
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    const struct at_tc_instruction *t = at_dpa_instruction(p);
    struct row r = { 0 };
    for (int64_t row = row0; row < row1; row++) {
        read_row(p, t, row, &r);
        put(eval, row, exact(t, &r, which), 0);
    }
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_tc_instruction *t = at_dpa_instruction(p);
    if (!t)
        return AT_FAIL(AT_USAGE, "dot_product_add: instruction is %d, wanted 0 to %d",
                       (int)at_dpa_own_of(p).instruction, at_tc_instruction_count() - 1);
    if (p->sizes.tokens < 0 || p->sizes.channels != t->k)
        return AT_FAIL(AT_USAGE, "dot_product_add: %s: tokens, channels are %lld, %lld, wanted 0 or more and %d",
                       t->name, (long long)p->sizes.tokens, (long long)p->sizes.channels, t->k);
    for (int i = 0; i < AT_DPA_D; i++) {
        const int64_t want = p->sizes.tokens * (i == AT_DPA_C ? 1 : t->k), found = at_tensor_count(&p->tensors[i]);
        if (found != want || (want > 0 && !p->tensors[i].data))
            return AT_FAIL(AT_USAGE, "dot_product_add: tensor %s has %lld elements, wanted %lld with data",
                           tensors[i].name, (long long)found, (long long)want);
    }
    return AT_OK;
}

/* As many products as the instruction has. */
static void complete(struct at_problem *p, unsigned given) {
    struct at_dpa_own z = at_dpa_own_of(p);
    if (!(given & 1))
        z.instruction = (int32_t)(at_tc_instruction_find("hopper_mma_k16_f16_f32") - at_tc_instruction_at(0));
    at_dpa_own_set(p, &z);
    p->sizes.channels = at_dpa_instruction(p) ? at_dpa_instruction(p)->k : 0;
}

static int64_t rows(const struct at_problem *p) { return p->sizes.tokens; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)p, (void)tensor;
    *first = row;
    *count = 1;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return (double)p->sizes.channels;
}

const struct at_op at_op_dot_product_add = {
    .name = "dot_product_add",
    .summary = "one tensor-core instruction's dot product and addition, a row a pattern",
    .source = "ours",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .kind = AT_KIND_PATTERNS,
    .uses = AT_USES(tokens) | AT_USES(channels),
    .own = own,
    .n_own = sizeof own / sizeof *own,
    .keys = keys,
    .domain = domain,
    .complete = complete,
    .batch = AT_DIM_tokens,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = model,
    .decoy = decoy,
};
