/* Made-up evidence about one output, for tests of verdicts: everything in order until a test changes it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_VERDICT_SCENE_H
#define AT_TEST_VERDICT_SCENE_H

#include "verify/judge/verdict.h"

/* One output [2 tokens, 2 heads, 4 channels]. */
enum { AT_SCENE_O, AT_SCENE_N = 16, AT_SCENE_DECOYS = 3 };
enum at_scene_mode { AT_WITH_MODEL, AT_WITH_CLASSES, AT_WITH_LIMIT, AT_SCENE_MODES };

struct at_scene {
    struct at_problem problem;
    struct at_numerics numerics;
    struct at_answer answer;
    struct at_judgement judgement;
    struct at_comparison comparison;
    struct at_decoy_report decoys;
    struct at_tensor got;
    struct at_evidence evidence;
    struct at_result result;
    float data[AT_SCENE_N];
    double want[AT_SCENE_N], limit[AT_SCENE_N], model[AT_SCENE_N], interval[AT_SCENE_N],
        decoy[AT_SCENE_DECOYS][AT_SCENE_N];
    int64_t sample[4];
};

/* Values 1 .. 16, got to the bit, limits 0.5; decoys called alpha, beta, gamma that add 10, 20, 30 and are rejected.
 * Bits are declared to repeat, in any batch. */
void at_scene_set_up(struct at_scene *s, enum at_scene_mode mode);
/* Asks for the verdict: this state, with a cause that says this; "" means that there is none. */
void at_scene_expect(struct at_scene *s, enum at_state state, const char *says);

#endif
