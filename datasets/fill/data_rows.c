/* Numbers and sequences of rows, and which keys are hot for which query.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/data_rows.h"

#include <stddef.h>

/* name, meaning; in the order of the bits of enum at_hot */
static const char *const hot[AT_HOT_COUNT][2] = {
    { "last_key", "the last key a query sees has a high score and a long V row" },
    { "hidden_key", "so has the first key that a causal query does not see" },
    { "clip", "a key of the middle scores three times the gate's upper end" },
    { "halo", "two high scores before every sixteenth key close the gate of that key" },
};

const char *at_hot_name(int i) { return i >= 0 && i < AT_HOT_COUNT ? hot[i][0] : NULL; }

const char *at_hot_meaning(int i) { return i >= 0 && i < AT_HOT_COUNT ? hot[i][1] : NULL; }

struct at_random at_data_random(const struct at_data *data, const char *name) {
    return (struct at_random){ data->seed, at_random_stream(name, 0) };
}

uint64_t at_data_query_row(const struct at_data *data, int64_t request, int64_t i, int64_t head) {
    return (uint64_t)((data->query_start[request] + i) * data->h + head);
}

uint64_t at_data_key_row(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head) {
    return (uint64_t)((data->key_start[request] + t) * data->hk + kv_head);
}

int64_t at_data_sq(const struct at_data *data, int64_t request) {
    return data->query_start[request + 1] - data->query_start[request];
}

int64_t at_data_sk(const struct at_data *data, int64_t request) {
    return data->key_start[request + 1] - data->key_start[request];
}

int64_t at_data_visible(const struct at_data *data, int64_t request, int64_t i) {
    int64_t sk = at_data_sk(data, request);
    return data->causal ? sk - at_data_sq(data, request) + i + 1 : sk;
}

/* ---- hot keys: rows that make a decoy count ----
 *
 * Random scores leave the last key of a long row with a share of the output that a quarter of the row's rms
 * hides, and then a kernel that drops it cannot be told from one that does not. A hot key points along the
 * query that it is meant for, so that its score is what the gate needs. */

/* What the current score is multiplied with on its way to the gate; at least a quarter, so that a filter that
 * cancels it (sigma = K) does not ask for an infinite score. */
static double direct_tap(const struct at_data *data) {
    double tap = data->asynct ? (double)data->taps[0] : 1.0;
    return tap >= 0.25 ? tap : 0.25;
}

/* AsyncT: inside the gate. Softmax: e^2 times all the others together, when they are N(0, 1). */
static double hot_score(const struct at_data *data, int64_t keys) {
    if (!data->asynct)
        return at_portable_log((double)(keys > 0 ? keys : 1)) + 2.5;
    double end = data->clip_max > 0 ? data->clip_max : 1.0;
    return 0.9 * end / direct_tap(data);
}

/* The others' sum grows with the root of their number; so must the row that is to stand out. */
static double hot_value_factor(int64_t keys) {
    double factor = 1;
    while (factor * factor * 64 < (double)keys)
        factor *= 2;
    return factor;
}

static int hot_for_one(const struct at_data *data, int64_t request, int64_t t, int hidden,
                       struct at_hot_target *target) {
    int64_t sq = at_data_sq(data, request), sk = at_data_sk(data, request);
    int64_t i = data->causal ? t - (sk - sq) - hidden : sq - 1;
    if (i < 0 || i >= sq || at_data_visible(data, request, i) + hidden != t + 1)
        return 0;
    *target = (struct at_hot_target){ i, hot_score(data, sk), hot_value_factor(sk) };
    return 1;
}

int at_hot_find(const struct at_data *data, int64_t request, int64_t t, struct at_hot_target *target) {
    int64_t sq = at_data_sq(data, request), sk = at_data_sk(data, request);
    unsigned kinds = data->hot;
    if (!kinds || sq == 0)
        return 0;
    /* every key of a causal problem is somebody's last and somebody's first hidden one: take turns */
    if (kinds & AT_HOT_LAST_KEY && kinds & AT_HOT_HIDDEN_KEY && data->causal && t != sk - 1)
        kinds &= ~(unsigned)(t % 2 ? AT_HOT_HIDDEN_KEY : AT_HOT_LAST_KEY);
    if (kinds & AT_HOT_LAST_KEY && hot_for_one(data, request, t, 0, target))
        return 1;
    if (kinds & AT_HOT_HIDDEN_KEY && hot_for_one(data, request, t, 1, target))
        return 1;
    double end = data->clip_max > 0 ? data->clip_max : 1.0;
    int64_t halo = (t + 2) % 16; /* 0, 1: the two keys before a sixteenth one; 2: that key */
    int spoils_last = t - halo + 5 >= sk;
    *target = (struct at_hot_target){ sq - 1, 0, hot_value_factor(sk) };
    if (kinds & AT_HOT_CLIP && t == sk / 2) {
        target->score = 3 * end / direct_tap(data);
    } else if (kinds & AT_HOT_HALO && t >= 14 && halo < 2 && !spoils_last) {
        target->score = 3 * end; /* a third of each is taken from the next key */
        target->value = 0.0625;  /* and there are many of them: their own weight must not hide that key's */
    } else if (kinds & AT_HOT_HALO && t >= 14 && halo == 2 && !spoils_last) {
        target->score = 1.2 * end; /* a kernel that forgets them leaves its gate open */
    }
    return target->score != 0;
}
