/* Statuses and the error trail: texts, frames, truncation, threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <pthread.h>

static void test_table(void **state) {
    (void)state;
    static const int exits[AT_STATUS_COUNT] = { 0, 2, 2, 2, 3, 3, 3, 3, 3, 3, 70 };
    assert_string_equal(at_status_name(AT_OK), "OK");
    assert_string_equal(at_status_name(AT_NO_MEMORY), "NO_MEMORY");
    assert_string_equal(at_status_name(AT_BUG), "BUG");
    for (int i = 0; i < AT_STATUS_COUNT; i++) {
        assert_int_equal(at_status_exit_code((at_status)i), exits[i]);
        assert_true(strlen(at_status_meaning((at_status)i)) > 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(at_status_name((at_status)i), at_status_name((at_status)k));
    }
    /* what is no status must not look like success */
    const int strangers[] = { -1, AT_STATUS_COUNT, 1000000 };
    for (int i = 0; i < 3; i++) {
        assert_string_equal(at_status_name((at_status)strangers[i]), "UNKNOWN");
        assert_int_equal(at_status_exit_code((at_status)strangers[i]), 70);
        assert_true(strlen(at_status_meaning((at_status)strangers[i])) > 0);
    }
}

static at_status bottom(int number) { return AT_FAIL(AT_IO, "number %d", number); }

static at_status middle(int number) {
    AT_TRY(bottom(number));
    return AT_OK;
}

static int cleaned;

static at_status top(int number) {
    at_status status = AT_OK;
    AT_TRY_OUT(middle(number));
out:
    cleaned++;
    return status;
}

static at_status gives_up(void) {
    at_status status;
    AT_FAIL_OUT(AT_HUNG, "waited %s", "long");
out:
    cleaned++;
    return status;
}

static int lines_of(const char *text) {
    int lines = *text != 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void test_frames(void **state) {
    (void)state;
    cleaned = 0;
    at_error_clear();
    assert_string_equal(at_error_message(), "");
    assert_string_equal(at_error_trail(), "");
    assert_int_equal(top(42), AT_IO);
    assert_string_equal(at_error_message(), "number 42");
    const char *trail = at_error_trail();
    const char *first = strstr(trail, "(bottom)"), *second = strstr(trail, "(middle)"), *third = strstr(trail, "(top)");
    assert_true(strncmp(trail, "number 42\n", 10) == 0);
    assert_true(first && second && third && first < second && second < third);
    assert_non_null(strstr(trail, "test_status.c:"));
    assert_int_equal(lines_of(trail), 4);
    assert_int_equal(gives_up(), AT_HUNG);
    assert_string_equal(at_error_message(), "waited long");
    assert_null(strstr(at_error_trail(), "number 42"));
    assert_int_equal(cleaned, 2);
    at_frame_at(AT_HUNG, "elsewhere.c", 7, "there", "case %d", 3);
    assert_non_null(strstr(at_error_trail(), "elsewhere.c:7 (there): case 3"));
    at_error_clear();
    assert_string_equal(at_error_trail(), "");
}

/* A message may be worded anew from the one before it, and from the trail. */
static void test_message_from_message(void **state) {
    (void)state;
    bottom(1);
    assert_int_equal(AT_FAIL(AT_USAGE, "case 3: %s", at_error_message()), AT_USAGE);
    assert_string_equal(at_error_message(), "case 3: number 1");
    assert_int_equal(AT_FAIL(AT_USAGE, "[%s]", at_error_trail()), AT_USAGE);
    assert_true(strncmp(at_error_message(), "[case 3: number 1\n", 18) == 0);
}

/* Messages and trails of any length are cut, end with a zero, and keep their beginning. */
static void test_truncation(void **state) {
    (void)state;
    enum { LONG = 20000 };
    static char text[LONG + 1];
    for (int length = 0; length <= LONG; length = length < 5000 ? length + 1 : length * 2) {
        memset(text, 'a' + length % 26, (size_t)length);
        text[length] = 0;
        assert_int_equal(at_fail_at(AT_IO, "file.c", 1, "function", "%s", text), AT_IO);
        size_t want = length < AT_ERROR_MESSAGE_BYTES ? (size_t)length : AT_ERROR_MESSAGE_BYTES - 1;
        assert_int_equal(strlen(at_error_message()), want);
        assert_memory_equal(at_error_message(), text, want);
        assert_memory_equal(at_error_trail(), text, want);
    }
    for (int depth = 0; depth < 3000; depth++) {
        assert_int_equal(at_frame_at(AT_IO, "file.c", depth, "function", "%s", text), AT_IO);
        assert_true(strlen(at_error_trail()) < AT_ERROR_TRAIL_BYTES);
    }
    assert_int_equal(strlen(at_error_trail()), AT_ERROR_TRAIL_BYTES - 1);
    assert_int_equal(strlen(at_error_message()), AT_ERROR_MESSAGE_BYTES - 1);
    assert_memory_equal(at_error_trail(), at_error_message(), AT_ERROR_MESSAGE_BYTES - 1);
    bottom(5); /* a full trail does not hold on to the next failure */
    assert_string_equal(at_error_message(), "number 5");
    assert_int_equal(lines_of(at_error_trail()), 2);
}

/* Every length of file name around the end of the trail: the cut is never past it. */
static void test_truncation_at_every_offset(void **state) {
    (void)state;
    char file[300];
    for (int length = 1; length < 299; length++) {
        memset(file, 'f', (size_t)length);
        file[length] = 0;
        bottom(length);
        for (int depth = 0; depth < 5000 / length + 20; depth++)
            at_frame_at(AT_IO, file, depth, "g", NULL);
        assert_true(strlen(at_error_trail()) < AT_ERROR_TRAIL_BYTES);
        assert_true(strncmp(at_error_trail(), "number ", 7) == 0);
    }
}

struct seen {
    int before_empty, own_message;
    struct at_error_copy copy;
};

static void *fail_in_thread(void *argument) {
    struct seen *seen = argument;
    seen->before_empty = at_error_message()[0] == 0 && at_error_trail()[0] == 0;
    top(77);
    seen->own_message = strcmp(at_error_message(), "number 77") == 0;
    at_error_save(&seen->copy);
    return NULL;
}

static void test_threads_have_their_own(void **state) {
    (void)state;
    struct seen seen;
    pthread_t id;
    bottom(5);
    assert_int_equal(pthread_create(&id, NULL, fail_in_thread, &seen), 0);
    assert_int_equal(pthread_join(id, NULL), 0);
    assert_true(seen.before_empty && seen.own_message);
    assert_string_equal(at_error_message(), "number 5");
    at_error_restore(&seen.copy);
    assert_string_equal(at_error_message(), "number 77");
    assert_int_equal(lines_of(at_error_trail()), 4);
    at_frame_at(AT_IO, "after.c", 1, "restore", NULL);
    assert_int_equal(lines_of(at_error_trail()), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_message_from_message),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_truncation_at_every_offset),
        cmocka_unit_test(test_threads_have_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
