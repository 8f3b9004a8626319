/* What cases of attention may differ in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/attention.h"

/* clang-format off */
#define FACTOR(c_name, text, why, bits, ...) const struct at_factor c_name = { .name = text, .meaning = why, .flags = bits, __VA_ARGS__ }

/* ---- heads and head sizes ---- */

/* In prefill each head of a group has blocks of its own: a group of 8 is no other way through a kernel, and costs twice one of 4. */
FACTOR(at_attn_decode_group, "group", "query heads per key/value head, one or several of those", AT_FACTOR_DECODE | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("h=4 hk=2 | h=2 hk=1", "h=1 hk=1 | h=3 hk=3", "h=3 hk=1 | h=6 hk=2", "h=4 hk=1 | h=8 hk=2", "h=8 hk=1"),
    .far = AT_CLASSES("h=16 hk=1", "h=24,25 hk=1"),
    .any = "h=2,5,7 hk=1 | h=10,12 hk=2 | h=9 hk=3");
FACTOR(at_attn_prefill_group, "group", "query heads per key/value head, one or several of those", AT_FACTOR_PREFILL | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("h=2 hk=1 | h=4 hk=2", "h=1 hk=1 | h=2 hk=2", "h=3 hk=1 | h=6 hk=2", "h=4 hk=1"),
    .far = AT_CLASSES("h=8 hk=1 | h=8 hk=2", "h=16 hk=1", "h=24,25 hk=1"),
    .any = "h=2,5,7 hk=1 | h=10,12 hk=2 | h=3,9 hk=3");
FACTOR(at_attn_head_size, "d", "head size: what kernels are compiled for, other multiples of 8, no multiple, padded", AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("d=64", "d=128", "d=32,96", "d=40,80", "d=1,5,31,100", "d=32,40,63 pad_d=64 | d=96 pad_d=128"),
    .far = AT_CLASSES("d=256", "d=257", "d=264,512"),
    .any = "d=1..200");

/* ---- memory ---- */

FACTOR(at_attn_page, "page", "keys a page", AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("page=0", "page=16", "page=1,3,7", "page=8,24", "page=64,128"),
    .any = "page=1..40");
FACTOR(at_attn_dtype, "dtype", "format of the activations", AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32"));

/* ---- values ---- */

/* ties: with edge=shrink its keys are multiples of every number up to the window, of 45045 at window=13. f16 holds no such
 * integers and f16 sums of them pass 65504: LAUNDERED is right there, so that ties cannot be of a class whose every pair is
 * to PASS. Random cases have it. */
FACTOR(at_attn_data, "data", "what the values look like", AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("data=normal", "data=normal,uniform hot=last_key", "data=exact", "data=same_sign,heavy_tail,outlier_channel",
                          "data=sink,sparse70,subnormal", "data=adversarial"),
    .any = "data=cancel | data=ties expect=LAUNDERED");
/* Adversarial keys grow with 1 / scale (scores stay about 8): at 0.02 partial sums in f16 pass 65504, and kernels that add in
 * f16 are rightly LAUNDERED. */
FACTOR(at_attn_scale, "scale", "of the scores", 0,
    .classes = AT_CLASSES("", "scale=-0.125", "scale=1", "scale=0.05"),
    .any = "scale=0.3,-0.05,0.5 | scale=0.02 expect=LAUNDERED");

/* ---- lengths ---- */

FACTOR(at_attn_causal, "causal", "which keys a query sees", AT_FACTOR_PREFILL | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("causal=1", "causal=0"));
FACTOR(at_attn_decode_keys, "keys", "tile of keys that lengths lie about", AT_FACTOR_DECODE | AT_FACTOR_GRANULES | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("$keys=16", "$keys=32", "$keys=64", "$keys=128"));
FACTOR(at_attn_prefill_keys, "keys", "tile of keys that lengths lie about", AT_FACTOR_PREFILL | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("$keys=16,8", "$keys=64", "$keys=32,128"));
FACTOR(at_attn_near, "near", "below it, at it, above it", AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("$near=1", "$near=0", "$near=-1", "$near=2"),
    .any = "$near=-15..60");
FACTOR(at_attn_batch, "batch", "lengths of requests", AT_FACTOR_DECODE | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("b=1 sk={keys+near}", "b=3 sk={keys+near}/1/33", "b=2 sk=19/{keys+near}",
                          "b=5 sk=0/1/{keys+near}/17/0 | b=4 sq=1/0 sk={keys+near}/17/9"),
    .far = AT_CLASSES("b=1 sk=2049,2300,4097", "b=129,130,150 sk=3/1/0/18/2/7"));
FACTOR(at_attn_rows_tile, "rows", "tile of queries that lengths lie about", AT_FACTOR_PREFILL,
    .classes = AT_CLASSES("$rows=8", "$rows=16"),
    .far = AT_CLASSES("$rows=64", "$rows=32"));
FACTOR(at_attn_rows_near, "rows near", "below it, at it, above it", AT_FACTOR_PREFILL,
    .classes = AT_CLASSES("$past=1", "$past=0", "$past=-1", "$past=2"),
    .any = "$past=-7..24");
FACTOR(at_attn_queries, "queries", "queries of requests", AT_FACTOR_PREFILL | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("b=1 sq={rows+past}", "b=3 sq=1/{rows+past}/0", "b=2 sq={rows+past}/3", "b=4 sq=0/{rows+past}/0/1"),
    .far = AT_CLASSES("b=1 sq=1,3 prefix=2049", "b=1 sq=129,130,140", "b=129,130,150 sq=1/0/0/2/0/0/0"));
FACTOR(at_attn_lengths, "prefix", "keys before the first query, on and off a page; fewer keys than queries", AT_FACTOR_PREFILL | AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES("", "prefix={2*page}", "prefix={page+1}", "prefix={keys+near}", "sk={keys+near}", "sk=9 | sk=1"));

/* ---- the gate ---- */

/* No sigma = window for all heads: the first tap is 1 - sigma / window = 0 and the others negative, so that every gate of
 * relu(scores) is 0, o is 0 whatever K and V are, and a case proves nothing (sigma=3 with the default window of 3 was VACUOUS).
 * For each head sigmas differ. */
FACTOR(at_attn_fir, "fir", "window or taps, their weight by head", AT_FACTOR_TRIPLES,
    .classes = AT_CLASSES(" | sigma=0.5,1.5", "sigma={h:0.5:2:-1:0.25}", "window=1 | window=2 sigma={h:0.5:2:-1}",
                          "window=4,5,6 | window=8,13,16 sigma=0.75", "taps=1:-0.5:-0.125 | taps=0.25:1",
                          "taps=0.5:-0.4:-0.1:0.2:-0.3:0.1 | taps=0.5:-0.25:0:0:0:0:0:0:-0.125"),
    .any = "sigma=0.7,-0.3,1.6 window=1..16");
FACTOR(at_attn_edge, "edge", "divisor at the first keys", AT_FACTOR_TRIPLES, .classes = AT_CLASSES("", "edge=shrink"));
FACTOR(at_attn_relu, "relu_pre", "before the filter", 0, .classes = AT_CLASSES("", "relu_pre=0"));
FACTOR(at_attn_clip, "clip", "ends of the gate", 0,
    .classes = AT_CLASSES("", "clip=0.125:0.75", "clip=-1:1", "clip=0.25:0.25 | clip=-3:-1", "clip=0:6"),
    .any = "clip=0.1:0.3,-0.2:2.5,0.4:0.9");
FACTOR(at_attn_gamma, "gamma", "factor of p, by head", 0,
    .classes = AT_CLASSES("", "gamma=0.5", "gamma={h:1:-0.5:0.25:2}"),
    .any = "gamma={h:0.3:-1.7:0.9:1.1:0.2}");
/* clang-format on */
