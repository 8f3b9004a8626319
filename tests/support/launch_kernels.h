/* Test kernels for guarded launches and for judging: each is right on one kind of case and wrong in one way, or
 * writes down what it sees.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_LAUNCH_KERNELS_H
#define AT_TEST_LAUNCH_KERNELS_H

#include "tests/support/runner_rig.h"

/* A case on which an output of zeros is right to the bit: every gate is closed, and what is late in another launch gets no weight. Three requests, one of them empty,
 * pages of 4 keys; o has 5 x 2 x 8 elements. */
#define AT_LAUNCH_LINE "asynct_prefill b=3 h=2 hk=1 sq=2/0/3 sk=5/0/9 d=8 page=4 dtype=f32 data=all_masked gamma=0"
enum { AT_LAUNCH_ELEMENTS = 80 };

/* All of family asynct_prefill. They declare tail=unread, that bits repeat and do not depend on the batch, and no
 * order, unless said otherwise. "Zeros": 0 in every element of o. */
enum at_launch_kernel {
    AT_LK_ZEROS,
    AT_LK_UNWRITTEN,      /* zeros, but for elements 5 and 7 */
    AT_LK_PAST,           /* zeros, and a byte 8 bytes past the end of o */
    AT_LK_BEFORE,         /* zeros, and the byte before o */
    AT_LK_BEFORE_INPUT,   /* zeros, and the byte before v */
    AT_LK_CHANGES_INPUT,  /* zeros, and another q */
    AT_LK_CHANGES_LATER,  /* the same from its second launch on */
    AT_LK_CHANGES_ALONE,  /* the same for a batch of one request */
    AT_LK_SEES,           /* o[i] = what enum at_launch_sight says */
    AT_LK_SEES_FINITE,    /* the same, declares tail=finite */
    AT_LK_ECHOES,         /* o = what stood in o[0] at its launch before */
    AT_LK_FOLLOWS_POISON, /* zeros, but o[3] = 1 when there is a NaN in k */
    AT_LK_FOLLOWS_V,      /* zeros, but o[3] = the sum of v where it is finite: steady, whatever the poison */
    AT_LK_ALTERNATES,     /* zeros, but o[3] = 1 in every other launch */
    AT_LK_TWICE_DIFFERS,  /* zeros, but o[3] = 1 in its second and third launch */
    AT_LK_RARELY_DIFFERS, /* zeros, but o[3] = 1 in its second and fourth launch */
    AT_LK_UNSTEADY,       /* as AT_LK_ALTERNATES, and says that bits do not repeat */
    AT_LK_ONCE_DIFFERS,   /* zeros, but o[3] = 1 in its second launch; says that bits do not repeat */
    AT_LK_STILL_FOLLOWS,  /* as AT_LK_FOLLOWS_POISON, but o[4] alternates; says that bits do not repeat */
    AT_LK_BY_BATCH,       /* zeros, negative ones in o[0] for a batch of one request */
    AT_LK_BY_PLACE,       /* zeros, negative ones in o[0] when the first request has 9 keys */
    AT_LK_BY_BATCH_SAID,  /* as AT_LK_BY_BATCH, and does not say that the batch does not matter */
    AT_LK_FAILS,          /* returns 7 */
    AT_LK_FAILS_LATER,    /* zeros, then 7 from its second launch on */
    AT_LK_FAILS_ALONE,    /* zeros, 7 for a batch of one request */
    AT_LK_DECLINES,       /* supports() declines */
    AT_LK_DECLINES_ALONE, /* zeros, supports() declines batches of one request */
    AT_LK_ABORTS_ALONE,   /* zeros, abort() for a batch of one request */
    AT_LK_HANGS,          /* does not come back */
    AT_LK_BENDS,          /* o = v of the one key there is, in f32; times 1.03 where q[0] > 0; says that P is e4m3 */
    AT_LK_KEEPS,          /* o = v of the one key there is, as it was in the first launch at these addresses */
    AT_LK_KEEPS_LAST,     /* the same, and forgets it when the next launch has other addresses */
    AT_LK_READS,          /* o = v of the one key there is */
    AT_LK_MEETS,          /* zeros, but 7 unless it, or the next one, runs in another process at the same time */
    AT_LK_MEETS_TOO,      /* the same; the folder where they leave word is AT_TEST_MEETING */
    AT_LK_COUNT
};

/* Elements of o that AT_LK_SEES writes; the rest are zeros. */
enum at_launch_sight {
    AT_SEEN_UNMARKED, /* elements of o that were no NaN */
    AT_SEEN_SLOTS,    /* key rows in all */
    AT_SEEN_K_NAN,    /* rows of k that are all NaN */
    AT_SEEN_K_1024,   /* rows of k with every |element| in [512, 1024] */
    AT_SEEN_K_HUGE,   /* rows of k with every |element| half the largest f32 */
    AT_SEEN_V_NAN,
    AT_SEEN_V_HUGE,
    AT_SEEN_OWNED_BAD, /* keys of requests with an element in k or v that is not finite or beyond 512 */
    AT_SEEN_SIGNS,     /* 1 when the poison of k has both signs */
    AT_SEEN_COUNT
};

/* Opens the running program as a runner of these; its main() passes --serve on to at_launch_serve(). */
int at_launch_serve(void);
/* Index of a kernel among the runner's variants. */
int at_launch_variant(const struct at_runner *runner, enum at_launch_kernel kernel);
/* Its name, "NN_word"; static. */
const char *at_launch_name(enum at_launch_kernel kernel);

#endif
