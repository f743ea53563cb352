# SPDX-License-Identifier: Apache-2.0
"""`for-each-item`, `barrier`, `map`, `map!`, `reduce`, `scan`, and those of groups, from their
datum to a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.isa import Type
from ferryvm.isa.launch import MOST_DIMENSIONS
from ferryvm.skiff.number import Number, parse_number
from ferryvm.skiff.operation import Parser
from ferryvm.skiff.operator import CONVERSIONS, DIRECT
from ferryvm.skiff.operator import OPERATORS as ALL_OPERATORS
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.scope import show
from ferryvm.skiff.tree import (
    Broken,
    Constant,
    Direct,
    Function,
    GroupArray,
    GroupLaunch,
    GroupOperation,
    Launch,
    Literal,
    Map,
    Node,
    Reduce,
    Scan,
    Variable,
)
from ferryvm.skiff.type import ELEMENT_NAMES, ELEMENTS, RESULTS, Named, Unknown

if TYPE_CHECKING:
    from ferryvm.skeleton.operation import Operation

OPERATIONS = {
    "+": "add", "*": "mul", "min": "min", "max": "max", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
"""Operators that are associative, with their names as operations."""
GROUP_FORMS = ("group-reduce", "group-scan", "group-scan-before", "group-broadcast")
"""Forms in which every item of a group gives a value, and gets one."""
SYMBOLS = {name: symbol for symbol, name in OPERATIONS.items()}
"""The operators by the names of the operations."""


def launch_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `for-each-item`."""
    call = _launched(datum)
    if call is None:
        return parser.usage(datum)
    head = call.items[0]
    assert isinstance(head, Atom)
    sizes = parser.forms_in(_sizes(parser, datum.items[1]))
    arguments = parser.forms_in(call.items[1:])
    if len(sizes) > MOST_DIMENSIONS:
        message = f"'for-each-item' has at most {MOST_DIMENSIONS} dimensions, found {len(sizes)}"
        return parser.broken(datum.items[1].place, message)
    function = _launched_function(parser, "for-each-item", head)
    if isinstance(function, Broken):
        return function
    if len(arguments) != len(function.parameters) - len(sizes):
        names = "".join(f" {variable.name}" for variable in function.parameters)
        item = "the item" if len(sizes) == 1 else f"{len(sizes)} indices"
        message = f"'{head.text}' gets {item} and {len(arguments)} arguments"
        return parser.broken(call.place, f"{message}, it takes ({head.text}{names})")
    return Launch(datum.place, sizes, function, arguments)


def _launched(datum: Sequence) -> Sequence | None:
    """The call in a form that launches; None if it has another form."""
    call = datum.items[2] if len(datum.items) == 3 else None
    is_call = isinstance(call, Sequence) and call.items and isinstance(call.items[0], Atom)
    return call if is_call else None  # type: ignore[return-value]  # it is no atom


def _launched_function(parser: Parser, form: str, head: Atom) -> Function | Broken:
    """The function that is launched."""
    function = parser.scope.lookup(head.text)
    if isinstance(function, Function) and not function.is_host:
        return parser.silently_broken(head.place) if function.is_broken else function
    if function is None and head.text in parser.scope.faults.lost_names:
        return parser.silently_broken(head.place)
    near = parser.scope.near(head.text, (Function,))
    wanted = f"'{form}' calls a function that the program defines"
    return parser.broken(head.place, f"{wanted}, found {show(head)}{near}")


def group_launch_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `for-each-group`."""
    call = _launched(datum)
    numbers = parser.forms_in(_sizes(parser, datum.items[1])) if call is not None else []
    if call is None or len(numbers) not in (1, 2):
        return parser.usage(datum)
    head = call.items[0]
    assert isinstance(head, Atom)
    arguments = [_group_argument(parser, each) for each in call.items[1:]]
    function = _launched_function(parser, "for-each-group", head)
    if isinstance(function, Broken):
        return function
    if len(arguments) != len(function.parameters) - 2:
        names = "".join(f" {variable.name}" for variable in function.parameters)
        gets = (
            f"'{head.text}' gets the item, its number in the group and {len(arguments)} arguments"
        )
        return parser.broken(call.place, f"{gets}, it takes ({head.text}{names})")
    size = numbers[1] if len(numbers) == 2 else None
    return GroupLaunch(datum.place, numbers[0], size, function, arguments)


def _group_argument(parser: Parser, datum: Datum) -> Node:
    """An argument, which may be an array that each group makes."""
    items = datum.items if isinstance(datum, Sequence) else ()
    head = items[0] if items else None
    if not isinstance(head, Atom) or head.text != "group-array":
        return parser.form(datum)
    named = items[1] if len(items) in (2, 3) else None
    if not isinstance(named, Atom) or named.text not in ELEMENT_NAMES:
        names = " ".join(sorted(ELEMENT_NAMES))
        message = "'group-array' is written (group-array element [length]), with one of"
        return parser.broken(datum.place, f"{message} {names}")
    length = parser.form(items[2]) if len(items) == 3 else None
    return GroupArray(datum.place, Named(named.text), length)


def barrier_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `barrier`, whose instruction has an operand that says if it is complete."""
    if len(datum.items) != 1:
        return parser.usage(datum)
    row = DIRECT["launch.barrier"]
    is_complete = Literal(datum.place, Number("0", 0, Type.I32))
    return Direct(datum.place, row, 0, [is_complete])


def _sizes(parser: Parser, datum: Datum) -> list[Datum]:
    """The sizes of the dimensions: the items of a list that is no form, else the datum alone."""
    if not isinstance(datum, Sequence) or len(datum.items) < 2:
        return [datum]
    first = datum.items[0]
    if isinstance(first, Atom) and parse_number(first.text) is None:
        is_size = isinstance(parser.scope.lookup(first.text), Variable | Constant)
        return [*datum.items] if is_size else [datum]
    return [*datum.items]


def reduce_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `reduce`."""
    if len(datum.items) not in (3, 4):
        return parser.usage(datum)
    *initial, array = parser.forms_in(datum.items[2:])
    operation = _operation(parser, datum, datum.items[1])
    if isinstance(operation, Broken):
        return operation
    if isinstance(operation, Function) and not initial:
        message = f"'{operation.name}' is a function, so 'reduce' needs an initial value"
        return parser.broken(datum.place, f"{message}: (reduce {operation.name} initial array)")
    return Reduce(datum.place, operation, initial[0] if initial else None, array, Unknown(ELEMENTS))


def scan_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `scan`."""
    if len(datum.items) != 3:
        return parser.usage(datum)
    (array,) = parser.forms_in(datum.items[2:])
    operation = _operation(parser, datum, datum.items[1])
    if isinstance(operation, Broken):
        return operation
    return Scan(datum.place, operation, array, Unknown(ELEMENTS))


def group_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `group-reduce` and the like."""
    head, *rest = datum.items
    assert isinstance(head, Atom)
    if len(rest) != 4:
        return parser.usage(datum)
    operation = None
    if head.text != "group-broadcast":
        found = _operation(parser, datum, rest.pop(0))
        if isinstance(found, Broken):
            parser.forms_in(rest)
            return found
        if isinstance(found, Function) and head.text == "group-scan-before":
            message = f"'{found.name}' is a function, 'group-scan-before' takes"
            return parser.broken(datum.place, f"{message} one of {' '.join(OPERATIONS)}")
        operation = found
    value, *numbers, array = parser.forms_in(rest)
    element = Unknown(ELEMENTS)
    return GroupOperation(datum.place, head.text, operation, value, numbers, array, element)


def _operation(parser: Parser, datum: Sequence, named: Datum) -> Operation | Function | Broken:
    """The operation that a form names: an operator, or a function of two values."""
    head = datum.items[0]
    assert isinstance(head, Atom)
    if isinstance(named, Atom) and named.text in OPERATIONS:
        from ferryvm.skeleton.operation import Operation  # few texts have some

        return Operation(OPERATIONS[named.text])
    function = function_named(parser, head.text, named, f"one of {' '.join(OPERATIONS)}, or ")
    if isinstance(function, Function) and len(function.parameters) != 2:
        count = len(function.parameters)
        message = f"'{head.text}' combines two values, '{function.name}' takes {count}"
        return parser.broken(named.place, message)
    return function


def function_named(
    parser: Parser, form: str, named: Datum, otherwise: str = ""
) -> Function | Broken:
    """The function of the program that a form names."""
    function = parser.scope.lookup(named.text) if isinstance(named, Atom) else None
    if isinstance(function, Function) and not function.is_host:
        return parser.silently_broken(named.place) if function.is_broken else function
    near = ""
    if isinstance(named, Atom):
        if function is None and named.text in parser.scope.faults.lost_names:
            return parser.silently_broken(named.place)
        near = parser.scope.near(named.text, (Function,))
    wanted = f"'{form}' takes {otherwise}a function that the program defines"
    return parser.broken(named.place, f"{wanted}, found {show(named)}{near}")


def map_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `map` or `map!`."""
    head = datum.items[0]
    assert isinstance(head, Atom)
    in_place = head.text == "map!"
    items = list(datum.items[1:])
    if len(items) < 2 + in_place:
        return parser.usage(datum)
    to = parser.form(items.pop(0)) if in_place else None
    called = items.pop(0)
    if isinstance(called, Sequence) and not called.items:
        return parser.usage(datum)
    named, *arguments = called.items if isinstance(called, Sequence) else [called]
    shared, arrays = parser.forms_in(arguments), parser.forms_in(items)
    count = len(arrays) + len(shared)
    function = _mapped(parser, head.text, named, count)
    if isinstance(function, Broken):
        return function
    if len(function.parameters) != count:
        names = "".join(f" {variable.name}" for variable in function.parameters)
        gets = f"'{function.name}' gets an element of each array, of which there are {len(arrays)}"
        if shared:
            gets += f", and {len(shared)} argument{'' if len(shared) == 1 else 's'}"
        return parser.broken(called.place, f"{gets}; it takes ({function.name}{names})")
    elements = [Unknown(ELEMENTS) for _ in arrays]
    return Map(datum.place, head.text, function, shared, arrays, [*elements], to, Unknown(ELEMENTS))


def _mapped(parser: Parser, form: str, named: Datum, count: int) -> Function | Broken:
    """The function that a form names, made of an operator if that is named."""
    if isinstance(named, Atom) and named.text in {**ALL_OPERATORS, **CONVERSIONS, **DIRECT}:
        return _wrapper(parser, named, count)
    return function_named(parser, form, named, "an operator or ")


def _wrapper(parser: Parser, operator: Atom, count: int) -> Function | Broken:
    """A function of so many parameters that applies an operator."""
    place, scope = operator.place, parser.scope
    number = len(parser.wrappers) + 1
    function = Function(f"{operator.text} {number}", place, [], Unknown(RESULTS), is_wrapper=True)
    names = [f"x{parameter}" for parameter in range(1, count + 1)]
    function.parameters = [Variable(name, place, is_static=False) for name in names]
    function.locals = list(function.parameters)
    outside = scope.function, scope.inner
    scope.enter(function)
    body = parser.form(Sequence((operator, *(Atom(name, place) for name in names)), place))
    scope.function, scope.inner = outside
    if isinstance(body, Broken):
        return body
    function.body = [body]
    parser.wrappers.append(function)
    return function
