# SPDX-License-Identifier: Apache-2.0
"""Pure functions of the instruction table: meanings with names, which compilers may share.

The meaning of `f64.exp` has dozens of operations. An emitter that `apply` is called on decides
whether it emits them on the spot, or defines a function for them once and calls it. Either way the
operations are the same, and so are the bits of the result.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ferryvm.isa.type import Type

Meaning = Callable[..., Any]

_DECLARED: dict[str, PureFunction] = {}
"""All functions by name."""


def declared(name: str) -> PureFunction:
    """The function of a name. Raises KeyError."""
    return _DECLARED[name]


class PureFunction:
    """A function of values, written in the operations of `PureEmitter`.

    Its result does not depend on the bits of a NaN among the operands, and no NaN but the canonical
    one is a result. There is one object for a name, and functions are compared with `is`.
    """

    __slots__ = ("_meaning", "_where", "is_exceptional", "name", "parameters", "result", "summary")

    def __init__(
        self,
        name: str,
        parameters: tuple[Type, ...],
        result: Type,
        summary: str,
        where: str,
        is_exceptional: bool = False,
    ) -> None:
        """`name`: the mnemonic; `summary`: a sentence; `where`: `module:function`, the meaning,
        imported when it is first needed; `is_exceptional`: if hardly any program applies it to
        operands, so that its code should be compiled quickly and may be slow."""
        self.name, self.parameters, self.result = name, parameters, result
        self.summary, self._where, self.is_exceptional = summary, where, is_exceptional
        self._meaning: Meaning | None = None
        _DECLARED[name] = self

    @property
    def meaning(self) -> Meaning:
        """The meaning: a function of a `PureEmitter` and its values of the parameters."""
        if self._meaning is None:
            module, _, name = self._where.partition(":")
            self._meaning = getattr(importlib.import_module(module), name)
        return self._meaning

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"PureFunction({self.name})"

    def __reduce__(self) -> tuple[Callable[[str], PureFunction], tuple[str]]:
        return declared, (self.name,)

    def __copy__(self) -> PureFunction:
        return self

    def __deepcopy__(self, memo: object) -> PureFunction:
        return self
