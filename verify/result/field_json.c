/* Fields of a struct as JSON, and back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * JSON has no NaN, no infinity and (in most readers) no integer above 2^63 - 1: these are the strings
 * "NaN", "Infinity", "-Infinity" and the decimal digits. Written with 17 digits, doubles come back to the bit. */
#include "verify/result/field_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/text.h"

static json_t *from_f64(double value) {
    if (isnan(value))
        return json_string("NaN");
    if (isinf(value))
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return json_real(value);
}

static json_t *from_u64(uint64_t value) {
    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    return json_string(digits);
}

/* Text may have been cut in the middle of a character, or come from a runner that knows no UTF-8. */
static json_t *from_text(const char *text) {
    json_t *json = json_string(text);
    if (json)
        return json;
    size_t n = strlen(text);
    char *clean = malloc(n + 1);
    if (!clean)
        return NULL;
    memcpy(clean, text, n + 1);
    at_text_clean(clean);
    json = json_string(clean);
    free(clean);
    return json;
}

static json_t *from_value(const struct at_field *field, const void *at, int i) {
    switch (field->kind) {
    case AT_FIELD_TEXT:
        return from_text(at);
    case AT_FIELD_STATE:
        return json_string(at_state_name(*(const enum at_state *)at));
    case AT_FIELD_BOOL:
        return json_boolean(*(const int *)at);
    case AT_FIELD_INT:
        return json_integer(*(const int *)at);
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        return json_integer(((const int64_t *)at)[i]);
    case AT_FIELD_U64:
        return from_u64(((const uint64_t *)at)[i]);
    case AT_FIELD_F64:
        return from_f64(((const double *)at)[i]);
    }
    return NULL;
}

json_t *at_field_to_json(const struct at_field *field, const void *base) {
    const void *at = at_field_of(field, base);
    if (field->count == 1)
        return from_value(field, at, 0);
    json_t *array = json_array();
    for (int i = 0; i < field->count; i++)
        if (json_array_append_new(array, from_value(field, at, i)) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

json_t *at_place_to_json(int has, const struct at_place *place) {
    if (!has)
        return json_null();
    return json_pack("{sIsIsIsIsI}", "b", (json_int_t)place->b, "h", (json_int_t)place->h, "q", (json_int_t)place->q,
                     "k", (json_int_t)place->k, "step", (json_int_t)place->step);
}

json_t *at_ledger_row_to_json(const struct at_ledger_row *row) {
    const struct at_field *field;
    json_t *object = json_object();
    int failed = 0;
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        failed |= json_object_set_new(object, field->name, at_field_to_json(field, row));
    failed |= json_object_set_new(object, "first", at_place_to_json(row->has_first, &row->first));
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- back ---- */

at_status at_json_refuse(const struct at_json_place *in, const char *key, const char *wanted, const json_t *found) {
    char *text = found ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    at_status status = AT_FAIL(AT_USAGE, "%s: key \"%s%s\" is %.60s, wanted %s", in->where, in->path, key,
                               text ? text : "missing", wanted);
    free(text);
    return status;
}

static at_status to_text(const struct at_json_place *in, const struct at_field *field, const json_t *json, char *text) {
    const char *value = json_string_value(json);
    if (!value || json_string_length(json) >= field->size) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "a text of at most %zu bytes", field->size - 1);
        return at_json_refuse(in, field->name, wanted, json);
    }
    memcpy(text, value, json_string_length(json) + 1);
    return AT_OK;
}

static int to_f64(const json_t *json, double *value) {
    const char *text = json_string_value(json);
    if (json_is_number(json))
        *value = json_number_value(json);
    else if (text && strcmp(text, "NaN") == 0)
        *value = NAN;
    else if (text && strcmp(text, "Infinity") == 0)
        *value = INFINITY;
    else if (text && strcmp(text, "-Infinity") == 0)
        *value = -INFINITY;
    else
        return 0;
    return 1;
}

static int to_u64(const json_t *json, uint64_t *value) {
    if (json_is_integer(json)) {
        *value = (uint64_t)json_integer_value(json);
        return json_integer_value(json) >= 0;
    }
    const char *text = json_string_value(json);
    if (!text || strlen(text) != strspn(text, "0123456789") || !text[0])
        return 0;
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0;
}

static at_status to_value(const struct at_json_place *in, const struct at_field *field, const json_t *json, void *at,
                          int i) {
    json_int_t integer = json_integer_value(json);
    switch (field->kind) {
    case AT_FIELD_TEXT:
        return to_text(in, field, json, at);
    case AT_FIELD_STATE:
        if (!json_is_string(json) || at_state_parse(json_string_value(json), at) != AT_OK)
            return at_json_refuse(in, field->name, "the name of a state", json);
        return AT_OK;
    case AT_FIELD_BOOL:
        *(int *)at = json_is_true(json);
        return json_is_boolean(json) ? AT_OK : at_json_refuse(in, field->name, "true or false", json);
    case AT_FIELD_INT:
        *(int *)at = (int)integer;
        return json_is_integer(json) && *(int *)at == integer
                   ? AT_OK
                   : at_json_refuse(in, field->name, "a 32-bit integer", json);
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        ((int64_t *)at)[i] = integer;
        return json_is_integer(json) ? AT_OK : at_json_refuse(in, field->name, "an integer", json);
    case AT_FIELD_U64:
        return to_u64(json, &((uint64_t *)at)[i])
                   ? AT_OK
                   : at_json_refuse(in, field->name, "an integer from 0 to 2^64-1", json);
    case AT_FIELD_F64:
        return to_f64(json, &((double *)at)[i]) ? AT_OK
                                                : at_json_refuse(in, field->name, "a number, NaN or Infinity", json);
    }
    return AT_FAIL(AT_BUG, "field %s has kind %d", field->name, (int)field->kind);
}

at_status at_field_from_json(const struct at_json_place *in, const struct at_field *field, const json_t *object,
                             void *base) {
    const json_t *json = json_object_get(object, field->name);
    void *at = at_field_at(field, base);
    if (field->count == 1)
        return to_value(in, field, json, at, 0);
    if (!json_is_array(json) || json_array_size(json) != (size_t)field->count) {
        char wanted[48];
        snprintf(wanted, sizeof wanted, "an array of %d values", field->count);
        return at_json_refuse(in, field->name, wanted, json);
    }
    for (int i = 0; i < field->count; i++)
        AT_TRY(to_value(in, field, json_array_get(json, (size_t)i), at, i));
    return AT_OK;
}

at_status at_place_from_json(const struct at_json_place *in, const char *key, const json_t *object, int has,
                             struct at_place *place) {
    json_t *json = json_object_get(object, key);
    if (!has)
        return json_is_null(json) ? AT_OK : at_json_refuse(in, key, "null, as there is none", json);
    json_int_t b, h, q, k, step;
    if (json_unpack(json, "{sIsIsIsIsI}", "b", &b, "h", &h, "q", &q, "k", &k, "step", &step) != 0)
        return at_json_refuse(in, key, "an object of the integers b h q k step", json);
    *place = (struct at_place){ .b = b, .h = h, .q = q, .k = k, .step = step };
    return AT_OK;
}

at_status at_ledger_row_from_json(const struct at_json_place *in, const json_t *object, struct at_ledger_row *row) {
    const struct at_field *field;
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        AT_TRY(at_field_from_json(in, field, object, row));
    return at_place_from_json(in, "first", object, row->has_first, &row->first);
}
