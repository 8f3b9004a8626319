/* A result as one line of canonical JSON, and back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Keys are sorted, there is no white space, every field of struct at_result is there under its own name.
 * JSON has no NaN, no infinity and (in most readers) no integer above 2^63 - 1: these are the strings
 * "NaN", "Infinity", "-Infinity" and the decimal digits. Doubles have 17 digits, so they come back to the
 * bit. A result without a ledger has "ledger":null. Reading is strict: a missing key, a value of another
 * type, a text that does not fit or a number out of range is AT_USAGE naming the key. Unknown keys are
 * ignored, so that a later version can add some. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/record.h"
#include "verify/report_text.h"

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

static json_t *from_field(const struct at_field *field, const void *base) {
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

static json_t *from_place(int has, const struct at_place *place) {
    if (!has)
        return json_null();
    return json_pack("{sIsIsIsIsI}", "b", (json_int_t)place->b, "h", (json_int_t)place->h, "q", (json_int_t)place->q,
                     "k", (json_int_t)place->k, "step", (json_int_t)place->step);
}

static json_t *from_ledger(const struct at_ledger *ledger) {
    json_t *object = json_object(), *stages = json_object();
    const struct at_field *field;
    int failed = 0;
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        const struct at_ledger_row *row = &ledger->stage[s];
        json_t *stage = json_object();
        for (int i = 0; (field = at_ledger_row_field(i)); i++)
            failed |= json_object_set_new(stage, field->name, from_field(field, row));
        failed |= json_object_set_new(stage, "first", from_place(row->has_first, &row->first));
        failed |= json_object_set_new(stages, at_stage_name((enum at_stage)s), stage);
    }
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        failed |= json_object_set_new(object, field->name, from_field(field, ledger));
    failed |=
        json_object_set_new(object, "first_laundered", from_place(ledger->has_laundered, &ledger->first_laundered));
    failed |= json_object_set_new(object, "stages", stages);
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

at_status at_result_to_json(const struct at_result *result, char **line) {
    json_t *object = json_object();
    const struct at_field *field;
    int failed = 0;
    for (int i = 0; (field = at_result_field(i)); i++)
        failed |= json_object_set_new(object, field->name, from_field(field, result));
    failed |= json_object_set_new(object, "ledger", result->has_ledger ? from_ledger(&result->ledger) : json_null());
    *line = failed ? NULL : json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(object);
    return *line ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory to write a result as JSON");
}

/* ---- back ---- */

struct reading {
    const char *where; /* "file:line" */
    const char *path;  /* of the object: "", "ledger." */
};

static at_status refuse(const struct reading *in, const char *key, const char *wanted, const json_t *found) {
    char *text = found ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    at_status status = AT_FAIL(AT_USAGE, "%s: key \"%s%s\" is %.60s, wanted %s", in->where, in->path, key,
                               text ? text : "missing", wanted);
    free(text);
    return status;
}

static at_status to_text(const struct reading *in, const struct at_field *field, const json_t *json, char *text) {
    const char *value = json_string_value(json);
    if (!value || json_string_length(json) >= field->size) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "a text of at most %zu bytes", field->size - 1);
        return refuse(in, field->name, wanted, json);
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

static at_status to_value(const struct reading *in, const struct at_field *field, const json_t *json, void *at, int i) {
    json_int_t integer = json_integer_value(json);
    switch (field->kind) {
    case AT_FIELD_TEXT:
        return to_text(in, field, json, at);
    case AT_FIELD_STATE:
        if (!json_is_string(json) || at_state_parse(json_string_value(json), at) != AT_OK)
            return refuse(in, field->name, "the name of a state", json);
        return AT_OK;
    case AT_FIELD_BOOL:
        *(int *)at = json_is_true(json);
        return json_is_boolean(json) ? AT_OK : refuse(in, field->name, "true or false", json);
    case AT_FIELD_INT:
        *(int *)at = (int)integer;
        return json_is_integer(json) && *(int *)at == integer ? AT_OK
                                                              : refuse(in, field->name, "a 32-bit integer", json);
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        ((int64_t *)at)[i] = integer;
        return json_is_integer(json) ? AT_OK : refuse(in, field->name, "an integer", json);
    case AT_FIELD_U64:
        return to_u64(json, &((uint64_t *)at)[i]) ? AT_OK
                                                  : refuse(in, field->name, "an integer from 0 to 2^64-1", json);
    case AT_FIELD_F64:
        return to_f64(json, &((double *)at)[i]) ? AT_OK : refuse(in, field->name, "a number, NaN or Infinity", json);
    }
    return AT_FAIL(AT_BUG, "field %s has kind %d", field->name, (int)field->kind);
}

static at_status to_field(const struct reading *in, const struct at_field *field, const json_t *object, void *base) {
    const json_t *json = json_object_get(object, field->name);
    void *at = at_field_at(field, base);
    if (field->count == 1)
        return to_value(in, field, json, at, 0);
    if (!json_is_array(json) || json_array_size(json) != (size_t)field->count) {
        char wanted[48];
        snprintf(wanted, sizeof wanted, "an array of %d values", field->count);
        return refuse(in, field->name, wanted, json);
    }
    for (int i = 0; i < field->count; i++)
        AT_TRY(to_value(in, field, json_array_get(json, (size_t)i), at, i));
    return AT_OK;
}

static at_status to_place(const struct reading *in, const char *key, const json_t *object, int has,
                          struct at_place *place) {
    json_t *json = json_object_get(object, key);
    if (!has)
        return json_is_null(json) ? AT_OK : refuse(in, key, "null, as there is none", json);
    json_int_t b, h, q, k, step;
    if (json_unpack(json, "{sIsIsIsIsI}", "b", &b, "h", &h, "q", &q, "k", &k, "step", &step) != 0)
        return refuse(in, key, "an object of the integers b h q k step", json);
    *place = (struct at_place){ .b = b, .h = h, .q = q, .k = k, .step = step };
    return AT_OK;
}

static at_status to_ledger(const char *where, const json_t *object, struct at_ledger *ledger) {
    struct reading in = { where, "ledger." };
    const json_t *stages = json_object_get(object, "stages");
    const struct at_field *field;
    if (!json_is_object(stages))
        return refuse(&in, "stages", "an object", stages);
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        const char *name = at_stage_name((enum at_stage)s);
        char path[64];
        snprintf(path, sizeof path, "ledger.stages.%s.", name);
        struct reading inside = { where, path };
        const json_t *stage = json_object_get(stages, name);
        struct at_ledger_row *row = &ledger->stage[s];
        for (int i = 0; (field = at_ledger_row_field(i)); i++)
            AT_TRY(to_field(&inside, field, stage, row));
        AT_TRY(to_place(&inside, "first", stage, row->has_first, &row->first));
    }
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY(to_field(&in, field, object, ledger));
    return to_place(&in, "first_laundered", object, ledger->has_laundered, &ledger->first_laundered);
}

static at_status to_result(const json_t *object, const char *where, struct at_result *result) {
    struct reading in = { where, "" };
    const struct at_field *field;
    if (!json_is_object(object))
        return refuse(&in, "result", "an object", object);
    for (int i = 0; (field = at_result_field(i)); i++)
        AT_TRY(to_field(&in, field, object, result));
    const json_t *ledger = json_object_get(object, "ledger");
    if (result->has_ledger)
        AT_TRY(to_ledger(where, ledger, &result->ledger));
    else if (!json_is_null(ledger))
        return refuse(&in, "ledger", "null, as has_ledger is false", ledger);
    return at_result_check(result, where);
}

at_status at_result_from_json(const char *line, const char *where, struct at_result *result) {
    memset(result, 0, sizeof *result);
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        return AT_FAIL(AT_USAGE, "%s: byte %d: no JSON (%s)", where, error.position, error.text);
    at_status status = to_result(object, where, result);
    json_decref(object);
    return status;
}
