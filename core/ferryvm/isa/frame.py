# SPDX-License-Identifier: Apache-2.0
"""The frame of a function on the stack, and the immediates that name its words.

              fp ─> word 0
    │ parameters … │ return pc │ distance │ locals … │ operands … │ <─ sp
       word -n …      slot        slot      word 2 …    deepest first

The arguments of a call are on top of the caller's operand stack. They become the callee's
parameters in place; `call` puts the header above them. *Distance* is the number of words from the
caller's header to this one, so a frame contains no absolute address. (The alternative, a header
below the arguments, has to be reserved before they are pushed.)

In code, `local.get` and `local.set` name a word of the frame, counted from its header and negative
for a parameter, so that interpreters need not know the number of parameters. The immediate of
`return` holds that number and the number of results.
"""

from __future__ import annotations

HEADER_WORDS = 2
"""Words of the header: return pc and distance."""

RESULTS_BITS = 32
"""Bits of the immediate of `return` that hold the number of results; the bits above hold the number
of parameters."""

_SIGN = 1 << 63


def word_of(number: int, parameters: int) -> int:
    """The word of the frame that holds a local; `number` counts the parameters first."""
    return number - parameters if number < parameters else number - parameters + HEADER_WORDS


def number_of(word: int, parameters: int) -> int | None:
    """The number of the local in a word of the frame, which is given as an immediate (unsigned, 64
    bits) or a signed number. None for a word that is not a local of any function: a word of the
    header, or one further below it than parameters reach."""
    word = ((word & (2 * _SIGN - 1)) ^ _SIGN) - _SIGN
    if word < 0:
        return word + parameters if word >= -parameters else None
    return word - HEADER_WORDS + parameters if word >= HEADER_WORDS else None


def return_immediate(parameters: int, results: int) -> int:
    """The immediate of a `return` in a function with these numbers of parameters and results."""
    return parameters << RESULTS_BITS | results


def return_counts(immediate: int) -> tuple[int, int]:
    """The numbers of parameters and results in the immediate of a `return`."""
    return immediate >> RESULTS_BITS, immediate & ((1 << RESULTS_BITS) - 1)
