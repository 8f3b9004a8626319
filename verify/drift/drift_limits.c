/* Limits of attest drift, from a JSON file.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "attest/names.h"
#include "verify/drift/drift.h"

static const char *const metric_names[] = {
#define X(name, unit, limit, meaning) #name,
    AT_DRIFT_METRIC_LIST(X)
#undef X
};
static const char *const metric_units[] = {
#define X(name, unit, limit, meaning) unit,
    AT_DRIFT_METRIC_LIST(X)
#undef X
};
static const double paired_limits[] = {
#define X(name, unit, limit, meaning) limit,
    AT_DRIFT_METRIC_LIST(X)
#undef X
};

const char *at_drift_metric_name(enum at_drift_metric metric) { return metric_names[metric]; }
const char *at_drift_metric_unit(enum at_drift_metric metric) { return metric_units[metric]; }

void at_drift_limits_default(int paired, struct at_drift_limits *limits) {
    *limits = (struct at_drift_limits){ .n_rules = 1,
                                        .chance = paired ? 5 : 0,
                                        .noise_factor = paired ? 3 : 0,
                                        .level = paired ? 0 : 0.01,
                                        .deals = paired ? 0 : 999 };
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        limits->rule[0].limit[m] = paired ? paired_limits[m] : (double)INFINITY;
}

const struct at_drift_rule *at_drift_rule_of(const struct at_drift_limits *limits, const char *what) {
    for (int i = 1; i < limits->n_rules; i++)
        if (strcmp(limits->rule[i].what, what) == 0)
            return &limits->rule[i];
    return &limits->rule[0];
}

/* ---- the file ---- */

static at_status refuse(const char *where, const char *key, const char *wanted, const json_t *found) {
    char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT);
    const at_status status = AT_FAIL(AT_USAGE, "%s: %s: found %.60s, wanted %s", where, key, text ? text : "?", wanted);
    free(text);
    return status;
}

static at_status unknown(const char *where, const char *key, const char *const *names, int n) {
    const char *nearest = at_nearest_name(key, names, n);
    return AT_FAIL(AT_USAGE, "%s: unknown key '%.60s'%s%s%s", where, key, nearest ? "; did you mean '" : "",
                   nearest ? nearest : "", nearest ? "'?" : "");
}

static int metric_of(const char *name) {
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        if (strcmp(metric_names[m], name) == 0)
            return m;
    return -1;
}

static at_status read_limit(const char *where, const char *key, const json_t *value, double *limit) {
    if (json_is_null(value)) {
        *limit = INFINITY;
        return AT_OK;
    }
    if (!json_is_number(value) || !(json_number_value(value) >= 0))
        return refuse(where, key, "a number of 0 or more, or null for no limit", value);
    *limit = json_number_value(value);
    return AT_OK;
}

static at_status read_rule(const char *where, const char *what, const json_t *object, struct at_drift_limits *limits) {
    char inside[300];
    const char *key;
    json_t *value;
    snprintf(inside, sizeof inside, "%.200s: %.60s", where, what);
    if (limits->n_rules == AT_DRIFT_MAX_RULES || strlen(what) >= sizeof limits->rule[0].what)
        return AT_FAIL(AT_USAGE, "%s: wanted the name of a quantity, at most %d of them", inside,
                       AT_DRIFT_MAX_RULES - 1);
    struct at_drift_rule *rule = &limits->rule[limits->n_rules++];
    *rule = limits->rule[0];
    snprintf(rule->what, sizeof rule->what, "%s", what);
    json_object_foreach((json_t *)object, key, value) {
        const int m = metric_of(key);
        if (m < 0)
            return unknown(inside, key, metric_names, AT_DRIFT_METRICS);
        AT_TRY(read_limit(inside, key, value, &rule->limit[m]));
    }
    return AT_OK;
}

static at_status read_test(const char *where, const char *key, const json_t *value, struct at_drift_limits *limits) {
    if (strcmp(key, "level") == 0) {
        limits->level = json_number_value(value);
        return limits->level > 0 && limits->level < 1 ? AT_OK : refuse(where, key, "a number between 0 and 1", value);
    }
    limits->deals = json_integer_value(value);
    return limits->deals >= 1 && limits->deals <= 1000000 ? AT_OK
                                                          : refuse(where, key, "a whole number, 1 to 1000000", value);
}

static at_status read_noise(const char *where, const char *key, const json_t *value, struct at_drift_limits *limits) {
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0))
        return refuse(where, key, "a number of 0 or more", value);
    *(strcmp(key, "chance") == 0 ? &limits->chance : &limits->noise_factor) = number;
    return AT_OK;
}

static at_status read_mode(const char *where, const json_t *object, int paired, struct at_drift_limits *limits) {
    const char *key;
    json_t *value;
    /* Limits for all quantities first: the others start from them. */
    json_object_foreach((json_t *)object, key, value) {
        const int m = metric_of(key), is_test = strcmp(key, "level") == 0 || strcmp(key, "permutations") == 0,
                  is_noise = strcmp(key, "chance") == 0 || strcmp(key, "noise_factor") == 0;
        if (m >= 0)
            AT_TRY(read_limit(where, key, value, &limits->rule[0].limit[m]));
        else if (is_noise && paired)
            AT_TRY(read_noise(where, key, value, limits));
        else if (is_test && !paired)
            AT_TRY(read_test(where, key, value, limits));
        else if (!json_is_object(value))
            return unknown(where, key, metric_names, AT_DRIFT_METRICS);
    }
    json_object_foreach((json_t *)object, key, value) if (json_is_object(value))
        AT_TRY(read_rule(where, key, value, limits));
    return AT_OK;
}

static at_status read_object(const char *path, const json_t *root, int paired, struct at_drift_limits *limits) {
    static const char *const modes[] = { "unpaired", "paired" };
    const char *key;
    json_t *value;
    char where[300];
    if (!json_is_object(root))
        return AT_FAIL(AT_USAGE, "%s: wanted a JSON object with the keys paired and unpaired", path);
    json_object_foreach((json_t *)root, key, value) {
        const int mode = strcmp(key, "paired") == 0 ? 1 : strcmp(key, "unpaired") == 0 ? 0 : -1;
        struct at_drift_limits other;
        if (mode < 0)
            return unknown(path, key, modes, 2);
        snprintf(where, sizeof where, "%.200s: %s", path, key);
        if (!json_is_object(value))
            return refuse(path, key, "an object", value);
        /* The mode that is not used is read all the same, so that its mistakes are found today. */
        at_drift_limits_default(mode, &other);
        AT_TRY(read_mode(where, value, mode, mode == paired ? limits : &other));
    }
    return AT_OK;
}

at_status at_drift_limits_read(const char *path, int paired, struct at_drift_limits *limits) {
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return AT_FAIL(AT_USAGE, "%s: line %d: %s", path, error.line, error.text);
    const at_status status = read_object(path, root, paired, limits);
    json_decref(root);
    return status;
}
