/* SPDX-License-Identifier: Apache-2.0 */
/* Perfect binary trees, many short-lived ones beside one that stays; the number of their nodes. */
#include <stdint.h>
#include <stdlib.h>

typedef struct tree {
    struct tree *left, *right;
} tree;

static tree *make(int64_t depth) {
    tree *made = malloc(sizeof *made);
    made->left = depth ? make(depth - 1) : NULL;
    made->right = depth ? make(depth - 1) : NULL;
    return made;
}

static int64_t nodes(const tree *of) {
    return of->left ? 1 + nodes(of->left) + nodes(of->right) : 1;
}

static void discard(tree *old) {
    if (old->left) {
        discard(old->left);
        discard(old->right);
    }
    free(old);
}

static int64_t brief(int64_t depth) {
    tree *made = make(depth);
    int64_t found = nodes(made);
    discard(made);
    return found;
}

int64_t work(int64_t deepest) {
    int64_t sum = brief(deepest + 1);
    tree *lasting = make(deepest);
    for (int64_t depth = 4; depth <= deepest; depth += 2)
        for (int64_t left = (int64_t)1 << (deepest - depth + 4); left; left--)
            sum += brief(depth);
    sum += nodes(lasting);
    discard(lasting);
    return sum;
}
