/* A product of matrices: its definition and its descriptor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gemm/gemm.h"

#include <math.h>
#include <stdlib.h>

#define PLACE(member) AT_OWN_PLACE(at_gemm_own, member)

/* clang-format off */
enum { M, N, K, OUT, LAYOUT, B_ROWS, W_COLUMNS, SCALE_A, SCALE_B, BIAS, AMAX, SCALES, BIAS_COLUMNS, FIELDS };
static const char *layout_text(int i) { return i == AT_GEMM_NK ? "nk" : i == AT_GEMM_KN ? "kn" : NULL; }
static const char *bias_text(int i) { static const char *const words[] = { "none", "out", "f32" }; return i < 3 ? words[i] : NULL; }
static const struct at_scalar own[FIELDS] = {
    [M]   = { "m", AT_SCALAR_SIZE, PLACE(m), 64, "rows of a product, of its first factor", "m", 0, 1 << 24, .word = "row" },
    [N]   = { "n", AT_SCALAR_SIZE, PLACE(n), 64, "columns of a product", "n", 0, 1 << 24, .word = "column" },
    [K]   = { "k", AT_SCALAR_SIZE, PLACE(k), 128, "products that one element sums", "k", 0, 1 << 24, .word = "factor" },
    [OUT] = { "out", AT_SCALAR_FORMAT, PLACE(out), AT_F32, "the product; default dtype, bf16 for e4m3 and e5m2", "out",
              .formats = 1u << AT_F32 | 1u << AT_F16 | 1u << AT_BF16 },
    [LAYOUT] = { "layout", AT_SCALAR_CHOICE, PLACE(layout), AT_GEMM_NK, "how the second factor lies: nk, by columns of the product; kn, by its rows", "layout", .text = layout_text },
    [B_ROWS] = { "b_rows", AT_SCALAR_SIZE, PLACE(b_rows), 64, "n, or 0 with layout kn", .word = "row of b" },
    [W_COLUMNS] = { "w_columns", AT_SCALAR_SIZE, PLACE(w_columns), 0, "n with layout kn", .word = "column of w" },
    [SCALE_A] = { "scale_a", AT_SCALAR_FLOAT, PLACE(scale_a), 1, "scale of the first factor, which a kernel reads; default: none, 1 beside scale_b", "scale_a", .quiet = 1, .announced = 1 },
    [SCALE_B] = { "scale_b", AT_SCALAR_FLOAT, PLACE(scale_b), 1, "scale of the second factor, which a kernel reads; default: none, 1 beside scale_a", "scale_b", .quiet = 1, .announced = 1 },
    [BIAS] = { "bias", AT_SCALAR_CHOICE, PLACE(bias), AT_GEMM_BIAS_NONE, "what is added to each column: nothing, a vector in the format of the product, one in f32", "bias", .text = bias_text, .quiet = 1, .announced = 1 },
    [AMAX] = { "amax", AT_SCALAR_SIZE, PLACE(amax), 0, "1: the largest magnitude of the product before its last rounding is an output, too", "amax", 0, 1, .word = "maximum", .quiet = 1, .announced = 1 },
    [SCALES] = { "scales", AT_SCALAR_SIZE, PLACE(scales), 0, "1 where factors have scales", .word = "scale", .announced = 1 },
    [BIAS_COLUMNS] = { "bias_columns", AT_SCALAR_SIZE, PLACE(bias_columns), 0, "n with a bias", .word = "column of the bias" },
};
static const char *const keys[] = { "m", "n", "k", "layout", "dtype", "out", "data", "seed", "scale", "scale_a", "scale_b", "bias", "amax", "require", "expect", NULL };
static const struct at_factor rows_tile = { .name = "m", .meaning = "rows about a tile", .flags = AT_FACTOR_PREFILL, .classes = AT_CLASSES("m=20", "m=1", "m=15,16,17", "m=31,32,33", "m=63,64,65"), .far = AT_CLASSES("m=0", "m=129,257"), .any = "m=1..70" };
static const struct at_factor rows_decoded = { .name = "m", .meaning = "tokens of a batched decode", .flags = AT_FACTOR_DECODE, .classes = AT_CLASSES("m=1", "m=2", "m=4", "m=8", "m=3,5,6,7"), .far = AT_CLASSES("m=0"), .any = "m=1..8" };
static const struct at_factor columns = { .name = "n", .meaning = "columns about a tile and a vector", .flags = AT_FACTOR_PREFILL, .classes = AT_CLASSES("n=24", "n=1,2", "n=7,8,9", "n=15,16,17,33", "n=63,64,65"), .far = AT_CLASSES("n=0", "n=129,257"), .any = "n=1..70" };
static const struct at_factor columns_decoded = { .name = "n", .meaning = "columns about a vector and those of a warp or block", .flags = AT_FACTOR_DECODE, .classes = AT_CLASSES("n=72", "n=1,2", "n=7,8,9", "n=127,129", "n=128,256", "n=255,257"), .far = AT_CLASSES("n=0", "n=512,520,1025"), .any = "n=1..300" };
static const struct at_factor sum = { .name = "k", .meaning = "products about a step and a vector", .flags = AT_FACTOR_PREFILL, .classes = AT_CLASSES("k=64", "k=1,2,7", "k=8,16", "k=15,17,31,33", "k=32,128", "k=63,65,127,129", "k=100,200"), .far = AT_CLASSES("k=0", "k=1025,2048"), .any = "k=1..150" };
static const struct at_factor sum_decoded = { .name = "k", .meaning = "products about a vector and those of a block", .flags = AT_FACTOR_DECODE, .classes = AT_CLASSES("k=64", "k=1,2,7", "k=8,16", "k=15,17,33", "k=255,257", "k=256,512", "k=511,513,600"), .far = AT_CLASSES("k=0", "k=1025,2048,3000"), .any = "k=1..700" };
static const struct at_factor layouts = { .name = "layout", .meaning = "of the second factor", .flags = AT_FACTOR_PREFILL, .classes = AT_CLASSES("", "layout=kn") };
static const struct at_factor by_rows = { .name = "layout", .meaning = "of the second factor: weights by rows", .flags = AT_FACTOR_DECODE, .classes = AT_CLASSES("layout=kn") };
static const struct at_factor factors_decoded = { .name = "dtype", .meaning = "format of the factors", .flags = AT_FACTOR_DECODE, .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor factors = { .name = "dtype", .meaning = "format of the factors", .flags = AT_FACTOR_PREFILL, .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=e4m3", "dtype=e5m2", "dtype=f32") };
static const struct at_factor product = { .name = "out", .meaning = "format of the product", .classes = AT_CLASSES("", "out=f32", "out=f16", "out=bf16") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=same_sign,uniform", "data=outlier_channel", "data=cancel", "data=ties", "data=subnormal") };
static const struct at_factor scale_of = { .name = "scale", .meaning = "of the product", .classes = AT_CLASSES("", "scale=0.37", "scale=-3", "scale=0.5"), .any = "scale=0.01,-0.7,1.3" };
static const struct at_factor scales_of = { .name = "scales", .meaning = "of the factors, which a kernel reads", .classes = AT_CLASSES("", "scale_a=0.37 scale_b=-2.5", "scale_a=0.25 scale_b=3"), .far = AT_CLASSES("scale_a=0 scale_b=3", "scale_a=1e-30 scale_b=1e-12") };
static const struct at_factor added = { .name = "bias", .meaning = "what is added to each column", .classes = AT_CLASSES("", "bias=out", "bias=f32") };
static const struct at_factor maximum = { .name = "amax", .meaning = "whether the largest magnitude is an output", .classes = AT_CLASSES("", "amax=1") };
static const struct at_factor *const domain[] = { &rows_tile, &rows_decoded, &columns, &columns_decoded, &sum, &sum_decoded, &layouts, &by_rows, &factors, &factors_decoded, &product, &values, &scale_of, &scales_of, &added, &maximum, NULL };
static const struct at_tensor_spec tensors[] = {
    { "a", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(M), AT_DIM_OWN(K) }, "first factor, by rows", AT_FILL_LEFT },
    { "b", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(B_ROWS), AT_DIM_OWN(K) }, "second factor, by columns of the product; layout nk", AT_FILL_RIGHT },
    { "w", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(K), AT_DIM_OWN(W_COLUMNS) }, "second factor, by rows; layout kn", AT_FILL_RIGHT_COLUMNS },
    { "scale_a", AT_IN, AT_FORMAT_F32, { AT_DIM_OWN(SCALES) }, "scale of the first factor", AT_FILL_PARAMETER },
    { "scale_b", AT_IN, AT_FORMAT_F32, { AT_DIM_OWN(SCALES) }, "scale of the second factor", AT_FILL_PARAMETER },
    { "bias", AT_IN, AT_FORMAT_OWN, { AT_DIM_OWN(BIAS_COLUMNS) }, "added to each column of the scaled product", AT_FILL_BIAS },
    { "d", AT_OUT, AT_FORMAT_OWN, { AT_DIM_OWN(M), AT_DIM_OWN(N) }, "the product" },
    { "amax", AT_OUT, AT_FORMAT_F32, { AT_DIM_OWN(AMAX) }, "the largest magnitude of the product before its last rounding", .optional = 1 },
};
static const struct at_decoy_spec decoys[AT_GEMM_FAULTS] = {
    [AT_GEMM_LAST_K_DROPPED]     = { "last_k_dropped", "the last product is not added" },
    [AT_GEMM_K_TAIL_DROPPED]     = { "k_tail_dropped", "products behind the last whole 16 are not added" },
    [AT_GEMM_HIDDEN_K_ADDED]     = { "hidden_k_added", "the first product of the next rows is added" },
    [AT_GEMM_NEXT_COLUMN]        = { "next_column", "each column is the next one" },
    [AT_GEMM_B_ROWS_SWAPPED]     = { "b_rows_swapped", "neighbouring columns are swapped" },
    [AT_GEMM_B_TRANSPOSED]       = { "b_transposed", "b is read as if it were stored k by n, w as if n by k" },
    [AT_GEMM_LAST_COLUMN_ZEROED] = { "last_column_zeroed", "the last column is 0" },
    [AT_GEMM_NO_SCALE]           = { "no_scale", "the scale is missing" },
    [AT_GEMM_SCALE_TWICE]        = { "scale_twice", "the scale is applied twice" },
    [AT_GEMM_NO_SCALE_A]         = { "no_scale_a", "the scale of the first factor is missing" },
    [AT_GEMM_NO_SCALE_B]         = { "no_scale_b", "the scale of the second factor is missing" },
    [AT_GEMM_SCALE_A_FOR_B]      = { "scale_a_for_b", "the scale of the first factor is taken for both" },
    [AT_GEMM_SCALE_B_FOR_A]      = { "scale_b_for_a", "the scale of the second factor is taken for both" },
    [AT_GEMM_NO_BIAS]            = { "no_bias", "the bias is missing" },
    [AT_GEMM_NEXT_BIAS]          = { "next_bias", "the bias of the next column is added" },
    [AT_GEMM_BIAS_BY_ROW]        = { "bias_by_row", "the bias is indexed by rows" },
    [AT_GEMM_BIAS_SCALED]        = { "bias_scaled", "the bias is added before the scale" },
    [AT_GEMM_AMAX_ROUNDED]       = { "amax_rounded", "the maximum is that of the rounded product" },
    [AT_GEMM_AMAX_SIGNED]        = { "amax_signed", "the maximum is that of the values, not of their magnitudes" },
    [AT_GEMM_AMAX_OF_NEGATIVES]  = { "amax_of_negatives", "the maximum is that of negative values alone" },
    [AT_GEMM_AMAX_BEFORE_BIAS]   = { "amax_before_bias", "the maximum is taken before the bias is added" },
    [AT_GEMM_AMAX_LAST_ROW_LEFT_OUT] = { "amax_last_row_left_out", "the maximum leaves out the last row" },
};
/* clang-format on */

/* Of the finite ones. */
static double largest_of(int64_t n, const double *x) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && fabs(x[i]) > largest)
            largest = fabs(x[i]);
    return largest;
}

/* What is done with each element; largest: of the magnitudes of both its vectors. */
typedef void at_gemm_taken(void *context, int64_t i, int64_t j, const struct at_gemm_element *element, double largest);

/* Every element of rows [row0, row1), columns in turns of AT_GEMM_ABREAST. b: all columns. */
static at_status each_element(const struct at_problem *p, const double *b, int64_t row0, int64_t row1,
                              at_gemm_taken *take, void *context) {
    at_status status = AT_OK;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int64_t rows = row0 < row1 ? row1 - row0 : 0;
    if (rows == 0)
        return AT_OK;
    double *a = at_gemm_rows(p, rows ? row0 : 0, rows),
           *abreast = malloc(((size_t)z.k + 1) * AT_GEMM_ABREAST * sizeof *abreast),
           *largest_a = calloc((size_t)rows + 1, sizeof *largest_a);
    if (!a || !abreast || !largest_a)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)z.k);
    for (int64_t i = 0; i < rows; i++)
        largest_a[i] = largest_of(z.k, a + i * z.k);
    for (int64_t j = 0; j < z.n; j += AT_GEMM_ABREAST) {
        const int64_t count = z.n - j < AT_GEMM_ABREAST ? z.n - j : AT_GEMM_ABREAST;
        double largest_b[AT_GEMM_ABREAST] = { 0 };
        struct at_gemm_element e[AT_GEMM_ABREAST];
        at_gemm_lay_abreast(p, b, j, abreast);
        for (int64_t c = 0; c < count; c++)
            largest_b[c] = largest_of(z.k, b + (j + c) * z.k);
        for (int64_t i = 0; i < rows; i++) {
            at_gemm_elements(p, a + i * z.k, b, abreast, j, e);
            for (int64_t c = 0; c < count; c++)
                take(context, row0 + i, j + c, &e[c], fmax(largest_a[i], largest_b[c]));
        }
    }
out:
    free(a);
    free(abreast);
    free(largest_a);
    return status;
}

struct taking {
    const struct at_problem *problem;
    const struct at_gemm_declared *declared; /* or NULL */
    struct at_eval *eval;
    struct at_gemm_most most; /* of amax */
};

static void take_of_d(void *context, int64_t i, int64_t j, const struct at_gemm_element *e, double largest) {
    const struct taking *t = context;
    const int64_t at = i * at_gemm_own_of(t->problem).n + j;
    if (t->eval->value[AT_GEMM_D])
        t->eval->value[AT_GEMM_D][at] = e->value;
    if (t->eval->ledger)
        at_gemm_note(t->eval->ledger, i, j, e->sum, e->value);
    if (t->eval->limit[AT_GEMM_D])
        t->eval->limit[AT_GEMM_D][at] = at_gemm_limit(t->problem, t->declared, e, largest);
}

static void take_of_amax(void *context, int64_t i, int64_t j, const struct at_gemm_element *e, double largest) {
    struct taking *t = context;
    (void)i, (void)j;
    at_gemm_raise(&t->most, e->value,
                  t->eval->limit[AT_GEMM_AMAX] ? at_gemm_error(t->problem, t->declared, e, largest) : 0);
}

/* The row behind those of d: the largest magnitude of all. */
static at_status evaluate_amax(const double *b, struct taking *t) {
    enum { ROWS = 64 }; /* decoded at a time */
    struct at_eval *eval = t->eval;
    for (int64_t i = 0, m = at_gemm_own_of(t->problem).m; i < m; i += ROWS)
        AT_TRY(each_element(t->problem, b, i, i + ROWS < m ? i + ROWS : m, take_of_amax, t));
    if (eval->value[AT_GEMM_AMAX])
        eval->value[AT_GEMM_AMAX][0] = t->most.value;
    if (eval->limit[AT_GEMM_AMAX])
        eval->limit[AT_GEMM_AMAX][0] = at_gemm_amax_limit(t->declared, &t->most);
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    at_status status = AT_OK;
    struct at_gemm_declared declared;
    if (numerics)
        AT_TRY(at_gemm_declare(p, numerics, &declared));
    const int64_t m = at_gemm_own_of(p).m;
    struct taking t = { .problem = p, .declared = numerics ? &declared : NULL, .eval = eval };
    double *own_b = NULL;
    const double *b = eval->prepared ? eval->prepared : (own_b = at_gemm_columns(p));
    if (!b)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)at_gemm_own_of(p).k);
    AT_TRY_OUT(each_element(p, b, row0, row1 < m ? row1 : m, take_of_d, &t));
    if (row1 > m)
        AT_TRY_OUT(evaluate_amax(b, &t));
out:
    free(own_b);
    return status;
}

static void *prepare(const struct at_problem *p) { return at_gemm_columns(p); }

static enum at_format own_format(const struct at_problem *p, int tensor) {
    return tensor == AT_GEMM_BIAS && at_gemm_own_of(p).bias == AT_GEMM_BIAS_F32 ? AT_F32
                                                                                : (enum at_format)at_gemm_own_of(p).out;
}

static at_status check_tensor(const struct at_problem *p, int t, int64_t want) {
    const int64_t found = at_tensor_count(&p->tensors[t]);
    const enum at_format format = t <= AT_GEMM_W ? p->dtype : t == AT_GEMM_BIAS ? own_format(p, t) : AT_F32;
    if (found == want && p->tensors[t].format == format && (want == 0 || p->tensors[t].data))
        return AT_OK;
    return AT_FAIL(AT_USAGE, "gemm: tensor %s has %lld elements of %s, wanted %lld of %s with data", tensors[t].name,
                   (long long)found, at_format_info(p->tensors[t].format)->name, (long long)want,
                   at_format_info(format)->name);
}

static at_status check(const struct at_problem *p) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    const struct at_gemm_own stored = at_gemm_stored(z);
    if (z.m < 0 || z.n < 0 || z.k < 0 || z.m > INT32_MAX || z.n > INT32_MAX || z.k > INT32_MAX)
        return AT_FAIL(AT_USAGE, "gemm: m, n, k are %lld, %lld, %lld, wanted 0 or more, of 31 bits", (long long)z.m,
                       (long long)z.n, (long long)z.k);
    if ((z.layout != AT_GEMM_NK && z.layout != AT_GEMM_KN) || z.b_rows != stored.b_rows ||
        z.w_columns != stored.w_columns)
        return AT_FAIL(AT_USAGE, "gemm: layout %d with b_rows %lld and w_columns %lld, wanted 0, %lld, 0 or 1, 0, %lld",
                       (int)z.layout, (long long)z.b_rows, (long long)z.w_columns, (long long)z.n, (long long)z.n);
    if (p->dtype != AT_F32 && p->dtype != AT_F16 && p->dtype != AT_BF16 && p->dtype != AT_E4M3 && p->dtype != AT_E5M2)
        return AT_FAIL(AT_USAGE, "gemm: dtype is %d, wanted f32, f16, bf16, e4m3 or e5m2", (int)p->dtype);
    if (z.out != AT_F32 && z.out != AT_F16 && z.out != AT_BF16)
        return AT_FAIL(AT_USAGE, "gemm: out is %d, wanted f32, f16 or bf16", (int)z.out);
    if (!isfinite((double)p->params.scale))
        return AT_FAIL(AT_USAGE, "gemm: scale is %g, wanted a finite number", (double)p->params.scale);
    if (z.bias < AT_GEMM_BIAS_NONE || z.bias > AT_GEMM_BIAS_F32 || z.bias_columns != stored.bias_columns ||
        z.scales < 0 || z.scales > 1 || z.amax < 0 || z.amax > 1)
        return AT_FAIL(AT_USAGE,
                       "gemm: bias %d of %lld columns, scales %lld, amax %lld, wanted 0 to 2 of %lld, 0 or 1, 0 or 1",
                       (int)z.bias, (long long)z.bias_columns, (long long)z.scales, (long long)z.amax,
                       (long long)stored.bias_columns);
    const int64_t wanted[AT_GEMM_D] = {
        z.m * z.k, z.b_rows * z.k, z.w_columns * z.k, z.scales, z.scales, z.bias_columns
    };
    for (int t = 0; t < AT_GEMM_D; t++)
        AT_TRY(check_tensor(p, t, wanted[t]));
    return AT_OK;
}

static int64_t rows(const struct at_problem *p) { return at_gemm_own_of(p).m + at_gemm_own_of(p).amax; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int of_d = row < z.m;
    *first = tensor == AT_GEMM_D && of_d ? row * z.n : 0;
    *count = tensor == AT_GEMM_D ? of_d ? z.n : 0 : !of_d;
}

/* amax looks at all of d. */
static double row_work(const struct at_problem *p, int64_t row) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    return (double)z.n * (double)z.k * (row < z.m ? 1 : (double)z.m);
}

/* One sum of products an element. */
static double flops(const struct at_problem *p) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    return 2.0 * (double)z.m * (double)z.n * (double)z.k;
}

static void complete(struct at_problem *p, unsigned given) {
    struct at_gemm_own z = at_gemm_own_of(p);
    if (!(given >> OUT & 1))
        z.out = (int32_t)(at_format_info(p->dtype)->bytes > 1 ? p->dtype : AT_BF16);
    z.scales = (given >> SCALE_A & 1) || (given >> SCALE_B & 1);
    z = at_gemm_stored(z);
    at_gemm_own_set(p, &z);
}

const struct at_op at_op_gemm = {
    .name = "gemm",
    .summary = "d = scale * (a b^T), or scale * (a w); with scales of the factors, a bias and the largest magnitude "
               "where they are asked for",
    .source = "002, 004",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_GEMM_FAULTS,
    .kind = AT_KIND_PRODUCT,
    .uses = AT_USES(scale),
    .own = own,
    .n_own = FIELDS,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(split),
    .dtypes = 1u << AT_F32 | 1u << AT_F16 | 1u << AT_BF16 | 1u << AT_E4M3 | 1u << AT_E5M2,
    .has_ledger = 1,
    .complete = complete,
    .own_format = own_format,
    .batch = AT_DIM_OWN(M),
    .flops = flops,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .prepare = prepare,
    .model = at_gemm_model,
    .decoy = at_gemm_decoy,
};
