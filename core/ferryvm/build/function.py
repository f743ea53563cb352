# SPDX-License-Identifier: Apache-2.0
"""A function under construction: instructions, locals, labels, blocks, source positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from ferryvm.build import skeleton
from ferryvm.build.block import Block, If, Loop, Try, check_open
from ferryvm.build.body import Generate
from ferryvm.build.fault import BuildError
from ferryvm.build.instruction import Instructions
from ferryvm.build.object_type import ObjectTypes, OperandType
from ferryvm.build.shape import MismatchError, Shape
from ferryvm.build.symbol import Label, Local
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, Type
from ferryvm.isa.frame import return_immediate
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import ValueType
from ferryvm.listing import FunctionCode, FunctionListing
from ferryvm.program import Signature
from ferryvm.verify.structure import MAX_LOCALS, MAX_PARAMETERS, MAX_RESULTS

_RETURN = BY_MNEMONIC["return"].opcode

Parameters = Mapping[str, OperandType] | Sequence[OperandType]
"""Types of parameters, with names or without."""


def types_of(
    what: str, types: object, known: ObjectTypes, most: int = MAX_RESULTS
) -> tuple[ValueType, ...]:
    """The types, checked, of which there may be at most `most`; `what`: their role, for
    messages."""
    single = known.find(types)
    if single is not None:
        return (single,)
    found = [known.find(each) for each in types] if isinstance(types, (list, tuple)) else [None]
    checked = tuple(each for each in found if each is not None)
    if len(checked) < len(found):
        allowed = "a list of I32, I64, F32, F64 or reference types of this program is expected"
        raise BuildError(f"{what}: {allowed}, found {types!r}")
    if len(checked) > most:
        raise BuildError(f"{what}: {len(checked)} types, at most {most} are allowed")
    return checked


class Function(Instructions):
    """A function of a program, created by `Program.function`.

    Each instruction of the table is a method, named as its mnemonic: `f.i64_add()`. Methods check
    the stack's types and raise BuildError, with the line of the caller. The end of the code
    returns.
    """

    def __init__(
        self,
        program: object,
        name: str,
        parameters: Parameters,
        results: Sequence[OperandType],
        bottom: Shape,
        effect: Callable[[Signature], int],
        record: Callable[[], tuple[ValueType, ...]],
        generate: Generate,
    ) -> None:
        """`effect`: the number of the effect of calling a function of a signature; `record`: the
        types of the record of an exception, for code that catches one; `generate`: adds generated
        functions to the program."""
        what = f"function {name!r}"
        names: Sequence[str | None] = [None] * len(parameters)
        types: object = parameters
        if isinstance(parameters, Mapping):
            names, types = list(parameters), list(parameters.values())
        signature = Signature(
            types_of(what, types, bottom.types, MAX_PARAMETERS),
            types_of(what, results, bottom.types),
        )
        super().__init__(program, name, signature, bottom, effect(signature))
        self._record = record
        self._generate = generate
        self._local_types: list[ValueType] = []
        """Types of the locals."""
        self._pending: list[Label] = []
        """Labels that are targets of jumps, or may be, and not defined yet."""
        self.parameters: tuple[Local, ...] = tuple(
            self._declare(name, type_, number)
            for number, (name, type_) in enumerate(zip(names, signature.parameters, strict=True))
        )
        """The locals that hold the arguments."""

    def __repr__(self) -> str:
        return f"<function {self.name} {self.signature}>"

    # --- locals and labels ------------------------------------------------------------------

    def local(self, name: str | None, type: OperandType) -> Local:
        """A new local, whose initial value is zero; without a name it is identified by the object
        alone.

        Raises BuildError for a duplicate name, and beyond the maximum of locals.
        """
        (checked,) = types_of(f"function {self.name!r}: local {name!r}", [type], self._types)
        if len(self._local_types) == MAX_LOCALS:
            raise self._fault(f"there are {MAX_LOCALS} locals, which is the most")
        local = self._declare(name, checked, len(self.parameters) + len(self._local_types))
        self._local_types.append(checked)
        return local

    def index_2d(self, rows: Local | str, columns: Local | str) -> None:
        """( i64 i64 -- i64 ): the index of the element at a row and a column in an array that has a
        matrix in row-major order, as NumPy does; traps unless both are in its shape.

        `rows`, `columns`: locals of type i64 with its shape.
        """
        self.swap()  # the row is below
        self.local_get(rows)
        self.array_index()
        self.local_get(columns)
        self.i64_mul()
        self.swap()
        self.local_get(columns)
        self.array_index()
        self.i64_add()

    def launch(self, function: Function, dimensions: int = 1) -> None:
        """( arguments sizes -- ): call a function for each item, with an index from 0 up to each of
        the sizes, i64s, of which there are 1 to 3, and these arguments; the last index changes
        fastest. The items must be independent: none may access what another one writes.

        `function`: takes the indices, i64s, then the arguments; it has no results. Traps if a size
        is negative.
        """
        if dimensions != 1:
            self.call(skeleton.grid_of(self, function, dimensions))
            return
        self.launch_begin()
        again, over = self.label(), self.label()
        self.place(again)
        self.launch_test()
        self.jump_unless(over)
        self.launch_item(function)
        self.call(function)
        self.jump(again)
        self.place(over)
        for _ in range(LAUNCH_WORDS + len(function.signature.parameters) - 1):
            self.drop()

    def launch_groups(self, function: Function, arrays: Sequence[str] = ()) -> None:
        """( shared lengths count size -- ): call a function for each of `count` items, in groups of
        `size`, of which the last one may have fewer, and which wait for each other at barriers.

        `function`: takes the item, its number in the group, i64s, then arguments. `arrays`: names
        of its parameters for which each group makes an array; there is a length for each, 0 for as
        many elements as the group has items. All items share the other arguments. Traps if `count`
        is negative or `size` below 1. Raises BuildError.
        """
        self.call(skeleton.group_launch_of(self, function, arrays))

    def barrier(self) -> None:
        """( -- ): wait until every item of the launch that this function runs in waits here, too;
        what each did before it is then seen by all.

        Traps where an item ends or waits at another barrier, and outside of a launch.
        """
        self.i32_const(0)
        self.launch_barrier()

    def reduce(self, operation: str | Function, initial: bool = False) -> None:
        """( array -- value ), or ( initial array -- value ): combine all elements of an array of
        numbers, in launches; docs/parallel.md states the order.

        `operation`: `add`, `mul`, `min`, `max`, `and`, `or`, `xor`, or a function of two values
        that is associative, which needs an initial value. Raises BuildError.
        """
        self.call(skeleton.reduction_of(self, operation, initial))

    def scan(self, operation: str | Function) -> None:
        """( array -- array ): a fresh array that has for each element of an array of numbers the
        combination of all up to it, itself included, by launches; docs/parallel.md states the
        order.

        `operation`: as for `reduce`; a function needs no initial value. Raises BuildError.
        """
        self.call(skeleton.scan_of(self, operation))

    def group_reduce(self, operation: str | Function) -> None:
        """( value item values -- value ): every item of the launch that this function runs in gives
        a value, and all get their combination, in the order of `reduce`; implies barriers.

        `item`: the number of the item in its launch. `values`: an array with an element for each
        item, which is overwritten. `operation`: as for `scan`. Traps as `barrier`. Raises
        BuildError.
        """
        self.call(skeleton.group_reduction_of(self, operation))

    def group_scan(self, operation: str | Function, exclusive: bool = False) -> None:
        """( value item values -- value ): every item gets the combination of the values of all
        items up to it, in the order of `scan`; operands and traps as for `group_reduce`.

        `exclusive`: without its own value; the first item gets the identity, so the operation is no
        function. Raises BuildError.
        """
        self.call(skeleton.group_scan_of(self, operation, exclusive))

    def group_broadcast(self) -> None:
        """( value from item values -- value ): every item gets the value of the one whose number
        item 0 gives as `from`; other operands and traps as for `group_reduce`."""
        self.call(skeleton.group_broadcast_of(self))

    def map(self, function: Function, arrays: int = 1) -> None:
        """( shared arrays -- results ): call a function with the elements of arrays at each index,
        and the shared arguments; a fresh array for each of its results, in order. It is a launch.

        `function`: takes an element of each of so many arrays, then the shared arguments. Traps if
        the arrays have different lengths. Raises BuildError.
        """
        self.call(skeleton.map_of(self, function, arrays, in_place=False))

    def map_to(self, function: Function, arrays: int = 1) -> None:
        """( results shared arrays -- ): as `map`, into arrays that are given, an array for each
        result; they may be among those that are read. Raises BuildError.
        """
        self.call(skeleton.map_of(self, function, arrays, in_place=True))

    def _declare(self, name: str | None, type_: ValueType, number: int) -> Local:
        if name is not None and name in self.locals:
            raise self._fault(f"there is already a local {name!r}")
        local = Local(self, name, type_, number, len(self.signature.parameters))
        if name is not None:
            self.locals[name] = local
        return local

    def label(
        self, name: str | None = None, operands: Sequence[OperandType] | None = None
    ) -> Label:
        """A new label, which may be a target of jumps before it is placed.

        `operands`: the types of the stack there. If omitted, the first jump or placing determines
        them. Raises BuildError for a duplicate name.
        """
        if name is not None and name in self._label_names:
            raise self._fault(f"there is already a label {name!r}")
        label = self._new_label("label") if name is None else self._named_label(name)
        if operands is not None:
            types = types_of(f"label {label.name!r}", operands, self._types)
            label.shape, label.is_settled = self._bottom.push_all(types), True
        self._pending.append(label)
        return label

    def place(self, label: Label) -> None:
        """Define a label before the next instruction. Raises BuildError if operands disagree."""
        if not isinstance(label, Label) or label.function is not self:
            raise self._fault(f"place takes a label of this function, found {label!r}")
        if label.pc is not None:
            raise self._fault(f"label {label.name!r} is placed already")
        if self._shape.is_reachable:
            plain = self._shape.plain
            joined = plain if label.shape is None else label.shape.join(plain)
            if joined is None or (label.is_settled and joined is not label.shape):
                found = f"expects {label.shape}, control arrives with {plain}"
                raise self._fault(f"label {label.name!r} {found}")
            label.shape = joined
            if joined is not plain:
                self._shape = self._above_floor(label)
        else:
            if label.shape is None:  # only later jumps can reach it
                label.shape = self._floor.plain
            self._shape = self._above_floor(label)
        self._define(label)

    def _above_floor(self, label: Label) -> Shape:
        """The operands at a label, as far as the innermost block may pop them."""
        floor = self._floor
        shape = label.shape
        assert shape is not None
        kinds = []
        while shape is not floor.plain:
            if shape.depth <= floor.depth:
                found = f"has {label.shape}, the block around it needs {floor.plain} below"
                raise self._fault(f"label {label.name!r} {found}")
            kinds.append(shape.kind)
            shape = shape.below
        return floor.push_all(kinds[::-1])

    # --- blocks -----------------------------------------------------------------------------

    def block(
        self, results: Sequence[OperandType] = (), parameters: Sequence[OperandType] = ()
    ) -> Block:
        """A block for a `with` statement, with parameters and results; `br` goes to its end."""
        return Block(
            self,
            types_of("block", parameters, self._types),
            types_of("block", results, self._types),
        )

    def loop(
        self, results: Sequence[OperandType] = (), parameters: Sequence[OperandType] = ()
    ) -> Loop:
        """A block for which `br` goes to the start, with the parameters. Its code falls through at
        the end."""
        return Loop(
            self, types_of("loop", parameters, self._types), types_of("loop", results, self._types)
        )

    def if_(
        self, results: Sequence[OperandType] = (), parameters: Sequence[OperandType] = ()
    ) -> If:
        """A block that pops an i32 and runs if that is not 0, up to `else_` if there is one."""
        return If(
            self, types_of("if", parameters, self._types), types_of("if", results, self._types)
        )

    def else_(self) -> None:
        """Begin the other part of the innermost block, an `if_`, within its `with` statement.

        Raises BuildError if that is not an `if_`, or its first part leaves other operands.
        """
        block = self._blocks[-1] if self._blocks else None
        if not isinstance(block, If):
            found = f"a {block.kind}" if isinstance(block, Block) else "no block"
            raise self._fault(f"else_ stands in an if, the innermost block is {found}")
        block.turn()

    def try_(
        self, results: Sequence[OperandType] = (), parameters: Sequence[OperandType] = ()
    ) -> Try:
        """A block whose exceptions are caught by the handlers after its `catch` and `catch_all`."""
        return Try(
            self, types_of("try", parameters, self._types), types_of("try", results, self._types)
        )

    def br(self, block: Block) -> None:
        """Jump to the end of an open block, or the start of a loop, with the operands that it takes
        there; other operands of the block are dropped. Raises BuildError if they are missing."""
        below = self._check_branch("br", check_open(self, block))
        self._branch(block, below)

    def br_if(self, block: Block) -> None:
        """Pop an i32, and branch as `br` if it is not 0. Raises as `br`."""
        target, types = check_open(self, block).target
        shape = self._shape
        try:
            rest, _ = shape.pop(Type.I32)
            below = rest.pop_all(types)
        except MismatchError:
            raise self._mismatch("br_if", [*types, Type.I32]) from None
        if self._extras(block, below) == 0:
            self.jump_if(target)
            return
        over = self._new_label("over")
        self.jump_unless(over)
        self._branch(block, below)
        self._shape = rest
        self._define(over)

    def br_table(self, *blocks: Block) -> None:
        """Pop an i32, and branch as `br` to the block with that number (unsigned), to the last one
        if there is none. Raises as `br`."""
        if not blocks:
            raise self._fault("br_table takes one block or more, found none")
        rest = self._effect("br_table", (Type.I32,), (), None, {})
        whole, self._shape = self._shape, rest
        try:
            below = [self._check_branch("br_table", check_open(self, block)) for block in blocks]
        finally:
            self._shape = whole
        detours: list[tuple[Label, Block, Shape]] = []
        labels = []
        for block, left in zip(blocks, below, strict=True):
            if self._extras(block, left):
                label = self._new_label("detour")
                detours.append((label, block, left))
                labels.append(label)
            else:
                labels.append(block.target[0])
        self.jump_table(*labels)
        for label, block, left in detours:
            self._define(label)
            self._shape = rest
            self._branch(block, left)

    def _check_branch(self, what: str, block: Block) -> Shape:
        """The operands below those that a branch carries."""
        types = block.target[1]
        try:
            return self._shape.pop_all(types)
        except MismatchError:
            raise self._mismatch(f"{what} to a {block.kind}", types) from None

    def _extras(self, block: Block, below: Shape) -> int:
        """The operands that a branch drops."""
        return below.depth - block.floor.depth if below.is_reachable else 0

    def _branch(self, block: Block, below: Shape) -> None:
        """Drop the operands between the block's floor and those of a branch; jump."""
        label, types = block.target
        extras = self._extras(block, below)
        floor = self._floor
        self._floor, self._shape = self._bottom, self._shape.plain
        if len(types) > 1 and extras:
            temporaries = [self.local(None, type_) for type_ in types]
            for local in reversed(temporaries):
                self.local_set(local)
            for _ in range(extras):
                self.drop()
            for local in temporaries:
                self.local_get(local)
        else:
            for _ in range(extras):
                if types:
                    self.swap()
                self.drop()
        self.jump(label)
        self._floor = floor
        self._end_path()

    # --- source positions -------------------------------------------------------------------

    def at(self, file: str, line: int, column: int = 1) -> Located:
        """Give the following instructions a position in the source; as a context manager, up to the
        end of the `with` statement."""
        before = self._position
        self._locate(Position(file, line, column))
        return Located(self, before)

    def _locate(self, position: Position | None) -> None:
        self._position = position
        self.code.positions.set(len(self._opcodes), position)

    # --- the end ----------------------------------------------------------------------------

    def _listing(self) -> FunctionListing:
        """The function in its present form. Raises BuildError if it is not complete."""
        for block in self._blocks:
            assert isinstance(block, Block)
            raise BuildError(f"function {self.name!r}: this {block.kind} has no end", block.place)
        for label in self._pending:
            if label.pc is None and label.jumped is not None:
                message = f"function {self.name!r}: label {label.name!r} is never placed"
                raise BuildError(message, label.jumped)
        code = self.code
        opcodes, immediates = list(self._opcodes), list(self._immediates)
        if self._shape.is_reachable:
            results = self.signature.results
            if not self._shape.plain.fits(self._bottom.push_all(results)):
                wanted = f"({' '.join(map(str, results))})"
                found = f"ends with {self._shape}, {wanted} is expected"
                raise BuildError(f"function {self.name!r} {found}", self.declared)
            opcodes.append(_RETURN)
            counts = len(self.signature.parameters), len(results)
            immediates.append(return_immediate(*counts))
        whole = FunctionCode(
            opcodes, immediates, list(code.relocations), dict(code.labels), code.positions.copy()
        )
        listing = FunctionListing.of(self.name, self.signature, tuple(self._local_types), whole)
        listing.clauses = list(self._clauses)
        names = [local.name or "" for local in self.parameters]
        listing.parameters = tuple(names) if any(names) else ()
        return listing


class Generated(Function):
    """A function of a program whose code is generated: nothing is added to it."""

    def __init__(self, program: object, code: FunctionListing, *shared: Any) -> None:
        """`shared`: as the last parameters of a function."""
        signature = code.signature
        super().__init__(program, code.name, signature.parameters, signature.results, *shared)
        self._generated = code

    def _listing(self) -> FunctionListing:
        return self._generated


class Located:
    """The source position of code, for a `with` statement."""

    def __init__(self, function: Function, before: Position | None) -> None:
        self._function, self._before = function, before

    def __enter__(self) -> None:
        """No effect: the position is set already."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._function._locate(self._before)
