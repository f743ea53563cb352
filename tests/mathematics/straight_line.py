# SPDX-License-Identifier: Apache-2.0
"""A meaning as one straight-line C function, and the number of its operations.

The text is printed by ferryvm's own C emitter (`ferryvm.ir.c`), one statement an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferryvm.ir.c import C11
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.type import F32, Type

Meaning = Callable[..., Any]


def _forwarded(name: str) -> Callable[..., str]:
    def operation(self: Any, *operands: Any) -> str:
        text = getattr(self.arithmetic, name)(*operands)
        return text if name == "constant" else self.define(text)

    return operation


class _Statements:
    def __init__(self) -> None:
        self.arithmetic = Arithmetic(C11)
        self.lines: list[str] = []

    def define(self, text: str) -> str:
        """The name of a variable of this value."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"    const __auto_type {name} = {text};")
        return name


StraightLine: Any = type(
    "StraightLine",
    (_Statements, PureEmitter),
    {name: _forwarded(name) for name in PureEmitter.__abstractmethods__},
)
"""An emitter of C statements: `lines` are the text, `arithmetic.used` the helpers."""


def operation_count(meaning: Meaning, operands: int) -> int:
    """Number of operations of a meaning, constants not counted."""
    emitter = StraightLine()
    meaning(emitter, *(f"a{n}" for n in range(operands)))
    return len(emitter.lines)


def functions(named: Sequence[tuple[str, Meaning, int]], t: Type = F32) -> str:
    """C text with a `static inline` function for each (name, meaning, number of operands)."""
    used: set[str] = set()
    texts = []
    c = C11.types[t]
    for name, meaning, operands in named:
        emitter = StraightLine()
        arguments = [f"a{n}" for n in range(operands)]
        result = meaning(emitter, *arguments)
        used |= emitter.arithmetic.used
        head = f"static inline {c} {name}({', '.join(f'{c} {a}' for a in arguments)})"
        texts.append("\n".join([head, "{", *emitter.lines, f"    return {result};", "}", ""]))
    used.add("bits_of_f32")
    used.add("f32_of_bits")
    return "\n".join([C11.prelude, *C11.definitions(used), *texts])
