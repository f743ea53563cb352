# SPDX-License-Identifier: Apache-2.0
"""Plain form: a function of the region IR without a machine, for targets that know no ferryvm.

    Subject ─ lift, inline ─> region IR ─ known facts of parameters ─> passes ─> plain form ─> a target

Its operations are the pure ones of the region IR, and:

| operation | attributes | operands | yields |
|---|---|---|---|
| `array_load` | elements | pointer, index | the element: a float, or zero-extended to i64 |
| `array_store` | elements | pointer, index, value | stores a float, or the low bytes of an i64 |
| `array_canonical` | float elements | in groups: pointer, index, float | if one of the floats is a NaN, makes those elements that are NaN canonical |
| `array_fill` | elements | pointer, index, count, i64 | stores the low bytes into so many elements |
| `array_move` | elements | pointer, index, pointer, index, count | copies elements to the first from the second; they may overlap |
| `array_update` | elements, update | pointer, index, i64 | the former element: an atomic update |
| `array_exchange` | elements | pointer, index, expected, i64 | the former element: the last operand replaces the expected one |
| `local_get` | number | | the value of a local variable |
| `local_set` | number | a value | |
| `error_if` | trap, line | boolean | returns with the error if it holds |
| `fail_if` | trap, line | boolean | notes the error of a member, which goes on, if it holds |
| `member`, `member_index`, `barrier`, `has_failed` | | | as of `ferryvm.ir.member` |

Terminators are `jump`, `branch`, `switch`, `return`, and `error` with a trap and a line. Pointers
are parameters of the entry block, or arrays that the function has for itself; only operations on
arrays use them, and comparisons of two. There are no states. `ferryvm.portable.verifier` checks all
of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Module,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.member.failure import DIVISIONS
from ferryvm.ir.operation import HEADER, LENGTH, PLACE, PURE, element_bytes
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.inline import inline_all, remove_uncalled
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.unroll_and_jam import unroll_and_jam
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.use import substitute
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.object import header
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, I64, Type
from ferryvm.portable.identifier import identifiers
from ferryvm.portable.interface import (
    ArrayArgument,
    Direction,
    FoldedArgument,
    Geometry,
    Interface,
    Result,
    ScalarArgument,
)
from ferryvm.portable.limit import check_calls, check_exportable, is_transfer_check, refuse
from ferryvm.portable.member import (
    ALLOCATION,
    MemberCode,
    finish_member,
    member_code,
    refuse_barriers,
    replace_barrier_exits,
)
from ferryvm.portable.subject import Subject
from ferryvm.region.region import region

MEMBER_NAMES = ("member", "failed", "error", "phase", "first_failed")
"""Names in the printed code of a member, which no argument has."""

NESTS = 2
"""The level from which on iterations of outer loops are interleaved, where that is profitable:
several times as fast, and much longer. Others stay as they are."""

VERSIONED = 3
"""The level from which on all loops have a version without range checks."""

LARGEST = 100_000
"""The largest number of operations of a callee that is inlined."""

_ERASED = frozenset(
    {"poll", "check_entry", "pay", "report_version", "parallel_if", "continue_launch_if"}
    | {"fail_if_interrupted"}
)
"""Operations of the machine that a plain function does without."""


_OF_ZERO: dict[tuple[object, ...], tuple[int, int]] = {
    (I64, Condition.GT_U): (0, 0),
    (I64, Condition.LE_U): (0, 1),
    (I64, Condition.LT_U): (1, 0),
    (I64, Condition.GE_U): (1, 1),
}
"""Comparisons that C compilers warn of: the operand that decides if it is 0, and the outcome."""


@dataclasses.dataclass
class PlainFunction:
    """A function in plain form."""

    subject: Subject
    body: Body
    interface: Interface
    pointers: dict[Parameter, ArrayArgument]
    """Parameters of the entry that are pointers. Each is followed by the length."""
    locals: dict[int, Type]
    """Local variables, which are the statics that the function changes."""
    arrays: dict[Parameter, LocalArray] = dataclasses.field(default_factory=dict)
    """Arrays that the function has for itself, or a group."""
    member: PlainMember | None = None
    """Of the code of a member of a group, what the target has to know."""
    launch: Interface | None = None
    """Of an item, the interface of its launch."""
    counts_items: bool = False
    """True for an item that takes the numbers of items behind its indices."""

    def of_launch(self, launch: Subject) -> PlainFunction:
        """The same, for a target that launches items by itself: with the interface of a launch."""
        names = [*self.interface.names, *(result.name for result in self.interface.results)]
        own = self.interface.arguments[launch.axes * (1 + launch.counts_items) :]
        given = [name for name, _ in launch.parameters[: launch.axes]]
        counts = identifiers(given, [self.interface.name, *names])
        group = None
        if self.member is not None:
            group = self.member.axes or (self.member.members,)
        made = dataclasses.replace(
            self.interface,
            arguments=(*(ScalarArgument(name, I64) for name in counts), *own),
            geometry=Geometry(tuple(counts), group),
        )
        return dataclasses.replace(self, launch=made, counts_items=launch.counts_items)


@dataclasses.dataclass(frozen=True)
class LocalArray:
    """An array that a group or a call has for itself."""

    name: str
    element: Element
    length: int
    is_zero: bool = False
    """True if it is to be zero when a group begins."""


@dataclasses.dataclass(frozen=True)
class PlainMember:
    """The code of a member of a group."""

    number: Operation
    """The operation that yields its number."""
    members: int
    axes: tuple[int, ...]
    """Members along the axes of `member_index`; none if there is no such operation."""
    guarded: frozenset[Operation]
    """Operations that do nothing, or yield 0, in a member that has failed."""
    orders_all: bool
    """True if members may read behind a barrier what others stored into arguments before it."""


def plain_form(subject: Subject, name: str, level: int = 2) -> PlainFunction:
    """The plain form of a subject under a name, after the passes of a level (0 to 3).

    Raises ExportError for code that has none.
    """
    module, body = _optimised(subject, level)
    has_nest = any(loop.parent is not None for loop in find_loops(body))
    if level >= VERSIONED or (level == NESTS and has_nest):
        made = hoist_range_checks(body) and unroll_and_jam(body, module.footprints)
        if made or level >= VERSIONED:
            unswitch(body, module.footprints)
        else:
            _, body = _optimised(subject, level)
    return _Plain(subject, body, name).run()


def _optimised(subject: Subject, level: int) -> tuple[Module, Body]:
    module, body = _inlined(subject)
    check_calls(subject, module, body)
    refuse_barriers(subject, body)
    _know(subject, body)
    check_exportable(subject, body)
    module.functions = {}
    optimise(module, level, subject.verified)
    return module, body


def plain_member(subject: Subject, name: str, level: int, *, runs_members: bool) -> PlainFunction:
    """The plain form of a member of a group; `subject`: the item that is the group. `runs_members`:
    the target runs members by itself, in work-groups.

    Raises ExportError for code that has none.
    """
    module, body = _inlined(subject)
    check_calls(subject, module, body)
    replace_barrier_exits(subject, body)
    _know(subject, body)
    check_exportable(subject, body, ALLOCATION)
    code = member_code(subject, body, has_axes=runs_members)
    check_exportable(subject, body)
    module.functions = {}
    optimise(module, level, subject.verified)
    finish_member(subject, body, code, goes_on=runs_members)
    return _Plain(subject, body, name, code).run()


def _inlined(subject: Subject) -> tuple[Module, Body]:
    found = region(subject.verified, _region_name(subject))
    module = lift(found, exceptions=True)
    body = module.functions[subject.wrapper]
    for each in module.functions.values():
        _end_at_traps(module, each)
    inline_all(module, body, LARGEST)
    remove_uncalled(module, subject.wrapper)
    module.root = body
    del module.functions[subject.wrapper]
    return module, body


def _end_at_traps(module: Module, body: Body) -> None:
    """Trap in place of calls of functions that only trap: what follows them is never reached."""
    for block in body.blocks:
        for place, operation in enumerate(block.operations):
            if operation.name != "call":
                continue
            blocks = module.functions[operation.fact(0, int)].blocks
            while blocks[0].end.name == "jump" and not blocks[0].operations:
                blocks = [blocks[0].end.edges[0].block]
            end = blocks[0].end
            if end.name == "trap" and all(o.name in _ERASED for o in blocks[0].operations):
                block.operations = block.operations[:place]
                block.terminator = Terminator("trap", end.static, (), operation.state)
                block.terminator.pc = operation.pc
                break
    remove_unreached(body)


def _region_name(subject: Subject) -> str:
    from ferryvm.region.code import code

    return code(subject.verified).names[subject.wrapper]


def _know(subject: Subject, body: Body) -> None:
    """Fold all that is known of the parameters: arrays are no null, and have the type of the
    signature; statics that nothing changes are parameters; the stack is large enough, since nothing
    recurs."""
    new: dict[Value, Value] = {}
    parameters = body.blocks[0].parameters
    constants: dict[Value, Value] = {}
    for at, bits in subject.folded.items():
        constants[parameters[at]] = body.constant(parameters[at].word_type, bits)
    unchanged = {n: at for n, at in subject.statics.items() if n not in subject.changed}
    for block in body.blocks:
        for operation in block.operations:
            if operation.name == "static" and operation.static[0] in unchanged:
                new[operation] = parameters[unchanged[operation.fact(0, int)]]
        block.operations = [
            each
            for each in block.operations
            if each not in new
            and not (each.name == "set_static" and each.static[0] in unchanged)
            and not is_transfer_check(subject, each)
            and not (each.name == "trap_if" and each.static[0] is Trap.STACK_OVERFLOW)
        ]
    substitute(body.blocks, new)
    substitute(body.blocks, constants)
    arrays = {
        parameter: kind
        for parameter, (_, kind) in zip(parameters, subject.parameters, strict=True)
        if isinstance(kind, Element)
    }
    known: dict[Value, Value] = {}
    for operation in body.operations:
        made = _known(body, operation, arrays)
        if made is not None:
            known[operation] = made
    substitute(body.blocks, known)
    remove_dead_code(body)
    number_values(body)
    thread_jumps(body)
    remove_dead_code(body)


def _known(body: Body, operation: Operation, arrays: dict[Parameter, Element]) -> Value | None:
    if operation.name == "header_word" and operation.static[0] == HEADER:
        array = operation.arguments[0]
        if isinstance(array, Parameter) and array in arrays:
            return body.constant(I64, header(arrays[array].array.number))
    if operation.name == "compare" and operation.static[0] is I64:
        condition = operation.static[1]
        has_array = any(a in arrays for a in operation.arguments)
        zero = body.constant(I64, 0)
        if has_array and zero in operation.arguments and condition in (Condition.EQ, Condition.NE):
            return body.constant(BOOLEAN, int(condition is Condition.NE))
    if operation.name == "launch_word":
        return body.constant(I64, I64.mask >> 1)
    return None


class _Plain:
    """The change of one body, which has passed all passes, into plain form."""

    def __init__(
        self, subject: Subject, body: Body, name: str, code: MemberCode | None = None
    ) -> None:
        self.subject, self.body, self.name, self.code = subject, body, name, code
        self.arrays: dict[Parameter, LocalArray] = {}
        self.guarded: set[Operation] = set()
        """Operations of plain form that do nothing in a member that has failed."""
        for number, array in enumerate(code.form.arrays if code else ()):
            made = LocalArray(f"g{number}", array.element, array.length, not array.is_stored_first)
            self.arrays[Parameter(I64)] = made
        self.pointers: dict[Value, Parameter] = {}
        """The pointer of each array parameter."""
        self.lengths: dict[Value, Parameter] = {}
        self.new: dict[Value, Value] = {}
        self.loaded: set[Value] = set()
        self.stored: set[Value] = set()
        self.errors: dict[Trap, set[int]] = {}
        self.locals: dict[int, Type] = {}
        self.builder = Builder(body.constants)

    def run(self) -> PlainFunction:
        """The function."""
        entry = self.body.blocks[0]
        parameters: list[Parameter] = []
        for place, parameter in enumerate(entry.parameters):
            if place in self.subject.folded:
                continue
            if isinstance(self.subject.parameters[place][1], Element):
                self.pointers[parameter] = Parameter(I64)
                self.lengths[parameter] = Parameter(I64)
                parameters += [self.pointers[parameter], self.lengths[parameter]]
            else:
                parameters.append(parameter)
        for block in self.body.blocks:
            self._block(block)
        substitute(self.body.blocks, self.new)
        for block in self.body.blocks:
            for operation in (*block.operations, block.end):
                operation.state = None
        arrays = entry.parameters
        entry.parameters = parameters
        remove_dead_code(self.body)
        if self.code is None:  # it would part members in front of barriers
            thread_jumps(self.body)
            remove_dead_code(self.body)
        self._check_references(arrays)
        return self._function(arrays)

    def _function(self, arrays: list[Parameter]) -> PlainFunction:
        results, folded = self.subject.results, self.subject.folded
        taken = [self.name, *(MEMBER_NAMES if self.code else ())]
        names = identifiers([name for name, _ in (*self.subject.parameters, *results)], taken)
        arguments: list[ScalarArgument | ArrayArgument] = []
        pointers: dict[Parameter, ArrayArgument] = {}
        values: list[FoldedArgument] = []
        for place, (parameter, (_, kind)) in enumerate(
            zip(arrays, self.subject.parameters, strict=True)
        ):
            name = names[place]
            if place in folded:
                assert isinstance(kind, Type)
                values.append(FoldedArgument(name, kind, folded[place]))
                continue
            if isinstance(kind, Type):
                arguments.append(ScalarArgument(name, kind))
                continue
            pointer = self.pointers[parameter]
            shape = tuple(
                str(folded[n]) if n in folded else names[n]
                for n in self.subject.shapes.get(place, ())
            )
            argument = ArrayArgument(name, kind, self._direction(pointer), shape)
            pointers[pointer] = argument
            arguments.append(argument)
        given = zip(names[len(arrays) :], results, strict=True)
        made = tuple(Result(name, t) for name, (_, t) in given)
        errors = {kind: tuple(sorted(lines)) for kind, lines in sorted(self.errors.items())}
        interface = Interface(self.name, tuple(arguments), made, errors, folded=tuple(values))
        return PlainFunction(
            self.subject,
            self.body,
            interface,
            pointers,
            self.locals,
            self.arrays,
            self._member(),
        )

    def _member(self) -> PlainMember | None:
        if self.code is None:
            return None
        form, guarded = self.code.form, frozenset(self.guarded)
        return PlainMember(form.member, form.members, form.axes, guarded, self.code.orders_all)

    def _direction(self, pointer: Parameter) -> Direction:
        if pointer in self.stored:
            return Direction.INOUT if pointer in self.loaded else Direction.OUT
        return Direction.IN

    def _check_references(self, arrays: list[Parameter]) -> None:
        """Refuse a body in which a reference is more than the array that a parameter is."""
        gone = {each for each in arrays if each in self.pointers}
        for block in self.body.blocks:
            for operation in (*block.operations, block.end):
                if not gone.isdisjoint(operation.uses()):
                    refuse(
                        self.subject, operation, "a reference is compared, selected or passed on"
                    )

    # --- blocks -----------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        operations, block.operations = block.operations, []
        self.builder.open(block)
        for operation in operations:
            if operation.name in _ERASED:
                continue
            self.builder.pc = operation.pc
            first = len(block.operations)
            self._operation(block, operation)
            if self.code is not None and operation in self.code.guarded:
                self._guard(operation, block.operations[first:])
        end = block.end
        if end.name in ("trap", "throw"):
            kind = end.fact(0, Trap) if end.name == "trap" else Trap.UNCAUGHT_EXCEPTION
            block.terminator = Terminator("error", (kind, self._error(kind, end)))
            block.terminator.pc = end.pc

    def _operation(self, block: Block, operation: Operation) -> None:
        if operation.name in PURE:
            self.new[operation] = self._rebuilt(operation)
            return
        change: Callable[[Operation], Value | None] | None = getattr(
            self, f"_do_{operation.name}", None
        )
        if change is None:
            block.operations.append(operation)
            return
        made = change(operation)
        if made is not None:
            self.new[operation] = made

    def _guard(self, operation: Operation, made: Iterable[Operation]) -> None:
        """Guard what has been made of an operation."""
        if operation.name in DIVISIONS:
            now = self.new[operation]
            self.guarded.update([now] if isinstance(now, Operation) else [])
        self.guarded.update(each for each in made if each.name.startswith("array_"))

    def _rebuilt(self, operation: Operation) -> Value:
        """A pure operation of the new operands, simplified."""
        assert operation.type is not None
        operands = tuple(map(self._now, operation.arguments))
        if operation.name == "compare" and operation.static in _OF_ZERO:
            place, outcome = _OF_ZERO[operation.static]
            if operands[place] is self.builder.constant(I64, 0):
                return self.builder.constant(BOOLEAN, outcome)
        return self.builder.pure(operation.name, operation.static, operands, operation.type)

    def _error(self, kind: Trap, operation: Operation) -> int:
        """The line of an error."""
        position = self.subject.place(operation.exit)
        line = position.line if position else 0
        self.errors.setdefault(kind, set()).add(line)
        return line

    def _do_trap_if(self, operation: Operation) -> None:
        kind = operation.fact(0, Trap)
        static = (kind, self._error(kind, operation))
        self.builder.emit(Operation("error_if", None, static, operation.arguments))

    def _do_fail_if(self, operation: Operation) -> None:
        assert self.code is not None
        exit_ = self.code.exits.get(operation)
        if exit_ is not None:  # others end loops, which need no end here
            kind = exit_.fact(0, Trap)
            static = (kind, self._error(kind, exit_))
            self.builder.emit(Operation("fail_if", None, static, operation.arguments))

    def _do_group_array(self, operation: Operation) -> Value:
        return list(self.arrays)[operation.fact(0, int)]

    def _do_cast(self, operation: Operation) -> Value:
        return self._now(operation.arguments[0])

    def _now(self, value: Value) -> Value:
        while value in self.new:
            value = self.new[value]
        return value

    # --- arrays -----------------------------------------------------------------------------

    def _do_header_word(self, operation: Operation) -> Value:
        array = self._now(operation.arguments[0])
        if array not in self.pointers:
            refuse(self.subject, operation, "it accesses an array that is no parameter")
        number = operation.fact(0, int)
        assert number in (LENGTH, PLACE)
        return self.lengths[array] if number == LENGTH else self.pointers[array]

    def _pointer(self, operation: Operation, place: Value) -> Value:
        found = self._now(place)
        if found not in self.pointers.values() and found not in self.arrays:
            refuse(self.subject, operation, "it selects between arrays")
        return found

    def _index(self, elements: Element, offset: Value) -> Value:
        """The index of the element at an offset in bytes, a multiple of its size."""
        shift = elements.shift
        offset = self._now(offset)
        b = self.builder
        if not shift:
            return offset
        amount = b.constant(I64, shift)
        if isinstance(offset, Operation) and offset.name in ("shl", "add"):
            left, right = offset.arguments
            if offset.name == "shl" and right is amount:
                return self._now(left)
            bits = getattr(right, "bits", 1)
            if offset.name == "add" and bits % element_bytes(elements) == 0:
                number = (bits - (1 << 64) if bits >> 63 else bits) >> shift
                return b.add(I64, self._index(elements, left), b.constant(I64, number & I64.mask))
        return b.shr_u(I64, offset, amount)

    def _elements(self, operation: Operation) -> Element:
        found = operation.static[0]
        if not isinstance(found, Element):
            refuse(self.subject, operation, "it uses an array of references")
        return found

    def _place(self, operation: Operation, at: int) -> tuple[Value, Value]:
        """Pointer and index of the elements at a place and an offset among the operands."""
        place, offset = operation.arguments[at : at + 2]
        pointer = self._pointer(operation, place)
        return pointer, self._index(self._elements(operation), offset)

    def _do_element_load(self, operation: Operation) -> Value:
        elements = self._elements(operation)
        at = self._place(operation, 0)
        self.loaded.add(at[0])
        t = elements.type if elements.type.is_float else I64
        loaded = self.builder.emit(Operation("array_load", t, (elements,), at))
        if not t.is_float:
            return loaded
        bits = self.builder.reinterpret(t.integer, t, loaded)
        return bits if t is F64 else self.builder.extend_u(bits)

    def _do_element_store(self, operation: Operation) -> None:
        elements = self._elements(operation)
        at = self._place(operation, 0)
        self.stored.add(at[0])
        value = self._now(operation.arguments[2])
        if elements.type.is_float:
            t = elements.type
            value = value if t is F64 else self.builder.wrap(value)
            value = self.builder.reinterpret(t, t.integer, value)
        self.builder.emit(Operation("array_store", None, (elements,), (*at, value)))

    def _do_canonicalise_elements(self, operation: Operation) -> None:
        elements = self._elements(operation)
        operands: list[Value] = []
        for place in range(0, len(operation.arguments), 3):
            at = self._place(operation, place)
            operands += [*at, self._now(operation.arguments[place + 2])]
        self.builder.emit(Operation("array_canonical", None, (elements,), tuple(operands)))

    def _do_fill_elements(self, operation: Operation) -> None:
        at = self._place(operation, 0)
        self.stored.add(at[0])
        rest = map(self._now, operation.arguments[2:])
        made = Operation("array_fill", None, (self._elements(operation),), (*at, *rest))
        self.builder.emit(made)

    def _do_move_elements(self, operation: Operation) -> None:
        elements = self._elements(operation)
        to, from_ = self._place(operation, 0), self._place(operation, 2)
        self.stored.add(to[0])
        self.loaded.add(from_[0])
        count = self._index(elements, operation.arguments[4])
        self.builder.emit(Operation("array_move", None, (elements,), (*to, *from_, count)))

    def _do_update_element(self, operation: Operation) -> Value:
        return self._update("array_update", operation)

    def _do_compare_exchange_element(self, operation: Operation) -> Value:
        return self._update("array_exchange", operation)

    def _update(self, name: str, operation: Operation) -> Value:
        at = self._place(operation, 0)
        self.stored.add(at[0])
        self.loaded.add(at[0])
        rest = map(self._now, operation.arguments[2:])
        return self.builder.emit(Operation(name, I64, operation.static, (*at, *rest)))

    # --- statics ----------------------------------------------------------------------------

    def _do_static(self, operation: Operation) -> Value:
        number, t = operation.fact(0, int), operation.word_type
        self.locals[number] = t
        return self.builder.emit(Operation("local_get", t, (number,)))

    def _do_set_static(self, operation: Operation) -> None:
        number = operation.fact(0, int)
        (value,) = operation.arguments
        self.locals[number] = value.word_type
        self.builder.emit(Operation("local_set", None, (number,), (value,)))
