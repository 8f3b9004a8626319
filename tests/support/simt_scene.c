/* A stage for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/simt_scene.h"

#include "tests/at_test.h"

struct at_simt_scene_state *at_simt_scene_memory;

void at_simt_scene_job(uint64_t seed) {
    if (!at_simt_scene_memory)
        at_simt_scene_memory = aligned_alloc(64, sizeof *at_simt_scene_memory);
    assert_non_null(at_simt_scene_memory);
    const int64_t bytes = (int64_t)sizeof at_simt_scene.in;
    for (uint32_t i = 0; i < AT_SIMT_SCENE_WORDS; i++) {
        at_simt_scene.in[i] = i + 1;
        at_simt_scene.out[i] = 0xdeadbeef;
        at_simt_scene.both[i] = 0;
    }
    const struct at_simt_region regions[] = {
        { .name = "in", .base = (uint8_t *)at_simt_scene.in, .bytes = bytes, .read_only = 1 },
        { .name = "out", .base = (uint8_t *)at_simt_scene.out, .bytes = bytes - 64, .unwritten = 1 },
        { .name = "both", .base = (uint8_t *)at_simt_scene.both, .bytes = bytes - 64 },
    };
    at_simt_job(regions, (int)(sizeof regions / sizeof *regions), seed);
}

void at_simt_scene_launch(at_simt_scene_kernel *kernel, struct at_dim3 grid, struct at_dim3 block,
                          int64_t dynamic_shared) {
    int code = at_simt_launch(kernel, NULL, 0, grid, block, dynamic_shared, NULL);
    at_assert_true(code == 0, "the launch returned %d", code);
    at_assert_true(at_simt_current == NULL, "a thread is still current after the launch");
}

const struct at_finding *at_simt_scene_run(at_simt_scene_kernel *kernel, unsigned blocks, unsigned threads,
                                           uint64_t seed) {
    at_simt_scene_job(seed);
    at_simt_scene_launch(kernel, (struct at_dim3){ blocks, 1, 1 }, (struct at_dim3){ threads, 1, 1 }, 0);
    return at_simt_finding();
}

void at_simt_scene_expect(enum at_finding_kind kind, const char *part, ...) {
    const struct at_finding *found = at_simt_finding();
    va_list parts;
    at_assert_true(found->kind == kind, "found kind %d, wanted %d: %s", (int)found->kind, (int)kind, found->text);
    va_start(parts, part);
    for (; part && kind != AT_FINDING_NONE; part = va_arg(parts, const char *))
        at_assert_true(strstr(found->text, part) != NULL, "'%s' does not say '%s'", found->text, part);
    va_end(parts);
}
