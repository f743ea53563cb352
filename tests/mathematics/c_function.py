# SPDX-License-Identifier: Apache-2.0
"""Meanings as C functions for comparisons, printed as compilers to C print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferryvm.ir.c import C11
from ferryvm.ir.c.function_helper import body_definition, function_definitions
from ferryvm.ir.function_body import FunctionBody, meaning_body
from ferryvm.isa.pure_function import Meaning, PureFunction
from ferryvm.isa.type import F32, I32, Type


def operation_count(meaning: Meaning, operands: int, t: Type = F32) -> int:
    """Number of operations of a meaning, constants not counted; equal ones count once."""
    return len(meaning_body(meaning, (t,) * operands).operations)


def functions(named: Sequence[tuple[str, Meaning, int]], t: Type = F32) -> str:
    """C text with a function for each (name, meaning, number of operands)."""
    return bodies([(name, meaning_body(each, (t,) * count)) for name, each, count in named], t)


class _Apart:
    """An emitter that leaves out what `apply_if` applies, and has the conditions instead."""

    def __init__(self, m: Any) -> None:
        self.m = m
        self.conditions: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.m, name)

    def apply_if(self, p: Any, function: PureFunction, otherwise: Any, *arguments: Any) -> Any:
        self.conditions.append(p)
        return otherwise


def main_path(meaning: Meaning) -> Meaning:
    """A meaning without the functions that it applies where a condition holds, which rarely
    does."""
    return lambda m, *operands: meaning(_Apart(m), *operands)


def is_off_main_path(meaning: Meaning) -> Meaning:
    """1 as i32 where a condition holds, else 0: there the main path alone is no result."""

    def found(m: Any, *operands: Any) -> Any:
        apart = _Apart(m)
        meaning(apart, *operands)
        zero, one = m.constant(I32, 0), m.constant(I32, 1)
        result = zero
        for each in apart.conditions:
            result = m.select(each, one, result)
        return result

    return found


def bodies(named: Sequence[tuple[str, FunctionBody]], t: Type = F32) -> str:
    """C text with a function for each name and its operations."""
    used = {f"bits_of_{t}", f"{t}_of_bits"}
    texts = []
    for name, body in named:
        text, helpers = body_definition(C11, name, t, body)
        texts.append(text)
        used |= helpers
    applied = function_definitions(C11, used)
    return "\n".join([C11.prelude, *C11.definitions(used), *applied, *texts, ""])
