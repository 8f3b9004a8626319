/* What two recordings were asked for differently: the request in their provenance.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "verify/drift/drift_rows.h"

enum { MAX_WORD = 80 };

/* The word of `text` that begins with `key` and '='; its length in *n, "" with 0 where there is none. */
static const char *word_of(const char *text, const char *key, size_t key_bytes, size_t *n) {
    for (const char *at = text; *at; at += *at == ' ') {
        *n = strcspn(at, " ");
        if (strncmp(at, key, key_bytes) == 0 && at[key_bytes] == '=')
            return at;
        at += *n;
    }
    *n = 0;
    return "";
}

/* Words of `text` whose key has another value, or none, in `other`. */
static void put_other_words(const char *text, const char *other, FILE *out) {
    int any = 0;
    for (const char *at = text; *at; at += *at == ' ') {
        size_t there;
        const size_t n = strcspn(at, " "), key = strcspn(at, "= ");
        const char *have = word_of(other, at, key < n ? key : n, &there);
        if (n > 0 && (there != n || strncmp(have, at, n) != 0)) {
            fprintf(out, "%s%.*s", any ? " " : "", (int)(n < MAX_WORD ? n : MAX_WORD), at);
            any = 1;
        }
        at += n;
    }
    if (!any)
        fputs("the defaults", out);
}

void at_drift_put_asked(const struct at_drift *drift, FILE *out) {
    static const struct {
        const char *key, *says;
    } texts[] = { { "format", "values in the source" },
                  { "dtype", "values as they are counted" },
                  { "own_params", "hash of the capture's own parameters" } };
    json_t *a = json_loads(drift->a.record.request, 0, NULL), *b = json_loads(drift->b.record.request, 0, NULL);
    const char *of_a = json_string_value(json_object_get(a, "params")),
               *of_b = json_string_value(json_object_get(b, "params"));
    if (of_a && of_b && strcmp(of_a, of_b) != 0) {
        fputs("asked for differently: params: A ", out);
        put_other_words(of_a, of_b, out);
        fputs(", B ", out);
        put_other_words(of_b, of_a, out);
        fputc('\n', out);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        of_a = json_string_value(json_object_get(a, texts[i].key));
        of_b = json_string_value(json_object_get(b, texts[i].key));
        if (of_a && of_b && strcmp(of_a, of_b) != 0)
            fprintf(out, "asked for differently: %s: A %.40s, B %.40s\n", texts[i].says, *of_a ? of_a : "none",
                    *of_b ? of_b : "none");
    }
    json_decref(a);
    json_decref(b);
}
