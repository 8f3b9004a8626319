/* Who has read a cell since it was last written.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All reads that a cell remembers are of this launch and of self's block; shadow.c keeps those of other blocks apart. */
#ifndef AT_SIMT_READERS_H
#define AT_SIMT_READERS_H

#include "kernels/simt/clock.h"
#include "kernels/simt/shadow_cell.h"

/* Some thread whose read is not ordered before what self does now; -1: there is none. `recent`: some read is of the
 * time since the last barrier of the whole block. */
int at_readers_recent_unordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self);
static inline int at_readers_unordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self) {
    return cell->read_epoch < self->in->epoch ? -1 : at_readers_recent_unordered(cell, self);
}
void at_readers_clear(struct at_shadow_cell *cell);
void at_readers_add(struct at_shadow_cell *cell, const struct at_simt_thread *self);
/* Gives a copied cell a vector of its own. */
void at_readers_copied(struct at_shadow_cell *cell);
/* Forgets the vectors of the launch before. */
void at_readers_launch(void);

#endif
