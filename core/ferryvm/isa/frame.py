# SPDX-License-Identifier: Apache-2.0
"""The frame of a function on the stack, and the immediates that name its words.

              fp ─> word 0
    │ parameters … │ return pc │ distance │ locals … │ operands … │ <─ sp
       word -n …      slot        slot      word 2 …    deepest first

The arguments of a call are on top of the caller's operand stack. They become the callee's
parameters where they are; `call` puts the header behind them. *Distance* is the number of words
from the caller's header to this one, so a frame names no absolute address. (The alternative, a
header below the arguments, has to be reserved before they are pushed.)

In code, `local.get` and `local.set` name a word of the frame, counted from its header and negative
for a parameter, so that interpreters need not know how many parameters there are; `return` says
that number beside its own of results.
"""

from __future__ import annotations

HEADER_WORDS = 2
"""The return pc and the distance."""

RESULTS_BITS = 32
"""Bits of the immediate of `return` that hold the number of results; those above hold the number of
parameters."""

_SIGN = 1 << 63


def word_of(number: int, parameters: int) -> int:
    """The word of the frame that a local is, numbered with the parameters first."""
    return number - parameters if number < parameters else number - parameters + HEADER_WORDS


def number_of(word: int, parameters: int) -> int | None:
    """The number of the local that a word of the frame is, as an immediate (unsigned, 64 bits) or a
    signed number; None for one that is no local whatever the function has: of the header, or
    further below it than the parameters."""
    word = ((word & (2 * _SIGN - 1)) ^ _SIGN) - _SIGN
    if word < 0:
        return word + parameters if word >= -parameters else None
    return word - HEADER_WORDS + parameters if word >= HEADER_WORDS else None


def return_immediate(parameters: int, results: int) -> int:
    """The immediate of a `return` in a function with so many parameters and results."""
    return parameters << RESULTS_BITS | results


def return_counts(immediate: int) -> tuple[int, int]:
    """Parameters and results that the immediate of a `return` states."""
    return immediate >> RESULTS_BITS, immediate & ((1 << RESULTS_BITS) - 1)
