# SPDX-License-Identifier: Apache-2.0
"""The orders of reductions and scans as docs/parallel.md states them, written from the page
alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

V = TypeVar("V")

BLOCK = 1024
ACCUMULATORS = 16


def reduced(elements: Sequence[V], combine: Callable[[V, V], V], accumulators: int) -> V:
    """The elements, of which there is at least one, reduced level by level."""
    while True:
        elements = [
            _block(elements[start : start + BLOCK], combine, accumulators)
            for start in range(0, len(elements), BLOCK)
        ]
        if len(elements) == 1:
            return elements[0]


def _block(elements: Sequence[V], combine: Callable[[V, V], V], accumulators: int) -> V:
    rows = len(elements) // accumulators
    if rows == 0:
        total, rest = elements[0], elements[1:]
    else:
        rest = elements[rows * accumulators :]
        lanes = []
        for lane in range(accumulators):
            value = elements[lane]
            for row in range(1, rows):
                value = combine(value, elements[row * accumulators + lane])
            lanes.append(value)
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [combine(lanes[i], lanes[i + half]) for i in range(half)]
        total = lanes[0]
    for element in rest:
        total = combine(total, element)
    return total


SCAN_BLOCK = 256


def scanned(elements: Sequence[V], combine: Callable[[V, V], V]) -> list[V]:
    """Each element combined with all before it."""
    blocks: list[list[V]] = []
    for start in range(0, len(elements), SCAN_BLOCK):
        block: list[V] = []
        for element in elements[start : start + SCAN_BLOCK]:
            block.append(combine(block[-1], element) if block else element)
        blocks.append(block)
    if len(blocks) > 1:
        before = scanned([block[-1] for block in blocks], combine)
        for number in range(1, len(blocks)):
            blocks[number] = [combine(before[number - 1], value) for value in blocks[number]]
    return [value for block in blocks for value in block]
