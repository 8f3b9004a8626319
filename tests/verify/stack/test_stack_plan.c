/* Plans of stacks: what binds, what is refused, and what a plan launches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/stack/stack_report.h"

static struct at_runner *runner;

static int open_runner(void **state) {
    (void)state;
    return at_runner_open(AT_BUILD_DIR "/attest-cpu", &runner) == AT_OK ? 0 : -1;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

static void parse(const char *text, struct at_stack *stack) {
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fseek(file, 0, SEEK_SET) == 0);
    at_assert_ok(at_stack_parse(file, "t.stack", stack));
    fclose(file);
}

static at_status plan(const struct at_stack *stack, const char *use, struct at_stack_plan *out) {
    *out = (struct at_stack_plan){ .stack = stack, .runner = { runner }, .n_runners = 1, .use = use, .seed = 5 };
    return at_stack_plan_make(out);
}

#define HEAD "set dtype = bf16\ninput x [3, 8] std=1\ninput u [24] std=2\nlayers 2\n"
#define NORM "step norm one rms_norm/* tokens=3 channels=8 : x=x -> y=x\n"

static const struct {
    const char *text, *use, *says;
} bad[] = {
    { HEAD "step norm one rms_nrm/* : x=x -> y=x\nend\n", NULL, "t.stack:5: found family rms_nrm, wanted one of" },
    { HEAD "step norm one rms_norm/* tokens=3 channels=8 : z=x -> y=x\nend\n", NULL,
      "t.stack:5: step one: found z, wanted an input of rms_norm" },
    { HEAD "step norm one rms_norm/* tokens=3 channels=8 : x=x -> x=x\nend\n", NULL,
      "step one: found x, wanted an output of rms_norm" },
    { HEAD "step norm one rms_norm/* tokens=3 channels=8 : x=w -> y=x\nend\n", NULL,
      "t.stack:5: found w, wanted an input or an output of a step above" },
    { HEAD "step norm one rms_norm/* tokens=3 channels=9 : x=x -> y=x\nend\n", NULL,
      "t.stack:5: step one: found x, bf16 [3,8], at its tensor x, wanted bf16 [3,9]" },
    { HEAD "step norm one rms_norm/* tokens=3 channels=24 : gamma=u -> y=z\nend\n", NULL,
      "found u, bf16 [24], at its tensor gamma, wanted f32 [24]" },
    { HEAD "step norm one rms_norm/* tokens=1 channels=8 : -> y=x\nend\n", NULL,
      "found x, bf16 [3,8], at its tensor y, wanted bf16 [1,8]" },
    { HEAD "step norm one rms_norm/* tokens=3 channels=8 : x=x x=u -> y=x\nend\n", NULL, "found tensor x twice" },
    { HEAD NORM NORM "end\n", NULL, "t.stack:6: found step one, which line 5 has too" },
    { HEAD "input x [1] std=1\n" NORM "end\n", NULL, "t.stack:5: found x again, wanted another name" },
    { HEAD "input v [0] std=1\n" NORM "end\n", NULL, "t.stack:5: found 0 = 0, wanted a whole number from 1 on" },
    { HEAD "input v [1] std=0\n" NORM "end\n", NULL, "t.stack:5: found std=0, wanted a number above 0" },
    { HEAD "step norm one rms_norm/* tokens=3,4 channels=8 : x=x -> y=x\nend\n", NULL,
      "t.stack:5: step one: found keys of 2 cases, wanted those of one" },
    { HEAD "step norm one rms_norm/* tokns=3 channels=8 : x=x -> y=x\nend\n", NULL, "t.stack:5: step one: tokns" },
    { HEAD "step norm one rms_norm/99* tokens=3 channels=8 : x=x -> y=x\nend\n", NULL,
      "t.stack:5: step one: found rms_norm/99*, wanted a variant that the runner has" },
    { HEAD "step gemm one gemm/*_f16_sum m=3 n=8 k=8 : a=x -> d=x\nend\n", NULL,
      "step one: found gemm/*_f16_sum, wanted a variant that takes it; the last of 4 says: factors are e4m3 or e5m2" },
    { "set dtype = bf61\nlayers 1\nend\n", NULL, "t.stack:1: found dtype=bf61, wanted bf16, f16 or f32" },
    { "layers 1/2\nend\n", NULL, "t.stack:1: found 1/2 = 0.5, wanted a whole number" },
    { HEAD NORM "end\n", "one", "--use: found 'one', wanted STEP=VARIANT" },
    { HEAD NORM "end\n", "one@x=00*", "--use: found layer 'x', wanted a number" },
    { HEAD NORM "end\n", "two=00*", "--use: found 'two=00*', wanted a step of t" },
    { HEAD NORM "end\n", "one@2=00*", "--use: found 'one@2=00*', wanted a step of t and one of its 2 layers" },
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct at_stack s;
        struct at_stack_plan p;
        parse(bad[i].text, &s);
        at_assert_fails(plan(&s, bad[i].use, &p), AT_USAGE, bad[i].says);
        at_stack_plan_release(&p);
        at_stack_release(&s);
    }
}

/* Other shapes of as many elements are the same flow; what is read and written goes back to it; what a layer replaces of
 * what was there before goes on. */
static void test_flows(void **state) {
    (void)state;
    struct at_stack s;
    struct at_stack_plan p;
    parse(HEAD "step norm one rms_norm/00* tokens=6 channels=4 : x=x -> y=h\n"
               "step norm two post_attn_pre_mlp_uclip_in_place/00* tokens=1 channels=24 : a=h res=u -> y=x\nend\n" NORM,
          &s);
    at_assert_fails(plan(&s, NULL, &p), AT_USAGE, "t.stack:8: found step one, which line 5 has too");
    at_stack_plan_release(&p);
    s.n_steps = 2;
    at_assert_ok(plan(&s, NULL, &p));
    const int x = at_stack_flow_find(&p, "x"), u = at_stack_flow_find(&p, "u"), h = at_stack_flow_find(&p, "h");
    assert_int_equal(p.n_flows, 3);
    assert_int_equal(p.flows[x].carried, 1);
    assert_int_equal(p.flows[u].carried, 1);
    assert_int_equal(p.flows[h].carried, 0);
    const int res = at_op_tensor_index(p.steps[1].op, "res");
    assert_int_equal(p.steps[1].in[res], u);
    assert_int_equal(p.steps[1].out[res], u);
    assert_int_equal(at_stack_times(&p, 1), 2);
    at_stack_plan_release(&p);
    at_stack_release(&s);
}

/* ---- launches ---- */

static int64_t launches(const char *name, const char *const *settings, const char *kind) {
    struct at_stack s;
    struct at_stack_plan p;
    struct at_stack_plan_row *rows;
    int64_t sum = 0;
    at_assert_ok(at_stack_load(name, &s));
    for (; *settings; settings++)
        at_assert_ok(at_stack_set(&s, *settings, "--set"));
    at_assert_ok(plan(&s, NULL, &p));
    at_assert_ok(at_stack_plan_rows(&p, &rows));
    for (int i = 0; i < p.n_steps; i++)
        if (!kind || strcmp(rows[i].kind, kind) == 0)
            sum += rows[i].times * rows[i].launches;
    free(rows);
    at_stack_plan_release(&p);
    at_stack_release(&s);
    return sum;
}
#define SET(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The pairs of 000. Its norms are 141 nodes and, with q and k in one launch, 106: four or three a layer of 35, and one behind
 * them. Ours: the add and UClip, q and k (one or two), post-attention with pre-MLP; the last add and UClip. */
static void test_pairs(void **state) {
    (void)state;
    enum { LAYERS = 35, LAST = 1 };
    assert_int_equal(launches("asynct_35", SET("qk_norm=apart"), "norm"), 4 * LAYERS + LAST);
    assert_int_equal(launches("asynct_35", SET("qk_norm=fused"), "norm"), 3 * LAYERS + LAST);
    assert_int_equal(4 * LAYERS + LAST, 141);
    assert_int_equal(3 * LAYERS + LAST, 106);
    /* Nothing else moves: the pair's difference is the source's, 457 - 422. */
    const int64_t before = launches("asynct_35", SET("qk_norm=apart"), NULL),
                  after = launches("asynct_35", SET("qk_norm=fused"), NULL);
    assert_int_equal(before - after, 457 - 422);
    /* Three products for q, k and v where the source has one, o, gate and up together, down; rope, write, attention, ReGLU. */
    assert_int_equal(launches("asynct_35", SET("qk_norm=fused"), "gemm"), 6 * LAYERS);
    assert_int_equal(after, (3 + 6 + 1 + 1 + 1 + 1) * LAYERS + LAST);
    /* In place or with a residual of its own is one launch each; two operators are two. */
    assert_int_equal(launches("asynct_35", SET("peri=v1"), "norm"), 3 * LAYERS + LAST);
    assert_int_equal(launches("asynct_35", SET("kv_write=inline"), NULL), after - LAYERS);
    assert_int_equal(launches("asynct_35", SET("kv_write=inline"), "rotary"), LAYERS);
    assert_int_equal(launches("asynct_35", SET("peri=apart"), "norm"), 4 * LAYERS + LAST);
    /* 28 layers: two adds with RMS, q and k in two launches; attention splits its keys and merges. */
    assert_int_equal(launches("softmax_28", SET("layers=28"), "norm"), 4 * 28 + LAST);
    assert_int_equal(launches("softmax_28", SET("layers=28"), "attention"), 2 * 28);
    /* Long contexts split: a second kernel adds the parts. */
    assert_int_equal(launches("asynct_35", SET("keys=2048", "pages=128", "b=4"), "attention"), 2 * LAYERS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
