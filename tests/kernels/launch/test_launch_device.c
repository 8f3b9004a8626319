/* Launch files on a driver of the tests: arguments, the order of calls, guard bands, and every call that can fail.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --load FILE, this program is a runner of launch files on the host's memory (tests/cli/test_launch_files.sh). */
#include "tests/at_test.h"

#include "attest/env.h"
#include "attest/op.h"
#include "tests/support/launch_rig.h"
#include "tests/support/norm_problem.h"
#include "uclip_norm/uclip_norm.h"

#include <unistd.h>

enum { TOKENS = 5, CHANNELS = 40, TEXT = 8192 };
static char self[4096], driver[4300], folder[] = "/tmp/attest-launch-XXXXXX", log_path[64];
static struct at_device *device;

static void open_device(void) { device = at_launch_rig_open(driver); }
static void close_device(void) { at_launch_rig_close(); }

/* ---- files ---- */

static void write_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* What tests change of a launch file. */
struct change {
    const char *kernel, *code, *args, *kernel_fields, *fields;
};

/* The variant of a launch file, and the device that runs it. */
static const struct at_kernel *open_file(struct change c) {
    char text[TEXT], path[256];
    at_launch_device_close(); /* a test that failed has left its own */
    snprintf(text, sizeof text,
             "{ \"family\": \"uclip_norm\", \"name\": \"01_any\", \"cubin\": \"%s\", \"sm\": \"sm_90a\",\n"
             "  \"numerics\": \"qk_unit=f32 pv_unit=f32\", \"workspace\": \"16 * 4\"%s,\n"
             "  \"kernels\": [ { \"name\": \"%s\", \"grid\": [\"cdiv(tokens, 4)\"], \"block\": [64, 2]%s,\n"
             "  \"args\": [\"ptr:x\", \"ptr:alpha\", \"ptr:gamma\", \"ptr:beta\", \"ptr:y\", \"i32:tokens\",\n"
             "  \"i32:channels\", \"f32:lo\", \"f32:hi\"%s] } ] }\n",
             c.code ? c.code : "code.txt", c.fields ? c.fields : "", c.kernel, c.kernel_fields ? c.kernel_fields : "",
             c.args ? c.args : "");
    write_text("launch.json", text);
    snprintf(path, sizeof path, "%s/launch.json", folder);
    at_assert_ok(at_launch_files_add(path));
    open_device();
    assert_non_null(device);
    assert_int_equal(at_launch_files_list().n, 1);
    return at_launch_files_list().at(0)->kernel;
}

/* ---- jobs ---- */

static float output[TOKENS * CHANNELS];

static void make_problem(struct at_test_problem *t) {
    const struct at_test_norm_shape shape = { .tokens = TOKENS, .channels = CHANNELS, .dtype = AT_F32 };
    at_test_norm_problem(at_op_find("uclip_norm"), &shape, t);
    t->problem.tensors[AT_UCLIP_Y].data = output;
    float *x = (float *)t->problem.tensors[AT_UCLIP_X].data, *beta = (float *)t->problem.tensors[AT_UCLIP_BETA].data;
    for (int i = 0; i < TOKENS * CHANNELS; i++)
        x[i] = (float)(i % 17 - 8) / 4;
    for (int c = 0; c < CHANNELS; c++)
        beta[c] = (float)c;
}

/* As the runner does it for a job; *right: the output is what it must be. */
static void run_job(const struct at_kernel *kernel, struct at_test_problem *t, struct at_reply *reply, int *right) {
    const struct at_run_mode mode = { 0 };
    struct at_launch launch = { .problem = &t->problem };
    void *base;
    memset(output, 0xff, sizeof output);
    *reply = (struct at_reply){ .kind = AT_REPLY_DONE };
    assert_int_equal(device->load(device, output, 0, &base), 0);
    assert_null(kernel->supports(&t->problem));
    launch.workspace_bytes = kernel->workspace(&t->problem);
    assert_int_equal(device->workspace(device, launch.workspace_bytes, &launch.workspace), 0);
    const int code = device->run(device, kernel, &launch, &mode, reply);
    const int found = device->found(device, &reply->kind, reply->reason, sizeof reply->reason);
    assert_int_equal(found, code != 0);
    const float *x = (const float *)t->problem.tensors[AT_UCLIP_X].data;
    *right = 1;
    for (int i = 0; i < TOKENS * CHANNELS; i++)
        *right &= output[i] == (x[i] < -1 ? -1 : x[i] > 1 ? 1 : x[i]) + (float)(i % CHANNELS);
}

static void expect_right(const struct at_kernel *kernel) {
    struct at_test_problem t;
    struct at_reply reply;
    int right;
    make_problem(&t);
    run_job(kernel, &t, &reply, &right);
    at_assert_true(reply.kind == AT_REPLY_DONE, "%s", reply.reason);
    at_assert_true(right, "another result");
    at_test_problem_release(&t);
}

/* Ends so, with these words, and with the outputs that came from nowhere else. */
static void expect(const struct at_kernel *kernel, enum at_reply_kind kind, const char *part) {
    struct at_test_problem t;
    struct at_reply reply;
    int right;
    make_problem(&t);
    run_job(kernel, &t, &reply, &right);
    at_assert_true(reply.kind == kind, "kind %d, wanted %d: %s", (int)reply.kind, (int)kind, reply.reason);
    at_assert_true(strstr(reply.reason, part) != NULL, "\"%s\" does not say \"%s\"", reply.reason, part);
    at_test_problem_release(&t);
}

/* What the driver was called for since the last look. */
static const char *calls(void) {
    static char text[TEXT];
    FILE *file = fopen(log_path, "re");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    unlink(log_path);
    return text;
}

/* ---- tests ---- */

#define LAUNCHED(name) "launch " name " grid 2 1 1 block 64 2 1 shared 0 tokens 5 channels 40 lo -1 hi 1\n"

static void test_order(void **state) {
    (void)state;
    const struct at_kernel *kernel = open_file((struct change){ .kernel = "right" });
    calls();
    expect_right(kernel);
    assert_string_equal(calls(), "load\nallocate\nfill 64 bytes with ff\n" LAUNCHED("right") "unload\n");
    expect_right(kernel);
    assert_string_equal(calls(), "load\nfill 64 bytes with ff\n" LAUNCHED("right") "unload\n");
    close_device();
}

static void test_launch(void **state) {
    (void)state;
    const struct at_kernel *kernel = open_file(
        (struct change){ .kernel = "right",
                         .fields = ", \"let\": { \"rows\": \"cdiv(tokens, 2)\", \"all\": \"rows * channels\" }",
                         .kernel_fields = ", \"smem\": \"all * 1024\", \"cluster\": [3, 1, 1], \"pdl\": true" });
    calls();
    expect_right(kernel);
    assert_string_equal(
        calls(), "load\nallocate\nfill 64 bytes with ff\nattribute 8 of right is 122880\nlaunch right grid 2 1 1 block "
                 "64 2 1 shared 122880 cluster 3 1 1 attribute 6 is 1 tokens 5 channels 40 lo -1 hi 1\nunload\n");
    close_device();
    kernel = open_file((struct change){ .kernel = "right", .kernel_fields = ", \"when\": \"tokens > 5\"" });
    calls();
    expect(kernel, AT_REPLY_DONE, "");
    assert_string_equal(calls(), "load\nallocate\nfill 64 bytes with ff\nunload\n");
    close_device();
    kernel = open_file((struct change){
        .kernel = "by_map",
        .args = ", \"tma:rows\"",
        .fields =
            ", \"tensor_maps\": { \"rows\": { \"tensor\": \"x\", \"dims\": [\"channels\", \"tokens\"], \"box\": [8, 2],"
            " \"swizzle\": 32, \"l2\": 128, \"oob\": \"nan\" } }" });
    calls();
    expect_right(kernel);
    const char *said = calls();
    at_assert_true(strstr(said, "map type 7 swizzle 1 l2 2 oob 1 interleave 0: 40/8/1 5/2/1 stride 160\n") != NULL,
                   "%s", said);
    close_device();
}

/* Nothing is kept from job to job: not in the module, not in the workspace. */
static void test_nothing_kept(void **state) {
    static const struct change changes[] = { { .kernel = "keeps" },
                                             { .kernel = "poisoned", .args = ", \"ptr:workspace\"" } };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct at_kernel *kernel = open_file(changes[i]);
        expect_right(kernel);
        expect_right(kernel);
        close_device();
    }
}

/* A smaller job behind a larger one: what the larger left behind the smaller one's bands is poisoned. */
static void test_smaller_job(void **state) {
    struct at_test_problem t;
    struct at_reply reply;
    int right;
    (void)state;
    const struct at_kernel *kernel = open_file((struct change){ .kernel = "right" });
    expect_right(kernel);
    make_problem(&t);
    t.problem.sizes.tokens = TOKENS - 4; /* x and y: 160 bytes instead of 800, what follows at a multiple of 256 */
    at_problem_shape(&t.problem);
    calls();
    run_job(kernel, &t, &reply, &right);
    assert_int_equal(reply.kind, AT_REPLY_DONE);
    const char *said = calls();
    at_assert_true(strstr(said, "load\nfill 1536 bytes with ff\nfill 64 bytes with ff\nlaunch") == said, "%s", said);
    at_test_problem_release(&t);
    close_device();
}

static void test_bands(void **state) {
    static const struct {
        struct change change;
        const char *part;
    } all[] = {
        { { .kernel = "past_y" }, "bytes past y, the first 20 behind its end" },
        { { .kernel = "before_x" }, "bytes before x, the first 8 before its start" },
        { { .kernel = "far_before_x" }, "bytes before x, the first 12000 before its start" },
        { { .kernel = "past_workspace", .args = ", \"ptr:workspace\"" },
          "bytes past the workspace, the first 100 behind its end" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        expect(open_file(all[i].change), AT_REPLY_DIRTY, all[i].part);
        close_device();
    }
}

/* What a launch does to an input comes back to attest. */
static void test_input_written(void **state) {
    struct at_test_problem t;
    struct at_reply reply;
    int right;
    (void)state;
    const struct at_kernel *kernel = open_file((struct change){ .kernel = "input_written" });
    make_problem(&t);
    run_job(kernel, &t, &reply, &right);
    assert_int_equal(reply.kind, AT_REPLY_DONE);
    at_assert_same(((const float *)t.problem.tensors[AT_UCLIP_BETA].data)[0], 1);
    at_test_problem_release(&t);
    close_device();
}

static void test_driver_fails(void **state) {
    static const struct {
        const char *plant, *part;
    } all[] = {
        { "cuModuleLoadDataEx:209",
          "loading code.txt (line 1: this is no code): CUDA_ERROR_NO_BINARY_FOR_GPU (209): no kernel "
          "image is available" },
        { "cuModuleGetFunction:500",
          "looking for kernel right in code.txt: CUDA_ERROR_NOT_FOUND (500): as it was planted" },
        { "cuLaunchKernelEx:701", "launching right: CUDA_ERROR (701): as it was planted" },
        { "cuFuncSetAttribute:1", "asking for 65536 bytes of shared memory: CUDA_ERROR (1)" },
        { "cuTensorMapEncodeTiled:1", "making tensor map x: CUDA_ERROR (1)" },
        { "cuMemAlloc_v2:2", "bytes of device memory: CUDA_ERROR (2)" },
        { "cuMemcpyHtoD_v2:1", "writing a guard band: CUDA_ERROR (1)" },
        { "cuMemcpyDtoH_v2:1", "reading a guard band: CUDA_ERROR (1)" },
        { "cuMemcpyDtoDAsync_v2:1", "copying a tensor on the device: CUDA_ERROR (1)" },
        { "cuMemsetD8_v2:1", "poisoning the workspace: CUDA_ERROR (1)" },
        { "cuModuleUnload:1", "unloading the device code: CUDA_ERROR (1)" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const int maps = strncmp(all[i].plant, "cuTensorMap", 11) == 0;
        const struct at_kernel *kernel = open_file((struct change){
            .kernel = maps ? "by_map" : "right",
            .args = maps ? ", \"tma:x\"" : "",
            .fields = ", \"tensor_maps\": { \"x\": { \"dims\": [\"channels\", \"tokens\"], \"box\": [8, 2] } }",
            .kernel_fields = ", \"smem\": 65536" });
        setenv("FAKE_DRIVER_FAIL", all[i].plant, 1);
        expect(kernel, AT_REPLY_FAILED, all[i].part);
        unsetenv("FAKE_DRIVER_FAIL");
        expect_right(kernel); /* and the next job is served */
        close_device();
    }
}

static void test_does_not_fit(void **state) {
    static const struct {
        struct change change;
        const char *part;
    } all[] = {
        { { .kernel = "right", .code = "none.txt" }, "loading none.txt (line 1: this is no code)" },
        { { .kernel = "wright" }, "looking for kernel wright in code.txt: CUDA_ERROR_NOT_FOUND (500)" },
        { { .kernel = "poisoned" }, "kernels[0].args: there are 9, and poisoned has 10 parameters" },
        { { .kernel = "right", .args = ", \"ptr:null\"" },
          "kernels[0].args: there are 10, and right has 9 parameters" },
        { { .kernel = "poisoned", .args = ", \"i32:3\"" },
          "kernels[0].args[9]: i32:3 has 4 bytes, and parameter 9 of poisoned has 8" },
        { { .kernel = "poisoned", .args = ", \"ptr:workspace+tokens*100\"" },
          "kernels[0].args[9]: \"tokens*100\" is 500 here, wanted 0 to 64" },
        { { .kernel = "right", .kernel_fields = ", \"smem\": \"tokens / (channels - 40)\"" },
          "kernels[0].smem: \"tokens / (channels - 40)\" divides by 0" },
        { { .kernel = "right", .kernel_fields = ", \"cluster\": [\"tokens - 5\"]" },
          "kernels[0].cluster[0]: \"tokens - 5\" is 0 here, wanted 1 to 16" },
        { { .kernel = "right", .fields = ", \"let\": { \"n\": \"1 / (tokens - 5)\" }" },
          "let.n: \"1 / (tokens - 5)\" divides by 0" },
        { { .kernel = "by_map",
            .args = ", \"tma:x\"",
            .fields = ", \"tensor_maps\": { \"x\": { \"dims\": [\"channels\"], \"box\": [\"channels * 10\"] } }" },
          "tensor_maps.x.box[0]: \"channels * 10\" is 400 here, wanted 1 to 256" },
    };
    (void)state;
    write_text("none.txt", "no code\n");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strstr(all[i].part, "let.n")) { /* the workspace wants it first */
            const struct at_kernel *kernel = open_file(all[i].change);
            expect(kernel, AT_REPLY_FAILED, all[i].part);
        } else {
            expect(open_file(all[i].change), AT_REPLY_FAILED, all[i].part);
        }
        close_device();
    }
}

static void test_declines(void **state) {
    static const struct {
        const char *fields, *sm, *reason;
    } all[] = {
        { ", \"dtypes\": [\"bf16\", \"f16\"]", "90", "for f16 bf16 alone" },
        { ", \"requires\": [\"tokens > 1\", \"channels % 64 == 0\"]", "90", "wants channels % 64 == 0" },
        { "", "100", "for sm_90a, and this device is sm_100" },
        { ", \"dtypes\": [\"f32\"], \"requires\": [\"channels == 40\"]", "90", NULL },
    };
    struct at_test_problem t;
    (void)state;
    make_problem(&t);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setenv("FAKE_DRIVER_SM", all[i].sm, 1);
        const struct at_kernel *kernel = open_file((struct change){ .kernel = "right", .fields = all[i].fields });
        const char *reason = kernel->supports(&t.problem);
        if (all[i].reason)
            assert_string_equal(reason, all[i].reason);
        else
            assert_null(reason);
        close_device();
    }
    unsetenv("FAKE_DRIVER_SM");
    at_test_problem_release(&t);
}

/* The clock of the device below gets the launch, the module loaded once for all replays. */
static void test_timing(void **state) {
    struct at_test_problem t;
    struct at_timing timing;
    (void)state;
    const struct at_kernel *kernel = open_file((struct change){ .kernel = "right" });
    make_problem(&t);
    struct at_launch launch = { .problem = &t.problem, .workspace_bytes = kernel->workspace(&t.problem) };
    assert_int_equal(device->workspace(device, launch.workspace_bytes, &launch.workspace), 0);
    calls();
    assert_int_equal(device->time(device, kernel, &launch, 0, 2, &timing), 0);
    assert_string_equal(calls(), "load\nallocate\nfill 64 bytes with ff\n" LAUNCHED("right") LAUNCHED("right")
                                     LAUNCHED("right") "fill 800 bytes with 00\n" LAUNCHED("right") "unload\n");
    assert_int_equal(timing.replays, 2);
    setenv("FAKE_DRIVER_FAIL", "cuLaunchKernelEx:701", 1);
    const int code = device->time(device, kernel, &launch, 0, 2, &timing);
    unsetenv("FAKE_DRIVER_FAIL");
    assert_string_equal(device->error(code), "launching right: CUDA_ERROR (701): as it was planted");
    assert_string_equal(calls(), "load\nfill 64 bytes with ff\ncuLaunchKernelEx fails\nunload\n");
    at_test_problem_release(&t);
    close_device();
}

/* What a launch keeps in its module, its workspace or its outputs is no result: such times are none. */
static void test_timed_again(void **state) {
    static const struct {
        struct change change;
        int ends;
    } all[] = {
        { { .kernel = "right" }, 1 },
        { { .kernel = "keeps" }, 0 },
        { { .kernel = "workspace_flag", .args = ", \"ptr:workspace\"" }, 0 },
        { { .kernel = "output_flag" }, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct at_test_problem t;
        struct at_timing timing;
        const struct at_kernel *kernel = open_file(all[i].change);
        expect_right(kernel);
        make_problem(&t);
        memset(output, 0xff, sizeof output);
        struct at_launch launch = { .problem = &t.problem, .workspace_bytes = kernel->workspace(&t.problem) };
        const int code = device->time(device, kernel, &launch, 0, 2, &timing);
        at_assert_true((code == 0) == all[i].ends, "%s: code %d: %s", all[i].change.kernel, code, device->error(code));
        if (code)
            at_assert_true(strstr(device->error(code), "it leaves other bits in y, from byte ") != NULL, "%s",
                           device->error(code));
        at_test_problem_release(&t);
        close_device();
    }
}

static void test_no_driver(void **state) {
    char right[sizeof driver];
    (void)state;
    snprintf(right, sizeof right, "%s", driver);
    snprintf(driver, sizeof driver, "libnone.so.7");
    open_device();
    assert_null(device);
    at_assert_true(strstr(at_error_message(), "no CUDA driver: libnone.so.7") != NULL, "%s", at_error_message());
    close_device();
    snprintf(driver, sizeof driver, "libm.so.6");
    open_device();
    assert_null(device);
    at_assert_true(strstr(at_error_message(), "libm.so.6 has no cuGetErrorName; wanted a driver") != NULL, "%s",
                   at_error_message());
    close_device();
    snprintf(driver, sizeof driver, "%s", right);
}

int main(int argc, char **argv) {
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return 70;
    snprintf(driver, sizeof driver, "%.*s/fake_driver.so", (int)(strrchr(self, '/') - self), self);
    if (argc > 1 && strcmp(argv[1], "--load") == 0)
        return at_launch_rig_serve(driver, argc, argv);
    if (!mkdtemp(folder))
        return 70;
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    setenv("FAKE_DRIVER_LOG", log_path, 1);
    write_text("code.txt", "fake code\n");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),        cmocka_unit_test(test_launch),       cmocka_unit_test(test_nothing_kept),
        cmocka_unit_test(test_smaller_job),  cmocka_unit_test(test_bands),        cmocka_unit_test(test_input_written),
        cmocka_unit_test(test_driver_fails), cmocka_unit_test(test_does_not_fit), cmocka_unit_test(test_declines),
        cmocka_unit_test(test_timing),       cmocka_unit_test(test_timed_again),  cmocka_unit_test(test_no_driver),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (const char *const *name = (const char *const[]){ "log", "code.txt", "none.txt", "launch.json", NULL }; *name;
         name++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, *name);
        unlink(path);
    }
    rmdir(folder);
    return failed;
}
