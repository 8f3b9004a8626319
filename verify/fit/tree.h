/* A tree of additions from the sizes of smallest common subtrees, drawn and hashed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * lca[i * n + j]: how many terms the smallest subtree has that holds terms i and j. A node may have many children: a tensor core
 * adds the terms of a step at once. */
#ifndef AT_TREE_H
#define AT_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "attest/status.h"

/* Draws the tree of terms 0..n-1, written as multiples of `apart`, into text and gives the hash of its shape. AT_UNSUPPORTED, with the pair that shows it, when
 * the sizes are those of no tree. What the drawing says:
 *   a..b         terms a to b, added one after another
 *   a..b/s       every s-th of them, likewise
 *   {a..b}       added at once
 *   {a..b}>{..}  steps, each of which adds its terms to the sum so far; `{a..b by w}`: steps of w terms each
 *   (x + y)      the sum of two subtrees
 * Text that does not fit ends with "...". */
at_status at_tree_draw(int n, int apart, const int *lca, char *text, size_t size, uint64_t *signature);

/* The smallest subtrees that two trees share: shared[i * n + j] is the size of the smallest set of terms that is a subtree of both
 * and holds i and j; n where it is the whole. */
void at_tree_shared(int n, const int *a, const int *b, int *shared);

#endif
