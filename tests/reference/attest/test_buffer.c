/* Guard bands, marks and checksums: every byte outside a payload is watched, every unwritten element is
 * found, and every change of an input is seen.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/buffer.h"

static void *block_of(int64_t bytes) {
    void *block = aligned_alloc(AT_BUFFER_ALIGN, (size_t)(bytes + AT_BUFFER_ALIGN) / AT_BUFFER_ALIGN * AT_BUFFER_ALIGN);
    assert_non_null(block);
    return block;
}

static const int64_t sizes[] = { 1, 0, 255, 256, 257, 4096, 2, 511, 512, 513, 1000 };
enum { N = sizeof sizes / sizeof sizes[0] };

/* All payloads in a block of exactly the bytes asked for; *payloads get their addresses. */
static void *place_all(struct at_buffer *buffer, uint64_t seed, uint8_t **payloads) {
    int64_t need = at_buffer_need(N, sizes);
    void *block = block_of(need);
    at_buffer_init(buffer, block, need, seed);
    for (int i = 0; i < N; i++) {
        int index = -1;
        void *payload = NULL;
        at_assert_ok(at_buffer_place(buffer, sizes[i], &index, &payload));
        assert_int_equal(index, i);
        assert_int_equal((uintptr_t)payload % AT_BUFFER_ALIGN, 0);
        assert_ptr_equal(payload, (uint8_t *)block + buffer->placed[i].offset);
        payloads[i] = payload;
    }
    assert_int_equal(buffer->used, need);
    return block;
}

static void test_placement(void **state) {
    (void)state;
    struct at_buffer buffer;
    uint8_t *payloads[N];
    int which = -7;
    int64_t distance = -7;
    void *block = place_all(&buffer, 1, payloads);
    assert_true(buffer.placed[0].offset >= AT_GUARD_BYTES);
    for (int i = 0; i < N; i++) {
        int64_t end = buffer.placed[i].offset + buffer.placed[i].bytes;
        int64_t next = i + 1 < N ? buffer.placed[i + 1].offset - AT_GUARD_BYTES : buffer.used;
        assert_true(next - end >= AT_GUARD_BYTES);
        memset(payloads[i], 0xff, (size_t)sizes[i]); /* a payload's own bytes are its user's */
    }
    assert_int_equal(at_buffer_damaged(&buffer, &which, &distance), 0);
    assert_int_equal(which, -7);
    assert_int_equal(at_buffer_need(0, NULL), 0);
    free(block);
}

/* Every byte of the block that is in no payload, one at a time and by one bit: found, at its place. */
static void test_every_guard_byte(void **state) {
    (void)state;
    struct at_buffer buffer;
    uint8_t *payloads[N];
    uint8_t *block = place_all(&buffer, 0x1234, payloads);
    int owner = 0;
    for (int64_t at = 0; at < buffer.used; at++) {
        const struct at_placed *placed = &buffer.placed[owner];
        if (at >= placed->offset && at < placed->offset + placed->bytes)
            continue;
        if (owner + 1 < N && at >= buffer.placed[owner + 1].offset - AT_GUARD_BYTES)
            placed = &buffer.placed[++owner];
        int64_t want = at < placed->offset ? at - placed->offset : at - placed->offset - placed->bytes;
        int which = -1;
        int64_t distance = 0;
        block[at] ^= (uint8_t)(1 << at % 8);
        assert_int_equal(at_buffer_damaged(&buffer, &which, &distance), 1);
        assert_int_equal(which, owner);
        assert_int_equal(distance, want);
        block[at] ^= (uint8_t)(1 << at % 8);
    }
    assert_int_equal(owner, N - 1);
    free(block);
}

/* The first of several is named, and bands hold different bytes for different seeds. */
static void test_first_damage_and_seeds(void **state) {
    (void)state;
    struct at_buffer one, two;
    uint8_t *payloads[N], *others[N];
    uint8_t *block = place_all(&one, 1, payloads), *other = place_all(&two, 2, others);
    int which = -1, equal = 0;
    int64_t distance = 0;
    for (int64_t i = 0; i < AT_GUARD_BYTES; i++)
        equal += block[i] == other[i];
    assert_true(equal < 20); /* 2 expected of 512 */
    payloads[5][-1] ^= 1;
    payloads[3][-512] ^= 1;
    payloads[3][256] ^= 1;
    assert_int_equal(at_buffer_damaged(&one, &which, &distance), 1);
    assert_int_equal(which, 3);
    assert_int_equal(distance, -512);
    assert_int_equal(at_buffer_damaged(&two, &which, &distance), 0);
    /* a band copied from a run with another seed does not pass */
    memcpy(payloads[0] - AT_GUARD_BYTES, others[0] - AT_GUARD_BYTES, AT_GUARD_BYTES);
    assert_int_equal(at_buffer_damaged(&one, &which, &distance), 1);
    assert_int_equal(which, 0);
    free(block);
    free(other);
}

/* Every byte of a fence counts, as past the end of the last payload, and nothing is placed behind it. */
static void test_fence(void **state) {
    (void)state;
    enum { FENCE = 1003 };
    struct at_buffer buffer;
    static const int64_t bytes[] = { 40, 7 };
    const int64_t need = at_buffer_need(2, bytes);
    uint8_t *block = block_of(need + FENCE);
    int which = -1;
    int64_t distance = 0;
    void *payload = NULL;
    at_buffer_init(&buffer, block, need + FENCE, 3);
    for (int i = 0; i < 2; i++)
        at_assert_ok(at_buffer_place(&buffer, bytes[i], &which, &payload));
    at_assert_fails(at_buffer_fence(&buffer, FENCE + 1), AT_NO_MEMORY, "fence of 1004 bytes");
    at_assert_ok(at_buffer_fence(&buffer, FENCE));
    assert_int_equal(buffer.used, need + FENCE);
    assert_int_equal(at_buffer_damaged(&buffer, &which, &distance), 0);
    for (int64_t at = need; at < need + FENCE; at++) {
        block[at] ^= 0x10;
        assert_int_equal(at_buffer_damaged(&buffer, &which, &distance), 1);
        assert_int_equal(which, 1);
        assert_int_equal(distance, at - buffer.placed[1].offset - 7);
        block[at] ^= 0x10;
    }
    at_assert_fails(at_buffer_place(&buffer, 0, &which, &payload), AT_BUG, "behind the fence");
    at_assert_fails(at_buffer_fence(&buffer, 0), AT_NO_MEMORY, "fence of 0 bytes");
    free(block);
}

static void test_refusals(void **state) {
    (void)state;
    struct at_buffer buffer;
    int index = -1;
    void *payload = NULL;
    static const int64_t ten[] = { 10 };
    int64_t need = at_buffer_need(1, ten), none = 0;
    uint8_t *block = block_of(need * 2);
    at_buffer_init(&buffer, block, need - 1, 0);
    at_assert_fails(at_buffer_place(&buffer, 10, &index, &payload), AT_NO_MEMORY, "payload of 10 bytes");
    at_buffer_init(&buffer, block, need, 0);
    at_assert_fails(at_buffer_place(&buffer, -1, &index, &payload), AT_NO_MEMORY, "payload of -1 bytes");
    at_assert_fails(at_buffer_place(&buffer, INT64_MAX, &index, &payload), AT_NO_MEMORY, "payload of");
    at_assert_fails(at_buffer_place(&buffer, INT64_MAX - 600, &index, &payload), AT_NO_MEMORY, "payload of");
    assert_int_equal(buffer.n, 0);
    at_assert_ok(at_buffer_place(&buffer, 10, &index, &payload));
    at_assert_fails(at_buffer_place(&buffer, 0, &index, &payload), AT_NO_MEMORY, "0 of");
    at_buffer_init(&buffer, block + 64, need, 0);
    at_assert_fails(at_buffer_place(&buffer, 10, &index, &payload), AT_BUG, "aligned to 256 bytes");
    free(block);
    need = at_buffer_need(1, &none) * (AT_MAX_PLACED + 1);
    block = block_of(need);
    at_buffer_init(&buffer, block, need, 0);
    for (int i = 0; i < AT_MAX_PLACED; i++)
        at_assert_ok(at_buffer_place(&buffer, 0, &index, &payload));
    at_assert_fails(at_buffer_place(&buffer, 0, &index, &payload), AT_BUG, "holds 24 payloads");
    free(block);
}

/* A sealed payload changed by any one bit is seen; a guard or a neighbour changed is not its matter. */
static void test_seal(void **state) {
    (void)state;
    struct at_buffer buffer;
    uint8_t *payloads[N];
    void *block = place_all(&buffer, 5, payloads);
    for (int i = 0; i < N; i++) {
        memset(payloads[i], i, (size_t)sizes[i]);
        at_buffer_seal(&buffer, i);
    }
    for (int i = 0; i < N; i++)
        for (int64_t bit = 0; bit < 8 * sizes[i]; bit++) {
            payloads[i][bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(at_buffer_changed(&buffer, i), 1);
            payloads[i][bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    for (int i = 0; i < N; i++) {
        payloads[i][-1] ^= 1;
        payloads[i][sizes[i]] ^= 1;
        assert_int_equal(at_buffer_changed(&buffer, i), 0);
    }
    free(block);
}

static const uint64_t seeds[] = { 0, 1, 2, 7, 0x9e3779b97f4a7c15u, UINT64_MAX };

/* The mark is a quiet NaN, and none that a machine computes: not the canonical one of x86 (payload 0,
 * either sign) or of CUDA (payload all ones). */
static void test_marks(void **state) {
    (void)state;
    static const struct {
        enum at_format format;
        uint64_t quiet, payload;
        int least_different; /* of the 1000 seeds below */
    } marks[] = {
        { AT_F64, 0x7ff8000000000000, 0x0007ffffffffffff, 1000 },
        { AT_F32, 0x7fc00000, 0x003fffff, 990 },
        { AT_TF32, 0x7fc00000, 0x003fe000, 300 },
        { AT_F16, 0x7e00, 0x01ff, 300 },
        { AT_BF16, 0x7fc0, 0x003f, 50 },
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        static uint64_t seen[1000];
        int different = 0;
        for (uint64_t seed = 0; seed < 1000; seed++) {
            uint64_t mark = at_mark_code(marks[i].format, seed);
            assert_true((mark & ~marks[i].payload) == marks[i].quiet);
            assert_true((mark & marks[i].payload) != 0 && (mark & marks[i].payload) != marks[i].payload);
            at_assert_same(at_decode(marks[i].format, mark), NAN);
            assert_true(mark == at_mark_code(marks[i].format, seed));
            int known = 0;
            for (int k = 0; k < different; k++)
                known |= seen[k] == mark;
            if (!known)
                seen[different++] = mark;
        }
        assert_true(different >= marks[i].least_different);
    }
    at_assert_same(at_decode(AT_E4M3, at_mark_code(AT_E4M3, 3)), NAN);
    at_assert_same(at_decode(AT_E5M2, at_mark_code(AT_E5M2, 3)), NAN);
    assert_true(at_mark_code(AT_I32, 1) == at_mark_code(AT_I32, 2));
    assert_true(at_decode(AT_I32, at_mark_code(AT_I32, 1)) < -1);
}

/* Every element left alone is counted, at its index; a computed NaN is not a mark. */
static void test_mark_count(void **state) {
    (void)state;
    enum { COUNT = 60 };
    for (int f = 0; f < AT_FORMAT_COUNT; f++) {
        enum at_format format = (enum at_format)f;
        uint64_t memory[COUNT + 2];
        struct at_tensor tensor = { memory + 1, format, 3, { 3, 4, 5 } };
        size_t bytes = COUNT * at_format_info(format)->bytes;
        for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
            int64_t first = -1;
            memset(memory, 0x33, sizeof memory);
            assert_int_equal(at_mark_count(&tensor, seeds[s], &first), 0);
            assert_int_equal(first, -1);
            at_mark_fill(&tensor, seeds[s]);
            assert_int_equal(at_mark_count(&tensor, seeds[s], &first), COUNT);
            assert_int_equal(first, 0);
            assert_true(memory[0] == 0x3333333333333333u);
            for (size_t k = 8 + bytes; k < sizeof memory; k++)
                assert_int_equal(((uint8_t *)memory)[k], 0x33);
            for (size_t k = 0; k < COUNT; k++)
                if (k != 17 && k != 42)
                    at_store(format, memory + 1, k, format == AT_E4M3 || format == AT_E5M2 ? 1 : NAN);
            assert_int_equal(at_mark_count(&tensor, seeds[s], &first), 2);
            assert_int_equal(first, 17);
        }
    }
    struct at_tensor absent = { NULL, AT_F32, 0, { 0 } };
    int64_t first = -1;
    at_mark_fill(&absent, 1);
    assert_int_equal(at_mark_count(&absent, 1, &first), 0);
}

/* Fixed values, worked out by a program of its own: the same on every machine and for ever, since case
 * seeds and shards depend on them. */
static void test_hash_values(void **state) {
    (void)state;
    uint8_t all[257] = { 0 };
    for (int i = 0; i < 256; i++)
        all[i + 1] = (uint8_t)i;
    assert_true(at_hash_bytes("", 0, AT_HASH_START) == 0xf52a15e9a9b5e89bu);
    assert_true(at_hash_bytes("a", 1, AT_HASH_START) == 0x3ed775f2f16d9b06u);
    assert_true(at_hash_bytes("attest", 6, AT_HASH_START) == 0x8304d35c8e3df89du);
    assert_true(at_hash_bytes("attest", 6, 7) == 0x22105c099534e5f8u);
    assert_true(at_hash_bytes("asynct_decode b=2", 17, AT_HASH_START) == 0xa193b3862185fac7u);
    assert_true(at_hash_bytes(all + 1, 256, AT_HASH_START) == 0x6c8299769810328du);
    for (int shift = 0; shift < 8; shift++) { /* the address does not matter */
        uint8_t moved[40] = { 0 };
        for (int i = 0; i < 17; i++)
            moved[shift + i] = (uint8_t) "asynct_decode b=2"[i];
        assert_true(at_hash_bytes(moved + shift, 17, AT_HASH_START) ==
                    at_hash_bytes("asynct_decode b=2", 17, AT_HASH_START));
    }
}

/* Neither a bit, nor two flipped signs, nor a trailing zero, nor the order of words goes unseen. */
static void test_hash_sees(void **state) {
    (void)state;
    enum { BYTES = 64 };
    uint8_t data[BYTES + 1] = { 0 };
    uint64_t seen[BYTES * 8 + BYTES + 1];
    int n = 0;
    for (size_t length = 0; length <= BYTES; length++)
        seen[n++] = at_hash_bytes(data, length, AT_HASH_START);
    for (int bit = 0; bit < BYTES * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        seen[n++] = at_hash_bytes(data, BYTES, AT_HASH_START);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    double signs[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    uint64_t before = at_hash_bytes(signs, sizeof signs, AT_HASH_START);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) {
            signs[i] = -signs[i], signs[k] = -signs[k];
            assert_true(at_hash_bytes(signs, sizeof signs, AT_HASH_START) != before);
            signs[i] = -signs[i], signs[k] = -signs[k];
            double swap = signs[i];
            signs[i] = signs[k], signs[k] = swap;
            assert_true(at_hash_bytes(signs, sizeof signs, AT_HASH_START) != before);
            signs[k] = signs[i], signs[i] = swap;
        }
    assert_true(at_hash_bytes(signs, sizeof signs, AT_HASH_START) == before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_every_guard_byte),
        cmocka_unit_test(test_first_damage_and_seeds),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_seal),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_mark_count),
        cmocka_unit_test(test_hash_values),
        cmocka_unit_test(test_hash_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
