/* Hostile lines to both ends of the runner protocol: every parser answers with a status, in bounded time, and
 * what it accepts is safe to use.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/protocol.h"
#include "kernels/runner/host_device.h"
#include "tests/support/attention_problem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT = 40000 };

/* ---- good lines to start from ---- */

static void good_job(struct at_job *job) {
    *job = (struct at_job){ .id = 3, .variant = 0, .op = "uclip_norm", .used = 4096, .timeout = 2, .n_tensors = 3 };
    at_problem_init(&job->problem, at_op_find(job->op), AT_BF16);
    job->problem.sizes.tokens = 2;
    job->problem.sizes.channels = 4;
    for (int i = 0; i < job->n_tensors; i++) {
        struct at_job_tensor *t = &job->tensor[i];
        *t = (struct at_job_tensor){ .index = i, .name = "x", .role = (enum at_role)i, .offset = 512 * i, .bytes = 16 };
        t->shape = (struct at_tensor){ .format = AT_BF16, .rank = 2, .shape = { 2, 4 } };
    }
}

enum { SEEDS = 7 };

static void good_line(int which, struct at_line *line) {
    struct at_job job;
    struct at_open open = { .transport = AT_TRANSPORT_MEMFD, .fd = 3, .memory = 65536 };
    struct at_hello hello = {
        .version = AT_PROTOCOL_VERSION, .name = "n", .device = "a %=\n", .transport = { 1, 1 }, .variants = 2
    };
    struct at_variant_text variant = {
        .family = "f", .name = "n", .numerics = "qk_unit=f32 p=bf16", .mutant_of = "f/m"
    };
    struct at_reply done = { .kind = AT_REPLY_DONE, .id = 5, .seconds = 0.25, .bytes = 64 };
    struct at_reply failed = { .kind = AT_REPLY_FAILED, .id = 5, .reason = "no luck" };
    good_job(&job);
    switch (which) {
    case 0:
        at_assert_ok(at_hello_format(&hello, line));
        break;
    case 1:
        at_assert_ok(at_variant_format(0, &variant, line));
        break;
    case 2:
        at_assert_ok(at_open_format(&open, line));
        break;
    case 3:
        at_assert_ok(at_job_format(&job, line));
        break;
    case 4:
        at_assert_ok(at_reply_format(&done, line));
        break;
    case 5:
        at_assert_ok(at_reply_format(&failed, line));
        break;
    default:
        at_line_begin(line, "quit");
        at_assert_ok(at_line_end(line));
    }
}

/* ---- damage ---- */

static const char *const snippets[] = { " ",
                                        "=",
                                        "%",
                                        "%00",
                                        "%4",
                                        "%ZZ",
                                        "\n",
                                        ":",
                                        ",",
                                        "-",
                                        "-1",
                                        "0",
                                        "nan",
                                        "inf",
                                        "0x1p9999",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "70368744177664",
                                        "70368744177665",
                                        "99999999999999999999999",
                                        "1,1,1,1,1",
                                        "id=",
                                        "tensor=",
                                        "tensor=0:a:in:f32:4:0:16",
                                        "tensor=0:a:in:f32:70368744177664,70368744177664:0:0",
                                        "tensor=15:a:out:i32::0:4",
                                        "used=0",
                                        "memory=1",
                                        "variant=4095",
                                        "\xff",
                                        "\t" };

/* Changes `text` of length n in place, a few times; returns the new length. */
static size_t damage(struct at_test_random *random, char *text, size_t n) {
    for (int times = 1 + at_test_below(random, 4); times > 0; times--) {
        size_t at = n ? (size_t)at_test_below(random, (int)n) : 0;
        const char *snippet = snippets[at_test_below(random, (int)(sizeof snippets / sizeof *snippets))];
        size_t length = strlen(snippet), cut;
        switch (at_test_below(random, 5)) {
        case 0: /* a random byte */
            if (n)
                text[at] = (char)at_test_bits(random);
            break;
        case 1: /* a hole */
            cut = (size_t)at_test_below(random, 20) < n - at ? (size_t)at_test_below(random, 20) : 0;
            if (cut > n - at)
                cut = n - at;
            memmove(text + at, text + at + cut, n - at - cut);
            n -= cut;
            break;
        case 2: /* overwritten by something nasty */
            if (at + length <= n)
                memcpy(text + at, snippet, length); /* NOLINT(bugprone-not-null-terminated-result): inside the text */
            break;
        case 3: /* something nasty inserted */
            if (n + length < TEXT / 2) {
                memmove(text + at + length, text + at, n - at);
                memcpy(text + at, snippet, length); /* NOLINT(bugprone-not-null-terminated-result) */
                n += length;
            }
            break;
        default: /* a part repeated many times */
            for (int i = at_test_below(random, 200); i > 0 && n + 64 < TEXT / 2 && at + 64 < n; i--) {
                memmove(text + n, text + at, 64);
                n += 64;
            }
        }
    }
    return n;
}

/* ---- the parsers ---- */

static void check_job(const struct at_job *job) {
    assert_in_range(job->n_tensors, 0, AT_MAX_TENSORS);
    assert_in_range(job->variant, 0, AT_MAX_VARIANTS - 1);
    assert_true(job->used >= 0 && job->used <= AT_PROTOCOL_MAX_BYTES);
    assert_true(job->timeout > 0);
    for (int i = 0; i < job->n_tensors; i++) {
        const struct at_job_tensor *t = &job->tensor[i];
        assert_in_range(t->index, 0, AT_MAX_TENSORS - 1);
        assert_in_range(t->shape.rank, 1, AT_MAX_RANK);
        assert_true(t->offset >= 0 && t->bytes >= 0 && t->offset <= job->used && t->bytes <= job->used - t->offset);
        assert_true(at_tensor_bytes(&t->shape) == t->bytes);
        assert_true(memchr(t->name, 0, sizeof t->name) != NULL);
    }
}

/* Every parser on one line: none may do more than return. */
static int parse_all(const char *text) {
    static char copy[AT_LINE_BYTES + 1];
    struct at_message message;
    struct at_hello hello;
    struct at_variant_text variant;
    struct at_open open;
    struct at_reply reply;
    struct at_job job;
    snprintf(copy, sizeof copy, "%s", text);
    if (at_message_parse(copy, &message) != AT_OK) {
        assert_true(at_error_message()[0] != '\0');
        return 0;
    }
    assert_in_range(message.n, 0, AT_LINE_FIELDS);
    int accepted = at_hello_parse(&message, &hello) == AT_OK;
    accepted += at_variant_parse(&message, 0, &variant) == AT_OK;
    accepted += at_open_parse(&message, &open) == AT_OK;
    accepted += at_reply_parse(&message, &reply) == AT_OK;
    if (at_job_parse(&message, &job) == AT_OK) {
        check_job(&job);
        accepted++;
    }
    at_assert_true(accepted <= 1, "one line is two messages: %s", text);
    return accepted;
}

static void test_parsers(void **state) {
    (void)state;
    static char text[TEXT];
    const long rounds = 20000 * at_test_effort(10);
    struct at_test_random random = { 1 };
    long accepted = 0, refused = 0;
    for (long i = 0; i < rounds; i++) {
        static struct at_line line;
        struct at_inbox inbox = { 0 };
        good_line((int)(i % SEEDS), &line);
        memcpy(text, line.text, line.n);
        size_t n = i < SEEDS ? line.n : damage(&random, text, line.n), sent = 0;
        char *found = NULL;
        at_status status = AT_OK;
        /* through the stream in uneven pieces, as a pipe delivers them */
        while (sent < n && status == AT_OK) {
            size_t room;
            char *into = at_inbox_room(&inbox, &room);
            at_assert_true(room > 0, "the inbox is full and no line was found");
            size_t piece = 1 + (size_t)at_test_below(&random, 5000);
            piece = piece < room ? piece : room;
            piece = piece < n - sent ? piece : n - sent;
            memcpy(into, text + sent, piece);
            at_inbox_added(&inbox, piece);
            sent += piece;
            while ((status = at_inbox_line(&inbox, &found)) == AT_OK && found)
                parse_all(found) ? accepted++ : refused++;
        }
        refused += status != AT_OK;
    }
    print_message("%ld messages accepted, %ld lines refused\n", accepted, refused);
    assert_true(accepted >= SEEDS - 1 && refused > rounds / 4);
}

/* What is written comes back the same, whatever bytes a text holds. */
static void test_round_trip(void **state) {
    (void)state;
    struct at_test_random random = { 2 };
    for (long i = 0; i < 2000 * at_test_effort(5); i++) {
        static struct at_line line;
        struct at_message message;
        struct at_reply reply = { .kind = AT_REPLY_FAILED, .id = (int64_t)(at_test_bits(&random) >> 1) }, back;
        int n = at_test_below(&random, (int)sizeof reply.reason);
        for (int j = 0; j < n; j++)
            reply.reason[j] = (char)(1 + at_test_below(&random, 255));
        at_assert_ok(at_reply_format(&reply, &line));
        line.text[line.n - 1] = '\0';
        at_assert_ok(at_message_parse(line.text, &message));
        at_assert_ok(at_reply_parse(&message, &back));
        assert_true(back.id == reply.id && back.kind == reply.kind);
        assert_string_equal(back.reason, reply.reason);
    }
    struct at_job job, back;
    static struct at_line line;
    struct at_message message;
    good_job(&job);
    job.problem.params.lo = 0x1.234566p-7f;
    job.problem.params.hi = INFINITY;
    at_assert_ok(at_job_format(&job, &line));
    line.text[line.n - 1] = '\0';
    at_assert_ok(at_message_parse(line.text, &message));
    at_assert_ok(at_job_parse(&message, &back));
    assert_memory_equal(&back.problem, &job.problem, sizeof job.problem);
    assert_string_equal(back.lacks, "");
    assert_int_equal(back.n_tensors, job.n_tensors);
    assert_int_equal(back.tensor[2].role, AT_INOUT);
}

/* A line has an operator's own sizes and parameters and no others; those of another time are passed over, keep their
 * default, or are named; so is an operator. */
static void test_other_times(void **state) {
    (void)state;
    static struct at_line line;
    static char text[AT_LINE_BYTES + 1];
    struct at_message message;
    struct at_job job, back;
    good_job(&job);
    job.problem.params.lo = -3;
    at_assert_ok(at_job_format(&job, &line));
    assert_non_null(strstr(line.text, " size.tokens=2 size.channels=4 param.lo="));
    assert_null(strstr(line.text, "size.h="));
    assert_null(strstr(line.text, "param.scale="));
    static const struct {
        const char *from, *to, *lacks;
        int known;
        double lo;
    } tries[] = {
        { " size.channels=4", " size.channels=4 size.colours=3 param.taste=0x1p+0", "", 1, -3 },
        { " param.lo=", " param.low=", "", 1, -1 },
        { " size.channels=4", "", "size.channels", 1, -3 },
        { "op=uclip_norm", "op=uclip_norm_2", "", 0, 0 },
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const char *at = strstr(line.text, tries[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%.*s", (int)(at - line.text), line.text, tries[i].to,
                 (int)strcspn(at + strlen(tries[i].from), "\n"), at + strlen(tries[i].from));
        at_assert_ok(at_message_parse(text, &message));
        at_assert_ok(at_job_parse(&message, &back));
        assert_string_equal(back.lacks, tries[i].lacks);
        assert_int_equal(back.problem.op != NULL, tries[i].known);
        at_assert_same(back.problem.params.lo, tries[i].lo);
    }
}

/* ---- the serving side, on whole hostile conversations ---- */

static int touch(const struct at_launch *launch) {
    for (int i = 0; i < AT_MAX_TENSORS; i++)
        if (launch->problem->tensors[i].data)
            memset(launch->problem->tensors[i].data, 1, (size_t)at_tensor_bytes(&launch->problem->tensors[i]));
    return 0;
}

static const struct at_kernel_entry *only_entry(int i) {
    static const struct at_kernel kernel = { .summary = "touches",
                                             .source = "ours",
                                             .launch = touch,
                                             .numerics = { .qk_lanes = 1, .p = AT_F32, .pv_chunk = 1 } };
    static const struct at_kernel_entry entry = { "f", "n", "p", &kernel, "" };
    assert_int_equal(i, 0);
    return &entry;
}

static void test_serving_side(void **state) {
    (void)state;
    static char text[2 * TEXT];
    struct at_test_random random = { 3 };
    struct at_host_device host;
    at_host_device_init(&host);
    int in = memfd_create("in", MFD_CLOEXEC), out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int quiet = dup(STDERR_FILENO), ended[2] = { 0, 0 };
    assert_true(in >= 0 && out >= 0 && quiet >= 0);
    dup2(out, STDERR_FILENO); /* it tells its standard error about every breach */
    for (long i = 0; i < 300 * at_test_effort(10); i++) {
        static struct at_line line;
        struct at_serve serve = { .name = "fuzzed",
                                  .device_text = "none",
                                  .device = &host.device,
                                  .kernels = { 1, only_entry },
                                  .in = in,
                                  .out = out };
        size_t n = (size_t)snprintf(text, sizeof text, "open protocol=5 transport=inline\n");
        for (int j = at_test_below(&random, 4); j >= 0; j--) {
            good_line(at_test_below(&random, 3) ? 3 : at_test_below(&random, SEEDS), &line);
            memcpy(text + n, line.text, line.n);
            n += at_test_below(&random, 3) ? line.n : damage(&random, text + n, line.n);
            memset(text + n, 'x', 4096); /* the block of a job */
            n += at_test_below(&random, 8) ? 4096 : 100;
        }
        assert_true(ftruncate(in, 0) == 0 && pwrite(in, text, n, 0) == (ssize_t)n && lseek(in, 0, SEEK_SET) == 0);
        at_status status = at_serve(&serve);
        ended[status != AT_OK]++;
        assert_true(status == AT_OK || status == AT_PROTOCOL || status == AT_NO_MEMORY);
    }
    dup2(quiet, STDERR_FILENO);
    print_message("%d conversations ended well, %d were broken off\n", ended[0], ended[1]);
    assert_true(ended[0] > 0 && ended[1] > 0);
    at_host_device_release(&host);
    close(quiet);
    close(in);
    close(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parsers),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_other_times),
        cmocka_unit_test(test_serving_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
