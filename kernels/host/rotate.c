/* Rotations of pairs of channels in plain f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host/rotate.h"

#include <math.h>
#include <string.h>

#include "kernels/host/attention.h"

/* x c + y s: the product with s is rounded before it is added. */
static float turned(int fused, float x, float c, float y, float s) {
    const float other = y * s;
    if (fused)
        return fmaf(x, c, other);
    const float product = x * c;
    return product + other;
}

static void rotate_pair(const struct at_host_rotation *r, const struct at_tensor *x, const struct at_tensor *y,
                        int64_t head, int64_t pair, float c, float s) {
    const int64_t first = head + (r->interleaved ? 2 * pair : pair);
    const int64_t second = r->interleaved ? first + 1 : first + r->rot / 2;
    float a, b;
    at_host_load(x, first, 1, &a);
    at_host_load(x, second, 1, &b);
    const float ya = turned(r->fused, a, c, b, -s), yb = turned(r->fused, b, c, a, s);
    at_host_store(y, first, 1, &ya);
    at_host_store(y, second, 1, &yb);
}

static void rotate_head(const struct at_host_rotation *r, const struct at_tensor *x, const struct at_tensor *y,
                        int64_t head, int64_t row) {
    const size_t bytes = at_format_info(x->format)->bytes, rest = (size_t)(head + r->rot) * bytes;
    for (int64_t pair = 0; pair < r->rot / 2; pair++) {
        float c, s;
        at_host_load(r->table, row + pair, 1, &c);
        at_host_load(r->table, row + r->rot / 2 + pair, 1, &s);
        rotate_pair(r, x, y, head, pair, c, s);
    }
    if (r->d > r->rot)
        memcpy((char *)y->data + rest, (const char *)x->data + rest, (size_t)(r->d - r->rot) * bytes);
}

void at_host_rotate(const struct at_host_rotation *r, const struct at_tensor *x, const struct at_tensor *y) {
    const int64_t tokens = at_tensor_count(r->positions), n = tokens ? at_tensor_count(x) / tokens : 0;
    for (int64_t token = 0; token < tokens; token++)
        for (int64_t head = token * n; head < (token + 1) * n; head += r->d)
            rotate_head(r, x, y, head, at_tensor_i32(r->positions, token) * r->rot);
}
