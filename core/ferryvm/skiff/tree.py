# SPDX-License-Identifier: Apache-2.0
"""The syntax tree: names are resolved, every node has a position; inference fills in the types.

It is desugared: `if` and `cond` are Choice, `let` is a Block that sets its variables, a variable's
`define` is a Set, `(< a b c)` is a Logic of two comparisons.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.isa import Instruction, Type
from ferryvm.skiff.array_form import ArrayForm
from ferryvm.skiff.fault import SourceSpan
from ferryvm.skiff.number import Number
from ferryvm.skiff.operator import Operator
from ferryvm.skiff.type import NOTHING, VALUES, SkiffType, Struct, Unknown

if TYPE_CHECKING:
    from ferryvm.skeleton.operation import Operation as Combination


@record.dataclass(eq=False)
class Variable:
    """A static or a local, one slot."""

    name: str
    place: SourceSpan
    is_static: bool
    number: int = -1
    """Its number as a static or local, assigned when the whole text has been read."""
    type: SkiffType = record.field(default_factory=lambda: Unknown(VALUES))


@record.dataclass(eq=False)
class Constant:
    """A name for a number."""

    name: str
    place: SourceSpan
    number: Number


@record.dataclass(eq=False)
class Function:
    """A function; `main` holds the top-level forms."""

    name: str
    place: SourceSpan
    parameters: list[Variable]
    result: SkiffType
    stated_result: bool = False
    locals: list[Variable] = record.field(default_factory=list)
    """Parameters, then all other locals."""
    body: list[Node] = record.field(default_factory=list)
    is_host: bool = False
    """True if the host performs it; then it has no body and is no function of the program."""
    is_wrapper: bool = False
    """True if it is made of an operator; then it is not exported."""
    is_broken: bool = False
    """True if its head has a fault; then its calls are not checked."""


class StructVerb(enum.Enum):
    """The operations that the definition of a struct defines."""

    MAKE = "make"
    GET = "get"
    SET = "set"
    TEST = "test"


@record.dataclass(eq=False)
class StructOperation:
    """An operation on structs of one definition: `make-point`, `point-x`, `set-point-x!`,
    `point?`."""

    name: str
    place: SourceSpan
    struct: Struct
    verb: StructVerb
    field: int = -1
    """The number of the field that is read or set."""


@record.dataclass(eq=False)
class Node:
    """A form. `type` is the type of the value that it leaves on the stack, NOTHING if there is
    none."""

    place: SourceSpan
    type: SkiffType = record.field(default=NOTHING, init=False)


@record.dataclass(eq=False)
class Broken(Node):
    """A form with a fault that has been reported."""


@record.dataclass(eq=False)
class Literal(Node):
    number: Number


@record.dataclass(eq=False)
class Get(Node):
    variable: Variable


@record.dataclass(eq=False)
class Set(Node):
    variable: Variable
    value: Node
    form: str
    """The source form: `set!`, `define` or `let`."""


@record.dataclass(eq=False)
class Block(Node):
    """Forms in order; its value is the last one's."""

    body: list[Node]
    form: str
    is_jit: bool = False
    """True if enter_jit and leave_jit enclose it."""


@record.dataclass(eq=False)
class Choice(Node):
    arms: list[tuple[Node, Node]]
    """Conditions with their branches; the first condition that holds selects its branch."""
    otherwise: Node | None
    form: str


@record.dataclass(eq=False)
class While(Node):
    condition: Node
    body: list[Node]


@record.dataclass(eq=False)
class Throw(Node):
    value: Node


@record.dataclass(eq=False)
class Try(Node):
    """A body with a handler, which has the exception's value in a variable."""

    body: Block
    variable: Variable
    handler: Block


@record.dataclass(eq=False)
class Finally(Node):
    """A body, and code that runs after it, also when an exception leaves it."""

    body: Node
    cleanup: Block


@record.dataclass(eq=False)
class Logic(Node):
    """`and`, or `or`."""

    is_and: bool
    operands: list[Node]


@record.dataclass(eq=False)
class Not(Node):
    operand: Node


@record.dataclass(eq=False)
class Operation(Node):
    """An operator of one or two operands, or more if it is folded from the left."""

    operator: Operator
    operands: list[Node]


@record.dataclass(eq=False)
class Direct(Node):
    """An instruction that is called by its mnemonic."""

    row: Instruction
    immediate: int
    operands: list[Node]


@record.dataclass(eq=False)
class Convert(Node):
    to: Type
    operand: Node


@record.dataclass(eq=False)
class Call(Node):
    function: Function
    arguments: list[Node]


@record.dataclass(eq=False)
class Launch(Node):
    """`for-each-item`: calls of a function with each item, and arguments that are the same."""

    sizes: list[Node]
    """The number of indices in each dimension."""
    function: Function
    arguments: list[Node]


@record.dataclass(eq=False)
class GroupArray(Node):
    """`group-array`: an argument of `for-each-group` that each group makes; without a length it has
    an element for each item."""

    element: SkiffType
    length: Node | None


@record.dataclass(eq=False)
class GroupLaunch(Node):
    """`for-each-group`: calls of a function with each item and its number in a group, and
    arguments."""

    count: Node
    size: Node | None
    function: Function
    arguments: list[Node]


@record.dataclass(eq=False)
class Reduce(Node):
    """`reduce`: all elements of an array combined, with an initial value in front of them."""

    operation: Combination | Function
    initial: Node | None
    array: Node
    element: SkiffType


@record.dataclass(eq=False)
class Scan(Node):
    """`scan`: an array of the combinations of all elements up to each."""

    operation: Combination | Function
    array: Node
    element: SkiffType


@record.dataclass(eq=False)
class GroupOperation(Node):
    """`group-reduce` and the like: a value of each item of a group becomes one for each."""

    form: str
    operation: Combination | Function | None
    """None for `group-broadcast`."""
    value: Node
    numbers: list[Node]
    """The item, behind that whose value all get."""
    array: Node
    element: SkiffType


@record.dataclass(eq=False)
class Map(Node):
    """`map` and `map!`: a function called with the elements of arrays at each index, and arguments
    that are the same."""

    form: str
    function: Function
    shared: list[Node]
    arrays: list[Node]
    elements: list[SkiffType]
    """Element types of the arrays."""
    to: Node | None
    """The array for the results, of `map!`."""
    to_element: SkiffType


@record.dataclass(eq=False)
class Print(Node):
    values: list[Node]


@record.dataclass(eq=False)
class WriteByte(Node):
    value: Node


@record.dataclass(eq=False)
class WriteString(Node):
    value: Node


@record.dataclass(eq=False)
class Text(Node):
    """A string literal: an array that is made once, when the program starts."""

    content: bytes
    variable: Variable
    """The static that holds it."""


@record.dataclass(eq=False)
class Null(Node):
    """The null reference."""


@record.dataclass(eq=False)
class Same(Node):
    """`eq?` of two references, or `null?` of one."""

    operands: list[Node]


@record.dataclass(eq=False)
class TypeTest(Node):
    """True if a reference is of the type `of`."""

    of: SkiffType
    operand: Node
    form: str


@record.dataclass(eq=False)
class Cast(Node):
    """A reference as one of the type `to`."""

    to: SkiffType
    operand: Node


@record.dataclass(eq=False)
class OnArray(Node):
    """A form of arrays."""

    form: ArrayForm
    element: SkiffType
    operands: list[Node]


@record.dataclass(eq=False)
class OnStruct(Node):
    """An operation on structs other than a test."""

    operation: StructOperation
    operands: list[Node]


@record.dataclass(eq=False)
class Tree:
    """A whole text: `functions` has main first, `statics` is in the order of their numbers."""

    functions: list[Function]
    statics: list[Variable]
    structs: list[Struct] = record.field(default_factory=list)
    """The ones that the text defines, in its order."""
    texts: list[Text] = record.field(default_factory=list)
    """The string literals of the text, each of them once."""
    caught: list[Variable] = record.field(default_factory=list)
    """Variables of handlers whose types are stated: then all exceptions have that type."""
    exception: SkiffType = record.field(default_factory=lambda: Unknown(VALUES))
    """The type of all thrown values."""
