/* The problems that variants are probed with, operator by operator.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What costs little first: most candidates go no further. */
#include <string.h>

#include "verify/fit/probe.h"

/* clang-format off */
static const struct at_probe_plan attention[] = {
    { "sums of q.k",     AT_PROBE_QK,      4,   64, 4, "normal" },
    { "sums of P V",     AT_PROBE_PV,      2,  128, 2, "normal" },
    { "few keys",        AT_PROBE_DRAWN,   2,    5, 2, "normal" },
    { "centred",         AT_PROBE_CENTRED, 8,  150, 8, "normal" },
    { "large",           AT_PROBE_LARGE,   2,   40, 2, "normal" },
    { "cancelling",      AT_PROBE_DRAWN,   2,   90, 2, "cancel" },
    { "swamped",         AT_PROBE_DRAWN,   2,   90, 2, "swamped" },
    { "drawn",           AT_PROBE_DRAWN,   1,  200, 2, "normal" },
    { "rising",          AT_PROBE_RISING,  1,  330, 2, "normal" },
    { "partial results", AT_PROBE_PARTS,   2, 1064, 2, "normal" },
    { "long",            AT_PROBE_RISING,  1, 1064, 1, "normal" },
    { 0 },
};
static const struct at_probe_plan products[] = {
    { "sums",            AT_PROBE_PRODUCT, 64,   64, 2, "normal" },
    { "long sums",       AT_PROBE_PRODUCT, 64, 1088, 1, "normal" },
    { "drawn",           AT_PROBE_DRAWN,   64,   64, 2, "normal" },
    { "large",           AT_PROBE_LARGE,   64,   64, 2, "normal" },
    { "cancelling",      AT_PROBE_DRAWN,   64,  192, 2, "cancel" },
    { "long",            AT_PROBE_DRAWN,   64, 1088, 2, "normal" },
    { 0 },
};

/* Of the others, families by what shows their fields: sums of many terms in one row, clamps on what is not finite, functions of small
 * and of large arguments. */
#define ROWS(name, rows, line) { name, AT_PROBE_DRAWN, 0, 0, rows, NULL, 0, line }
static const struct at_probe_plan uclip[] = {
    ROWS("drawn", 8, "tokens=8 channels=256"),
    ROWS("heavy tail", 8, "tokens=8 channels=256 data=heavy_tail"),
    ROWS("cancelling", 8, "tokens=8 channels=256 data=cancel"),
    ROWS("not finite", 9, "tokens=9 channels=256 data=nonfinite seed=2"),
    { 0 },
};
static const struct at_probe_plan qk_uclip[] = {
    ROWS("drawn", 16, "tokens=5 h=8 hk=4 d=128"),
    ROWS("cancelling", 16, "tokens=5 h=8 hk=4 d=128 data=cancel"),
    ROWS("not finite", 40, "tokens=5 h=8 hk=4 d=128 data=nonfinite"),
    { 0 },
};
static const struct at_probe_plan rms[] = {
    ROWS("drawn", 8, "tokens=8 channels=256"),
    ROWS("long", 8, "tokens=16 channels=1024 data=heavy_tail"),
    ROWS("odd", 32, "tokens=64 channels=31"),
    ROWS("subnormal", 5, "tokens=5 channels=256 data=subnormal eps=1e-40"),
    { 0 },
};
static const struct at_probe_plan gated[] = {
    ROWS("drawn", 8, "tokens=8 channels=256"),
    ROWS("any size", 40, "tokens=40 channels=256 data=random_bits"),
    ROWS("subnormal", 8, "tokens=8 channels=256 data=subnormal"),
    ROWS("not finite", 16, "tokens=36 channels=33 data=nonfinite"),
    { 0 },
};
static const struct at_probe_plan exp2_of[] = {
    ROWS("whole range", 512, "n=512 data=whole_range"),
    ROWS("near integers", 512, "n=512 data=near_integer"),
    ROWS("subnormal", 512, "n=512 data=subnormal"),
    { 0 },
};
static const struct at_probe_plan lightning[] = {
    ROWS("drawn", 8, "b=2 h=2 d=96 e=96 steps=2"),
    ROWS("steep", 8, "b=2 h=2 d=8 e=8 slope=-20:-60"),
    ROWS("cancelling", 8, "b=2 h=2 d=96 e=96 data=cancel"),
    { 0 },
};
static const struct at_probe_plan rotations[] = {
    ROWS("drawn", 16, "b=3 sq=1/7/0 prefix=300/13/5 h=8 hk=4 d=64"),
    ROWS("cancelling", 16, "b=3 sq=1/7/0 prefix=300/13/5 h=8 hk=4 d=64 data=cancel"),
    { 0 },
};
static const struct at_probe_plan rotations_written[] = {
    ROWS("drawn", 16, "b=3 sq=1/7/0 prefix=300/13/5 h=8 hk=4 d=64 page=16"),
    ROWS("cancelling", 16, "b=3 sq=1/7/0 prefix=300/13/5 h=8 hk=4 d=64 page=16 data=cancel"),
    { 0 },
};
static const struct at_probe_plan draws[] = {
    ROWS("drawn", 16, "tokens=16 vocabulary=1000 k=20 temperature=0.8"),
    ROWS("peaks", 16, "tokens=16 vocabulary=301 k=8 data=peaks"),
    { 0 },
};
static const struct {
    const char *op;
    const struct at_probe_plan *plans;
} others[] = {
    { "uclip_norm", uclip },
    { "add_uclip_norm", uclip },
    { "post_attn_pre_mlp_uclip", uclip },
    { "post_attn_pre_mlp_uclip_in_place", uclip },
    { "qk_uclip_norm", qk_uclip },
    { "rms_norm", rms },
    { "add_rms_norm", rms },
    { "silu_mul", gated },
    { "reglu", gated },
    { "exp2", exp2_of },
    { "lightning_decode", lightning },
    { "rope", rotations },
    { "rope_kv_write", rotations_written },
    { "top_k", draws },
};
/* clang-format on */

const struct at_probe_plan *at_probe_plans(const struct at_probe_layout *layout) {
    const struct at_op *op = at_op_find(layout->family->op);
    if (op->kind == AT_KIND_PRODUCT)
        return products;
    if (op->kind == AT_KIND_ATTENTION)
        return attention;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].op, op->name) == 0)
            return others[i].plans;
    return NULL;
}
