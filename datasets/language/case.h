/* Cases: one line of text each, from which a problem with all its tensors is built.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   asynct_decode b=2 h=8 hk=4 sk=1,17,256 d=128 page=16 dtype=bf16 data=normal seed=7
 *
 * First word: a kernel family. Then key=value. `,` and `a..b` make separate cases (their product,
 * rightmost key fastest), `/` gives the requests of one batch their values in turn, `:` separates the
 * parts of one value (taps=0.5:-0.25:-0.25, clip=0:1), `#` starts a comment. The id of a case is the
 * same line with every key, in fixed order, defaults filled in: equal ids are equal problems, bit for
 * bit, on any machine and any thread count. */
#ifndef AT_CASE_H
#define AT_CASE_H

#include "attest/op.h"

enum { AT_CASE_ID_BYTES = 1024, AT_CASE_MAX_REQUIRE = 16 };

struct at_case {
    char id[AT_CASE_ID_BYTES];
    char role[32];   /* the case file's name without folder and suffix; "line" for a bare line */
    char where[256]; /* "file:line", for messages */
    const struct at_family *family;
    const struct at_op *op;
    uint64_t hash; /* at_hash_bytes of id: shards and seeds */
    int n_require;
    char require[AT_CASE_MAX_REQUIRE][32]; /* decoys that must count here */
    char expect[24];                       /* state names with commas, "" for PASS */
    char data[32];                         /* data family, or the dataset's name */
    int exact;                             /* 1: every order of operations gives the same bits (data=exact) */
    struct at_case_keys *keys;             /* the parsed values; owned */
};

struct at_case_list {
    struct at_case *items;
    int64_t n, capacity;
};

/* Parses and expands one line into the end of `list`. A blank or comment line adds nothing. Bad
 * input: AT_USAGE with `where`, the key, what was found and what is wanted; sizes are checked against
 * overflow and the memory limit before anything is allocated. */
at_status at_case_parse(const char *line, const char *role, const char *where, struct at_case_list *list);
/* Every line of a case file; the role is its base name. Duplicate ids within the list are dropped. */
at_status at_case_load(const char *path, struct at_case_list *list);
/* All *.cases files of a folder, in name order. */
at_status at_case_load_dir(const char *dir, struct at_case_list *list);
void at_case_list_release(struct at_case_list *list);
/* Bytes of all its tensors, by its line alone; of a recorded dataset 0. What it costs grows with them. */
int64_t at_case_bytes(const struct at_case *c);
/* Keys of the case language with their meaning and default, for --help; NULL past the end. */
const char *at_case_key_help(int i);
/* The same of the keys that a line of this family takes. */
const char *at_case_family_key_help(const struct at_family *family, int i);
/* Data families: name and meaning; NULL past the end. */
const char *at_case_data_help(int i);

/* A built case: the problem (inputs filled; outputs have data == NULL but shape and format) and its memory. */
struct at_case_data {
    struct at_problem problem;
    int64_t bytes;
    void *memory;
    /* padded channels: outputs at d >= d_valid must be 0; d_valid == d without pad_d */
    int64_t d_valid;
};

/* Allocates and fills every input tensor. AT_NO_MEMORY before the kernel would be. */
at_status at_case_build(const struct at_case *c, struct at_case_data *data);
/* The same without the tensors of `given` (bit i: tensor i), which get neither memory nor values: they come from elsewhere. */
at_status at_case_build_around(const struct at_case *c, unsigned given, struct at_case_data *data);
/* The same with zeros for what a data family or a recording draws: sizes, parameters and indices, for whoever asks about a
 * problem. A runner that does not know the question computes on it. */
at_status at_case_outline(const struct at_case *c, struct at_case_data *data);
void at_case_data_release(struct at_case_data *data);
/* Is its data drawn from smooth densities (AT_DATA_CONTINUOUS)? */
int at_case_is_continuous(const struct at_case *c);
/* 1 when another seed gives other activations: they are of a data family, not recorded. */
int at_case_is_drawn(const struct at_case *c);
/* The same with data of another seed, which follows from the case and `turn`. */
at_status at_case_build_again(const struct at_case *c, uint64_t turn, struct at_case_data *data);

/* Where case files, recorded activations, benchmarks and measurements are: AT_DATASETS; else those of the source tree, for
 * a program in its build folder; else `datasets` beside the program (a bundle); else ../share/attest from there (an
 * installation), whether it is there or not. The text is the thread's own. */
const char *at_datasets_dir(void);

#endif
