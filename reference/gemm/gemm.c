/* A product of matrices: its definition and its descriptor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gemm/gemm.h"

#include <math.h>
#include <stdlib.h>

#define PLACE(member) AT_OWN_PLACE(at_gemm_own, member)

/* clang-format off */
enum { M, N, K, OUT, LAYOUT, B_ROWS, W_COLUMNS, FIELDS };
static const char *layout_text(int i) { return i == AT_GEMM_NK ? "nk" : i == AT_GEMM_KN ? "kn" : NULL; }
static const struct at_scalar own[FIELDS] = {
    [M]   = { "m", AT_SCALAR_SIZE, PLACE(m), 64, "rows of a product, of its first factor", "m", 0, 1 << 24, .word = "row" },
    [N]   = { "n", AT_SCALAR_SIZE, PLACE(n), 64, "columns of a product", "n", 0, 1 << 24, .word = "column" },
    [K]   = { "k", AT_SCALAR_SIZE, PLACE(k), 128, "products that one element sums", "k", 0, 1 << 24, .word = "factor" },
    [OUT] = { "out", AT_SCALAR_FORMAT, PLACE(out), AT_F32, "the product; default dtype, bf16 for e4m3 and e5m2", "out",
              .formats = 1u << AT_F32 | 1u << AT_F16 | 1u << AT_BF16 },
    [LAYOUT] = { "layout", AT_SCALAR_CHOICE, PLACE(layout), AT_GEMM_NK, "how the second factor lies: nk, by columns of the product; kn, by its rows", "layout", .text = layout_text },
    [B_ROWS] = { "b_rows", AT_SCALAR_SIZE, PLACE(b_rows), 64, "n, or 0 with layout kn", .word = "row of b" },
    [W_COLUMNS] = { "w_columns", AT_SCALAR_SIZE, PLACE(w_columns), 0, "n with layout kn", .word = "column of w" },
};
static const char *const keys[] = { "m", "n", "k", "layout", "dtype", "out", "data", "seed", "scale", "require", "expect", NULL };
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
static const struct at_factor *const domain[] = { &rows_tile, &rows_decoded, &columns, &columns_decoded, &sum, &sum_decoded, &layouts, &by_rows, &factors, &factors_decoded, &product, &values, &scale_of, NULL };
static const struct at_tensor_spec tensors[] = {
    { "a", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(M), AT_DIM_OWN(K) }, "first factor, by rows", AT_FILL_LEFT },
    { "b", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(B_ROWS), AT_DIM_OWN(K) }, "second factor, by columns of the product; layout nk", AT_FILL_RIGHT },
    { "w", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(K), AT_DIM_OWN(W_COLUMNS) }, "second factor, by rows; layout kn", AT_FILL_RIGHT_COLUMNS },
    { "d", AT_OUT, AT_FORMAT_OWN, { AT_DIM_OWN(M), AT_DIM_OWN(N) }, "the product" },
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

/* One row of d. */
static void evaluate_row(const struct at_problem *p, const struct at_gemm_declared *declared, const double *a,
                         const double *b, int64_t i, struct at_eval *eval) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int64_t n = z.n, k = z.k;
    const double largest_a = largest_of(k, a);
    for (int64_t j = 0; j < n; j++) {
        const struct at_gemm_element e = at_gemm_element(p, a, b + j * k);
        if (eval->value[AT_GEMM_D])
            eval->value[AT_GEMM_D][i * n + j] = e.value;
        if (eval->ledger)
            at_gemm_note(eval->ledger, i, j, e.sum, e.value);
        if (eval->limit[AT_GEMM_D])
            eval->limit[AT_GEMM_D][i * n + j] =
                at_gemm_limit(p, declared, &e, fmax(largest_a, largest_of(k, b + j * k)));
    }
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    at_status status = AT_OK;
    struct at_gemm_declared declared;
    if (numerics)
        AT_TRY(at_gemm_declare(p, numerics, &declared));
    double *a = at_gemm_rows(p, row0, row1 - row0), *b = at_gemm_columns(p);
    if (!a || !b)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)at_gemm_own_of(p).k);
    for (int64_t row = row0; row < row1; row++)
        evaluate_row(p, numerics ? &declared : NULL, a + (row - row0) * at_gemm_own_of(p).k, b, row, eval);
out:
    free(a);
    free(b);
    return status;
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
    for (int t = 0; t < AT_GEMM_D; t++) {
        const int64_t want = (t == AT_GEMM_A   ? z.m
                              : t == AT_GEMM_B ? z.b_rows
                                               : z.w_columns) *
                             z.k,
                      found = at_tensor_count(&p->tensors[t]);
        if (found != want || p->tensors[t].format != p->dtype || (want > 0 && !p->tensors[t].data))
            return AT_FAIL(AT_USAGE, "gemm: tensor %s has %lld elements of %s, wanted %lld of %s with data",
                           tensors[t].name, (long long)found, at_format_info(p->tensors[t].format)->name,
                           (long long)want, at_format_info(p->dtype)->name);
    }
    return AT_OK;
}

static int64_t rows(const struct at_problem *p) { return at_gemm_own_of(p).m; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)tensor;
    *first = row * at_gemm_own_of(p).n;
    *count = at_gemm_own_of(p).n;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return (double)at_gemm_own_of(p).n * (double)at_gemm_own_of(p).k;
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
    z = at_gemm_stored(z);
    at_gemm_own_set(p, &z);
}

static enum at_format own_format(const struct at_problem *p, int tensor) {
    (void)tensor;
    return (enum at_format)at_gemm_own_of(p).out;
}

const struct at_op at_op_gemm = {
    .name = "gemm",
    .summary = "d = scale * (a b^T), or scale * (a w)",
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
    .model = at_gemm_model,
    .decoy = at_gemm_decoy,
};
