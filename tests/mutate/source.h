/* A kernel's source as tokens, and which of them a mutation may touch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * C, C++ and CUDA alike. Comments, strings and preprocessor lines are no tokens. What a kernel declares of itself is
 * marked and stays honest: its descriptor, what it says it supports, tables of constants; static_assert and
 * __launch_bounds__ change no result. */
#ifndef AT_MUTATE_SOURCE_H
#define AT_MUTATE_SOURCE_H

#include <stddef.h>

#include "attest/status.h"

enum token_kind {
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_TEXT /* a string or a character */,
    TOKEN_MARK /* an operator or a bracket */
};

struct token {
    enum token_kind kind;
    size_t begin, end; /* bytes [begin, end) of the text */
    int line;          /* from 1 */
    int partner;       /* of a bracket: the token that it belongs to; -1: none */
    int declared;      /* 1: a mutation may not touch it */
    int spaced;        /* 1: white space on both sides, which clang-format gives to binary operators alone */
};

struct source {
    char path[256];
    char *text; /* owned; ends in 0 */
    size_t size;
    struct token *tokens; /* owned */
    int n;
};

/* Reads and splits a file. A bracket without a partner is AT_USAGE: the file is no source, or this knows too little. */
at_status source_open(const char *path, struct source *source);
void source_release(struct source *source);

/* 1 when token i of the source is exactly this text; 0 too for an i that is no token. */
int token_is(const struct source *source, int i, const char *text);
/* 1 when token i is of this kind; 0 too for an i that is no token. */
int token_kind_is(const struct source *source, int i, enum token_kind kind);

#endif
