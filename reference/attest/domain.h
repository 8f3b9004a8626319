/* The domain of an operator: what its cases may differ in, and which differences may matter to a kernel.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A factor is one thing to choose (the head size, the layout of keys, ...), a class of it a value or a few values that no
 * kernel is likely to tell apart. Cases by design hold every pair of classes of different factors; random cases draw one
 * class of each factor. A class is a piece of a case line, words with spaces between, in the case language, and
 *
 *   d=1,5,31          of a list, and of a range a..b, one value is drawn (hot=, require= and expect= are one value)
 *   h=2 hk=2 | h=3 hk=3   one of the pieces is drawn
 *   $keys=64          no key: a number that other factors may use
 *   sk={keys+near}/1  numbers and names with * before + and -; a name is a $name or a key of the line with one number
 *   sigma={h:0.5:2}   as many numbers as the value of h, these in turn
 *
 * An empty class leaves the keys of its factor out. Pieces that contradict each other, or that the case language refuses
 * together, make no case: such a combination is no part of the domain. */
#ifndef AT_DOMAIN_H
#define AT_DOMAIN_H

/* Which families take a factor, and what else it is for. */
enum {
    AT_FACTOR_DECODE = 1,   /* families with one query a request */
    AT_FACTOR_PREFILL = 2,  /* the others */
    AT_FACTOR_TRIPLES = 4,  /* meets two others at a time inside kernels: triples of classes are worth having */
    AT_FACTOR_GRANULES = 8, /* classes are tiles of keys: what the variants of a family declare (split, block, pv_chunk)
                               is added to them */
};

struct at_factor {
    const char *name, *meaning;
    unsigned flags;
    const char *const *classes; /* NULL at the end; the first is the ordinary one */
    /* Far out: long, wide, large. Cases by design have each once, random cases in one of ten. NULL: none. */
    const char *const *far;
    /* What lies between the classes; random cases draw from it one time in three. NULL: nothing. */
    const char *any;
};
#define AT_CLASSES(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
