# SPDX-License-Identifier: Apache-2.0
"""The syntax tree: names are resolved, every node has a place; inference fills in the types.

Sugar is gone by then: `if` and `cond` are Choice, `let` is a Block that sets its variables, a
variable's `define` is a Set, `(< a b c)` is a Logic of two comparisons.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import TypeVar

from ferryvm.isa import Instruction, Type
from ferryvm.skiff.fault import SourceSpan
from ferryvm.skiff.number import Number
from ferryvm.skiff.operator import Operator
from ferryvm.skiff.type import NOTHING, VALUES, SkiffType, Unknown

T = TypeVar("T")


@typing.dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
def _node(class_: type[T]) -> type[T]:
    """A dataclass with nothing but its `__init__`: what is generated costs at every start."""
    class_.__doc__ = class_.__doc__ or class_.__name__  # else a signature is made into one
    return dataclasses.dataclass(eq=False, repr=False, match_args=False)(class_)


@_node
class Variable:
    """A static or a local, one slot."""

    name: str
    place: SourceSpan
    is_static: bool
    number: int = -1
    """Of the static or local; given when the whole text has been read."""
    type: SkiffType = dataclasses.field(default_factory=lambda: Unknown(VALUES))


@_node
class Function:
    """A function; `main` holds the top-level forms."""

    name: str
    place: SourceSpan
    parameters: list[Variable]
    result: SkiffType
    stated_result: bool = False
    locals: list[Variable] = dataclasses.field(default_factory=list)
    """Parameters, then all other locals."""
    body: list[Node] = dataclasses.field(default_factory=list)
    is_broken: bool = False
    """True if its head has a fault, so that its calls are not checked."""


@_node
class Node:
    """A form. `type` is what it leaves on the stack, NOTHING where that is nothing."""

    place: SourceSpan
    type: SkiffType = dataclasses.field(default=NOTHING, init=False)


@_node
class Broken(Node):
    """A form with a fault that has been reported."""


@_node
class Literal(Node):
    number: Number


@_node
class Get(Node):
    variable: Variable


@_node
class Set(Node):
    variable: Variable
    value: Node
    form: str
    """The form that wrote it: `set!`, `define` or `let`."""


@_node
class Block(Node):
    """Forms in order; its value is the last one's."""

    body: list[Node]
    form: str
    is_jit: bool = False
    """True if enter_jit and leave_jit enclose it."""


@_node
class Choice(Node):
    arms: list[tuple[Node, Node]]
    """Conditions and what to do when they hold; the first that holds is taken."""
    otherwise: Node | None
    form: str


@_node
class While(Node):
    condition: Node
    body: list[Node]


@_node
class Logic(Node):
    """`and`, or `or`."""

    is_and: bool
    operands: list[Node]


@_node
class Not(Node):
    operand: Node


@_node
class Operation(Node):
    """An operator of one to two operands, or more where the operator folds them from the left."""

    operator: Operator
    operands: list[Node]


@_node
class Direct(Node):
    """An instruction under its mnemonic."""

    row: Instruction
    immediate: int
    operands: list[Node]


@_node
class Convert(Node):
    to: Type
    operand: Node


@_node
class Call(Node):
    function: Function
    arguments: list[Node]


@_node
class Print(Node):
    values: list[Node]


@_node
class WriteByte(Node):
    value: Node


@_node
class MakeVector(Node):
    element: SkiffType
    length: Node


@_node
class VectorRef(Node):
    vector: Node
    index: Node


@_node
class VectorSet(Node):
    vector: Node
    index: Node
    value: Node


@_node
class VectorLength(Node):
    vector: Node


@_node
class Tree:
    """A whole text: `functions` has main first, `statics` is in the order of their numbers."""

    functions: list[Function]
    statics: list[Variable]
