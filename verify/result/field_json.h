/* Fields of a struct, as tables of struct at_field describe them, as JSON and back; reading is strict.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FIELD_JSON_H
#define AT_FIELD_JSON_H

#include <jansson.h>

#include "verify/result/result_fields.h"

/* What messages say of the object that is read: "file:line", and its path in the line: "", "ledger.". */
struct at_json_place {
    const char *where, *path;
};

/* The field's value in the struct at `base`; NULL without memory. */
json_t *at_field_to_json(const struct at_field *field, const void *base);
/* null when there is none. */
json_t *at_place_to_json(int has, const struct at_place *place);
json_t *at_ledger_row_to_json(const struct at_ledger_row *row);

/* Back. AT_USAGE that names the key: missing, of another type, a text that does not fit, a number out of range. */
at_status at_field_from_json(const struct at_json_place *in, const struct at_field *field, const json_t *object,
                             void *base);
at_status at_place_from_json(const struct at_json_place *in, const char *key, const json_t *object, int has,
                             struct at_place *place);
at_status at_ledger_row_from_json(const struct at_json_place *in, const json_t *object, struct at_ledger_row *row);
/* That failure: key `key` is `found` (NULL: missing), `wanted` was wanted. */
at_status at_json_refuse(const struct at_json_place *in, const char *key, const char *wanted, const json_t *found);

#endif
