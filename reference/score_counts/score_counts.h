/* Counts of attention scores: every score of one request is rounded to the code of a 16-bit format and counted, beside
 * sums that codes do not hold. It is what `attest record` keeps of a layer, as an operator, so that kernels that count
 * are judged like others. Every output is a whole number and has one right value; all limits are 0.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One request (b = 1, contiguous): q [tokens h d], k and v [slots hk d]. `behind` queries of the request follow those
 * at hand, so query i stands at position slots - tokens - behind + i. When causal it sees the keys t up to that
 * position. Its distance to key t is |position - t|.
 *
 * All arithmetic is in double, each +, -, *, / rounded once and, but for outputs, never fused, so that every quantity has one
 * value for a query (a row) and a key t:
 *
 *   raw      sum of q_c k_c over c = 0 .. d-1, compensated by the errors of its additions (Dot2: Ogita, Rump and Oishi
 *            2005; the products are exact in double). Where q or k is not finite, the plain sum in that order, from 0.
 *            A sum whose terms all lie within 53 bits is exact, and so the same, however it is computed.
 *   scaled   s = scale * raw
 *   fir      z, in asynct alone, of r = max(s, 0) with relu_pre and r = s without; r is NaN where s is not finite.
 *            pooled: z = r_t - sigma / K * (r_t + r_{t-1} + ..); taps: z = w_0 r_t + w_1 r_{t-1} + ..; sums start at 0.
 *            edge=shrink divides by the number of keys that there are.
 *   p        asynct: min(max(z, 0), clip_max), then the maximum of that and clip_min; a NaN stays one.
 *            softmax: e_t / sum, e_t = at_plain_exp(s_t - max); max: of the visible s that are numbers, 0 where it is
 *            -inf; sum: of e in ascending t.
 *   out      asynct: o = fma(gamma p_t, v_tc, o) from 0 on in ascending t, over the keys whose p is not 0: what tensor cores
 *            of doubles do. softmax: the same of e_t, divided by the sum of e. 0 without a visible key. gamma is finite.
 *   row_max  the largest visible s; NaN if one is
 *   row_sum  sum in ascending t of w, where w is p (asynct) or e (softmax)
 *   entropy  H = log2(row_sum) - (sum in ascending t of w log2 w over p != 0 and w != 0) / row_sum, at least 0;
 *            logarithms by at_plain_log2
 *   support  at_plain_exp2(H)
 *   share0   w_0 / row_sum
 *
 * Rows without a visible key have no statistics; rows whose row_sum is 0 have no entropy, support and share0. Hidden
 * pairs are counted nowhere. */
#ifndef AT_SCORE_COUNTS_H
#define AT_SCORE_COUNTS_H

#include "attest/attention.h"

enum {
    AT_COUNTS_SIGMA = AT_ATTN_COMMON, /* f32 [h]; AsyncT with params.fir_form pooled */
    AT_COUNTS_TAPS,                   /* f32 [h taps]; AsyncT with given taps */
    AT_COUNTS_GAMMA,                  /* f32 [h] */
    AT_COUNTS_COUNTS,                 /* i32 [h quantities slots] */
    AT_COUNTS_KV_COUNTS,              /* i32 [hk kv_quantities slots] */
    AT_COUNTS_SUMS,                   /* f64 [h AT_HEAD_SUMS] */
    AT_COUNTS_KV_SUMS                 /* f64 [hk AT_KV_SUMS] */
};
enum { AT_CODE_SLOTS = 65536, AT_HEAD_SUMS = 190, AT_KV_SUMS = 2 }; /* a slot for each code of 16 bits */
enum { AT_COUNTS_MAX_TAPS = 16, AT_COUNTS_PAGE = 16, AT_COUNTS_TILE = 64 };

/* Quantities in the order of the bits of `what` and of a head's planes: those whose bit is not set have none. */
enum at_counts_what {
    AT_COUNTS_OF_Q,
    AT_COUNTS_OF_K, /* k and v: planes of a key/value head */
    AT_COUNTS_OF_V,
    AT_COUNTS_OF_RAW,
    AT_COUNTS_OF_SCALED,
    AT_COUNTS_OF_FIR,
    AT_COUNTS_OF_P,
    AT_COUNTS_OF_OUT,
    AT_COUNTS_OF_ROW_MAX,
    AT_COUNTS_OF_ROW_SUM,
    AT_COUNTS_OF_ENTROPY,
    AT_COUNTS_OF_SUPPORT,
    AT_COUNTS_OF_SHARE0,
    AT_COUNTS_QUANTITIES
};
#define AT_COUNTS_KV_BITS ((1 << AT_COUNTS_OF_K) | (1 << AT_COUNTS_OF_V))

/* Sizes and parameters of its own. */
struct at_counts_own {
    int64_t quantities, kv_quantities; /* counted ones, of query heads and of key/value heads: as `what` says */
    int32_t softmax;                   /* 0 AsyncT, 1 softmax */
    int32_t bins;                      /* enum at_format whose codes are counted: f16 or bf16 */
    int32_t what;                      /* bit i: quantity i is counted */
    int32_t behind;                    /* queries of the request behind those at hand */
};
AT_OWN_STRUCT(at_counts_own)

/* Slots of a plane: the format's codes that are not NaN in numeric order, -inf first; then NaN, finite values that
 * round to +inf, finite values that round to -inf; the rest is 0. */

/* A head's sums. Those of zeros and mass are 0 unless p is counted, a stage's unless its quantity is. A page is 16
 * keys, a tile 64 queries by one page; only what is visible counts, and a tile is visible where its last query sees. */
enum {
    AT_COUNTS_ELEMENT_ZERO, /* visible p that are 0 */
    AT_COUNTS_TILE_ZERO,    /* tiles all of whose visible p are 0 */
    AT_COUNTS_MASS_LOW,     /* 64 sums of |p| in units of 2^-24, each p rounded to it, modulo 2^32, */
    AT_COUNTS_MASS_HIGH = AT_COUNTS_MASS_LOW + 64, /* and what is above; of distances 0, 1, 2-3, 4-7, ...; p finite */
    AT_COUNTS_LEDGER = AT_COUNTS_MASS_HIGH + 64    /* rows of the ledger: raw, scaled, fir, p (softmax: e), out */
};
enum { AT_COUNTS_DISTANCES = 64, AT_COUNTS_STAGES = 5 };
/* A row of the ledger (attest/ledger.h). Places are query and key, -1 for an output's key; 0 where there is none. */
enum {
    AT_COUNTS_COUNT,
    AT_COUNTS_ZERO,
    AT_COUNTS_NAN,
    AT_COUNTS_INF,
    AT_COUNTS_ABOVE,
    AT_COUNTS_TO_INF,
    AT_COUNTS_SUBNORMAL,
    AT_COUNTS_FLUSHED,
    AT_COUNTS_MAX_ABS,
    AT_COUNTS_HAS_FIRST,
    AT_COUNTS_FIRST_QUERY,
    AT_COUNTS_FIRST_KEY,
    AT_COUNTS_LEDGER_FIELDS
};
/* A key/value head's sums: (query, key) and (query, page) whose p are 0 in every query head of the group. */
enum { AT_COUNTS_KEY_ZERO, AT_COUNTS_PAGE_ZERO };

/* Place of a quantity among the planes of its kind of head, -1 when it is not counted. */
static inline int at_counts_plane(int what, int quantity) {
    int plane = 0;
    const int kv = AT_COUNTS_KV_BITS >> quantity & 1;
    if (!(what >> quantity & 1))
        return -1;
    for (int i = 0; i < quantity; i++)
        plane += (what >> i & 1) && (AT_COUNTS_KV_BITS >> i & 1) == kv;
    return plane;
}
/* Planes of query heads and of key/value heads. */
void at_counts_planes(int what, int64_t *quantities, int64_t *kv_quantities);

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_counts_fault {
    AT_COUNTS_RIGHT = -1,
    AT_COUNTS_LAST_KEY_DROPPED,
    AT_COUNTS_HIDDEN_KEY_ADDED,
    AT_COUNTS_NO_SCALE,
    AT_COUNTS_TAP_DROPPED,
    AT_COUNTS_HALO_FORGOTTEN,
    AT_COUNTS_OTHER_GAMMA,
    AT_COUNTS_NEGATIVE_ZERO_LOST,
    AT_COUNTS_NAN_LOST,
    AT_COUNTS_SUBNORMAL_LOST,
    AT_COUNTS_TRUNCATED,
    AT_COUNTS_ZEROS_TWICE,
    AT_COUNTS_FAULTS
};

/* One head's rows, whole: rows of the operator are query heads (rows.c). */
struct at_counts_row {
    int64_t n;         /* visible keys */
    const double *dot; /* [n] raw */
    const double *s;   /* scaled */
    const double *z;   /* fir; softmax: e */
    const double *p;
    double max, sum; /* row_max (not for n = 0), row_sum */
};

/* Parameters of one head. */
struct at_counts_head {
    double scale, sigma, gamma, clip_min, clip_max, tap[AT_COUNTS_MAX_TAPS];
    int taps, relu_pre, pooled, shrink, softmax;
};

/* Memory for the rows of a head: q [tokens d], k and v [slots d] decoded, scores of a row. */
struct at_counts_rows {
    const struct at_problem *problem;
    enum at_counts_fault fault;
    struct at_counts_head head;
    double *q, *k, *v, *dot, *s, *z, *p;
    unsigned char *finite; /* [slots] all of a key is */
    void *memory;
};
at_status at_counts_rows_open(const struct at_problem *problem, enum at_counts_fault fault, int64_t head,
                              struct at_counts_rows *rows);
void at_counts_rows_close(struct at_counts_rows *rows);
/* Row of query i; valid until the next call. */
struct at_counts_row at_counts_row_of(struct at_counts_rows *rows, int64_t i);
/* Slot of a value in a plane; -1: nowhere. */
int at_counts_slot(enum at_format bins, enum at_counts_fault fault, double x);

at_status at_counts_head_count(const struct at_problem *problem, enum at_counts_fault fault, int64_t head,
                               struct at_eval *eval);

extern const struct at_op at_op_score_counts;

#endif
