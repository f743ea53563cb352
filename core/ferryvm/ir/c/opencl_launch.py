# SPDX-License-Identifier: Apache-2.0
"""Words of launches for kernels on devices with memory of their own, which cannot read those that
`control.launches` points to.

There that field is itself a word: six bits for each launch, the number of bits of its word. So a
kernel leaves for launches with a few more items than others would, at most twice as many, and for
those that it never leaves for with 2^63 items. Launches beyond the tenth share bits with earlier
ones.
"""

from __future__ import annotations

from collections.abc import Mapping

_BITS, _PLACES = 6, 10


def launch_word(number: int) -> str:
    """The expression of the word of a launch: the greatest number with so many bits."""
    return f"((1ul << (control->launches >> {_BITS * (number % _PLACES)} & 63ul)) - 1ul)"


def packed(words: Mapping[int, int]) -> int:
    """The field for words by the numbers of launches, each below 2^63."""
    bits = [63] * _PLACES
    for number, word in words.items():
        place = number % _PLACES
        bits[place] = min(bits[place], word.bit_length())
    return sum(count << _BITS * place for place, count in enumerate(bits))
