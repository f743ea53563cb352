# SPDX-License-Identifier: Apache-2.0
"""The Hilbert matrix, 1 / (row + column + 1), a row an item."""


def item(row, size, matrix):
    """Store a row; its number."""
    for column in range(size):
        matrix[row * size + column] = 1.0 / (row + column + 1)
    return row
