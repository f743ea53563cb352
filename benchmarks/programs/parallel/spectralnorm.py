# SPDX-License-Identifier: Apache-2.0
"""A product of the matrix 1 / ((i + j) (i + j + 1) / 2 + i + 1) and a vector, a row an item."""


def item(i, v):
    """The product of a row and the vector."""
    total = 0.0
    for j in range(len(v)):
        k = i + j
        total += v[j] / ((k * (k + 1) >> 1) + (i + 1))
    return total
