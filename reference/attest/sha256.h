/* The SHA-256 of a file, by which results say which library or device code they are of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SHA256_H
#define AT_SHA256_H

#include "attest/status.h"

enum { AT_SHA256_TEXT = 65 };

/* 64 hex digits of the file at `path`; AT_IO. */
at_status at_sha256_file(const char *path, char hex[AT_SHA256_TEXT]);

#endif
