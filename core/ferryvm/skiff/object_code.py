# SPDX-License-Identifier: Apache-2.0
"""Code for the forms of references: arrays, structs, strings, tests.

A form that uses an operand several times keeps it in a local without a name. All operands are on
the stack before these locals are set, so the forms of a function share them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.element import Element
from ferryvm.isa.struct import field_immediate
from ferryvm.isa.type import Reference, Type, ValueType
from ferryvm.listing import FunctionListing, Item, Label, Line
from ferryvm.listing import Operand as Immediate
from ferryvm.program import Signature
from ferryvm.skiff import tree
from ferryvm.skiff.array_form import Role
from ferryvm.skiff.number import number_bits
from ferryvm.skiff.object_type import ObjectTypes
from ferryvm.skiff.operator import ELEMENTS
from ferryvm.skiff.tree import Node, StructVerb
from ferryvm.skiff.type import ArrayOf, Named, default, is_subtype

_PIECE = "string literal"
"""The function that stores a part of a literal; no name of Skiff has a space."""
_PIECE_BYTES = 8


class Generator(Protocol):
    """The part of the generator that these forms use."""

    types: ObjectTypes

    def emit(self, node: Node, mnemonic: str, immediate: Immediate = None) -> None:
        """Append an instruction for a node."""

    def constant(self, node: Node, type_: Type, bits: int) -> None:
        """Push a constant."""

    def value(self, node: Node) -> None:
        """Generate code that leaves a node's value."""

    def label(self, kind: str) -> str:
        """A new label's name."""

    def place(self, name: str) -> None:
        """Define a label here."""

    def host(self, node: Node, name: str, type_: ValueType) -> None:
        """Call a host function of one parameter."""

    def temporary(self, type_: ValueType, number: int) -> int:
        """The number of a local without a name; the same one for equal arguments."""


class ObjectCode:
    """Rules for the nodes of references."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.emit, self.constant = generator.emit, generator.constant
        self.arrays: dict[str, Callable[[tree.OnArray], None]] = {
            "make-array": self._make,
            "array": self._literal,
            "array-ref": self._ref,
            "array-set!": self._set,
            "array-length": self._length,
            "array-fill!": self._fill,
            "array-copy": self._copy,
            "array-copy!": self._copy_to,
            "array-append": self._append,
            "array=?": self._equal,
            "index-2d": self._index,
        }

    # Building blocks

    def _values(self, nodes: list[Node]) -> None:
        for node in nodes:
            self.generator.value(node)

    def _i64(self, node: Node, number: int) -> None:
        self.constant(node, Type.I64, number & Type.I64.mask)

    def _on_elements(self, node: tree.OnArray, verb: str) -> None:
        """The instruction of a verb for the node's arrays."""
        element = default(node.element)
        if isinstance(element, Named) and element.name in ELEMENTS:
            self.emit(node, f"array.{verb}_{element.name}")
        else:
            array = self.generator.types.reference(ArrayOf(element))
            self.emit(node, f"array.{verb}_ref", array.number)

    def _is_narrow(self, node: tree.OnArray) -> bool:
        """True if elements are read as i64 and the machine has them as i32."""
        element = default(node.element)
        name = element.name if isinstance(element, Named) else ""
        return name in ELEMENTS and ELEMENTS[name] is Type.I64 and name != "i64"

    def _element(self, node: tree.OnArray, value: Node) -> None:
        """Push a value to store."""
        if self._is_narrow(node) and isinstance(value, tree.Literal):
            bits = number_bits(value.number, Type.I64)
            assert bits is not None, "inference has checked every literal"
            self.constant(value, Type.I32, bits & Type.I32.mask)
            return
        self.generator.value(value)
        if self._is_narrow(node):
            self.emit(node, "i32.wrap_i64")

    def _get_element(self, node: tree.OnArray) -> None:
        """The element for an array and an index on the stack."""
        self._on_elements(node, "get")
        if self._is_narrow(node):
            self._widen(node)

    def _widen(self, node: tree.OnArray) -> None:
        element = default(node.element)
        assert isinstance(element, Named)
        self.emit(node, f"i64.extend_i32_{'u' if element.name[0] == 'u' else 's'}")

    def _pop_into_locals(self, node: Node, *types: ValueType) -> list[int]:
        """Pop the operands on top of the stack into locals: their numbers, the deepest first."""
        numbers = []
        for place, type_ in enumerate(types):
            numbers.append(self.generator.temporary(type_, types[:place].count(type_)))
        for number in reversed(numbers):
            self.emit(node, "local.set", number)
        return numbers

    def _array_type(self, node: tree.OnArray) -> Reference:
        return self.generator.types.reference(ArrayOf(node.element))

    def _stored_type(self, node: tree.OnArray) -> ValueType:
        """The machine's type of a value to store."""
        element = default(node.element)
        if isinstance(element, Named) and element.name in ELEMENTS:
            return Element(element.name).type
        return self.generator.types.reference(element)

    def _get(self, node: Node, *numbers: int) -> None:
        for number in numbers:
            self.emit(node, "local.get", number)

    def _length_of(self, node: Node, number: int) -> None:
        self._get(node, number)
        self.emit(node, "array.length")

    # Arrays

    def on_array(self, node: tree.OnArray) -> None:
        """A form of arrays."""
        if node.form.update:
            self._update(node)
        else:
            self.arrays[node.form.name](node)

    def _update(self, node: tree.OnArray) -> None:
        array, index, *values = node.operands
        self._values([array, index])
        for value in values:
            self._element(node, value)
        self._on_elements(node, node.form.update)
        if node.form.result is Role.NOTHING:
            self.emit(node, "drop")
        elif self._is_narrow(node):
            self._widen(node)

    def _make(self, node: tree.OnArray) -> None:
        length, *value = node.operands
        self.generator.value(length)
        if value:
            self._element(node, value[0])
            self.emit(node, "swap")
        self._on_elements(node, "new" if value else "new_default")

    def _literal(self, node: tree.OnArray) -> None:
        self._i64(node, len(node.operands))
        self._on_elements(node, "new_default")
        for index, value in enumerate(node.operands):
            self.emit(node, "dup")
            self._i64(node, index)
            self._element(node, value)
            self._on_elements(node, "set")

    def _ref(self, node: tree.OnArray) -> None:
        self._values(node.operands)
        self._get_element(node)

    def _set(self, node: tree.OnArray) -> None:
        array, index, value = node.operands
        self._values([array, index])
        self._element(node, value)
        self._on_elements(node, "set")

    def _length(self, node: tree.OnArray) -> None:
        self._values(node.operands)
        self.emit(node, "array.length")

    def _fill(self, node: tree.OnArray) -> None:
        array, value, *range_ = node.operands
        self.generator.value(array)
        self._element(node, value)
        self._values(range_)
        types: list[ValueType] = [self._array_type(node), self._stored_type(node)]
        types += [Type.I64] * len(range_)
        to, what, *ends = self._pop_into_locals(node, *types)
        self._get(node, to)
        self._start(node, ends)
        self._get(node, what)
        self._count(node, to, ends)
        self._on_elements(node, "fill")

    def _start(self, node: Node, ends: list[int]) -> None:
        """Push the first index of a range."""
        if ends:
            self._get(node, ends[0])
        else:
            self._i64(node, 0)

    def _count(self, node: Node, array: int, ends: list[int]) -> None:
        """Push the number of elements of a range in an array."""
        if len(ends) > 1:
            self._get(node, ends[1])
        else:
            self._length_of(node, array)
        if ends:
            self._get(node, ends[0])
            self.emit(node, "i64.sub")

    def _copy(self, node: tree.OnArray) -> None:
        self._values(node.operands)
        types: list[ValueType] = [self._array_type(node)]
        types += [Type.I64] * (len(node.operands) - 1)
        array, *ends = self._pop_into_locals(node, *types)
        count = self.generator.temporary(Type.I64, len(ends))
        self._count(node, array, ends)
        self.emit(node, "local.set", count)
        if ends:  # a wrong range is an index out of bounds, and no array that is too large
            legal = self.generator.label("legal")
            self._get(node, count)
            self._length_of(node, array)
            self.emit(node, "i64.gt_u")
            self.emit(node, "jump_unless", legal)
            self._get(node, array, count)
            self._on_elements(node, "get")
            self.emit(node, "drop")
            self.generator.place(legal)
        self._get(node, count)
        self._on_elements(node, "new_default")
        self.emit(node, "dup")
        self._i64(node, 0)
        self._get(node, array)
        self._start(node, ends)
        self._get(node, count)
        self._on_elements(node, "copy")

    def _copy_to(self, node: tree.OnArray) -> None:
        self._values(node.operands)
        types: list[ValueType] = [self._array_type(node)]
        types += [Type.I64] * (len(node.operands) - 3)
        array, *ends = self._pop_into_locals(node, *types)
        self._get(node, array)
        self._start(node, ends)
        self._count(node, array, ends)
        self._on_elements(node, "copy")

    def _append(self, node: tree.OnArray) -> None:
        self._values(node.operands)
        arrays = self._pop_into_locals(node, *(self._array_type(node) for _ in node.operands))
        at = self.generator.temporary(Type.I64, 0)
        self._length_of(node, arrays[0])
        for array in arrays[1:]:
            self._length_of(node, array)
            self.emit(node, "i64.add")
        self._on_elements(node, "new_default")
        self._i64(node, 0)
        self.emit(node, "local.set", at)
        for array in arrays:
            self.emit(node, "dup")
            self._get(node, at, array)
            self._i64(node, 0)
            self._length_of(node, array)
            self._on_elements(node, "copy")
            if array != arrays[-1]:
                self._get(node, at)
                self._length_of(node, array)
                self.emit(node, "i64.add")
                self.emit(node, "local.set", at)

    def _equal(self, node: tree.OnArray) -> None:
        label, place = self.generator.label, self.generator.place
        differ, top, test, end = label("differ"), label("top"), label("test"), label("end")
        self._values(node.operands)
        type_ = self._array_type(node)
        left, right = self._pop_into_locals(node, type_, type_)
        self._length_of(node, left)
        self._length_of(node, right)
        self.emit(node, "i64.ne")
        self.emit(node, "jump_if", differ)
        at = self._from_zero(node, test)
        place(top)
        for array in (left, right):
            self._get(node, array, at)
            self._on_elements(node, "get")
        stored = self._stored_type(node)
        self.emit(node, "ref.eq" if isinstance(stored, Reference) else f"{stored}.eq")
        self.emit(node, "jump_unless", differ)
        self._increment(node, at)
        place(test)
        self._until(node, at, left, top)
        self.constant(node, Type.I32, 1)
        self.emit(node, "jump", end)
        place(differ)
        self.constant(node, Type.I32, 0)
        place(end)

    def _index(self, node: tree.OnArray) -> None:
        row, column, rows, columns = node.operands
        value = self.generator.value
        value(row)
        if not all(isinstance(each, tree.Get | tree.Literal) for each in (column, rows, columns)):
            self._values([column, rows, columns])
            saved = self._pop_into_locals(node, Type.I64, Type.I64, Type.I64)
            pushes = [functools.partial(self._get, node, each) for each in saved]
        else:
            pushes = [functools.partial(value, each) for each in (column, rows, columns)]
        push_column, push_rows, push_columns = pushes
        push_rows()
        self.emit(node, "array.index")
        push_columns()
        self.emit(node, "i64.mul")
        push_column()
        push_columns()
        self.emit(node, "array.index")
        self.emit(node, "i64.add")

    # Loops over an array

    def _from_zero(self, node: Node, test: str) -> int:
        """Begin to count in a local; its number."""
        at = self.generator.temporary(Type.I64, 0)
        self._i64(node, 0)
        self.emit(node, "local.set", at)
        self.emit(node, "jump", test)
        return at

    def _increment(self, node: Node, at: int) -> None:
        self._get(node, at)
        self._i64(node, 1)
        self.emit(node, "i64.add")
        self.emit(node, "local.set", at)

    def _until(self, node: Node, at: int, array: int, top: str) -> None:
        """Continue at the top while the index is one of the array."""
        self._get(node, at)
        self._length_of(node, array)
        self.emit(node, "i64.lt_u")
        self.emit(node, "jump_if", top)

    # Structs and references of any type

    def on_struct(self, node: tree.OnStruct) -> None:
        """A struct is made, or one of its fields read or set."""
        operation = node.operation
        self._values(node.operands)
        number = self.generator.types.reference(operation.struct).number
        if operation.verb is StructVerb.MAKE:
            self.emit(node, "struct.new", number)
            return
        verb = "get" if operation.verb is StructVerb.GET else "set"
        self.emit(node, f"struct.{verb}", field_immediate(number, operation.field))

    def null(self, node: tree.Null) -> None:
        """The null reference."""
        self.emit(node, "ref.null", self.generator.types.reference(node.type).number)

    def same(self, node: tree.Same) -> None:
        """`eq?` and `null?`."""
        self._values(node.operands)
        self.emit(node, "ref.eq" if len(node.operands) == 2 else "ref.is_null")

    def type_test(self, node: tree.TypeTest) -> None:
        """`is?`, and the predicate of a struct."""
        self.generator.value(node.operand)
        self.emit(node, "ref.test", self.generator.types.reference(node.of).number)

    def cast(self, node: tree.Cast) -> None:
        """`cast`; no instruction if the type says enough."""
        self.generator.value(node.operand)
        if not is_subtype(default(node.operand.type), default(node.to)):
            self.emit(node, "ref.cast", self.generator.types.reference(node.to).number)

    # Strings

    def text(self, node: tree.Text) -> None:
        """A string literal."""
        self.emit(node, "static.get", node.variable.number)

    def make_texts(self, texts: list[tree.Text]) -> None:
        """Make the arrays of string literals, unless an earlier text of the session has."""
        for node in texts:
            made = self.generator.label("made")
            self.text(node)
            self.emit(node, "ref.is_null")
            self.emit(node, "jump_unless", made)
            self._i64(node, len(node.content))
            self.emit(node, "array.new_default_u8")
            for start in range(0, len(node.content), _PIECE_BYTES):
                piece = node.content[start : start + _PIECE_BYTES]
                self.emit(node, "dup")
                self._i64(node, start)
                self._i64(node, int.from_bytes(piece, "little"))
                self._i64(node, len(piece))
                self.emit(node, "call", _PIECE)
            self.emit(node, "static.set", node.variable.number)
            self.generator.place(made)

    def write(self, node: Node, value: Node, has_line_end: bool) -> None:
        """Write the bytes of a string; null traps here, as in all forms that read an array."""
        self.generator.value(value)
        self.emit(node, "dup")
        self.emit(node, "array.length")
        self.emit(node, "drop")
        name = "print_string" if has_line_end else "write_string"
        self.generator.host(node, name, Element.U8.array)

    def write_string(self, node: tree.WriteString) -> None:
        """`write-string!`."""
        self.write(node, node.value, has_line_end=False)


def piece_function(texts: list[tree.Text]) -> FunctionListing:
    """The function that stores the bytes of an i64, the lowest first: array, index, bytes,
    count."""
    position = texts[0].place.position
    items: list[Item] = []

    def add(mnemonic: str, immediate: Immediate = None) -> None:
        items.append(Line(BY_MNEMONIC[mnemonic], immediate, position))

    def change(number: int, by: int, mnemonic: str) -> None:
        add("local.get", number)
        add("i64.const", by)
        add(mnemonic)
        add("local.set", number)

    items.append(Label("top"))
    for number in (0, 1, 2):
        add("local.get", number)
    add("i32.wrap_i64")
    add("array.set_u8")
    change(1, 1, "i64.add")
    change(2, 8, "i64.shr_u")
    change(3, 1, "i64.sub")
    add("local.get", 3)
    add("i64.eqz")
    add("jump_unless", "top")
    add("return", 0)
    signature = Signature((Element.U8.array, Type.I64, Type.I64, Type.I64))
    return FunctionListing(_PIECE, signature, items=items)
