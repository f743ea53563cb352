# SPDX-License-Identifier: Apache-2.0
"""Python numbers in the stack's words: typed views of the same bytes."""

from __future__ import annotations


class TypedViews:
    """The words of a stack as numbers of each type. An item is a word for the 64-bit types and half
    a word for the others: the value of word `n` is item `2 * n`, item `2 * n + 1` is zero."""

    __slots__ = ("f32", "f64", "i32", "i64", "u64")

    def __init__(self, words: memoryview[int]) -> None:
        content = words.cast("B")
        self.u64 = words
        self.i64: memoryview[int] = content.cast("q")
        self.f64: memoryview[float] = content.cast("d")
        self.i32: memoryview[int] = content.cast("i")
        self.f32: memoryview[float] = content.cast("f")
