/* SHA-256 of device code, which says in archives what was judged.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SHA256_H
#define AT_SHA256_H

#include <stddef.h>

enum { AT_SHA256_TEXT = 65 };

/* 64 hex digits of n bytes, n below 2^61. Source: FIPS 180-4. */
void at_sha256(const void *data, size_t n, char text[AT_SHA256_TEXT]);

#endif
