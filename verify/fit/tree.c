/* Trees of additions: built from the sizes of common subtrees, drawn without a word too many, hashed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"

/* A node: a term, or what is added at once. Children by their least terms. */
struct node {
    int term; /* -1: has children */
    int child, next;
};

struct drawing {
    int n, apart;
    const int *lca;
    struct node *node; /* [2 n] */
    int n_nodes;
    int *set, *class; /* [2 n n] sets of terms on the way down; [n] */
    char *text;
    size_t size, at;
    int cut;
};

static int lca_of(const struct drawing *d, int i, int j) { return d->lca[i * d->n + j]; }

/* ---- building ---- */

/* Every pair of the k terms is in one class or, by its size, in the whole. */
static at_status check_classes(const struct drawing *d, const int *set, const int *class, int k) {
    int classes = 0;
    for (int a = 0; a < k; a++)
        classes += class[a] == a;
    for (int a = 0; a < k; a++)
        for (int b = a + 1; b < k; b++) {
            const int size = lca_of(d, set[a], set[b]);
            if ((class[a] == class[b]) == (size < k) && size <= k && size >= 2 && classes > 1)
                continue;
            return AT_FAIL(AT_UNSUPPORTED,
                           "no tree: terms %d and %d share a subtree of %d, among %d terms that belong together",
                           set[a], set[b], size, k);
        }
    return AT_OK;
}

/* The node of the k terms of `set`, in ascending order. The sets of its children lie behind it. */
static at_status build(struct drawing *d, const int *set, int k, int *made) {
    const int self = d->n_nodes++;
    int *class = malloc((size_t)k * sizeof *class), *below = malloc((size_t)k * sizeof *below), last = -1;
    at_status status = AT_OK;
    *made = self;
    d->node[self] = (struct node){ k == 1 ? set[0] : -1, -1, -1 };
    if (!class || !below)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d terms", k);
    if (k == 1)
        goto out;
    for (int a = 0; a < k; a++)
        class[a] = -1;
    for (int a = 0; a < k; a++)
        for (int b = a; class[a] < 0 && b < k; b++) /* a begins a class: what follows it and is nearer than the whole */
            if (b > a && class[b] < 0 && lca_of(d, set[a], set[b]) < k)
                class[b] = a;
    for (int a = 0; a < k; a++)
        class[a] = class[a] < 0 ? a : class[a];
    AT_TRY_OUT(check_classes(d, set, class, k));
    for (int a = 0; a < k; a++) {
        int n = 0, child;
        if (class[a] != a)
            continue;
        for (int b = a; b < k; b++)
            if (class[b] == a)
                below[n++] = set[b];
        AT_TRY_OUT(build(d, below, n, &child));
        if (last < 0)
            d->node[self].child = child;
        else
            d->node[last].next = child;
        last = child;
    }
out:
    free(class);
    free(below);
    return status;
}

static uint64_t shape(const struct drawing *d, int node, uint64_t hash) {
    const struct node *x = &d->node[node];
    const int32_t term = x->term;
    hash = at_hash_bytes(&term, sizeof term, hash);
    for (int c = x->child; c >= 0; c = d->node[c].next)
        hash = shape(d, c, hash);
    return at_hash_bytes(")", 1, hash);
}

/* ---- drawing ---- */

static void put(struct drawing *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct drawing *d, const char *format, ...) {
    va_list list;
    if (d->cut)
        return;
    va_start(list, format);
    const int n = vsnprintf(d->text + d->at, d->size - d->at, format, list);
    va_end(list);
    if (n >= 0 && d->at + (size_t)n + 4 < d->size) {
        d->at += (size_t)n;
        return;
    }
    d->cut = 1;
    snprintf(d->text + d->at, d->size - d->at, "...");
}

/* "0..7,16..23" or "0..56/8". */
static void put_terms(struct drawing *d, const int *t, int n) {
    for (int a = 0; a < n;) {
        const int step = a + 1 < n ? t[a + 1] - t[a] : 1;
        int b = a;
        while (b + 1 < n && t[b + 1] - t[b] == step)
            b++;
        if (b - a < 2 && step != 1)
            b = a; /* two terms apart are no row */
        put(d, a ? "," : "");
        if (b == a)
            put(d, "%d", d->apart * t[a]);
        else if (d->apart * step == 1)
            put(d, "%d..%d", d->apart * t[a], d->apart * t[b]);
        else
            put(d, "%d..%d/%d", d->apart * t[a], d->apart * t[b], d->apart * step);
        a = b + 1;
    }
}

static int count_children(const struct drawing *d, int node, int *leaves) {
    int n = 0;
    *leaves = 0;
    for (int c = d->node[node].child; c >= 0; c = d->node[c].next, n++)
        *leaves += d->node[c].term >= 0;
    return n;
}

static void draw(struct drawing *d, int node);

/* A node that has no row of steps below it. */
static void draw_base(struct drawing *d, int node, int inside) {
    int leaves;
    const int n = count_children(d, node, &leaves), sum = n == 2 && leaves == 0;
    if (sum && !inside)
        put(d, "(");
    if (!sum)
        put(d, "{");
    for (int c = d->node[node].child, first = 1; c >= 0; c = d->node[c].next, first = 0) {
        int below = 0, of = d->node[c].term < 0 ? count_children(d, c, &below) : 0;
        put(d, first ? "" : sum ? " + " : ", ");
        if (d->node[c].term >= 0)
            put(d, "%d", d->apart * d->node[c].term);
        else if (sum && first && of == 2 && below == 0) /* sums from left to right need no brackets */
            draw_base(d, c, 1);
        else
            draw(d, c);
    }
    if (!sum)
        put(d, "}");
    if (sum && !inside)
        put(d, ")");
}

/* Steps of w terms each that follow one another: one window after the other. */
static int is_windows(const int *t, const int *end, int steps) {
    const int w = end[0];
    for (int s = 0; s < steps; s++)
        if (end[s] != (s + 1) * w)
            return 0;
    for (int i = 1; i < end[steps - 1]; i++)
        if (t[i] != t[i - 1] + 1)
            return 0;
    return steps > 1 && w > 1;
}

static void put_steps(struct drawing *d, const int *t, const int *end, int steps) {
    int singles = 1;
    for (int s = 0; s < steps; s++)
        singles &= end[s] - (s ? end[s - 1] : 0) == 1 || (s == 0 && end[0] == 2);
    if (singles)
        put_terms(d, t, end[steps - 1]);
    else if (is_windows(t, end, steps))
        put(d, "{%d..%d by %d}", d->apart * t[0], d->apart * t[end[steps - 1] - 1], d->apart * end[0]);
    else
        for (int s = 0; s < steps; s++) {
            const int from = s ? end[s - 1] : 0;
            put(d, s ? ">" : "");
            put(d, end[s] - from > 1 ? "{" : "");
            put_terms(d, t + from, end[s] - from);
            put(d, end[s] - from > 1 ? "}" : "");
        }
}

/* A row of steps: each node has one child that is none of the terms, the sum so far; its terms join it. */
static void draw(struct drawing *d, int node) {
    int *t = malloc(2 * (size_t)d->n * sizeof *t), *end = t + d->n, steps = 0, n = 0, leaves, base = node;
    if (!t) {
        d->cut = 1;
        return;
    }
    if (d->node[node].term >= 0)
        put(d, "%d", d->apart * d->node[node].term);
    int down[1024], depth = 0;
    while (d->node[base].term < 0 && count_children(d, base, &leaves) == leaves + 1 && depth < 1024) {
        down[depth++] = base;
        int c = d->node[base].child;
        while (d->node[c].term >= 0)
            c = d->node[c].next;
        base = c;
    }
    const int whole = d->node[base].term < 0 && count_children(d, base, &leaves) == leaves;
    for (int k = whole ? depth : depth - 1; k >= 0; k--) { /* the deepest is first */
        const int at = k == depth ? base : down[k];
        for (int c = d->node[at].child; c >= 0; c = d->node[c].next)
            if (d->node[c].term >= 0)
                t[n++] = d->node[c].term;
        end[steps++] = n;
    }
    if (!whole && d->node[node].term < 0)
        draw_base(d, base, 0);
    if (!whole && steps)
        put(d, ">");
    if (steps)
        put_steps(d, t, end, steps);
    free(t);
}

at_status at_tree_draw(int n, int apart, const int *lca, char *text, size_t size, uint64_t *signature) {
    struct drawing d = { .n = n, .apart = apart, .lca = lca, .text = text, .size = size };
    int *all = malloc(((size_t)n + 1) * sizeof *all), root = 0;
    at_status status = AT_OK;
    d.node = malloc((2 * (size_t)n + 1) * sizeof *d.node);
    text[0] = 0;
    *signature = AT_HASH_START;
    if (!d.node || !all)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a tree of %d terms", n);
    for (int i = 0; i < n; i++)
        all[i] = i;
    if (n > 0) {
        AT_TRY_OUT(build(&d, all, n, &root));
        *signature = shape(&d, root, AT_HASH_START);
        draw(&d, root);
    }
out:
    free(d.node);
    free(all);
    return status;
}

/* The terms that have `size` or less with i, in both? */
static int is_shared(int n, const int *a, int size_a, const int *b, int i) {
    int least = 0, members = 1;
    for (int j = 0; j < n; j++)
        if (j != i && a[i * n + j] <= size_a) {
            members++;
            least = b[i * n + j] > least ? b[i * n + j] : least;
        }
    return members == size_a && least == size_a; /* as many terms of b within that size are the same terms */
}

void at_tree_shared(int n, const int *a, const int *b, int *shared) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int size = i == j ? 1 : n;
            for (int k = 0; i != j && k < n; k++) { /* sizes of subtrees of a that hold i and j */
                const int of = k == i ? n : a[i * n + k];
                if (of >= a[i * n + j] && of < size && is_shared(n, a, of, b, i))
                    size = of;
            }
            shared[i * n + j] = size;
        }
}
