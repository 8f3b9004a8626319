/* Sizes, parameters and checks of rotations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rotation/rotation.h"

#include <math.h>
#include <stdlib.h>

static const char *style_text(int i) {
    static const char *const words[] = { "half_split", "interleaved" };
    return i >= 0 && i < 2 ? words[i] : NULL;
}

static const char *table_text(int i) {
    static const char *const words[] = { "f32", "input" };
    return i >= 0 && i < 2 ? words[i] : NULL;
}

#define PLACE(member) AT_OWN_PLACE(at_rope_own, member)

/* clang-format off */
const struct at_scalar at_rope_scalars[AT_ROPE_SCALARS] = {
    [AT_ROPE_ROT]          = { "rot", AT_SCALAR_SIZE, PLACE(rot), 0, "channels of a head that are rotated: at most d, and one less where that is odd; default d", "rot", 0, 4096, .word = "column" },
    [AT_ROPE_MAX_POSITION] = { "max_position", AT_SCALAR_SIZE, PLACE(max_position), 1, "positions that the table has: at least the longest request's, the default", "max_position", 1, 1 << 26, .word = "position" },
    [AT_ROPE_BASE]         = { "base", AT_SCALAR_FLOAT, PLACE(base), 10000, "pair i turns by base^(-2 i / rot) a position", "base", 1, 1e12 },
    [AT_ROPE_STYLE]        = { "style", AT_SCALAR_CHOICE, PLACE(style), AT_ROPE_HALF_SPLIT, "half_split: pair i is channels i and i + rot/2; interleaved: 2 i and 2 i + 1", "style", .text = style_text },
    [AT_ROPE_TABLE]        = { "table", AT_SCALAR_CHOICE, PLACE(table), AT_ROPE_TABLE_F32, "format of the table: f32, or that of the inputs", "table", .text = table_text },
};
const struct at_factor at_rope_factor_style = { .name = "style", .meaning = "which channels are a pair", .classes = AT_CLASSES("style=half_split", "style=interleaved") };
const struct at_factor at_rope_factor_table = { .name = "table", .meaning = "format of the table, and more rows than are used", .classes = AT_CLASSES("table=f32", "table=input", "table=f32 max_position=41000") };
const struct at_factor at_rope_factor_base = { .name = "base", .meaning = "of the angles", .classes = AT_CLASSES("base=10000", "base=500000,1000000", "base=1,100") };
/* clang-format on */

void at_rope_complete(struct at_problem *p, unsigned given) {
    struct at_rope_own own = at_rope_own_of(p);
    if (!(given >> AT_ROPE_ROT & 1) || own.rot > p->sizes.d)
        own.rot = p->sizes.d;
    own.rot -= own.rot % 2;
    if (own.max_position < p->sizes.max_sk)
        own.max_position = p->sizes.max_sk;
    at_rope_own_set(p, &own);
}

enum at_format at_rope_own_format(const struct at_problem *p, int tensor) {
    (void)tensor;
    return at_rope_own_of(p).table == AT_ROPE_TABLE_F32 ? AT_F32 : p->dtype;
}

at_status at_rope_check_own(const struct at_problem *p) {
    const struct at_rope_own own = at_rope_own_of(p);
    if (own.rot < 0 || own.rot > p->sizes.d || own.rot % 2)
        return AT_FAIL(AT_USAGE, "%s: rot is %lld, wanted an even number from 0 to d = %lld", p->op->name,
                       (long long)own.rot, (long long)p->sizes.d);
    if (own.max_position < 1)
        return AT_FAIL(AT_USAGE, "%s: max_position is %lld, wanted 1 or more", p->op->name,
                       (long long)own.max_position);
    if (!(own.base >= 1) || !isfinite(own.base))
        return AT_FAIL(AT_USAGE, "%s: base is %g, wanted a finite number from 1 on", p->op->name, (double)own.base);
    if (!style_text(own.style) || !table_text(own.table))
        return AT_FAIL(AT_USAGE, "%s: style and table are %d and %d, wanted 0 or 1 each", p->op->name, (int)own.style,
                       (int)own.table);
    return AT_OK;
}

static at_status check_shape(const struct at_problem *p, int i) {
    const struct at_tensor_spec *spec = &p->op->tensors[i];
    const struct at_tensor *t = &p->tensors[i];
    int64_t wanted = 1, found = at_tensor_count(t);
    for (int k = 0; k < AT_MAX_RANK && spec->dims[k] != AT_DIM_NONE; k++)
        wanted *= at_dim_size(p, spec->dims[k]);
    if (found != wanted)
        return AT_FAIL(AT_USAGE, "%s: tensor %s has %lld elements, wanted %lld", p->op->name, spec->name,
                       (long long)found, (long long)wanted);
    if (spec->role != AT_OUT && found > 0 && !t->data)
        return AT_FAIL(AT_USAGE, "%s: tensor %s has no data", p->op->name, spec->name);
    return AT_OK;
}

at_status at_rope_check_shapes(const struct at_problem *p) {
    for (int i = 0; i < p->op->n_tensors; i++)
        AT_TRY(check_shape(p, i));
    return AT_OK;
}

at_status at_rope_check_positions(const struct at_problem *p, int positions) {
    const int64_t rows = at_rope_own_of(p).max_position;
    for (int64_t token = 0; token < p->sizes.tokens; token++) {
        const int64_t position = at_tensor_i32(&p->tensors[positions], token);
        if (position < 0 || position >= rows)
            return AT_FAIL(AT_USAGE, "%s: positions[%lld] is %lld, wanted 0 to %lld, as max_position says", p->op->name,
                           (long long)token, (long long)position, (long long)rows - 1);
    }
    return AT_OK;
}

int64_t at_rope_used_positions(const struct at_problem *p, int positions) {
    int64_t used = 0;
    char *seen = calloc((size_t)at_rope_own_of(p).max_position, 1);
    for (int64_t token = 0; seen && token < p->sizes.tokens; token++) {
        char *at = &seen[at_tensor_i32(&p->tensors[positions], token)];
        used += !*at;
        *at = 1;
    }
    free(seen);
    return used;
}
