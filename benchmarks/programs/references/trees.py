# SPDX-License-Identifier: Apache-2.0
"""Perfect binary trees, many short-lived ones beside one that stays; the number of their nodes."""


def make(depth):
    """A tree: a tuple of its two halves, empty for a leaf."""
    if depth == 0:
        return ()
    return (make(depth - 1), make(depth - 1))


def nodes(of):
    """The number of its nodes."""
    if of:
        left, right = of
        return 1 + nodes(left) + nodes(right)
    return 1


def work(deepest):
    """The number of nodes of all trees."""
    total = nodes(make(deepest + 1))
    lasting = make(deepest)
    for depth in range(4, deepest + 1, 2):
        for _ in range(1 << (deepest - depth + 4)):
            total += nodes(make(depth))
    return total + nodes(lasting)
