/* Opens any file as a tensor file, reads from it, and says which promise of the reader was broken.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_READER_EXERCISE_H
#define AT_READER_EXERCISE_H

/* NULL when every promise held: a failure leaves no reader and one line that names the file; a success lists sound
 * tensors whose first, middle and last elements can be read or are refused with a message. *opened: 1 on success,
 * plus 1 for every tensor that was read from. */
const char *at_reader_exercise(const char *path, int *opened);

#endif
