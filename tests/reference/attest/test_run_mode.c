/* What a job line says beyond the plain launch, and what a reply then carries: there and back, and what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/protocol.h"

static void parse(struct at_line *line, struct at_message *message) {
    at_assert_ok(at_line_end(line));
    line->text[strcspn(line->text, "\n")] = 0;
    at_assert_ok(at_message_parse(line->text, message));
}

static struct at_job plain(void) {
    struct at_job job = { .op = "asynct_attention", .timeout = 1 };
    at_problem_init(&job.problem, at_op_find(job.op), AT_F16);
    return job;
}

static struct at_run_mode through(struct at_run_mode mode) {
    struct at_line line;
    struct at_message message;
    struct at_job job = plain(), got;
    job.mode = mode;
    at_assert_ok(at_job_format(&job, &line));
    line.text[strcspn(line.text, "\n")] = 0;
    at_assert_ok(at_message_parse(line.text, &message));
    at_assert_ok(at_job_parse(&message, &got));
    return got.mode;
}

static void test_job(void **state) {
    (void)state;
    static const struct at_run_mode modes[] = { { 0 },
                                                { .graph = 1 },
                                                { .graph = 1, .graph_max_sk = 77 },
                                                { .order = INT64_MAX },
                                                { .counters = 1 },
                                                { .unchecked = 1 },
                                                { .ask = 1 },
                                                { .dry = 1 },
                                                { .timings = 20 },
                                                { .hold = 1 },
                                                { .replays = 20, .steps = 4096 } };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const struct at_run_mode got = through(modes[i]);
        assert_int_equal(got.graph, modes[i].graph);
        assert_true(got.graph_max_sk == modes[i].graph_max_sk && got.order == modes[i].order);
        assert_int_equal(got.counters, modes[i].counters);
        assert_int_equal(got.unchecked, modes[i].unchecked);
        assert_int_equal(got.ask, modes[i].ask);
        assert_int_equal(got.dry, modes[i].dry);
        assert_int_equal(got.timings, modes[i].timings);
        assert_int_equal(got.hold, modes[i].hold);
        assert_int_equal(got.replays, modes[i].replays);
        assert_true(got.steps == modes[i].steps);
    }
}

static void test_job_refuses(void **state) {
    (void)state;
    static const char *const bad[][2] = { { "graph", "-1" },    { "order", "-5" },        { "counters", "2" },
                                          { "unchecked", "x" }, { "timings", "1000001" }, { "graph", "" },
                                          { "ask", "2" },       { "dry", "2" },           { "hold", "2" },
                                          { "replays", "-1" },  { "steps", "12" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct at_line line;
        struct at_message message;
        struct at_job job = plain(), got;
        at_assert_ok(at_job_format(&job, &line));
        line.n--; /* its end */
        at_line_text(&line, bad[i][0], bad[i][1]);
        parse(&line, &message);
        at_assert_fails(at_job_parse(&message, &got), AT_PROTOCOL, bad[i][0]);
    }
}

static struct at_reply full(void) {
    struct at_reply reply = { .kind = AT_REPLY_DONE,
                              .seconds = 0.5,
                              .capturable = 1,
                              .path = 99,
                              .launches = 3,
                              .way = "wgmma",
                              .has_counters = 1 };
    int64_t n = 1;
#define X(name, meaning) reply.counters.name = n++;
    AT_COUNTER_LIST(X)
#undef X
    reply.timing =
        (struct at_timing){ .cold = 0x1.8p-20, .hot = 0x1p-21, .copy_rate = 4e12, .replays = 20, .copies = 7 };
    reply.timed_outputs = 1;
    return reply;
}

static void test_reply(void **state) {
    (void)state;
    const struct at_reply sent = full();
    struct at_line line;
    struct at_message message;
    struct at_reply got;
    at_assert_ok(at_reply_format(&sent, &line));
    line.text[strcspn(line.text, "\n")] = 0;
    at_assert_ok(at_message_parse(line.text, &message));
    at_assert_ok(at_reply_parse(&message, &got));
    assert_int_equal(got.capturable, 1);
    assert_true(got.path == 99 && got.launches == 3 && got.has_counters);
    assert_string_equal(got.way, "wgmma");
    assert_memory_equal(&got.counters, &sent.counters, sizeof got.counters);
    assert_true(got.timing.cold == sent.timing.cold && got.timing.hot == sent.timing.hot);
    assert_true(got.timing.copy_rate == sent.timing.copy_rate);
    assert_int_equal(got.timing.replays, 20);
    assert_int_equal(got.timing.copies, 7);
    assert_int_equal(got.timed_outputs, 1);
}

/* A reply that leaves one counter or one time out, or says what cannot be. */
static void test_reply_refuses(void **state) {
    (void)state;
    static const char *const bad[] = {
        "done id=0 bytes=0 seconds=0 counter.global_requests=1",
        "done id=0 bytes=0 seconds=0 path=-1",
        "done id=0 bytes=0 seconds=0 launches=-1",
        "done id=0 bytes=0 seconds=0 capturable=2",
        "done id=0 bytes=0 seconds=0 way=a_name_of_thirty_two_characters_",
        "done id=0 bytes=0 seconds=0 replays=0 copies=1 cold=1 hot=1 copy_rate=1",
        "done id=0 bytes=0 seconds=0 replays=1 copies=1 cold=1 hot=1",
        "done id=0 bytes=0 seconds=0 replays=1 copies=1 cold=nan hot=1 copy_rate=1",
        "done id=0 bytes=0 seconds=0 replays=1 copies=1 cold=1 hot=-1 copy_rate=1",
        "done id=0 bytes=0 seconds=0 replays=1 copies=1 cold=1 hot=1 copy_rate=inf",
        "done id=0 bytes=0 seconds=0 replays=1 copies=1 cold=1 hot=1 copy_rate=1 outputs=2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[160];
        struct at_message message;
        struct at_reply got;
        snprintf(text, sizeof text, "%s", bad[i]);
        at_assert_ok(at_message_parse(text, &message));
        at_assert_true(at_reply_parse(&message, &got) == AT_PROTOCOL, "taken: %s", bad[i]);
    }
    char text[] = "done id=0 bytes=0 seconds=0";
    struct at_message message;
    struct at_reply got;
    at_assert_ok(at_message_parse(text, &message));
    at_assert_ok(at_reply_parse(&message, &got));
    assert_true(!got.has_counters && !got.capturable && got.path == 0 && got.timing.replays == 0 && !got.timed_outputs);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_job), cmocka_unit_test(test_job_refuses),
                                        cmocka_unit_test(test_reply), cmocka_unit_test(test_reply_refuses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
