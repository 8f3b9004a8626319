/* Probes: operands for which the model and its neighbours, or two sources, give different results.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Predictions are worked out by hand from the rule in tensor_core/fdpa.h, not by the model. That rule has e_zero of f16
 * accumulators and the sign of a rounded-away sum from the first run of these probes on an H200 (P10: -21, where the
 * public models have -22 and -133; P13: +0, where they have -0); the others came out as the public models have them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attest/format.h"
#include "verify/study/tensor_core/study_tensor_core.h"

/* `times` products a * b from place k on. */
struct term {
    int k, times;
    double a, b;
};

struct probe {
    const char *name, *what, *instruction;
    struct term term[4];
    double c;
    int steps; /* the same instruction again and again, d becoming c; 0: once */
    double want;
};

#define MMA_F16 "hopper_mma_k16_f16_f16"
#define MMA_F32 "hopper_mma_k16_f16_f32"
#define MMA_BF16 "hopper_mma_k16_bf16_f32"
#define MMA_TF32 "hopper_mma_k8_tf32_f32"
#define WG_F32 "hopper_wgmma_k16_f16_f32"
#define WG_F16 "hopper_wgmma_k16_f16_f16"
#define WG_TF32 "hopper_wgmma_k8_tf32_f32"
#define WG_BF16 "hopper_wgmma_k16_bf16_f32"
#define WG_E5M2_F16 "hopper_wgmma_k32_e5m2_f16"
#define WG_E5M2 "hopper_wgmma_k32_e5m2_f32"
#define WG_E4M3 "hopper_wgmma_k32_e4m3_f32"
#define FP8_MMA "hopper_mma_k32_e5m2_f32"

/* clang-format off */
static const struct probe probes[] = {
    { "P1",  "f16 accumulator keeps bit 24",  MMA_F16, { { 0, 1, 1, 1 }, { 1, 1, 0x1p-5, 0x1p-6 }, { 2, 1, 0x1p-12, 0x1p-12 } }, 0, 0, 1 + 0x1p-10 },
    { "P1",  "f16 accumulator keeps bit 25",  MMA_F16, { { 0, 1, 1, 1 }, { 1, 1, 0x1p-5, 0x1p-6 }, { 2, 1, 0x1p-12, 0x1p-13 } }, 0, 0, 1 + 0x1p-10 },
    { "P1",  "and not bit 26",                MMA_F16, { { 0, 1, 1, 1 }, { 1, 1, 0x1p-5, 0x1p-6 }, { 2, 1, 0x1p-13, 0x1p-13 } }, 0, 0, 1 },
    { "P2",  "4 x 2^-25 beside 1",            MMA_F32, { { 0, 1, 1, 1 }, { 1, 4, 0x1p-12, 0x1p-13 } }, 0, 0, 1 + 0x1p-23 },
    { "P2",  "8 x 2^-26 beside 1 is lost",    MMA_F32, { { 0, 1, 1, 1 }, { 1, 8, 0x1p-13, 0x1p-13 } }, 0, 0, 1 },
    { "P3",  "2^24, 1, -2^24: one block",     MMA_F32, { { 0, 1, 0x1p12, 0x1p12 }, { 1, 1, 1, 1 }, { 8, 1, -0x1p12, 0x1p12 } }, 0, 0, 1 },
    { "P4",  "1.5 x 1.5 has exponent 0",      MMA_F32, { { 0, 1, 1.5, 1.5 }, { 1, 8, 0x1p-12, 0x1p-13 } }, 0, 0, 2.25 + 0x1p-22 },
    { "P4",  "1.125 x 2 has exponent 1",      MMA_F32, { { 0, 1, 1.125, 2 }, { 1, 8, 0x1p-12, 0x1p-13 } }, 0, 0, 2.25 },
    { "P5",  "fp8 wgmma keeps bit 13",        WG_E5M2, { { 0, 1, 1, 1 }, { 1, 1, 0x1p-6, 0x1p-7 } }, 0, 0, 1 + 0x1p-13 },
    { "P5",  "and not two of bit 14",         WG_E5M2, { { 0, 1, 1, 1 }, { 1, 2, 0x1p-7, 0x1p-7 } }, 0, 0, 1 },
    { "P5",  "the addend is cut as well",     WG_E5M2, { { 0, 1, 0, 0 } }, 1 + 0x1p-20, 0, 1 },
    { "P6",  "cut towards zero, negative",    MMA_F32, { { 0, 1, -1.5 * 0x1p-12, 0x1p-12 } }, -1, 0, -1 },
    { "P7",  "2^23 - 2^23 - .5 - .25 - .125", MMA_F32, { { 0, 1, -0x1p13, 0x1p10 }, { 1, 1, -0.5, 1 }, { 2, 1, -0.25, 1 }, { 3, 1, -0.125, 1 } }, 0x1p23, 0, -0.75 },
    { "P8",  "65504 stays",                   MMA_F16, { { 0, 1, 65504, 1 } }, 0, 0, 65504 },
    { "P8",  "65519 becomes 65504",           MMA_F16, { { 0, 1, 65504, 1 }, { 1, 1, 15, 1 } }, 0, 0, 65504 },
    { "P8",  "65520 becomes Inf",             MMA_F16, { { 0, 1, 65504, 1 }, { 1, 1, 16, 1 } }, 0, 0, INFINITY },
    { "P8",  "60000 + 60000 - 60000 at once", MMA_F16, { { 0, 2, 240, 250 }, { 2, 1, -240, 250 } }, 0, 0, 60000 },
    { "P8",  "Inf - 60000 in the next step",  MMA_F16, { { 0, 1, -240, 250 } }, INFINITY, 0, INFINITY },
    { "P9",  "bf16: 2^127 + 2^127",           MMA_BF16, { { 0, 2, 0x1p127, 1 } }, 0, 0, INFINITY },
    { "P9",  "bf16: 2^128 - 2^127 at once",   MMA_BF16, { { 0, 1, 0x1p127, 2 }, { 1, 1, -0x1p127, 1 } }, 0, 0, 0x1p127 },
    { "P10", "mma floor: 2^-25 + 2^-46",      MMA_F16, { { 0, 1, 0x1p-14, 0x1p-11 }, { 1, 1, 0x1p-24, 0x1p-22 } }, 0, 0, 0x1p-24 },
    { "P10", "mma floor: 2^-25 + 2^-47",      MMA_F16, { { 0, 1, 0x1p-14, 0x1p-11 }, { 1, 1, 0x1p-24, 0x1p-23 } }, 0, 0, 0 },
    { "P10", "wgmma floor: 2^-25 + 2^-46",    WG_F16,  { { 0, 1, 0x1p-14, 0x1p-11 }, { 1, 1, 0x1p-24, 0x1p-22 } }, 0, 0, 0x1p-24 },
    { "P10", "wgmma floor: 2^-25 + 2^-47",    WG_F16,  { { 0, 1, 0x1p-14, 0x1p-11 }, { 1, 1, 0x1p-24, 0x1p-23 } }, 0, 0, 0 },
    { "P10", "bf16: the least, with 2 x 2^-158", MMA_BF16, { { 0, 1, 0x1.fep-76, 0x1p-74 }, { 1, 2, 0x1p-79, 0x1p-79 } }, 0, 0, 0x1p-149 },
    { "P10", "bf16: the least, with 4 x 2^-159", MMA_BF16, { { 0, 1, 0x1.fep-76, 0x1p-74 }, { 1, 4, 0x1p-80, 0x1p-79 } }, 0, 0, 0 },
    { "P11", "fp8 mma: k 0, 1 then k 4",      FP8_MMA, { { 0, 1, 0x1p15, 0x1p9 }, { 1, 1, 1, 1 }, { 4, 1, -0x1p15, 0x1p9 } }, 0, 0, 1 },
    { "P11", "fp8 mma: k 0, 1 then k 2",      FP8_MMA, { { 0, 1, 0x1p15, 0x1p9 }, { 1, 1, 1, 1 }, { 2, 1, -0x1p15, 0x1p9 } }, 0, 0, 0 },
    { "P11", "fp8 mma: addend last, nearest", FP8_MMA, { { 0, 1, 1.5 * 0x1p-12, 0x1p-12 } }, 1, 0, 1 + 0x1p-23 },
    { "P12", "fp8 wgmma, 1/16: 496 steps",    WG_E4M3, { { 0, 32, 0.0625, 0.0625 } }, 0, 496, 62 },
    { "P12", "fp8 wgmma, 1/16: 512 steps",    WG_E4M3, { { 0, 32, 0.0625, 0.0625 } }, 0, 512, 64 },
    { "P12", "fp8 wgmma, 1/16: stalls at 64", WG_E4M3, { { 0, 32, 0.0625, 0.0625 } }, 0, 520, 64 },
    { "P13", "all terms -0",                  MMA_F32, { { 0, 16, -0.0, 1 } }, -0.0, 0, 0 },
    { "P13", "negative, below 2^-149: +0",    MMA_BF16, { { 0, 1, -0x1p-100, 0x1p-60 } }, 0, 0, 0 },
    { "P13", "NaN of the addend",             MMA_F32, { { 0, 1, 1, 1 } }, NAN, 0, NAN },
    { "P13", "Inf x 0",                       MMA_F32, { { 0, 1, INFINITY, 0 } }, 1, 0, NAN },
    /* A subnormal c has emin's exponent, or (in brackets) that of its leading bit above the floor. 2^-39 and 2^-47 are the
     * edges of the one and of the other. */
    { "P14", "c 2^-23, 2^-25, 2^-39",         MMA_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-20, 0x1p-19 } }, 0x1p-23, 0, 0x1.8p-23 },
    { "P14", "c 2^-23, 2^-25, 2^-40",         MMA_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-20, 0x1p-20 } }, 0x1p-23, 0, 0x1p-23 }, /* 0x1.8p-23 */
    { "P14", "c 2^-23, 2^-25, 2^-46",         MMA_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-23, 0x1p-23 } }, 0x1p-23, 0, 0x1p-23 }, /* 0x1.8p-23 */
    { "P14", "c 2^-23, 2^-25, 2^-47",         MMA_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-23, 0x1p-24 } }, 0x1p-23, 0, 0x1p-23 }, /* but without a floor 0x1.8p-23 */
    { "P14", "c 513 2^-24, 2^-25, -2^-40",    MMA_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, -0x1p-20, 0x1p-20 } }, 513 * 0x1p-24, 0, 514 * 0x1p-24 }, /* 513 */
    { "P14", "c -2^-23, -2^-25, -2^-40",      MMA_F16, { { 0, 1, -0x1p-13, 0x1p-12 }, { 1, 1, -0x1p-20, 0x1p-20 } }, -0x1p-23, 0, -0x1p-23 }, /* -0x1.8p-23 */
    { "P14", "c 2^-23, 2^-25, 2^-39",         WG_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-20, 0x1p-19 } }, 0x1p-23, 0, 0x1.8p-23 },
    { "P14", "c 2^-23, 2^-25, 2^-40",         WG_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-20, 0x1p-20 } }, 0x1p-23, 0, 0x1p-23 }, /* 0x1.8p-23 */
    { "P14", "c 513 2^-24, 2^-25, -2^-40",    WG_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, -0x1p-20, 0x1p-20 } }, 513 * 0x1p-24, 0, 514 * 0x1p-24 }, /* 513 */
    { "P14", "c 2^-23, 2^-25, 2^-28",         WG_E5M2_F16, { { 0, 1, 0x1p-13, 0x1p-12 }, { 1, 1, 0x1p-14, 0x1p-14 } }, 0x1p-23, 0, 0x1p-23 }, /* 0x1.8p-23 */
    { "P14", "c 2^-148, -2^-151",             MMA_BF16, { { 0, 1, -0x1p-76, 0x1p-75 } }, 0x1p-148, 0, 0x1p-149 },
    { "P14", "c 2^-148, -2^-152",             MMA_BF16, { { 0, 1, -0x1p-76, 0x1p-76 } }, 0x1p-148, 0, 0x1p-148 }, /* 0x1p-149 */
    { "P14", "c 2^-148, -2^-152",             WG_BF16, { { 0, 1, -0x1p-76, 0x1p-76 } }, 0x1p-148, 0, 0x1p-148 }, /* 0x1p-149 */
    { "P15", "tf32: one block of 8",          MMA_TF32, { { 0, 1, 0x1p12, 0x1p12 }, { 1, 1, 1, 1 }, { 4, 1, -0x1p12, 0x1p12 } }, 0, 0, 1 },
    { "P15", "tf32: even and odd k together", MMA_TF32, { { 0, 1, 0x1p12, 0x1p12 }, { 2, 1, 1, 1 }, { 1, 1, -0x1p12, 0x1p12 } }, 0, 0, 1 },
    { "P15", "tf32: one block of 8",          WG_TF32, { { 0, 1, 0x1p12, 0x1p12 }, { 1, 1, 1, 1 }, { 4, 1, -0x1p12, 0x1p12 } }, 0, 0, 1 },
    { "P16", "subnormal operand has emin",    MMA_F32, { { 0, 1, 0x1p-24, 0x1p15 }, { 1, 1, 0x1p-12, 0x1p-13 } }, 0, 0, 0x1p-9 },
    { "P16", "subnormal operand has emin",    WG_F32, { { 0, 1, 0x1p-24, 0x1p15 }, { 1, 1, 0x1p-12, 0x1p-13 } }, 0, 0, 0x1p-9 },
    { "P16", "subnormal operand has emin",    WG_E4M3, { { 0, 1, 0x1p-9, 0x1p8 }, { 1, 1, 0x1p-6, 0x1p-6 } }, 0, 0, 0.5 },
    { "P17", "wgmma: c + 1.5 2^-24 is cut",   WG_F32, { { 0, 1, 1.5 * 0x1p-12, 0x1p-12 } }, 1, 0, 1 },
    { "P17", "wgmma: c is in the alignment",  WG_E5M2, { { 0, 1, 1, 1 } }, 0x1p-14, 0, 1 },
    { "P17", "wgmma fp8, f16: rounded once",  WG_E5M2_F16, { { 0, 1, 1, 1 }, { 1, 1, 0x1p-5, 0x1p-5 }, { 2, 1, 0x1p-6, 0x1p-7 } }, 1, 0, 2 + 0x1p-9 },
    { "P18", "negative c is cut to zero",     MMA_F32, { { 0, 1, 0x1p5, 0x1p5 } }, -0x1p-20, 0, 1024 },
    { "P18", "negative c, -2^-27 four times", WG_F32, { { 0, 4, -0x1p-13, 0x1p-14 } }, -1, 0, -1 },
    { "P19", "Inf, -Inf",                     MMA_F32, { { 0, 1, INFINITY, 1 }, { 1, 1, -INFINITY, 1 } }, 0, 0, NAN },
    { "P19", "Inf, Inf x 0",                  WG_F16, { { 0, 1, INFINITY, 1 }, { 1, 1, INFINITY, 0 } }, 0, 0, NAN },
    { "P19", "Inf, c -Inf",                   WG_E5M2, { { 0, 1, INFINITY, 1 } }, -INFINITY, 0, NAN },
    { "P19", "-Inf, -Inf, c -Inf",            WG_F32, { { 0, 2, -INFINITY, 1 } }, -INFINITY, 0, -INFINITY },
};
/* clang-format on */

static int same(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

static at_status run(struct at_runner *runner, int variant, const struct at_tc_instruction *t,
                     const struct probe *probe, double *hardware, double *model) {
    uint32_t a[AT_TC_BLOCK_MAX] = { 0 }, b[AT_TC_BLOCK_MAX] = { 0 };
    double x[AT_TC_BLOCK_MAX] = { 0 }, y[AT_TC_BLOCK_MAX] = { 0 };
    float c = (float)probe->c, d = c;
    for (size_t i = 0; i < sizeof probe->term / sizeof *probe->term; i++)
        for (int k = 0; k < probe->term[i].times; k++) {
            x[probe->term[i].k + k] = probe->term[i].a;
            y[probe->term[i].k + k] = probe->term[i].b;
        }
    for (int k = 0; k < t->k; k++) {
        a[k] = (uint32_t)at_encode(t->a, x[k]);
        b[k] = (uint32_t)at_encode(t->b, y[k]);
        if (!same(at_decode(t->a, a[k]), x[k]) || !same(at_decode(t->b, b[k]), y[k]))
            return AT_FAIL(AT_USAGE, "probe %s (%s): an operand is no value of its format", probe->name, probe->what);
    }
    *model = probe->c;
    for (int step = 0; step < (probe->steps ? probe->steps : 1); step++) {
        AT_TRY(at_tc_study_launch(runner, variant, t, 1, a, b, &c, &d));
        *model = at_tc_multiply_add(t, NULL, x, y, *model);
        c = d;
    }
    *hardware = (double)d;
    return AT_OK;
}

_Static_assert(sizeof probes / sizeof *probes <= AT_TC_PROBES, "room for every probe");

struct probe_step {
    const struct probe *probe;
    const struct at_tc_instruction *instruction;
    int variant;
    double hardware, model;
};

static at_status run_step(void *context, int64_t i, struct at_runner *runner) {
    struct probe_step *s = context;
    (void)i;
    return run(runner, s->variant, s->instruction, s->probe, &s->hardware, &s->model);
}

at_status at_tc_study_probes(struct at_study_devices *devices, struct at_tc_probe_row rows[AT_TC_PROBES], int *ran,
                             int *wrong) {
    *ran = *wrong = 0;
    printf("%-4s %-32s %-26s %-16s %-16s %-16s\n", "", "probe", "instruction", "predicted", "model", "runner");
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        const struct probe *probe = &probes[i];
        const struct at_tc_instruction *t = at_tc_instruction_find(probe->instruction);
        struct probe_step step = { probe, t, -1, 0, 0 };
        if (t)
            AT_TRY(at_tc_study_variant(devices, t, &step.variant));
        if (step.variant < 0) {
            printf("%-4s %-32s %-26s not run: the runner has no variant for it\n", probe->name, probe->what,
                   probe->instruction);
            continue;
        }
        AT_TRY(at_study_devices_run(devices, 1, run_step, &step));
        const double hardware = step.hardware, model = step.model;
        const int right = same(hardware, probe->want) && same(model, probe->want);
        printf("%-4s %-32s %-26s %-16.10g %-16.10g %-16.10g%s\n", probe->name, probe->what, probe->instruction,
               probe->want, model, hardware, right ? "" : "  DIFFERENT");
        struct at_tc_probe_row *row = &rows[(*ran)++];
        *row = (struct at_tc_probe_row){ .predicted = probe->want, .model = model, .runner = hardware, .right = right };
        snprintf(row->name, sizeof row->name, "%s", probe->name);
        snprintf(row->what, sizeof row->what, "%s", probe->what);
        snprintf(row->instruction, sizeof row->instruction, "%s", probe->instruction);
        *wrong += !right;
    }
    return AT_OK;
}
