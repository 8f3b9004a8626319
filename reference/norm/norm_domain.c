/* What cases of norms may differ in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "norm/norm.h"

/* clang-format off */
#define FACTOR(c_name, text, why, ...) const struct at_factor c_name = { .name = text, .meaning = why, __VA_ARGS__ }

FACTOR(at_norm_tokens, "tokens", "rows",
    .classes = AT_CLASSES("tokens=3,5,7", "tokens=1", "tokens=2,4,16", "tokens=31,33"),
    .far = AT_CLASSES("tokens=513", "tokens=1025,1100"),
    .any = "tokens=1..40");
FACTOR(at_norm_channels, "channels", "about vector widths and blocks",
    .classes = AT_CLASSES("channels=256", "channels=1,2,3", "channels=4,8,16,64", "channels=7,9,15,17,31,33", "channels=127,129,1000",
                          "channels=1023,1025"),
    .far = AT_CLASSES("channels=4096", "channels=5120", "channels=4099,2047,4101"),
    .any = "channels=1..1100");
FACTOR(at_norm_dtype, "dtype", "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32"));
FACTOR(at_norm_data, "data", "what the values look like",
    .classes = AT_CLASSES("data=normal", "data=exact", "data=same_sign,uniform", "data=heavy_tail", "data=outlier_channel",
                          "data=ties", "data=subnormal"));
FACTOR(at_norm_ends, "ends", "of UClip", .classes = AT_CLASSES("", "lo=-0.5 hi=0.75", "lo=0.25 hi=0.25", "lo=-0.75 hi=-0.25", "lo=0", "hi=0"),
    .any = "lo=-1.5,-0.2 hi=0.3,1.7");
FACTOR(at_norm_eps, "eps", "of RMSNorm", .classes = AT_CLASSES("", "eps=1", "eps=1e-12", "eps=0.001"));
FACTOR(at_norm_from, "from", "what the norm of a sum reads", .classes = AT_CLASSES("from=rounded", "from=exact"));
/* clang-format on */
