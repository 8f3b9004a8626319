/* The SHA-256 of a file, by which results say which library they are of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SO_SHA256_H
#define AT_SO_SHA256_H

#include "attest/status.h"

/* 64 hex digits of the file at `path`; AT_IO. */
at_status at_so_sha256(const char *path, char hex[65]);

#endif
