/* What a sample says: its survivors, and the score.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MUTATE_SCORE_H
#define AT_MUTATE_SCORE_H

#include "attest/status.h"

/* Reads FOLDER/mutants (lines of make/mutate_one.sh) and FOLDER/results.jsonl, prints survivors and score, and last the raw
 * score in per cent, behind `command`. *bad: what must not be: a control that was killed or never judged, an equivalent
 * mutant that was killed, a raw score below `least` per cent. */
at_status score_print(const char *folder, const char *equivalents, const char *command, double least, int *bad);

/* Prints the mutants that were judged, not killed, and can go into further variants: as lines for make/mutate_one.sh. */
at_status survivors_print(const char *folder);

#endif
