/* The SIMT machine: tensor-core instructions of a warp. Where an element belongs is said here as the
 * PTX ISA says it, lane by lane, and not as the machine does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tensor_core/instruction.h"
#include "tests/support/attention_problem.h"
#include "tests/support/simt_scene.h"

enum { LANES = 32, ROWS = 16, COLUMNS = 8, K_MAX = 32 };

static int fault_line;
#define NOTED (fault_line = __LINE__)
static const char *at_fault(void) {
    static char text[64];
    snprintf(text, sizeof text, "test_simt_mma.c:%d", fault_line);
    return text;
}

/* ---- what is multiplied ---- */

static const struct shape {
    const char *instruction; /* of reference/tensor_core */
    int k, elements_a, elements_b;
} shapes[AT_SIMT_MMA_KINDS] = {
    [AT_SIMT_MMA_K16_F16_F32] = { "hopper_mma_k16_f16_f32", 16, 8, 4 },
    [AT_SIMT_MMA_K16_BF16_F32] = { "hopper_mma_k16_bf16_f32", 16, 8, 4 },
    [AT_SIMT_MMA_K16_F16_F16] = { "hopper_mma_k16_f16_f16", 16, 8, 4 },
    [AT_SIMT_MMA_K8_F16_F32] = { "hopper_mma_k8_f16_f32", 8, 4, 2 },
    [AT_SIMT_MMA_K8_BF16_F32] = { "hopper_mma_k8_bf16_f32", 8, 4, 2 },
    [AT_SIMT_MMA_K8_F16_F16] = { "hopper_mma_k8_f16_f16", 8, 4, 2 },
    [AT_SIMT_MMA_K8_TF32_F32] = { "hopper_mma_k8_tf32_f32", 8, 4, 2 },
    [AT_SIMT_MMA_K32_E4M3_F32] = { "hopper_mma_k32_e4m3_f32", 32, 16, 8 },
    [AT_SIMT_MMA_K32_E4M3_F16] = { "hopper_mma_k32_e4m3_f16", 32, 16, 8 },
    [AT_SIMT_MMA_K32_E5M2_F32] = { "hopper_mma_k32_e5m2_f32", 32, 16, 8 },
    [AT_SIMT_MMA_K32_E5M2_F16] = { "hopper_mma_k32_e5m2_f16", 32, 16, 8 },
    /* wgmma's fragments of a warp are the same */
    [AT_SIMT_WGMMA_K16_F16_F32] = { "hopper_wgmma_k16_f16_f32", 16, 8, 4 },
    [AT_SIMT_WGMMA_K16_BF16_F32] = { "hopper_wgmma_k16_bf16_f32", 16, 8, 4 },
    [AT_SIMT_WGMMA_K16_F16_F16] = { "hopper_wgmma_k16_f16_f16", 16, 8, 4 },
    [AT_SIMT_WGMMA_K8_TF32_F32] = { "hopper_wgmma_k8_tf32_f32", 8, 4, 2 },
    [AT_SIMT_WGMMA_K32_E4M3_F32] = { "hopper_wgmma_k32_e4m3_f32", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E4M3_F16] = { "hopper_wgmma_k32_e4m3_f16", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E4M3_E5M2_F32] = { "hopper_wgmma_k32_e4m3_e5m2_f32", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E4M3_E5M2_F16] = { "hopper_wgmma_k32_e4m3_e5m2_f16", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E5M2_E4M3_F32] = { "hopper_wgmma_k32_e5m2_e4m3_f32", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E5M2_E4M3_F16] = { "hopper_wgmma_k32_e5m2_e4m3_f16", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E5M2_F32] = { "hopper_wgmma_k32_e5m2_f32", 32, 16, 8 },
    [AT_SIMT_WGMMA_K32_E5M2_F16] = { "hopper_wgmma_k32_e5m2_f16", 32, 16, 8 },
};

struct place {
    int row, column;
};

/* Element a_i of the ISA's figures: row, and column of the 16 x k matrix. */
static struct place place_a(const struct shape *s, int lane, int i) {
    const int group = lane >> 2, in_group = lane % 4;
    if (s->k == 16)
        return (struct place){ i < 2 || (i >= 4 && i < 6) ? group : group + 8,
                               in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0) };
    if (s->k == 32)
        return (struct place){ i < 4 || (i >= 8 && i < 12) ? group : group + 8,
                               in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0) };
    if (strstr(s->instruction, "tf32"))
        return (struct place){ i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4 };
    return (struct place){ i < 2 ? group : group + 8, in_group * 2 + (i & 1) };
}

/* Element b_i: row of the k x 8 matrix, and column. */
static struct place place_b(const struct shape *s, int lane, int i) {
    const int group = lane >> 2, in_group = lane % 4;
    if (s->k == 16)
        return (struct place){ i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8, group };
    if (s->k == 32)
        return (struct place){ i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16, group };
    if (strstr(s->instruction, "tf32"))
        return (struct place){ i == 0 ? in_group : in_group + 4, group };
    return (struct place){ in_group * 2 + i, group };
}

static struct place place_c(int lane, int i) {
    return (struct place){ i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (i & 1) };
}

/* The operands of one warp as codes, and its fragments. */
static struct operands { uint32_t a[ROWS][K_MAX], b[K_MAX][COLUMNS], c[ROWS][COLUMNS]; } operands[2]; /* by warp */
static struct fragments { uint32_t a[LANES][4], b[LANES][2], c[LANES][4], d[LANES][4]; } fragments[2];
static enum at_simt_mma_kind kind;

static void set(uint32_t *registers, int bytes, int i, uint32_t code) {
    const int each = 4 / bytes, shift = 8 * bytes * (i % each);
    const uint32_t mask = bytes == 4 ? 0xffffffffu : ((1u << 8 * bytes) - 1) << shift;
    registers[i / each] = (registers[i / each] & ~mask) | (code << shift & mask);
}

static void spread(const struct shape *s, const struct at_tc_instruction *t, const struct operands *o,
                   struct fragments *f) {
    const int bytes = (int)at_format_info(t->a)->bytes;
    const int sum_bytes = (int)at_format_info(at_tc_instruction_rule(t)->out)->bytes;
    memset(f, 0x55, sizeof *f);
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < s->elements_a; i++)
            set(f->a[lane], bytes, i, o->a[place_a(s, lane, i).row][place_a(s, lane, i).column]);
        for (int i = 0; i < s->elements_b; i++)
            set(f->b[lane], bytes, i, o->b[place_b(s, lane, i).row][place_b(s, lane, i).column]);
        for (int i = 0; i < 4; i++)
            set(f->c[lane], sum_bytes, i, o->c[place_c(lane, i).row][place_c(lane, i).column]);
    }
}

static double decoded(enum at_format format, uint32_t code) {
    return at_decode(format == AT_TF32 ? AT_F32 : format, format == AT_TF32 ? code & ~0x1fffu : code);
}

static uint32_t wanted(const struct at_tc_instruction *t, const struct operands *o, int row, int column) {
    const enum at_format out = at_tc_instruction_rule(t)->out;
    double a[K_MAX], b[K_MAX];
    for (int i = 0; i < t->k; i++) {
        a[i] = decoded(t->a, o->a[row][i]);
        b[i] = decoded(t->b, o->b[i][column]);
    }
    const double sum = at_tc_multiply_add(t, NULL, a, b, decoded(out, o->c[row][column]));
    if (isnan(sum))
        return out == AT_F32 ? 0x7fffffffu : 0x7fffu;
    return (uint32_t)at_encode(out, sum);
}

static void expect_products(const struct at_tc_instruction *t, const struct operands *o, const struct fragments *f) {
    const int halves = at_tc_instruction_rule(t)->out == AT_F16;
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4; i++) {
            const struct place at = place_c(lane, i);
            const uint32_t got = halves ? f->d[lane][i / 2] >> 16 * (i % 2) & 0xffffu : f->d[lane][i];
            const uint32_t want = wanted(t, o, at.row, at.column);
            at_assert_true(got == want, "%s: lane %d element %d (row %d column %d) is %08x, wanted %08x", t->name, lane,
                           i, at.row, at.column, got, want);
        }
}

/* Two warps, each with operands of its own; d over c in the second. */
static void multiplies(void *unused) {
    (void)unused;
    struct fragments *f = &fragments[TID / LANES];
    const int lane = at_simt_lane();
    uint32_t *d = TID < LANES ? f->d[lane] : f->c[lane];
    at_simt_mma(kind, f->a[lane], f->b[lane], f->c[lane], d, HERE_PLACE);
    memcpy(f->d[lane], d, sizeof f->d[lane]);
}

static void run_products(uint64_t seed) {
    const struct shape *s = &shapes[kind];
    const struct at_tc_instruction *t = at_tc_instruction_find(s->instruction);
    assert_non_null(t);
    assert_int_equal(t->k, s->k);
    for (int w = 0; w < 2; w++)
        spread(s, t, &operands[w], &fragments[w]);
    at_simt_scene_run(multiplies, 1, 2 * LANES, seed);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    for (int w = 0; w < 2; w++)
        expect_products(t, &operands[w], &fragments[w]);
}

static struct at_test_random draws;
static uint64_t random_bits(void) { return at_test_bits(&draws); }

/* A code near 1 in magnitude; one in `rare` of them any bits at all: subnormals, infinities, NaNs. */
static uint32_t random_code(enum at_format format, int rare) {
    if (rare && random_bits() % (uint64_t)rare == 0)
        return (uint32_t)random_bits() & (uint32_t)((UINT64_C(1) << 8 * at_format_info(format)->bytes) - 1);
    const double x = ((double)(random_bits() % 4096) - 2048) / 512;
    const uint32_t code = (uint32_t)at_encode(format, x);
    return format == AT_TF32 ? code | (uint32_t)(random_bits() & 0x1fff) : code; /* bits it does not look at */
}

static void draw(int rare) {
    const struct at_tc_instruction *t = at_tc_instruction_find(shapes[kind].instruction);
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < ROWS * K_MAX; i++)
            operands[w].a[i / K_MAX][i % K_MAX] = random_code(t->a, rare);
        for (int i = 0; i < K_MAX * COLUMNS; i++)
            operands[w].b[i / COLUMNS][i % COLUMNS] = random_code(t->b, rare);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            operands[w].c[i / COLUMNS][i % COLUMNS] = random_code(at_tc_instruction_rule(t)->out, rare);
    }
}

static void test_random_products(void **state) {
    (void)state;
    for (int k = 0; k < AT_SIMT_MMA_KINDS; k++)
        for (long round = 1; round <= at_test_effort(10); round++) {
            kind = (enum at_simt_mma_kind)k;
            draws = (struct at_test_random){ (uint64_t)(1000 * k + round) };
            draw(round % 2 ? 0 : 300);
            run_products((uint64_t)round);
        }
}

/* One column of a against one row of b, each element a value of its own: element (i, j) of d names both. */
static void test_every_element(void **state) {
    (void)state;
    static const double values[] = {
        1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14
    }; /* in all formats */
    for (int k = 0; k < AT_SIMT_MMA_KINDS; k++) {
        const struct at_tc_instruction *t = at_tc_instruction_find(shapes[k].instruction);
        for (int column = 0; column < t->k; column++) {
            kind = (enum at_simt_mma_kind)k;
            memset(operands, 0, sizeof operands);
            for (int w = 0; w < 2; w++) {
                for (int i = 0; i < ROWS; i++)
                    operands[w].a[i][column] = (uint32_t)at_encode(t->a == AT_TF32 ? AT_F32 : t->a, values[i]);
                for (int j = 0; j < COLUMNS; j++)
                    operands[w].b[column][j] =
                        (uint32_t)at_encode(t->b == AT_TF32 ? AT_F32 : t->b, values[(j + w) % 16] / 16);
            }
            run_products(0);
        }
    }
}

static void test_nan_codes(void **state) {
    (void)state;
    for (int k = 0; k < AT_SIMT_MMA_KINDS; k++) {
        const int halves = at_tc_instruction_rule(at_tc_instruction_find(shapes[k].instruction))->out == AT_F16;
        kind = (enum at_simt_mma_kind)k;
        memset(operands, 0, sizeof operands);
        operands[0].c[3][5] = halves ? 0xfe01 : 0xffc00001;
        run_products(0);
        const uint32_t got = fragments[0].d[4 * 3 + 2][halves ? 0 : 1];
        assert_int_equal(halves ? got >> 16 : got, halves ? 0x7fff : 0x7fffffff);
    }
}

/* ---- who must take part ---- */

static void multiply_here(struct at_simt_place place, enum at_simt_mma_kind which) {
    struct fragments *f = &fragments[0];
    at_simt_mma(which, f->a[TID % LANES], f->b[TID % LANES], f->c[TID % LANES], f->d[TID % LANES], place);
}

static int outsider;
static void lane_left(void *unused) {
    (void)unused;
    if (TID == outsider)
        return;
    NOTED, multiply_here(HERE_PLACE, AT_SIMT_MMA_K16_F16_F32);
}
static void two_places(void *unused) {
    (void)unused;
    if (TID == outsider)
        NOTED, multiply_here(HERE_PLACE, AT_SIMT_MMA_K16_F16_F32);
    else
        multiply_here(HERE_PLACE, AT_SIMT_MMA_K16_F16_F32);
}
static void two_instructions(void *unused) {
    (void)unused;
    NOTED, multiply_here(HERE_PLACE, TID == outsider ? AT_SIMT_MMA_K16_BF16_F32 : AT_SIMT_MMA_K16_F16_F32);
}
static void lane_in_syncwarp(void *unused) {
    (void)unused;
    if (TID == outsider)
        SYNC_WARP(0xffffffffu);
    else
        multiply_here(HERE_PLACE, AT_SIMT_MMA_K16_F16_F32);
}
static void lane_in_barrier(void *unused) {
    (void)unused;
    if (TID != outsider)
        multiply_here(HERE_PLACE, AT_SIMT_MMA_K16_F16_F32);
    SYNC();
}

static void test_divergence(void **state) {
    (void)state;
    const long seeds = at_test_effort(10);
    for (outsider = 0; outsider < LANES; outsider += 31) {
        AT_SIMT_SCENE_SEEDS(seeds, lane_left, 2, 32, AT_FINDING_RACE, at_fault(), "mma of thread", "has left");
        AT_SIMT_SCENE_SEEDS(seeds, two_places, 1, 64, AT_FINDING_RACE, at_fault(), "mma of thread",
                            "waits for it in a mma");
        AT_SIMT_SCENE_SEEDS(seeds, two_instructions, 1, 32, AT_FINDING_RACE, at_fault(), "mma of thread");
        AT_SIMT_SCENE_SEEDS(seeds, lane_in_syncwarp, 1, 32, AT_FINDING_RACE, "mma", "syncwarp");
        AT_SIMT_SCENE_SEEDS(seeds, lane_in_barrier, 1, 32, AT_FINDING_RACE, "mask ffffffff");
    }
    outsider = -1;
    AT_SIMT_SCENE_SEEDS(seeds, lane_left, 2, 40, AT_FINDING_RACE, at_fault(), "does not have");
    AT_SIMT_SCENE_SEEDS(seeds, lane_left, 2, 64, AT_FINDING_NONE, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_products),
        cmocka_unit_test(test_every_element),
        cmocka_unit_test(test_nan_codes),
        cmocka_unit_test(test_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
