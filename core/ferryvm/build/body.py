# SPDX-License-Identifier: Apache-2.0
"""The code of a function under construction: arrays, and the shape of the operand stack.

The methods of instructions (`ferryvm.build.method`) check and append; this module handles faults
and first occurrences. A refused instruction leaves the body unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from ferryvm.build.fault import BuildError, caller
from ferryvm.build.object_type import Array, Field, ObjectTypes, Struct
from ferryvm.build.shape import Kind, MismatchError, Shape, Special
from ferryvm.build.symbol import Host, Label, Local, Static, Tag
from ferryvm.errors import Position, suggestion
from ferryvm.isa import Instruction
from ferryvm.isa.table import Operand
from ferryvm.isa.type import I64, LAUNCH, Reference, ValueType
from ferryvm.listing import ClauseListing, FunctionCode, FunctionListing
from ferryvm.program import Signature


def method_name(row: Instruction) -> str:
    """The name of an instruction's method: `i64.add` is `i64_add`, `return` is `return_`."""
    import keyword

    name = row.mnemonic.replace(".", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


Generate = Callable[[str, Callable[[], Sequence[FunctionListing]]], "Body"]
"""Finds a generated function by its name, or generates it with those that it needs."""


class Body:
    """Code under construction, with the operand stack at its end."""

    _record: Callable[[], tuple[ValueType, ...]]
    """Types of the record of an exception, for code that catches one."""
    _generate: Generate

    def __init__(
        self, program: object, name: str, signature: Signature, bottom: Shape, effect: int
    ) -> None:
        self.program, self.name, self.signature = program, name, signature
        self.effect = effect
        """A number for the effect of calling it; equal signatures have equal ones."""
        self.declared = caller()
        self.code = FunctionCode()
        self._opcodes, self._immediates = self.code.opcodes, self.code.immediates
        self._bottom = self._floor = self._shape = bottom
        """`_floor`: operands that the innermost block cannot pop; `_shape`: the operand stack."""
        self.locals: dict[str, Local] = {}
        """The named parameters and locals."""
        self._label_names: set[str] = set()
        self._blocks: list[object] = []
        """The open blocks, innermost last."""
        self._clauses: list[ClauseListing] = []
        self._position: Position | None = None

    # --- faults -----------------------------------------------------------------------------

    def _fault(self, message: str) -> BuildError:
        where = f" ({self._position})" if self._position is not None else ""
        return BuildError(f"function {self.name!r}{where}: {message}")

    def _mismatch(self, what: str, wanted: Iterable[object]) -> BuildError:
        shown = " ".join(map(str, wanted))
        below = ""
        if self._floor is not self._bottom:
            below = ", above what the block cannot take"
        return self._fault(f"{what} takes ({shown}), the stack has {self._shape}{below}")

    def _wrong(self, row: Instruction, wanted: str, found: object) -> BuildError:
        shown = repr(found)
        if len(shown) > 80:
            shown = f"{shown[:77]}..."
        return self._fault(f"{method_name(row)} takes {wanted}, found {shown}")

    # --- the operand stack ------------------------------------------------------------------

    def _stepped(self, row: Instruction, key: object, bound: ValueType | None = None) -> Shape:
        """The shape after an instruction; `bound` is its open type if the immediate determines
        that.

        `key`: the key under which the result is cached.
        """
        types: dict[str, Kind] = {} if bound is None else {"t": bound}
        return self._effect(method_name(row), row.pops, row.pushes, key, types)

    def _append(
        self,
        row: Instruction,
        immediate: int,
        bound: dict[str, Kind],
        fields: Sequence[ValueType] = (),
    ) -> None:
        """Append an instruction whose immediate is a type or a field.

        `bound`: its open types; `fields`: types of the operands that depend on the immediate."""
        key = row.opcode, immediate
        try:
            self._shape = self._shape.after[key]
        except KeyError:
            pops = (*fields, *row.pops)
            self._shape = self._effect(method_name(row), pops, row.pushes, key, bound)
        self._opcodes.append(row.opcode)
        self._immediates.append(immediate)

    def _called(self, row: Instruction, signature: Signature, key: object) -> Shape:
        """The shape after a call of a function of that signature."""
        pops = (*signature.parameters, *row.pops)
        return self._effect(method_name(row), pops, signature.results, key, {})

    def _effect(
        self,
        what: str,
        pops: Sequence[Operand],
        pushes: Sequence[Operand],
        key: object,
        bound: dict[str, Kind],
    ) -> Shape:
        shape = self._shape
        wanted = [bound.get(str(operand), operand) for operand in pops]
        try:
            after = shape.applied(pops, pushes, bound)
        except MismatchError:
            raise self._mismatch(what, wanted) from None
        if key is not None:
            shape.after[key] = after
        return after

    def _pushed_item(self, row: Instruction, signature: Signature) -> Shape:
        """The shape after a launch has pushed an item for a function of that signature."""
        parameters = tuple(signature.parameters)
        if parameters[:1] != (I64,) or signature.results:
            raise self._fault(
                f"{method_name(row)} takes a function (i64 ...) -> (), found {signature}"
            )
        below = (*parameters[1:], I64, I64, LAUNCH)
        return self._effect(method_name(row), below, (*below, *parameters), None, {})

    def _end_path(self) -> None:
        """Record that the next instruction is not a successor."""
        self._shape = self._floor.push(Special.ANYTHING)

    @property
    def stack(self) -> tuple[ValueType, ...]:
        """Types of the operands that the innermost block has at the end of the code, deepest
        first."""
        found = []
        shape = self._shape
        while not isinstance(shape.kind, Special):
            found.append(shape.kind)
            shape = shape.below
        return tuple(reversed(found))

    @property
    def is_reachable(self) -> bool:
        """True if the end of the code is reachable."""
        return self._shape.is_reachable

    # --- immediates -------------------------------------------------------------------------

    def _local(self, row: Instruction, local: object) -> Local:
        """The local that an operand denotes: its object, or its name."""
        if isinstance(local, str):
            if local in self.locals:
                return self.locals[local]
            hint = suggestion(local, self.locals)
            raise self._fault(f"{method_name(row)}: no local {local!r}{hint}")
        if not isinstance(local, Local):
            raise self._wrong(row, "a local, or its name", local)
        if local.function is not self:
            raise self._wrong(row, "a local of this function", local)
        return local

    def _static(self, row: Instruction, static: object) -> Static:
        if isinstance(static, Static) and static.program is self.program:
            return static
        raise self._wrong(row, "a static of this program", static)

    def _host(self, row: Instruction, host: object) -> Host:
        if isinstance(host, Host) and host.program is self.program:
            return host
        raise self._wrong(row, "a host import of this program", host)

    def _callee(self, row: Instruction, function: object) -> Body:
        if isinstance(function, Body) and function.program is self.program:
            return function
        wanted = "a function of this program"
        if isinstance(function, Host):
            wanted += " (host calls a host function)"
        raise self._wrong(row, wanted, function)

    @property
    def _types(self) -> ObjectTypes:
        return self._bottom.types

    def _reference(self, row: Instruction, type_: object) -> Reference:
        found = self._types.find(type_)
        if isinstance(found, Reference):
            return found
        raise self._wrong(row, "a reference type of this program", type_)

    def _struct(self, row: Instruction, struct: object) -> Struct:
        if isinstance(struct, Struct) and struct.types is self._types:
            return struct
        raise self._wrong(row, "a struct of this program", struct)

    def _array(self, row: Instruction, array: object) -> Array:
        if isinstance(array, Array) and array.types is self._types:
            return array
        raise self._wrong(row, "a type of arrays of references of this program", array)

    def _field(self, row: Instruction, field: object) -> Field:
        if isinstance(field, Field) and field.struct.types is self._types:
            return field
        raise self._wrong(row, "a field of a struct of this program, as node['next']", field)

    def _tag(self, row: str, tag: object) -> Tag:
        if isinstance(tag, Tag) and tag.program is self.program:
            return tag
        raise self._fault(f"{row} takes a tag of this program, found {tag!r}")

    def _out_of_range(self, row: Instruction, value: object, low: int, high: int) -> NoReturn:
        name = method_name(row)
        raise self._fault(f"{name}: {value} is out of range, {low} to {high} are allowed")

    # --- labels -----------------------------------------------------------------------------

    def _target(self, row: Instruction, label: object) -> Label:
        if isinstance(label, Label) and label.function is self:
            return label
        wanted = "a label of this function"
        if label.__class__.__name__ == "Block":
            wanted += " (br takes a block)"
        raise self._wrong(row, wanted, label)

    def _go(self, labels: Sequence[Label], shape: Shape) -> None:
        """Record a jump to one of the labels with that stack."""
        joined = [self._joined(label, shape.plain) for label in labels if shape.is_reachable]
        for number, label in enumerate(labels):
            if label.pc is None and label.jumped is None:
                label.jumped = caller()
            if shape.is_reachable:
                label.shape, label.is_reached = joined[number], True

    def _joined(self, label: Label, shape: Shape) -> Shape:
        """The operands at a label that control comes to with these, both without floors."""
        if label.shape is None or label.shape is shape:
            return shape
        joined = label.shape.join(shape)
        is_open = label.pc is None and not label.is_settled
        if joined is None or not (is_open or joined is label.shape):
            found = f"expects {label.shape}, this jump comes with {shape}"
            raise self._fault(f"label {label.name!r} {found}")
        return joined

    def _named_label(self, name: str) -> Label:
        self._label_names.add(name)
        return Label(self, name)

    def _new_label(self, stem: str) -> Label:
        """A label with a new name."""
        number = len(self._label_names)
        while (name := f"{stem}.{number}") in self._label_names:
            number += 1
        return self._named_label(name)

    def _define(self, label: Label) -> None:
        """Define the label before the next instruction."""
        label.pc = self.code.labels[label.name] = len(self._opcodes)

    def _refer(self, label: Label) -> None:
        """Make the label the next instruction's immediate."""
        self.code.relocations.append((len(self._opcodes), label.name))
