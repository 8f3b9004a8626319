/* Words of a line and of a class, and the expressions in them: what drawing and matching share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DOMAIN_WORDS_H
#define AT_DOMAIN_WORDS_H

#include <stddef.h>

#include "attest/status.h"

enum { AT_WORDS = 64, AT_WORD_VALUE = 256 };

/* key=value; a $name with its $. */
struct at_word {
    char key[32], value[AT_WORD_VALUE];
};
struct at_words {
    int n;
    struct at_word items[AT_WORDS];
};

/* The words of n bytes of text, onto the end. AT_USAGE: no key=value. */
at_status at_words_read(const char *text, size_t n, struct at_words *words);
/* The value of a key, NULL without it. */
const char *at_words_get(const struct at_words *words, const char *key);
/* `value` with what stands in braces replaced. 0: a name in braces has no number, or it is too long. */
int at_words_evaluate(const struct at_words *words, const char *value, char *out, size_t size);
/* Parts of a value that are drawn from: one for hot=, require= and expect=, whose commas belong to the value. */
int at_word_choices(const char *key, const char *value);
/* Part i, not ended by a zero; its length. */
const char *at_word_choice(const char *key, const char *value, int i, size_t *length);

#endif
