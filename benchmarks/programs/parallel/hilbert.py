# SPDX-License-Identifier: Apache-2.0
"""The Hilbert matrix, 1 / (row + column + 1), an element an item."""


def item(i, size):
    """An element."""
    return 1.0 / (i // size + i % size + 1)
