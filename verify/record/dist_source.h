/* What a recording reads: q, k and v of layers and requests, from captures, recorded datasets and cases.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_SOURCE_H
#define AT_DIST_SOURCE_H

#include "datasets/language/case.h"
#include "datasets/readers/reader.h"
#include "fast/vector.h"

enum { AT_DIST_Q, AT_DIST_K, AT_DIST_V, AT_DIST_TENSORS };

/* Most bytes of the codes of k and v of one request, which are held while its queries are read tile by tile. */
#define AT_DIST_MAX_BYTES ((int64_t)1 << 30)

struct at_dist_source {
    char *name;               /* dataset, base name of a file, or case id */
    char *path;               /* what is read; NULL: a case */
    int is_named;             /* 1: one of attest's own datasets, asked for by its name */
    enum at_format format;    /* of q, k and v of every layer */
    int64_t n_layers, *layer; /* numbers, ascending */
    int64_t requests, h, hk, d;
    int64_t *query_start, *key_start; /* [requests + 1]; case: query_start alone */
    struct at_reader *reader;         /* NULL: a case */
    int (*tensor)[AT_DIST_TENSORS];   /* [n_layers] index in the reader */
    int ids;                          /* index of token_ids in the reader; -1: there are none */
    struct at_case_list cases;        /* one, or none */
    struct at_case_data data;
};

/* input: a dataset's name, a path of a tensor file, or a case line of an attention family. AT_NOT_FOUND, AT_USAGE with
 * the tensor or key named. Nothing to close after a failure. */
at_status at_dist_source_open(const char *input, struct at_dist_source *source);
void at_dist_source_close(struct at_dist_source *source);
/* Keeps the layers whose number matches `layers`: "a..b" or a glob of decimal numbers. AT_NOT_FOUND when none does. */
at_status at_dist_source_select(struct at_dist_source *source, const char *layers);
int64_t at_dist_source_queries(const struct at_dist_source *source, int64_t request);
int64_t at_dist_source_keys(const struct at_dist_source *source, int64_t request);
/* Codes of rows [first, first + n) of a request, all heads: queries of q, keys of k and v. */
at_status at_dist_source_read(struct at_dist_source *source, int64_t layer, int64_t request, int tensor, int64_t first,
                              int64_t n, void *codes);

/* dist_identity.c: looks for the ids of tokens; AT_USAGE where they are not one for each key token. */
at_status at_dist_source_check_ids(struct at_dist_source *source);
/* Which request it is, by the ids of its tokens: 16 hex digits, "" where the source has none. */
at_status at_dist_source_identity(struct at_dist_source *source, int64_t request, char *identity, size_t size);

/* How the scores become weights: from --params, or from the case. */
struct at_dist_params {
    int softmax, causal;
    struct at_asynct_head *heads; /* [n_layers h]; owned */
    uint64_t own;                 /* hash of the parameters that the capture brings itself; 0: none */
};
/* text: keys of the case language for this attention, "" for the defaults; for a case the text must be empty and the
 * parameters are its own. */
at_status at_dist_params_make(const struct at_dist_source *source, int softmax, const char *text,
                              struct at_dist_params *params);
void at_dist_params_release(struct at_dist_params *params);
/* dist_own_params.c: what the capture itself says of the heads [h] of layer i, added to *hash; AT_USAGE with the tensor
 * named. */
at_status at_dist_own_params(const struct at_dist_source *source, int softmax, int64_t i, struct at_asynct_head *heads,
                             uint64_t *hash);
/* Canonical text of the parameters, for provenance: the part of a case's id that --params can say. */
at_status at_dist_params_text(const struct at_dist_source *source, int softmax, const char *text, char *out,
                              size_t size);

#endif
