/* Codes of doubles, and doubles of codes, for a test that is not in C: make_format_codes encode|decode FORMAT, arrays on
 * standard input and output as they are in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "attest/format.h"

enum { AT_ONCE = 4096 };

int main(int argc, char **argv) {
    enum at_format format;
    const int encodes = argc == 3 && strcmp(argv[1], "encode") == 0;
    if (argc != 3 || (!encodes && strcmp(argv[1], "decode") != 0) || at_format_parse(argv[2], &format) != AT_OK) {
        fprintf(stderr, "usage: make_format_codes encode|decode FORMAT\n");
        return 2;
    }
    static double values[AT_ONCE];
    static unsigned char codes[AT_ONCE * sizeof(double)];
    const size_t bytes = at_format_info(format)->bytes;
    size_t n;
    while ((n = encodes ? fread(values, sizeof *values, AT_ONCE, stdin) : fread(codes, bytes, AT_ONCE, stdin)) > 0) {
        if (encodes)
            at_encode_array(format, n, values, codes);
        else
            at_decode_array(format, n, codes, values);
        if ((encodes ? fwrite(codes, bytes, n, stdout) : fwrite(values, sizeof *values, n, stdout)) != n)
            return 1;
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
