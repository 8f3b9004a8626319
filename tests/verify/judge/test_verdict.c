/* From evidence to a state: every state, the whole order of states, and the words that go with them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/verdict_scene.h"

/* ---- the order ---- */

/* One thing that can be seen of an output, in the order in which they decide; what it is called when it does. */
enum sight {
    DIRT,
    RERUN,
    POISON,
    FIXED_AT_CAPTURE,
    OTHER_PATH,
    BAD_VALUES,
    BATCH,
    PREDICTION,
    LAUNDERED,
    OVERFLOWED,
    NOTHING_COMPARED,
    OTHER_DATA,
    REQUIRED_INERT,
    DECOY_PASSED,
    LOOSE,
    UNDECIDED,
    SIGHTS
};

static const struct {
    enum at_state state;
    const char *says;
} fates[SIGHTS + 1] = {
    [DIRT] = { AT_STATE_DIRTY, "wrote past tensor o" },
    [RERUN] = { AT_STATE_RACY, "3 of 16 elements changed bits between two equal launches" },
    [POISON] = { AT_STATE_WRONG, "4 elements follow what stands in key or value rows that no request owns" },
    [FIXED_AT_CAPTURE] = { AT_STATE_WRONG, "8 of 16 elements have other bits" },
    [OTHER_PATH] = { AT_STATE_WRONG, "0 of 0 elements have other bits, other kernels or grids are launched" },
    [BAD_VALUES] = { AT_STATE_WRONG, "1 of 16 elements wrong" },
    [BATCH] = { AT_STATE_RACY, "5 of 16 elements changed bits with the batch" },
    [PREDICTION] = { AT_STATE_MISPREDICTED, "6 of 16 elements differ in their bits from the SIMT run" },
    [LAUNDERED] = { AT_STATE_LAUNDERED, "2 outputs are ordinary numbers where the exact result is not finite" },
    [OVERFLOWED] = { AT_STATE_OVERFLOWED, "7 outputs are not finite, as the declared arithmetic has them" },
    [NOTHING_COMPARED] = { AT_STATE_SKIPPED, "no element of this tensor" },
    [OTHER_DATA] = { AT_STATE_WRONG, "gives what it gave for other data" },
    [REQUIRED_INERT] = { AT_STATE_VACUOUS, "requires decoys that change nothing here: halo" },
    [DECOY_PASSED] = { AT_STATE_VACUOUS, "would have let these wrong results through: beta" },
    [LOOSE] = { AT_STATE_VACUOUS, "P declared in e4m3, in no order: a result times 1.05 would have passed too" },
    [UNDECIDED] = { AT_STATE_VACUOUS, "the declared accumulator can overflow here" },
    [SIGHTS] = { AT_STATE_PASS, "" },
};

static void show(struct at_scene *s, enum at_scene_mode mode, enum sight sight) {
    switch (sight) {
    case DIRT:
        s->evidence.dirty = "wrote past tensor o: byte 3";
        break;
    case RERUN:
        s->result.rerun_different = 3;
        break;
    case POISON:
        s->evidence.poison_read = 4;
        break;
    case FIXED_AT_CAPTURE:
        s->result.graph_compared = AT_SCENE_N;
        s->result.graph_different = 8;
        break;
    case OTHER_PATH:
        s->result.graph_other_path = 1;
        break;
    case BAD_VALUES:
        s->data[5] = -1;
        s->result.wrong += 1;
        break;
    case BATCH:
        s->result.batch_different = 5;
        break;
    case PREDICTION:
        s->result.predicted_compared = AT_SCENE_N;
        s->result.predicted_different = 6;
        break;
    case LAUNDERED:
        s->comparison.laundered = 2;
        s->comparison.beyond_limit += 2;
        s->result.wrong += mode == AT_WITH_LIMIT ? 2 : 0; /* nothing says that the declared arithmetic does the same */
        break;
    case OVERFLOWED:
        s->comparison.overflowed = 7;
        s->comparison.beyond_limit += 7;
        break;
    case NOTHING_COMPARED:
        s->result.compared = 0;
        break;
    case OTHER_DATA:
        s->evidence.other_data = "gives what it gave for other data in the same memory";
        break;
    case REQUIRED_INERT:
        s->evidence.required_inert = "halo";
        break;
    case DECOY_PASSED:
        s->decoys.passed = 1;
        s->decoys.rejected = 2;
        s->decoys.fate[1] = AT_DECOY_PASSED;
        break;
    case LOOSE: /* nothing of it with a model, which sees every bit */
        s->numerics.p = AT_E4M3;
        s->result.resolution = 0.05;
        break;
    case UNDECIDED:
        s->comparison.undecided = AT_SCENE_N;
        break;
    case SIGHTS:
        break;
    }
}

/* Every set of sights, with a model, with classes, with limits alone: the first of them decides. */
static void the_first_sight_decides(void **state) {
    (void)state;
    static struct at_scene s;
    for (int mode = 0; mode < AT_SCENE_MODES; mode++)
        for (unsigned set = 0; set < 1u << SIGHTS; set++) {
            int first = SIGHTS;
            at_scene_set_up(&s, (enum at_scene_mode)mode);
            for (int i = SIGHTS - 1; i >= 0; i--)
                if (set >> i & 1) {
                    show(&s, (enum at_scene_mode)mode, (enum sight)i);
                    first = i == LOOSE && mode == AT_WITH_MODEL ? first : i;
                }
            at_scene_expect(&s, fates[first].state, fates[first].says);
            assert_int_equal(s.result.judged_by_model, mode == AT_WITH_MODEL);
            assert_int_equal(s.result.judged_by_limit, mode != AT_WITH_MODEL);
        }
}

/* An alarm of sums over the output that fresh data gave again: no element is wrong, and the whole is. */
static void a_confirmed_bias_is_wrong(void **state) {
    (void)state;
    static struct at_scene s;
    struct at_aggregate a = { .judged = 1, .ratio = 3, .worst = { .size = 3, .bound = 1, .norm = 100 }, .head = 1 };
    at_scene_set_up(&s, AT_WITH_LIMIT);
    s.evidence.aggregate = &a;
    at_scene_expect(&s, AT_STATE_PASS, "");
    a.confirmed = 1;
    at_scene_expect(&s, AT_STATE_WRONG, "biased: slope 1.03, at most 1.01 by the declaration (head 1)");
    show(&s, AT_WITH_LIMIT, BATCH);
    at_scene_expect(&s, AT_STATE_WRONG, "biased");
    show(&s, AT_WITH_LIMIT, DECOY_PASSED);
    at_scene_expect(&s, AT_STATE_WRONG, "biased");
    show(&s, AT_WITH_LIMIT, BAD_VALUES); /* which says more */
    at_scene_expect(&s, AT_STATE_WRONG, "1 of 16 elements wrong");
}

/* Bits may change where nobody said that they repeat. */
static void undeclared_changes_are_no_race(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_MODEL);
    show(&s, AT_WITH_MODEL, RERUN);
    show(&s, AT_WITH_MODEL, PREDICTION);
    show(&s, AT_WITH_MODEL, FIXED_AT_CAPTURE);
    show(&s, AT_WITH_MODEL, OTHER_PATH);
    s.numerics.repeats = 0;
    at_scene_expect(&s, AT_STATE_PASS, "");
    show(&s, AT_WITH_MODEL, BATCH);
    at_scene_expect(&s, AT_STATE_RACY, "with the batch");
    s.numerics.batch_invariant = 0;
    at_scene_expect(&s, AT_STATE_PASS, "");
    s.numerics.repeats = 1;
    at_scene_expect(&s, AT_STATE_RACY, "equal launches");
    s.result.rerun_different = 0;
    at_scene_expect(&s, AT_STATE_WRONG, "other kernels or grids");
    s.result.graph_different = s.result.graph_other_path = 0;
    at_scene_expect(&s, AT_STATE_MISPREDICTED, "SIMT run");
}

/* ---- what becomes of values that are not finite ---- */

/* The gate laundered inside the modelled run, although every output is finite in both. */
static void the_ledger_launders(void **state) {
    (void)state;
    static struct at_scene s;
    for (int mode = 0; mode < AT_SCENE_MODES; mode++) {
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        s.judgement.ledger.laundered = 3;
        s.judgement.ledger.has_laundered = 1;
        s.judgement.ledger.first_laundered = (struct at_place){ .b = 1, .h = 2, .q = 3, .k = 4 };
        if (mode == AT_WITH_LIMIT) { /* nothing was modelled: there is no such ledger to go by */
            at_scene_expect(&s, AT_STATE_PASS, "");
            continue;
        }
        at_scene_expect(
            &s, AT_STATE_LAUNDERED,
            "3 non-finite gate inputs became ordinary numbers, first at request 1, head 2, query 3, key 4; the "
            "modelled arithmetic does the same");
        s.result.wrong = 1; /* what the declared arithmetic does not do is plainly wrong */
        s.data[5] = -1;
        at_scene_expect(&s, AT_STATE_WRONG, "1 of 16 elements wrong; only token 0");
    }
}

/* Without a model every laundered element counts as wrong; LAUNDERED only when there is no other. */
static void laundered_without_a_model(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_LIMIT);
    s.want[4] = INFINITY;
    s.comparison.laundered = 1;
    s.result.wrong = 1;
    at_scene_expect(&s, AT_STATE_LAUNDERED,
                    "1 outputs are ordinary numbers where the exact result is not finite (no declared");
    s.result.wrong = 2;
    s.data[9] = 0;
    at_scene_expect(&s, AT_STATE_WRONG, "2 of 16 elements wrong");
    at_scene_set_up(&s, AT_WITH_CLASSES);
    s.comparison.laundered = 1;
    at_scene_expect(&s, AT_STATE_LAUNDERED, "the modelled arithmetic does the same");
    s.result.wrong = 1;
    s.data[4] = 0;
    at_scene_expect(&s, AT_STATE_WRONG, "1 of 16");
}

/* First place out of range: of the declared arithmetic where it was modelled, else of the exact evaluation. */
static void overflow_names_stage_and_place(void **state) {
    (void)state;
    static struct at_scene s;
    for (int mode = 0; mode < AT_SCENE_MODES; mode++) {
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        s.comparison.overflowed = s.comparison.beyond_limit = 2;
        struct at_ledger_row *modelled = &s.judgement.ledger.stage[AT_STAGE_qk_acc];
        struct at_ledger_row *exact = &s.answer.ledger.stage[AT_STAGE_out], *later = exact - 1;
        at_scene_expect(&s, AT_STATE_OVERFLOWED, "2 outputs are not finite, as the declared arithmetic has them");
        assert_null(strstr(s.result.cause, "stage"));
        modelled->has_first = exact->has_first = 1;
        modelled->first = (struct at_place){ .b = 1, .h = 2, .q = 3, .k = 4, .step = 5 };
        exact->first = (struct at_place){ .b = 6, .h = 7, .q = 8, .k = -1, .step = -1 };
        at_scene_expect(&s, AT_STATE_OVERFLOWED,
                        mode == AT_WITH_MODEL
                            ? "; first out of range at stage qk_acc: request 1, head 2, query 3, key 4, step 5"
                            : "; first out of range at stage out: request 6, head 7, query 8, key -1, step -1");
        later->has_first = 1; /* an earlier stage, of the exact ledger */
        s.judgement.ledger.stage[AT_STAGE_pv_acc].has_first = 1;
        at_scene_expect(&s, AT_STATE_OVERFLOWED, mode == AT_WITH_MODEL ? "at stage qk_acc" : "at stage pv_acc");
    }
}

/* Equal to the model, and beyond a limit that no infinity excuses: attest itself is wrong somewhere. */
static void model_against_limit(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_MODEL);
    s.comparison.beyond_limit = 3;
    at_scene_expect(&s, AT_STATE_WRONG, "3 elements equal the modelled value but lie beyond the derived limit");
    show(&s, AT_WITH_MODEL, BATCH);
    show(&s, AT_WITH_MODEL, REQUIRED_INERT);
    at_scene_expect(&s, AT_STATE_WRONG, "3 elements equal the modelled value");
    show(&s, AT_WITH_MODEL, OVERFLOWED); /* these account for themselves, and for nothing else */
    at_scene_expect(&s, AT_STATE_WRONG, "3 elements equal the modelled value");
    at_scene_set_up(&s, AT_WITH_MODEL);
    show(&s, AT_WITH_MODEL, OVERFLOWED);
    at_scene_expect(&s, AT_STATE_OVERFLOWED, "7 outputs");
    for (int mode = AT_WITH_CLASSES; mode < AT_SCENE_MODES; mode++) { /* there is no model to contradict */
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        s.comparison.beyond_limit = 3;
        at_scene_expect(&s, AT_STATE_PASS, "");
    }
}

static void vacuous_names_what_got_through(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_LIMIT);
    s.decoys.passed = 2;
    snprintf(s.decoys.fate, sizeof s.decoys.fate, "pip");
    at_scene_expect(&s, AT_STATE_VACUOUS, "the limit would have let these wrong results through: alpha gamma");
    assert_null(strstr(s.result.cause, "beta"));
    at_scene_set_up(&s, AT_WITH_MODEL);
    show(&s, AT_WITH_MODEL, DECOY_PASSED);
    at_scene_expect(&s, AT_STATE_VACUOUS, "the model's interval would have let these wrong results through: beta");
    /* many long names are cut, not overrun */
    static const char *const longest = "a_decoy_with_a_name_of_30_char";
    s.answer.n_decoys = s.decoys.n = s.decoys.passed = AT_MAX_DECOYS;
    for (int d = 0; d < AT_MAX_DECOYS; d++) {
        s.answer.decoys[d].name = longest;
        s.decoys.fate[d] = AT_DECOY_PASSED;
    }
    at_scene_expect(&s, AT_STATE_VACUOUS, longest);
    assert_true(strlen(s.result.cause) > 300 && strlen(s.result.cause) < sizeof s.result.cause);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_sight_decides),
        cmocka_unit_test(a_confirmed_bias_is_wrong),
        cmocka_unit_test(undeclared_changes_are_no_race),
        cmocka_unit_test(the_ledger_launders),
        cmocka_unit_test(laundered_without_a_model),
        cmocka_unit_test(overflow_names_stage_and_place),
        cmocka_unit_test(model_against_limit),
        cmocka_unit_test(vacuous_names_what_got_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
