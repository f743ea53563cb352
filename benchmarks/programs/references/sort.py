# SPDX-License-Identifier: Apache-2.0
"""Merge sort of a linked list by its links; the sum of value times position, modulo 2^64."""


class Cell:
    """A value and the rest of the list."""

    __slots__ = ("next", "value")

    def __init__(self, value, rest):
        self.value = value
        self.next = rest


def make(n):
    """A list of n numbers."""
    cells, random = None, 12345
    for _ in range(n):
        random = (random * 1103515245 + 12345) & 2147483647
        cells = Cell(random, cells)
    return cells


def merge(a, b):
    """The cells of two sorted lists in order."""
    if b.value < a.value:
        head, b = b, b.next
    else:
        head, a = a, a.next
    tail = head
    while a and b:
        if b.value < a.value:
            tail.next = b
            tail, b = b, b.next
        else:
            tail.next = a
            tail, a = a, a.next
    tail.next = a or b
    return head


def sort(cells, n):
    """The first n cells in order."""
    if n < 2:
        return cells
    middle, half = cells, n // 2
    for _ in range(half - 1):
        middle = middle.next
    rest = middle.next
    middle.next = None
    return merge(sort(cells, half), sort(rest, n - half))


def work(n):
    """The sum over the sorted list."""
    total, position, at = 0, 1, sort(make(n), n)
    while at:
        total += at.value * position
        position += 1
        at = at.next
    total &= (1 << 64) - 1
    return total - (1 << 64) if total >> 63 else total
