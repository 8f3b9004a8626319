/* attest study special: the special-function unit, function by function.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_SPECIAL_H
#define AT_STUDY_SPECIAL_H

#include <stdint.h>
#include <stdio.h>

#include "attest/status.h"
#include "special/unit_instruction.h"
#include "verify/study/special/study_launch.h"
#include "verify/study/study_devices.h"
#include "verify/study/study_list.h"

/* Input and result go through 64 bits of mixing; the hash of a function is the sum of all, so their order does not matter. Every
 * NaN is one result. */
static inline uint64_t at_special_mixed(uint32_t x, uint32_t y) {
    uint64_t z = ((uint64_t)x << 32 | ((y & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : y)) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* All arguments of an instruction in the model: their hash, and for how many ftz changes the result. */
struct at_special_sweep {
    uint64_t hash;
    int64_t changed;
};
at_status at_special_sweep(const struct at_special_instruction *instruction, int threads,
                           struct at_special_sweep *sweep);

/* Arguments through an instruction of a runner, each result beside the model's, bit for bit but for NaNs, which are one result:
 * `other_nans` counts those that are not the model's 0x7fffffff or 0x7fff. All ones, which stood there before the launch, differ. */
struct at_special_measured {
    int64_t arguments, different, other_nans;
    uint64_t hash;
    uint32_t x, y, model; /* the first that differs */
};
/* Adds n results y of the codes, in the instruction's format. The same for any number of threads, and for any cut into pieces. */
at_status at_special_compare(const struct at_special_instruction *instruction, const struct at_special_codes *codes,
                             const void *y, int threads, struct at_special_measured *to);
/* Every instruction that a variant of the runners has and `glob` matches, on all its arguments, of f32 each step-th. *bad counts those
 * that differ from the model or break. `path`: hashes as a file that at_special_golden() reads; NULL: none. */
at_status at_special_measure(struct at_study_devices *devices, const char *glob, int64_t step, const char *path,
                             int threads, int *bad);

/* The model against hashes of a device, line by line "NAME HASH" as PTX names instructions: *bad of them differ. What the model does
 * not have is named and passes. */
at_status at_special_golden(const char *path, const char *glob, int threads, int *bad);

/* What would have told units that are nearly this one: each coefficient of each row one more and one less, a squarer with one column
 * more and one less, a bias just outside of those that change nothing. Over the arguments of one period of the rows. */
struct at_special_neighbour {
    char name[16];   /* "c1 + 1" */
    int64_t told;    /* arguments with another result, all rows changed at once */
    int64_t least;   /* of them in the row that has fewest */
    int of_each_row; /* every row is changed by itself: one that no argument tells could hold anything */
    int64_t of;      /* arguments looked at */
};
enum { AT_SPECIAL_NEIGHBOURS = 10 };
struct at_special_neighbourhood {
    struct at_special_neighbour items[AT_SPECIAL_NEIGHBOURS];
    int64_t least_bias, most_bias; /* between which nothing changes */
};
at_status at_special_neighbours(enum at_special_function function, int threads, struct at_special_neighbourhood *found);

extern const struct at_study at_study_special;
#define AT_STUDY_SPECIAL_OPTIONS \
    { "--neighbours", NULL, "special: how many arguments tell the model from units that are nearly it" }

#endif
