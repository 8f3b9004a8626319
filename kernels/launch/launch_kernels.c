/* Reading a launch file: its tensor maps, its kernels and their arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/launch_file.h"

#include "attest/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

static at_status find_tensor(const struct at_reader *r, const char *field, const char *name, int *tensor) {
    const struct at_op *op = r->plan->op;
    const char *names[AT_MAX_TENSORS + 1];
    char all[300] = "";
    *tensor = at_op_tensor_index(op, name);
    if (*tensor >= 0)
        return AT_OK;
    for (int i = 0; i < op->n_tensors; i++) {
        names[i] = op->tensors[i].name;
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s", names[i]);
    }
    const char *near = at_nearest_name(name, names, op->n_tensors);
    return at_field_wrong(r, field, "%.60s is no tensor of %s%s%s; it has%s", name, op->name,
                          near ? "; did you mean " : "", near ? near : "", all);
}

/* ---- tensor maps ---- */

/* One of `n` numbers. */
static at_status read_one_of(const struct at_reader *r, const char *field, const json_t *value, const int *numbers,
                             int n, int *out) {
    char all[64] = "";
    if (!value)
        return AT_OK;
    for (int i = 0; i < n; i++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), " %d", numbers[i]);
        if (json_is_integer(value) && json_integer_value(value) == numbers[i]) {
            *out = numbers[i];
            return AT_OK;
        }
    }
    if (json_is_integer(value))
        return at_field_wrong(r, field, "is %lld, wanted one of%s", (long long)json_integer_value(value), all);
    return at_field_wrong(r, field, "is %s, wanted one of%s", at_json_word(value), all);
}

static at_status read_oob(const struct at_reader *r, const char *field, const json_t *value, int *is_nan) {
    const char *text = json_string_value(value);
    if (value && (!text || (strcmp(text, "zero") != 0 && strcmp(text, "nan") != 0)))
        return at_field_wrong(r, field, "is %s%.40s, wanted \"zero\" or \"nan\"", text ? "" : at_json_word(value),
                              text ? text : "");
    *is_nan = text && strcmp(text, "nan") == 0;
    return AT_OK;
}

static at_status read_map(const struct at_reader *r, const char *name, json_t *value, struct at_plan_map *map) {
    static const char *const fields[] = { "tensor", "dims", "strides", "box", "swizzle", "l2", "oob" };
    static const int swizzles[] = { 0, 32, 64, 128 }, promotions[] = { 0, 64, 128, 256 };
    char at[128], field[160];
    int n = 0;
    snprintf(at, sizeof at, "tensor_maps.%.60s", name);
    AT_TRY(at_field_known(r, at, value, fields, (int)(sizeof fields / sizeof fields[0])));
    snprintf(map->name, sizeof map->name, "%s", name);
    const json_t *tensor = json_object_get(value, "tensor"), *strides = json_object_get(value, "strides");
    snprintf(field, sizeof field, "%s.tensor", at);
    if (tensor && !json_is_string(tensor))
        return at_field_wrong(r, field, "is %s, wanted a text", at_json_word(tensor));
    AT_TRY(find_tensor(r, field, tensor ? json_string_value(tensor) : name, &map->tensor));
    snprintf(field, sizeof field, "%s.dims", at);
    AT_TRY(at_field_expressions(r, field, json_object_get(value, "dims"), 1, AT_PLAN_MAP_DIMS, map->dims, &map->rank));
    snprintf(field, sizeof field, "%s.strides", at);
    map->has_strides = strides != NULL;
    if (strides)
        AT_TRY(at_field_expressions(r, field, strides, map->rank - 1, map->rank - 1, map->strides + 1, &n));
    snprintf(field, sizeof field, "%s.box", at);
    AT_TRY(at_field_expressions(r, field, json_object_get(value, "box"), map->rank, map->rank, map->box, &n));
    snprintf(field, sizeof field, "%s.swizzle", at);
    AT_TRY(read_one_of(r, field, json_object_get(value, "swizzle"), swizzles, 4, &map->swizzle));
    snprintf(field, sizeof field, "%s.l2", at);
    AT_TRY(read_one_of(r, field, json_object_get(value, "l2"), promotions, 4, &map->l2));
    snprintf(field, sizeof field, "%s.oob", at);
    return read_oob(r, field, json_object_get(value, "oob"), &map->oob_nan);
}

at_status at_plan_read_maps(const struct at_reader *r) {
    json_t *all = json_object_get(r->root, "tensor_maps"), *value;
    const char *name;
    if (all && !json_is_object(all))
        return at_field_wrong(r, "tensor_maps", "is %s, wanted an object of names and maps", at_json_word(all));
    json_object_foreach(all, name, value) {
        if (r->plan->n_maps == AT_PLAN_MAPS)
            return at_field_wrong(r, "tensor_maps", "there are more than %d", (int)AT_PLAN_MAPS);
        if (strlen(name) >= sizeof r->plan->maps[0].name)
            return at_field_wrong(r, "tensor_maps", "%.40s... is too long a name", name);
        AT_TRY(read_map(r, name, value, &r->plan->maps[r->plan->n_maps]));
        r->plan->n_maps++;
    }
    return AT_OK;
}

/* ---- arguments ---- */

/* NAME, NAME+EXPRESSION, null. */
static at_status read_pointer(const struct at_reader *r, const char *field, const char *text, struct at_plan_arg *arg) {
    char name[64];
    const size_t n = strcspn(text, "+ ");
    arg->value = at_launch_expression_number(0);
    if (strcmp(text, "null") == 0) {
        arg->kind = AT_ARG_NULL;
        return AT_OK;
    }
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    if (strcmp(name, "workspace") == 0)
        arg->tensor = AT_ARG_WORKSPACE;
    else
        AT_TRY(find_tensor(r, field, name, &arg->tensor));
    const char *plus = text + n + strspn(text + n, " ");
    if (!*plus)
        return AT_OK;
    if (*plus != '+')
        return at_field_wrong(r, field, "\"ptr:%.60s\": wanted + and bytes behind the name, or nothing", text);
    return at_launch_expression_parse(plus + 1, &r->plan->scope, &arg->value) == AT_OK ? AT_OK
                                                                                       : at_field_failed(r, field);
}

/* NUMBER, PARAMETER or PARAMETER*NUMBER. */
static at_status read_real(const struct at_reader *r, const char *field, const char *text, struct at_plan_arg *arg) {
    char name[64], *end;
    const char *star = strchr(text, '*'), *number = star ? star + 1 : text;
    const size_t n = star ? (size_t)(star - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    arg->factor = strtod(number, &end);
    if (end != number && *end == 0 && !star)
        return AT_OK;
    arg->param = at_op_scalar(r->plan->op, name);
    if (!star)
        arg->factor = 1;
    if (arg->param && arg->param->type == AT_SCALAR_FLOAT && (!star || (end != number && *end == 0)))
        return AT_OK;
    char all[200] = "";
    const struct at_scalar *s;
    for (int i = 0; (s = at_op_scalar_at(r->plan->op, i)) != NULL; i++)
        if (s->type == AT_SCALAR_FLOAT)
            snprintf(all + strlen(all), sizeof all - strlen(all), " %s", s->name);
    return at_field_wrong(r, field, "\"f32:%.60s\": wanted a number, a parameter of%s, or PARAMETER*NUMBER", text,
                          all[0] ? all : " none there is");
}

static at_status read_map_arg(const struct at_reader *r, const char *field, const char *text, struct at_plan_arg *arg) {
    char all[400] = "";
    for (int i = 0; i < r->plan->n_maps; i++) {
        if (strcmp(text, r->plan->maps[i].name) == 0) {
            arg->tensor = i;
            return AT_OK;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s", r->plan->maps[i].name);
    }
    return at_field_wrong(r, field, "\"tma:%.60s\": tensor_maps has%s", text, all[0] ? all : " none");
}

static at_status read_arg(const struct at_reader *r, const char *field, const json_t *value, struct at_plan_arg *arg) {
    static const struct {
        const char *prefix;
        enum at_arg_kind kind;
    } kinds[] = { { "ptr:", AT_ARG_POINTER }, { "i32:", AT_ARG_I32 }, { "u32:", AT_ARG_U32 },
                  { "i64:", AT_ARG_I64 },     { "f32:", AT_ARG_F32 }, { "tma:", AT_ARG_MAP } };
    const char *text = json_string_value(value), *rest = NULL;
    for (size_t i = 0; text && i < sizeof kinds / sizeof kinds[0] && !rest; i++)
        if (strncmp(text, kinds[i].prefix, 4) == 0) {
            arg->kind = kinds[i].kind;
            rest = text + 4;
        }
    if (!rest)
        return at_field_wrong(r, field,
                              "is %s%.40s, wanted ptr:TENSOR, ptr:workspace+BYTES, ptr:null, i32:, u32: or i64: and an "
                              "expression, f32:PARAMETER or tma:MAP",
                              text ? "" : at_json_word(value), text ? text : "");
    snprintf(arg->text, sizeof arg->text, "%s", text);
    if (arg->kind == AT_ARG_POINTER)
        return read_pointer(r, field, rest, arg);
    if (arg->kind == AT_ARG_F32)
        return read_real(r, field, rest, arg);
    if (arg->kind == AT_ARG_MAP)
        return read_map_arg(r, field, rest, arg);
    return at_launch_expression_parse(rest, &r->plan->scope, &arg->value) == AT_OK ? AT_OK : at_field_failed(r, field);
}

static at_status read_args(const struct at_reader *r, const char *at, const json_t *value, struct at_plan_kernel *k) {
    char field[160];
    snprintf(field, sizeof field, "%s.args", at);
    if (!json_is_array(value) || json_array_size(value) > AT_PLAN_ARGS)
        return at_field_wrong(r, field, "is %s%s, wanted an array of at most %d arguments", at_json_word(value),
                              json_is_array(value) ? " of more" : "", (int)AT_PLAN_ARGS);
    for (size_t i = 0; i < json_array_size(value); i++) {
        snprintf(field, sizeof field, "%s.args[%zu]", at, i);
        AT_TRY(read_arg(r, field, json_array_get(value, i), &k->args[k->n_args]));
        k->n_args++;
    }
    return AT_OK;
}

/* ---- kernels ---- */

/* Three lengths of which the last may be left out. */
static at_status read_three(const struct at_reader *r, const char *at, const char *name, const json_t *value,
                            struct at_launch_expression three[3]) {
    char field[160];
    int n = 0;
    snprintf(field, sizeof field, "%s.%s", at, name);
    for (int i = 0; i < 3; i++)
        three[i] = at_launch_expression_number(1);
    return at_field_expressions(r, field, value, 1, 3, three, &n);
}

static at_status read_number(const struct at_reader *r, const char *at, const char *name, const json_t *value,
                             int64_t fallback, struct at_launch_expression *out) {
    char field[160];
    snprintf(field, sizeof field, "%s.%s", at, name);
    *out = at_launch_expression_number(fallback);
    return value ? at_field_expression(r, field, value, out) : AT_OK;
}

static at_status read_kernel(const struct at_reader *r, int i, json_t *value, struct at_plan_kernel *k) {
    static const char *const fields[] = { "name", "grid", "block", "cluster", "smem", "args", "pdl", "when" };
    char at[64], field[160];
    snprintf(at, sizeof at, "kernels[%d]", i);
    AT_TRY(at_field_known(r, at, value, fields, (int)(sizeof fields / sizeof fields[0])));
    const char *name = json_string_value(json_object_get(value, "name"));
    snprintf(field, sizeof field, "%s.name", at);
    if (!name || !name[0] || strlen(name) >= sizeof k->name)
        return at_field_wrong(r, field, "is %s, wanted a text of at most %zu letters",
                              at_json_word(json_object_get(value, "name")), sizeof k->name - 1);
    snprintf(k->name, sizeof k->name, "%s", name);
    const json_t *cluster = json_object_get(value, "cluster"), *pdl = json_object_get(value, "pdl");
    AT_TRY(read_three(r, at, "grid", json_object_get(value, "grid"), k->grid));
    AT_TRY(read_three(r, at, "block", json_object_get(value, "block"), k->block));
    k->has_cluster = cluster != NULL;
    if (cluster)
        AT_TRY(read_three(r, at, "cluster", cluster, k->cluster));
    AT_TRY(read_number(r, at, "smem", json_object_get(value, "smem"), 0, &k->shared));
    AT_TRY(read_number(r, at, "when", json_object_get(value, "when"), 1, &k->when));
    snprintf(field, sizeof field, "%s.pdl", at);
    if (pdl && !json_is_boolean(pdl))
        return at_field_wrong(r, field, "is %s, wanted true or false", at_json_word(pdl));
    k->pdl = json_is_true(pdl);
    return read_args(r, at, json_object_get(value, "args"), k);
}

at_status at_plan_read_kernels(const struct at_reader *r) {
    json_t *all = json_object_get(r->root, "kernels");
    const int n = json_is_array(all) ? (int)json_array_size(all) : 0;
    if (n < 1 || n > AT_PLAN_KERNELS)
        return at_field_wrong(r, "kernels", "is %s%s, wanted an array of 1 to %d kernels", at_json_word(all),
                              json_is_array(all) ? " of another length" : "", (int)AT_PLAN_KERNELS);
    for (int i = 0; i < n; i++) {
        AT_TRY(read_kernel(r, i, json_array_get(all, (size_t)i), &r->plan->kernels[i]));
        r->plan->n_kernels++;
    }
    return AT_OK;
}
