/* Good files made into damaged ones, the same for the same number.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_DAMAGE_H
#define AT_TEST_DAMAGE_H

#include "tests/support/reader_files.h"
#include "tests/support/splitmix.h"

/* What is done to a file, in English. */
enum { AT_DAMAGE_NAME = 96 };

/* *out, which is empty: `good` with flipped bits, with bytes overwritten, cut short, or with a piece of `other` in it, as
 * `random` says. Half of the places are near what HDF5 has signatures for (superblock, object headers, nodes of groups and
 * chunks, heaps of names and of texts), which are a small part of a file and lead everywhere else. */
void at_damage(const struct at_bytes *good, const struct at_bytes *other, struct splitmix *random, struct at_bytes *out,
               char name[AT_DAMAGE_NAME]);

#endif
