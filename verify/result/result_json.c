/* A result as one line of canonical JSON, and back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Keys are sorted, there is no white space, every field of struct at_result is there under its own name.
 * Numbers are as field_json.c says. A result without a ledger has "ledger":null. Reading is strict: a missing key, a
 * value of another type, a text that does not fit or a number out of range is AT_USAGE naming the key. Unknown keys are
 * ignored, so that a later version can add some. */
#include <stdlib.h>
#include <string.h>

#include "verify/result/field_json.h"
#include "verify/result/record.h"

static json_t *from_ledger(const struct at_ledger *ledger) {
    json_t *object = json_object(), *stages = json_object();
    const struct at_field *field;
    int failed = 0;
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        failed |=
            json_object_set_new(stages, at_stage_name((enum at_stage)s), at_ledger_row_to_json(&ledger->stage[s]));
    }
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        failed |= json_object_set_new(object, field->name, at_field_to_json(field, ledger));
    failed |= json_object_set_new(object, "first_laundered",
                                  at_place_to_json(ledger->has_laundered, &ledger->first_laundered));
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
        failed |= json_object_set_new(object, field->name, at_field_to_json(field, result));
    failed |= json_object_set_new(object, "ledger", result->has_ledger ? from_ledger(&result->ledger) : json_null());
    *line = failed ? NULL : json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(object);
    return *line ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory to write a result as JSON");
}

/* ---- back ---- */

static at_status to_ledger(const char *where, const json_t *object, struct at_ledger *ledger) {
    struct at_json_place in = { where, "ledger." };
    const json_t *stages = json_object_get(object, "stages");
    const struct at_field *field;
    if (!json_is_object(stages))
        return at_json_refuse(&in, "stages", "an object", stages);
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        const char *name = at_stage_name((enum at_stage)s);
        char path[64];
        snprintf(path, sizeof path, "ledger.stages.%s.", name);
        struct at_json_place inside = { where, path };
        AT_TRY(at_ledger_row_from_json(&inside, json_object_get(stages, name), &ledger->stage[s]));
    }
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        AT_TRY(at_field_from_json(&in, field, object, ledger));
    return at_place_from_json(&in, "first_laundered", object, ledger->has_laundered, &ledger->first_laundered);
}

static at_status to_result(const json_t *object, const char *where, struct at_result *result) {
    struct at_json_place in = { where, "" };
    const struct at_field *field;
    if (!json_is_object(object))
        return at_json_refuse(&in, "result", "an object", object);
    for (int i = 0; (field = at_result_field(i)); i++)
        AT_TRY(at_field_from_json(&in, field, object, result));
    const json_t *ledger = json_object_get(object, "ledger");
    if (result->has_ledger)
        AT_TRY(to_ledger(where, ledger, &result->ledger));
    else if (!json_is_null(ledger))
        return at_json_refuse(&in, "ledger", "null, as has_ledger is false", ledger);
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
