# SPDX-License-Identifier: Apache-2.0
"""z = a x + y, an element an item."""


def item(x, y, a):
    """An element of z."""
    return a * x + y
