/* Reading launch files: what a good one gives, and every field that is refused, with file, field, found and wanted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/launch/device_code.h"
#include "kernels/launch/launch_device.h"
#include "kernels/launch/launch_plan.h"

#include <sys/stat.h>
#include <unistd.h>

enum { TEXT = 8192 };
static char folder[] = "/tmp/attest-launch-XXXXXX";

static void path_of(const char *name, char *path, size_t size) { snprintf(path, size, "%s/%s", folder, name); }

static void write_text(const char *name, const char *text) {
    char path[256];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char good[] =
    "{ \"family\": \"softmax_prefill\", \"name\": \"01_mine\", \"summary\": \"a try\", \"source\": \"ours\",\n"
    "  \"cubin\": \"code.bin\", \"sm\": \"sm_90a\", \"numerics\": \"free_order=1 p=bf16\", \"dtypes\": [\"bf16\"],\n"
    "  \"requires\": [\"d == 64\", \"page == 0\"],\n"
    "  \"let\": { \"tiles\": \"cdiv(sq, 64)\", \"blocks\": \"tiles * h * b\" },\n"
    "  \"workspace\": \"blocks * 4\",\n"
    "  \"tensor_maps\": { \"k\": { \"dims\": [\"d\", \"hk\", \"slots\"], \"strides\": [\"d * 2\", \"hk * d * 2\"],\n"
    "                            \"box\": [64, 1, 128], \"swizzle\": 128, \"l2\": 256, \"oob\": \"zero\" } },\n"
    "  \"kernels\": [ { \"name\": \"attend\", \"grid\": [\"min(sms, blocks)\"], \"block\": [128], \"cluster\": [2, 1, "
    "1],\n"
    "    \"smem\": 98304, \"pdl\": true, \"when\": \"blocks > 0\",\n"
    "    \"args\": [\"ptr:q\", \"tma:k\", \"ptr:workspace + tiles * 4\", \"ptr:null\", \"i32:sk\", \"u32:tiles\", "
    "\"i64:slots\",\n"
    "             \"f32:scale\", \"f32:scale*1.5\", \"f32:-2e-3\"] } ] }\n";

/* good[] with the first `from` as `to`. */
static const char *changed(const char *from, const char *to) {
    static char text[TEXT];
    const char *at = strstr(good, from);
    if (!at)
        fail_msg("the good file has no %s", from);
    else
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    return text;
}

static void test_good(void **state) {
    struct at_plan *plan;
    char path[256];
    (void)state;
    write_text("launch.json", good);
    path_of("launch.json", path, sizeof path);
    at_assert_ok(at_plan_read(path, &plan));
    assert_string_equal(plan->family, "softmax_prefill");
    assert_string_equal(plan->name, "01_mine");
    assert_string_equal(plan->op->name, "softmax_attention");
    assert_string_equal(plan->code, "bytes");
    assert_int_equal(plan->code_bytes, 5);
    assert_string_equal(plan->sha256, "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9");
    assert_int_equal(plan->sm, 90);
    assert_int_equal(plan->sm_class, 'a');
    assert_int_equal(plan->dtypes, 1u << AT_BF16);
    assert_int_equal(plan->numerics.free_order, 1);
    assert_int_equal(plan->numerics.p, AT_BF16);
    assert_int_equal(plan->n_requires, 2);
    assert_int_equal(plan->scope.n, 2);
    const struct at_plan_map *map = &plan->maps[0];
    assert_int_equal(plan->n_maps, 1);
    assert_int_equal(map->rank, 3);
    assert_int_equal(map->has_strides, 1);
    assert_string_equal(map->strides[2].text, "hk * d * 2");
    assert_int_equal(map->swizzle, 128);
    assert_int_equal(map->l2, 256);
    const struct at_plan_kernel *k = &plan->kernels[0];
    assert_int_equal(k->n_args, 10);
    assert_int_equal(k->pdl, 1);
    assert_int_equal(k->has_cluster, 1);
    assert_string_equal(k->block[0].text, "128");
    assert_string_equal(k->block[1].text, "1");
    assert_int_equal(k->args[2].tensor, AT_ARG_WORKSPACE);
    assert_int_equal(k->args[3].kind, AT_ARG_NULL);
    assert_string_equal(k->args[7].param->name, "scale");
    at_assert_same(k->args[8].factor, 1.5);
    assert_null(k->args[9].param);
    at_assert_same(k->args[9].factor, -2e-3);
    at_plan_free(plan);
}

static void test_refused(void **state) {
    static const struct {
        const char *from, *to, *part;
    } all[] = {
        { "{ \"family\"", "{ family", "/launch.json: line 1, column " },
        { "\"family\": \"softmax_prefill\", \"name\"", "\"name\"", "/launch.json: family: is nothing, wanted a text" },
        { "softmax_prefill", "softmax_prefil",
          ": family: is \"softmax_prefil\", wanted a family of kernels; did you mean softmax_prefill" },
        { "\"summary\"", "\"sumary\"", ": the file: has no field sumary; did you mean summary; known are family name" },
        { "01_mine", "01 mine", ": name: is \"01 mine\", wanted letters, digits and _" },
        { "\"01_mine\"", "7", ": name: is an integer, wanted a text" },
        { "\"01_mine\"", "\"\"", ": name: has 0 letters, wanted 1 to 95" },
        { "free_order=1", "free_ordr=1", ": numerics: " },
        { "p=bf16", "p=bf17", ": numerics: " },
        { "free_order=1", "qk_lanes=0", ": numerics: " },
        { "[\"bf16\"]", "[\"bf16\", \"e4m3\"]",
          ": dtypes: has e4m3, wanted formats that activations of softmax_attention may have" },
        { "[\"bf16\"]", "\"bf16\"", ": dtypes: is a text, wanted an array of formats" },
        { "[\"bf16\"]", "[7]", ": dtypes: has an integer, wanted formats" },
        { "\"cubin\": \"code.bin\",", "", ": cubin: there is nothing, wanted a cubin or a ptx" },
        { "\"cubin\":", "\"ptx\": \"a\", \"cubin\":", ": cubin: there is a ptx, too, wanted a cubin or a ptx" },
        { "code.bin", "lost.bin", "/lost.bin: No such file or directory" },
        { "code.bin", "empty.bin", ": cubin: empty.bin has 0 bytes, wanted 1 to " },
        { "sm_90a", "90", ": sm: is \"90\", wanted an architecture as nvcc says it: sm_90a, sm_80" },
        { "sm_90a", "sm_90x", ": sm: is \"sm_90x\"" },
        { "[\"d == 64\"", "[\"dd == 64\"", ": requires[0]: \"dd == 64\": nothing is called dd; did you mean d" },
        { "\"tiles\": \"cdiv", "\"tiles\": \"blocks + cdiv",
          ": let.tiles: \"blocks + cdiv(sq, 64)\": nothing is called blocks" },
        { "\"tiles\": ", "\"1tile\": ", ": let.1tile: is no name" },
        { "\"blocks * 4\"", "4.5", ": workspace: is a number, wanted a whole number or an expression in quotes" },
        { "\"blocks * 4\"", "\"blocks *\"", ": workspace: \"blocks *\": at place 9, found the end" },
        { "{ \"k\":", "{ \"kk\":",
          ": tensor_maps.kk.tensor: kk is no tensor of softmax_attention; did you mean k; it has q k v" },
        { "\"dims\": [\"d\", \"hk\", \"slots\"]", "\"dims\": []",
          ": tensor_maps.k.dims: is an array of another length, wanted an array of 1 to 5" },
        { "[\"d * 2\", \"hk * d * 2\"]", "[\"d * 2\"]",
          ": tensor_maps.k.strides: is an array of another length, wanted an array of 2 to 2" },
        { "[64, 1, 128]", "[64, 1]", ": tensor_maps.k.box: is an array of another length, wanted an array of 3 to 3" },
        { "\"swizzle\": 128", "\"swizzle\": 96", ": tensor_maps.k.swizzle: is 96, wanted one of 0 32 64 128" },
        { "\"l2\": 256", "\"l2\": \"big\"", ": tensor_maps.k.l2: is a text, wanted one of 0 64 128 256" },
        { "\"zero\"", "\"one\"", ": tensor_maps.k.oob: is one, wanted \"zero\" or \"nan\"" },
        { "\"swizzle\"", "\"swizle\"", ": tensor_maps.k: has no field swizle; did you mean swizzle" },
        { "\"kernels\": [ {", "\"kernels\": [], \"x\": [ {", ": the file: has no field x" },
        { "\"name\": \"attend\"", "\"name\": 7", ": kernels[0].name: is an integer, wanted a text" },
        { "[\"min(sms, blocks)\"]", "[1, 2, 3, 4]",
          ": kernels[0].grid: is an array of another length, wanted an array of 1 to 3" },
        { "[\"min(sms, blocks)\"]", "[1, \"x\"]", ": kernels[0].grid[1]: \"x\": nothing is called x" },
        { "\"block\": [128]", "\"block\": 128", ": kernels[0].block: is an integer, wanted an array of 1 to 3" },
        { "\"block\": [128],", "", ": kernels[0].block: is nothing, wanted an array" },
        { "\"smem\": 98304", "\"smem\": [1]", ": kernels[0].smem: is an array, wanted a whole number" },
        { "\"pdl\": true", "\"pdl\": 1", ": kernels[0].pdl: is an integer, wanted true or false" },
        { "\"pdl\"", "\"pld\"", ": kernels[0]: has no field pld; did you mean pdl; known are name grid block" },
        { "\"ptr:q\"", "\"ptr:qq\"", ": kernels[0].args[0]: qq is no tensor of softmax_attention; did you mean q" },
        { "\"ptr:q\"", "\"ptr:q 4\"", ": kernels[0].args[0]: \"ptr:q 4\": wanted + and bytes behind the name" },
        { "\"ptr:q\"", "\"q\"", ": kernels[0].args[0]: is q, wanted ptr:TENSOR" },
        { "\"ptr:q\"", "7", ": kernels[0].args[0]: is an integer, wanted ptr:TENSOR" },
        { "tma:k", "tma:v", ": kernels[0].args[1]: \"tma:v\": tensor_maps has k" },
        { "+ tiles * 4", "+ tile * 4",
          ": kernels[0].args[2]: \" tile * 4\": nothing is called tile; did you mean tiles" },
        { "i32:sk", "i32:", ": kernels[0].args[4]: \"\": at place 1, found the end" },
        { "f32:scale\"", "f32:scael\"",
          ": kernels[0].args[7]: \"f32:scael\": wanted a number, a parameter of scale softcap" },
        { "f32:scale*1.5", "f32:scale*x", ": kernels[0].args[8]: \"f32:scale*x\": wanted a number" },
        { "f32:-2e-3", "f32:", ": kernels[0].args[9]: \"f32:\": wanted a number" },
        { "f32:-2e-3", "f32:causal", ": kernels[0].args[9]: \"f32:causal\": wanted a number" },
    };
    struct at_plan *plan;
    char path[256];
    (void)state;
    path_of("launch.json", path, sizeof path);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        write_text("launch.json", changed(all[i].from, all[i].to));
        at_assert_fails(at_plan_read(path, &plan), AT_USAGE, all[i].part);
        at_assert_true(strstr(at_error_message(), path) != NULL, "\"%s\" does not name the file", at_error_message());
        at_plan_free(plan);
    }
    write_text("launch.json", "[]");
    at_assert_fails(at_plan_read(path, &plan), AT_USAGE, "launch.json: the file: is an array, wanted an object");
    at_plan_free(plan);
    at_assert_fails(at_plan_read("/none/launch.json", &plan), AT_USAGE, "/none/launch.json: ");
    at_plan_free(plan);
}

/* A longer list than there is room for, at each place that has one. */
static void test_too_many(void **state) {
    static const struct {
        const char *from, *begin, *item, *end, *part;
        int n;
    } all[] = {
        { "[\"d == 64\", \"page == 0\"]", "[", "1", "]",
          ": requires: is an array of another length, wanted an array of 0 to 16", 17 },
        { "[\"ptr:q\", \"tma:k\"", "[", "\"i32:1\"", ", 1",
          ": kernels[0].args: is an array of more, wanted an array of at most 48", 48 },
    };
    struct at_plan *plan;
    char path[256], list[TEXT];
    (void)state;
    path_of("launch.json", path, sizeof path);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t used = (size_t)snprintf(list, sizeof list, "%s", all[i].begin);
        for (int n = 0; n < all[i].n; n++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n ? "," : "", all[i].item);
        snprintf(list + used, sizeof list - used, "%s", all[i].end);
        write_text("launch.json", changed(all[i].from, list));
        at_assert_fails(at_plan_read(path, &plan), AT_USAGE, all[i].part);
        at_plan_free(plan);
    }
}

/* A parameter that operators came to have later: declined where the file has no place for it. */
static void test_later_parameters(void **state) {
    static const struct {
        const char *from, *to;
        double softcap;
        const char *why;
    } all[] = {
        { "f32:scale*1.5", "f32:scale*1.5", 0, NULL },
        { "f32:scale*1.5", "f32:scale*1.5", 2, "no argument and no expression of it has softcap" },
        { "f32:scale*1.5", "f32:softcap*1.5", 2, NULL },
    };
    struct at_driver driver = { .sm = 90, .multiprocessors = 132 };
    struct at_problem problem;
    char path[256], why[256];
    (void)state;
    path_of("launch.json", path, sizeof path);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct at_plan *plan;
        int declines;
        write_text("launch.json", changed(all[i].from, all[i].to));
        at_assert_ok(at_plan_read(path, &plan));
        const struct at_device_code code = { .plan = plan, .driver = &driver };
        at_problem_init(&problem, plan->op, AT_BF16);
        problem.sizes.d = 64;
        at_scalar_set(&problem, at_op_scalar(plan->op, "softcap"), all[i].softcap);
        at_assert_ok(at_device_code_declines(&code, &problem, &declines, why, sizeof why));
        assert_int_equal(declines, all[i].why != NULL);
        if (all[i].why)
            assert_string_equal(why, all[i].why);
        at_plan_free(plan);
    }
}

/* Of so many letters a: about the ends of a block and of its padding. */
static void test_sha256(void **state) {
    static const struct {
        size_t n;
        const char *want;
    } all[] = {
        { 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
        { 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
        { 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
        { 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
        { 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
    };
    char letters[121], text[AT_SHA256_TEXT], path[256];
    (void)state;
    path_of("launch.json", path, sizeof path);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        memset(letters, 'a', all[i].n);
        letters[all[i].n] = 0;
        write_text("launch.json", letters);
        at_assert_ok(at_sha256_file(path, text));
        assert_string_equal(text, all[i].want);
    }
}

/* Sixteen variants with names of their own. */
static void test_list(void **state) {
    char path[256], name[32];
    (void)state;
    for (int i = 0; i < AT_LAUNCH_FILES; i++) {
        snprintf(name, sizeof name, "%02d_mine", i + 1);
        write_text("launch.json", changed("01_mine", name));
        path_of("launch.json", path, sizeof path);
        at_assert_ok(at_launch_files_add(path));
        if (i == 0)
            at_assert_fails(at_launch_files_add(path), AT_USAGE, "name: softmax_prefill/01_mine is that of ");
    }
    assert_int_equal(at_launch_files_list().n, AT_LAUNCH_FILES);
    assert_string_equal(at_launch_files_list().at(15)->name, "16_mine");
    assert_string_equal(at_launch_files_list().at(15)->kernel->summary, "a try");
    write_text("launch.json", changed("01_mine", "17_mine"));
    at_assert_fails(at_launch_files_add(path), AT_USAGE, "one launch file too many, wanted at most 16");
    at_launch_device_close();
}

int main(void) {
    if (!mkdtemp(folder))
        return 70;
    write_text("code.bin", "bytes");
    write_text("empty.bin", "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_later_parameters),
        cmocka_unit_test(test_sha256),   cmocka_unit_test(test_list),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (const char *const *name = (const char *const[]){ "code.bin", "empty.bin", "launch.json", NULL }; *name;
         name++) {
        char path[256];
        path_of(*name, path, sizeof path);
        unlink(path);
    }
    rmdir(folder);
    return failed;
}
