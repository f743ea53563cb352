# SPDX-License-Identifier: Apache-2.0
"""A program under construction: functions, and the tables that they share."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Mapping, Sequence

from ferryvm.build.fault import BuildError
from ferryvm.build.function import Function, Generated, Parameters, types_of
from ferryvm.build.method import float_bits
from ferryvm.build.object_type import Array, ObjectTypes, OperandType, Struct
from ferryvm.build.shape import bottom
from ferryvm.build.symbol import Host, Static, Tag
from ferryvm.garbage import collector_suspended
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.type import Reference, ValueType
from ferryvm.listing import FunctionCode, FunctionListing, Listing
from ferryvm.listing.encode import encode
from ferryvm.program import MAX_TAG_VALUES, Data, HostImport, Signature, record_types
from ferryvm.program import Program as Encoded
from ferryvm.program import Static as EncodedStatic
from ferryvm.program import Tag as EncodedTag
from ferryvm.verify.structure import MAX_DATA_END

_FIRST_EFFECT = 1 << 16
"""The first number of effects of calls, above all opcodes."""


class Program:
    """A program made of Python objects.

    It may be built at any time, and may grow afterwards: programs built before do not change.
    """

    def __init__(self) -> None:
        self._types = ObjectTypes()
        self._bottom = bottom(self._types)
        self._effects: dict[Signature, int] = {}
        self._shared = self._bottom, self._effect, self._record, self._generate
        """Parts of the program that all functions use."""
        self._functions: dict[str, Function] = {}
        self._statics: list[EncodedStatic] = []
        self._data: list[Data] = []
        self._extents: list[tuple[int, int]] = []
        """Start and end of the bytes of data, in order."""
        self._table: list[str] = []
        self._hosts: dict[str, HostImport] = {}
        self._tags: dict[str, EncodedTag] = {}
        self._has_records = False
        self._exports: dict[str, str] = {}
        self._start: Function | None = None

    def _effect(self, signature: Signature) -> int:
        """A number for the effect of calling a function of that signature."""
        return self._effects.setdefault(signature, _FIRST_EFFECT + len(self._effects))

    def function(
        self, name: str, parameters: Parameters = (), results: Sequence[OperandType] = ()
    ) -> Function:
        """A new function, whose code may be added at any time; its name must be new."""
        _check_name("function", name, self._functions)
        function = self._functions[name] = Function(self, name, parameters, results, *self._shared)
        return function

    def _generate(self, name: str, make: Callable[[], Sequence[FunctionListing]]) -> Function:
        """The function of that name, which is generated at its first use, with the others that it
        needs."""
        if name not in self._functions:
            for code in make():
                if code.name not in self._functions:
                    self._functions[code.name] = Generated(self, code, *self._shared)
        return self._functions[name]

    def struct(
        self,
        name: str,
        fields: Mapping[str, OperandType] | None = None,
        extends: Struct | None = None,
    ) -> Struct:
        """A new struct type; its fields are those of the struct that it extends, then these.

        `Struct.field` adds fields that refer to the struct itself. Raises BuildError."""
        return self._types.struct(name, fields or {}, extends)

    def array(self, element: OperandType) -> Array:
        """The type of arrays of references of a type. Raises BuildError for numbers."""
        return self._types.array(element)

    def static(self, name: str, type: OperandType, value: float = 0) -> Static:
        """A new variable of the program, with its initial value; that of a reference is null."""
        (checked,) = types_of(f"static {name!r}", [type], self._types)
        bits = _bits(f"static {name!r}", checked, value)
        self._statics.append(EncodedStatic(name, checked, bits))
        return Static(self, name, checked, len(self._statics) - 1)

    def host(
        self, name: str, parameters: Sequence[OperandType] = (), results: Sequence[OperandType] = ()
    ) -> Host:
        """A host function that the program calls by `f.host`, with at most one result.

        Raises BuildError for a duplicate name.
        """
        _check_name("host import", name, self._hosts)
        what = f"host import {name!r}"
        signature = Signature(
            types_of(what, parameters, self._types), types_of(what, results, self._types, 1)
        )
        self._hosts[name] = HostImport(name, signature)
        return Host(self, name, signature, self._effect(signature))

    def tag(self, name: str, parameters: Sequence[OperandType] = ()) -> Tag:
        """A new kind of exception, with the types of its values.

        Raises BuildError for a duplicate name, and for more references than code that catches
        records has been made for."""
        _check_name("tag", name, self._tags)
        types = types_of(f"tag {name!r}", parameters, self._types, MAX_TAG_VALUES)
        made = EncodedTag(name, types)
        before = record_types(self._tags.values())
        if self._has_records and record_types((*self._tags.values(), made)) != before:
            raise BuildError(
                f"tag {name!r} has more references than any before it; it has to be declared before "
                "code that catches records"
            )
        self._tags[name] = made
        return Tag(self, name, types)

    def _record(self) -> tuple[ValueType, ...]:
        """Types of the record of an exception, for code that catches one."""
        self._has_records = True
        return record_types(self._tags.values())

    def data(self, address: int, content: bytes) -> None:
        """Initial bytes of the heap, from `address` on. Raises BuildError if they overlap
        others."""
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise BuildError(f"data at {address!r}: bytes are expected, found {content!r}")
        start = _in_range("address of data", address, 0, MAX_DATA_END - len(content) + 1)
        end = start + len(content)
        at = bisect.bisect_left(self._extents, (start, end))
        for there, past in self._extents[max(0, at - 1) : at + 1]:
            if start < past and there < end:
                found = f"{past - there} bytes are at {there} already"
                raise BuildError(f"{len(content)} bytes of data at {start}: {found}")
        if content:
            self._extents.insert(at, (start, end))
        self._data.append(Data(start, bytes(content)))

    def table(self, *functions: Function) -> int:
        """Add functions to the table of `call_indirect`; the number of the first."""
        first = len(self._table)
        self._table += [self._own("table", function).name for function in functions]
        return first

    def export(self, function: Function, name: str | None = None) -> None:
        """Make a function callable from outside, by its name or another one."""
        own = self._own("export", function).name
        name = own if name is None else name
        _check_name("export", name, self._exports)
        self._exports[name] = own

    def start(self, function: Function) -> None:
        """Select the function that the program calls at its start; the program halts when it
        returns.

        It takes no parameters; the last one of its results is the program's value. A program
        without a start function halts at once: it exists for its exports. The last call counts:
        each input of a session has a start function of its own. Raises BuildError.
        """
        own = self._own("start", function)
        if own.signature.parameters:
            raise BuildError(f"start takes a function without parameters, found {own!r}")
        self._start = function

    def _own(self, what: str, function: object) -> Function:
        if isinstance(function, Function) and function.program is self:
            return function
        raise BuildError(f"{what} takes a function of this program, found {function!r}")

    def listing(self) -> Listing:
        """The program as a listing, which a front end returns. Raises BuildError for an incomplete
        function."""
        return Listing(
            functions=[self._entry(), *(each._listing() for each in self._functions.values())],
            statics=list(self._statics),
            data=list(self._data),
            table=list(self._table),
            hosts=list(self._hosts.values()),
            exports=dict(self._exports),
            tags=list(self._tags.values()),
            types=self._types.encoded(),
        )

    def _entry(self) -> FunctionListing:
        """Function 0: it calls the start function, if there is one, and halts."""
        name = "start"
        while name in self._functions:
            name += "_"
        code = FunctionCode()
        if self._start is not None:
            code.relocations.append((0, self._start.name))
            code.opcodes.append(BY_MNEMONIC["call"].opcode)
        code.opcodes.append(BY_MNEMONIC["halt"].opcode)
        code.immediates += [0] * len(code.opcodes)
        return FunctionListing.of(name, Signature(), (), code)

    def build(self, optimize: bool = False) -> Encoded:
        """The program, not verified yet; `optimize`: after the peephole. Raises as `listing`."""
        with collector_suspended():
            return encode(self.listing(), optimize)


def _check_name(kind: str, name: object, known: Mapping[str, object]) -> None:
    if not isinstance(name, str):
        raise BuildError(f"the name of a {kind} is a str, found {name!r}")
    if name in known:
        raise BuildError(f"there is already a {kind} {name!r}")


def _in_range(what: str, value: object, low: int, high: int) -> int:
    """The number, which must be at least `low` and below `high`."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what is none raises
    except TypeError:
        raise BuildError(f"{what}: an int is expected, found {value!r}") from None
    if not low <= number < high:
        raise BuildError(f"{what}: {number} is out of range, {low} to {high - 1} are allowed")
    return number


def _bits(what: str, type_: ValueType, value: float) -> int:
    if isinstance(type_, Reference):
        return _in_range(f"{what}, which starts as null", value, 0, 1)
    if not type_.is_float:
        low = -(1 << (type_.bits - 1))
        return _in_range(what, value, low, type_.mask + 1) & type_.mask
    if isinstance(value, (int, float)):
        return float_bits(type_, float(value))
    raise BuildError(f"{what}: a float is expected, found {value!r}")
