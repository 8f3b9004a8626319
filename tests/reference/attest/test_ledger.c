/* The overflow ledger: what each value counts as, and that any split of the work gives the same ledger.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/ledger.h"

static const struct at_place origin = { 0, 0, 0, 0, -1 };

/* One value in an empty ledger. */
static struct at_ledger_row noted(double value) {
    struct at_ledger ledger;
    at_ledger_init(&ledger);
    at_ledger_note(&ledger, AT_STAGE_score, value, &origin);
    return ledger.stage[AT_STAGE_score];
}

/* Each boundary, the double just inside and just outside it. */
static void test_boundaries(void **state) {
    (void)state;
    static const struct {
        double value;
        uint64_t zero, nan, inf, above, to_inf, subnormal, flushed;
        double max_abs;
    } rows[] = {
        { 0.0, 1, 0, 0, 0, 0, 0, 0, 0 },
        { 1, 0, 0, 0, 0, 0, 0, 0, 1 },
        { 65504, 0, 0, 0, 0, 0, 0, 0, 65504 },
        { 0x1.ffc0000000001p15, 0, 0, 0, 1, 0, 0, 0, 0x1.ffc0000000001p15 },
        { 0x1.ffdffffffffffp15, 0, 0, 0, 1, 0, 0, 0, 0x1.ffdffffffffffp15 },
        { 65520, 0, 0, 0, 1, 1, 0, 0, 65520 },
        { 1e300, 0, 0, 0, 1, 1, 0, 0, 1e300 },
        { INFINITY, 0, 0, 1, 1, 1, 0, 0, 0 },
        { 0x1p-14, 0, 0, 0, 0, 0, 0, 0, 0x1p-14 },
        { 0x1.fffffffffffffp-15, 0, 0, 0, 0, 0, 1, 0, 0x1.fffffffffffffp-15 },
        { 0x1.0000000000001p-25, 0, 0, 0, 0, 0, 1, 0, 0x1.0000000000001p-25 },
        { 0x1p-25, 0, 0, 0, 0, 0, 1, 1, 0x1p-25 },
        { 0x1p-1074, 0, 0, 0, 0, 0, 1, 1, 0x1p-1074 },
        { NAN, 0, 1, 0, 0, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int sign = 0; sign < 2; sign++) {
            struct at_ledger_row row = noted(sign ? -rows[i].value : rows[i].value);
            assert_int_equal(row.count, 1);
            assert_int_equal(row.zero, rows[i].zero);
            assert_int_equal(row.nan, rows[i].nan);
            assert_int_equal(row.inf, rows[i].inf);
            assert_int_equal(row.above_65504, rows[i].above);
            assert_int_equal(row.to_inf, rows[i].to_inf);
            assert_int_equal(row.subnormal, rows[i].subnormal);
            assert_int_equal(row.flushed, rows[i].flushed);
            at_assert_same(row.max_abs, rows[i].max_abs);
            assert_int_equal(row.has_first, rows[i].to_inf || rows[i].nan);
            /* the counts say what at_encode does with the value */
            double f16 = at_round(AT_F16, rows[i].value);
            assert_int_equal(row.to_inf, isinf(f16) != 0);
            assert_int_equal(row.flushed + row.zero, f16 == 0);
        }
}

/* Notes go to their stage and to no other; a NaN hides no maximum. */
static void test_stages(void **state) {
    (void)state;
    struct at_ledger ledger;
    at_ledger_init(&ledger);
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        for (int i = 0; i <= s; i++)
            at_ledger_note(&ledger, (enum at_stage)s, s + 1, &origin);
    at_ledger_note(&ledger, AT_STAGE_p, NAN, &origin);
    at_ledger_note(&ledger, AT_STAGE_p, 0.25, &origin);
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        assert_int_equal(ledger.stage[s].count, s + 1 + (s == AT_STAGE_p ? 2 : 0));
        at_assert_same(ledger.stage[s].max_abs, s + 1);
        assert_true(strlen(at_stage_name((enum at_stage)s)) > 0 && strlen(at_stage_meaning((enum at_stage)s)) > 0);
    }
    assert_string_equal(at_stage_name(AT_STAGE_gate_in), "gate_in");
    assert_string_equal(at_stage_meaning(AT_STAGE_out), "the output");
    assert_string_equal(at_stage_name(AT_STAGE_COUNT), "unknown");
    assert_string_equal(at_stage_meaning((enum at_stage) - 1), "not a stage of attest");
}

static void test_headroom(void **state) {
    (void)state;
    struct at_ledger_row row = noted(65504);
    at_assert_same(at_ledger_headroom(&row), 0);
    row = noted(-65504.0 / 8);
    at_assert_same(at_ledger_headroom(&row), 3);
    row = noted(65504.0 * 4);
    at_assert_same(at_ledger_headroom(&row), -2);
    row = noted(0);
    at_assert_same(at_ledger_headroom(&row), INFINITY);
    row = noted(INFINITY); /* no finite value: nothing to measure from; `inf` counts it */
    assert_int_equal(row.inf, 1);
    at_assert_same(at_ledger_headroom(&row), NAN);
    row = noted(NAN);
    at_assert_same(at_ledger_headroom(&row), NAN);
    row.count++; /* a zero beside it */
    at_assert_same(at_ledger_headroom(&row), INFINITY);
    row = (struct at_ledger_row){ .count = 0 };
    at_assert_same(at_ledger_headroom(&row), NAN);
}

static void test_place_order(void **state) {
    (void)state;
    /* ascending: each field outranks all after it */
    static const struct at_place places[] = {
        { 0, 0, 0, 0, -1 }, { 0, 0, 0, 0, 0 },          { 0, 0, 0, 0, 9 },         { 0, 0, 0, 1, -1 },
        { 0, 0, 1, 0, -1 }, { 0, 1, -5, -5, -5 },       { 0, 1, 0, 0, 0 },         { 1, 0, 0, 0, 0 },
        { 1, 0, 0, 0, 1 },  { INT64_MAX, -9, 0, 0, 0 }, { INT64_MAX, 0, 0, 0, 0 },
    };
    enum { N = sizeof places / sizeof places[0] };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            assert_int_equal(at_place_compare(&places[i], &places[k]), (i > k) - (i < k));
}

static uint64_t random_bits(void) {
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

struct event {
    enum at_stage stage;
    double value;
    struct at_place place;
};

enum { EVENTS = 400, PARTS = 7 };

static struct event random_event(void) {
    static const double values[] = { 0, -0.0, 1, -3, 65504, 65510, -65520, 1e9, INFINITY, -INFINITY, NAN, 1e-5, 1e-9 };
    struct event event;
    event.stage = (enum at_stage)(random_bits() % AT_STAGE_COUNT);
    event.value = values[(random_bits() >> 20) % (sizeof values / sizeof values[0])];
    /* few different places, so that ties and orders by every field occur */
    int64_t *fields[] = { &event.place.b, &event.place.h, &event.place.q, &event.place.k, &event.place.step };
    for (int i = 0; i < 5; i++)
        *fields[i] = (int64_t)((random_bits() >> 30) % 3) - (i == 4);
    return event;
}

static void record(struct at_ledger *ledger, const struct event *event) {
    at_ledger_note(ledger, event->stage, event->value, &event->place);
    if (event->stage != AT_STAGE_gate_in || isfinite(event->value))
        return;
    /* operators fill these themselves; merge must add them up */
    ledger->inf_made += 1;
    ledger->inf_cancelled += 2;
    ledger->clamped_low += 3;
    ledger->clamped_high += 4;
    ledger->laundered += 5;
    if (!ledger->has_laundered || at_place_compare(&event->place, &ledger->first_laundered) < 0)
        ledger->first_laundered = event->place;
    ledger->has_laundered = 1;
}

/* The ledger of all events in one go, against any split into parts merged in any order and grouping. */
static void test_merge_any_split(void **state) {
    (void)state;
    long rounds = at_test_effort(10) * 30;
    for (long round = 0; round < rounds; round++) {
        static struct event events[EVENTS];
        struct at_ledger whole, part[PARTS];
        at_ledger_init(&whole);
        for (int i = 0; i < PARTS; i++)
            at_ledger_init(&part[i]);
        int n = (int)(random_bits() % EVENTS);
        for (int i = 0; i < n; i++) {
            events[i] = random_event();
            record(&whole, &events[i]);
        }
        for (int i = n - 1; i >= 0; i--) /* the other way round, dealt out at random */
            record(&part[random_bits() % PARTS], &events[i]);
        for (int left = PARTS; left > 1; left--) { /* merge random pairs: any tree of merges */
            const int a = (int)(random_bits() % (uint64_t)left);
            int b = (int)(random_bits() % (uint64_t)(left - 1));
            b += b >= a;
            at_ledger_merge(&part[a], &part[b]);
            part[b] = part[left - 1];
        }
        assert_memory_equal(&part[0], &whole, sizeof whole);
        struct at_ledger empty;
        at_ledger_init(&empty);
        at_ledger_merge(&empty, &whole);
        assert_memory_equal(&empty, &whole, sizeof whole);
    }
}

/* The first place is the lowest, whatever came first in time, and among finite overflows and NaN alike. */
static void test_first_place(void **state) {
    (void)state;
    struct at_ledger ledger;
    struct at_place late = { 2, 0, 0, 0, -1 }, early = { 1, 3, 5, 7, -1 }, harmless = { 0, 0, 0, 0, -1 };
    at_ledger_init(&ledger);
    at_ledger_note(&ledger, AT_STAGE_out, 65519, &harmless);
    assert_int_equal(ledger.stage[AT_STAGE_out].has_first, 0);
    at_ledger_note(&ledger, AT_STAGE_out, INFINITY, &late);
    at_ledger_note(&ledger, AT_STAGE_out, NAN, &early);
    at_ledger_note(&ledger, AT_STAGE_out, 1e6, &late);
    assert_int_equal(at_place_compare(&ledger.stage[AT_STAGE_out].first, &early), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boundaries),  cmocka_unit_test(test_stages),          cmocka_unit_test(test_headroom),
        cmocka_unit_test(test_place_order), cmocka_unit_test(test_merge_any_split), cmocka_unit_test(test_first_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
