# SPDX-License-Identifier: Apache-2.0
"""Code for the expressions of a function, by the kinds that its variables have at a place."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ferryvm.build import Function, Local
from ferryvm.isa.type import F64, I32
from ferryvm.python.codegen import (
    array_code,
    comparison,
    complex_code,
    function_value,
    library,
    list_code,
    list_operator,
    list_slice,
    operation,
    sequence_comparison,
    text_code,
    text_method,
    tuple_code,
)
from ferryvm.python.codegen.array_creation import created_kind, is_creating, push_created
from ferryvm.python.codegen.code import Code, Functions, Shared
from ferryvm.python.codegen.either_code import has_either, name_of_item
from ferryvm.python.codegen.known import compared_length, is_instance, known_integer
from ferryvm.python.control_flow.graph import Captured, IsInstance, Known
from ferryvm.python.definition.site import EXCEPTIONS
from ferryvm.python.definition.source import Source
from ferryvm.python.fault import (
    EitherItemError,
    LargeIntegerError,
    NotCompilableError,
    UnknownItemsError,
)
from ferryvm.python.value.kind import (
    INT,
    Array,
    Character,
    Complex,
    Constant,
    Kind,
    List,
    Number,
    Scalar,
    Text,
    Tuple,
    text_of,
)
from ferryvm.python.value.value_kind import MisfitError, constant_kind

_NAMES = {
    ast.JoinedStr: "an f-string other than in print and raise",
    ast.Slice: "a slice here",
    ast.Starred: "a starred expression here",
}
"""Expressions that are compiled in other places alone."""


class Body(Code):
    """Code of the expressions of one function."""

    def __init__(
        self, shared: Shared, source: Source, function: Function, functions: Functions
    ) -> None:
        super().__init__(shared, source, function)
        self._functions = functions

    def hosted(
        self, function: Callable[..., Any], kinds: tuple[Kind, ...], target: Kind
    ) -> Function:
        """The compiled form of a function that takes these kinds and returns one."""
        assert isinstance(function, types.FunctionType)
        return self._functions.compiled(
            function, kinds, self.caught, target, for_=self.node
        ).function

    # --- kinds ------------------------------------------------------------------------------

    def kind(self, node: ast.expr) -> Kind:
        """The kind of an expression's value. Raises NotCompilableError."""
        match node:
            case Known() | ast.Constant():
                return self._constant_kind(node, node.value)
            case ast.Name():
                found = self.env.get(node.id)
                if found is None:
                    raise NotCompilableError(node, f"{node.id} is not assigned on a path to here")
                return found
            case ast.BinOp():
                left, right = self.kind(node.left), self.kind(node.right)
                if isinstance(left, List) or isinstance(right, List):
                    return list_operator.result_kind(self, node, left, right)
                return operation.binary_kind(node, node.op, left, right)
            case ast.UnaryOp():
                return operation.unary_kind(node, self.kind(node.operand))
            case ast.Compare():
                left, right = self.kind(node.left), self.kind(node.comparators[0])
                comparison.check(self, node, left, right)
                if sequence_comparison.is_sequence(left):
                    return Number(bool)
                has_scalar = comparison.is_of_scalars(left, right)
                is_identity = isinstance(node.ops[0], ast.Is | ast.IsNot)
                return Scalar("bool") if has_scalar and not is_identity else Number(bool)
            case ast.Tuple():
                return Tuple(tuple(self.kind(item) for item in node.elts))
            case ast.List():
                return list_code.display_kind(self, node)
            case IsInstance():
                return Number(bool)
            case Captured():
                return function_value.captured_kind(self, node)
            case ast.Subscript():
                return self._item_kind(node)
            case ast.Attribute():
                return self._attribute_kind(node)
            case ast.Call() if is_creating(node):
                return created_kind(self, node, node.func.value)  # type: ignore[attr-defined]  # `Known`
            case ast.Call():
                kinds = [self.kind(argument) for argument in node.args]
                function = node.func.value  # type: ignore[attr-defined]  # `Known`
                return library.result_kind(node, function, kinds)
        raise NotCompilableError(node, f"cannot compile {_NAMES.get(type(node), 'this here')}")

    def _constant_kind(self, node: ast.AST, value: object) -> Kind:
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            raise LargeIntegerError(node, "the integer does not fit into 64 bits")
        try:
            return constant_kind(value)
        except MisfitError as misfit:
            raise NotCompilableError(node, str(misfit)) from None

    def _item_kind(self, node: ast.Subscript) -> Kind:
        of = self.kind(node.value)
        if isinstance(of, Tuple) and isinstance(node.slice, ast.Slice):
            return Tuple(tuple(of.items[n] for n in list_slice.of_tuple(node.slice, of)))
        if isinstance(of, Tuple):
            number = known_integer(node.slice)
            if number is None:
                return tuple_code.item_kind(self, node, of)
            if not -len(of.items) <= number < len(of.items):
                raise NotCompilableError(
                    node, f"tuple index {number} out of range, it has {len(of.items)}"
                )
            return of.items[number]
        if isinstance(of, List):
            if of.item is None:
                raise UnknownItemsError(node.value, "the list is empty here")
            if isinstance(node.slice, ast.Slice):
                list_slice.check(self, node.slice)
                return of
            list_code.check_index(self, node.slice)
            if has_either(of.item):
                found = self.env.get(name_of_item(node))
                if found is None:
                    raise EitherItemError(node)
                return found
            return of.item
        if isinstance(of, Array):
            return array_code.item_kind(self, node, of)
        text = text_of(of)
        if text is not None:
            return text_code.item_kind(self, node, text)
        raise NotCompilableError(node, f"cannot index {of}")

    def _attribute_kind(self, node: ast.Attribute) -> Kind:
        of = self.kind(node.value)
        if isinstance(of, Array):
            if node.attr == "shape":
                return Tuple((INT,) * of.dimensions)
            if node.attr in ("size", "ndim"):
                return INT
            if node.attr == "dtype":
                return Constant(np.dtype(of.dtype))
        found = complex_code.attribute_kind(of, node.attr)
        if found is not None:
            return found
        hint = "; pass a.T.copy(), or exchange the indices" if node.attr == "T" else ""
        raise NotCompilableError(node, f"cannot compile .{node.attr} of {of}{hint}")

    # --- values -----------------------------------------------------------------------------

    def push(self, node: ast.expr) -> Kind:
        """Push the value of an expression. Raises NotCompilableError."""
        match node:
            case Known() | ast.Constant():
                kind = self._constant_kind(node, node.value)
                self._push_constant(kind, node.value)
                return kind
            case ast.Name():
                kind = self.kind(node)
                self.get(node.id, kind)
                return kind
            case ast.BinOp():
                kind = self.kind(node)
                if isinstance(kind, List):
                    list_operator.push(self, node, kind)
                elif isinstance(kind, Text):
                    text_method.push_sum(self, node, kind)
                else:
                    operation.binary(self, node)
                return kind
            case ast.UnaryOp():
                return operation.unary(self, node)
            case ast.Compare():
                return comparison.compare(self, node)
            case ast.Tuple():
                return Tuple(tuple(self.push(item) for item in node.elts))
            case IsInstance():
                self._push_test(node)
                return Number(bool)
            case Captured():
                return function_value.push_captured(self, node)
            case ast.List():
                made = list_code.display_kind(self, node)
                list_code.display(self, node, made)
                return made
            case ast.Subscript():
                return self._push_item(node)
            case ast.Attribute():
                return self._push_attribute(node)
            case ast.Call() if is_creating(node):
                return push_created(self, node, node.func.value)  # type: ignore[attr-defined]  # `Known`
            case ast.Call():
                kind = self.kind(node)
                library.call(self, node)
                return kind
        raise NotCompilableError(node, f"cannot compile {_NAMES.get(type(node), 'this here')}")

    def push_as(self, node: ast.expr, kind: Kind) -> None:
        """Push the value of an expression, converted as operators do."""
        if self._push_literal(node, kind):
            return
        found = self.push(node)
        operation.convert(self, node, found, kind)

    def _push_literal(self, node: ast.expr, kind: Kind) -> bool:
        """Push a number that is written out as another kind; False if it is none."""
        known = node.value if isinstance(node, Known | ast.Constant) else None
        if type(known) not in (int, float) or not isinstance(known, int | float):
            return False
        if kind.slots == (F64,) and (isinstance(known, float) or abs(known) <= operation.EXACT):
            self.f.f64_const(float(known))
            return True
        if kind.slots != (I32,) or not isinstance(kind, Scalar) or isinstance(known, float):
            return False
        if kind.dtype == "bool":
            return False
        info = np.iinfo(kind.dtype)
        if not info.min <= known <= info.max:
            raise NotCompilableError(node, f"Python integer {known} out of bounds for {kind.dtype}")
        self.f.i32_const(known - (known >> 31 << 32))
        return True

    def push_converted(self, node: ast.expr, kind: Kind) -> None:
        """Push the value of an expression as an element of an array of results: the items of a
        tuple by themselves."""
        if isinstance(kind, Tuple) and isinstance(node, ast.Tuple):
            for item, each in zip(kind.items, node.elts, strict=True):
                self.push_converted(each, item)
        elif self.kind(node) == kind:
            self.push(node)
        else:
            self.push_as(node, kind)

    def _push_test(self, node: IsInstance) -> None:
        """Push if an exception is of one of some types: its number is one of theirs."""
        f, kind = self.f, self.env[node.name]
        number = self.locals(node.name, kind)[1]
        f.i32_const(0)
        for each, type_ in enumerate(EXCEPTIONS):
            if issubclass(type_, node.clause.types):
                f.local_get(number)
                f.i64_const(each)
                f.i64_eq()
                f.i32_or()

    def slots(self, node: ast.expr) -> list[Local]:
        """Locals with the slots of an expression's value: those of a variable, if it is one."""
        if isinstance(node, ast.Name):
            return self.locals(node.id, self.kind(node))
        kind = self.push(node)
        found = self.locals(f"%slots {len(self.all_locals)}", kind)
        for local in reversed(found):
            self.f.local_set(local)
        return found

    def push_slot(self, node: ast.expr, number: int) -> None:
        """Push one slot of an expression's value."""
        if isinstance(node, Known) and isinstance(node.value, np.ndarray) and number:
            self.f.i64_const(node.value.shape[number - 1])
        else:
            self.f.local_get(self.slots(node)[number])

    def push_condition(self, node: ast.expr) -> None:
        """Push an expression as a condition, an i32."""
        kind = self.push(node)
        operation.boolean(self, node, kind)

    def known_condition(self, node: ast.expr) -> bool | None:
        """The boolean value of an expression, if kinds determine it."""
        if isinstance(node, Known | ast.Constant):
            return bool(node.value)
        if isinstance(node, IsInstance):
            if node.clause.is_observer:  # CPython goes on there
                return False
            return True if BaseException in node.clause.types else None
        if isinstance(node, ast.Compare):
            left, right = self.kind(node.left), self.kind(node.comparators[0])
            known = comparison.known_comparison(node, left, right)
            return compared_length(node, self.kind) if known is None else known
        if isinstance(node, ast.Call):
            known = is_instance(node, self.kind(node.args[0]) if node.args else None)
            if known is not None:
                return known
        kind = self.kind(node)
        if isinstance(kind, Constant):
            return bool(kind.value)
        if isinstance(kind, Character):
            return True
        return bool(kind.items) if isinstance(kind, Tuple) else None

    def _push_constant(self, kind: Kind, value: object) -> None:
        if isinstance(kind, Tuple):
            for item, each in zip(kind.items, value, strict=True):  # type: ignore[call-overload]  # a tuple
                self._push_constant(item, each)
            return
        if isinstance(kind, Array):
            assert isinstance(value, np.ndarray)
            self.f.static_get(self._shared.array(value, kind))
            for length in value.shape:
                self.f.i64_const(length)
            return
        if isinstance(kind, Complex):
            for part in (value.real, value.imag):  # type: ignore[attr-defined]  # a number
                getattr(self.f, f"{kind.word}_const")(float(part))
            return
        for slot in kind.slots:
            number = float(value) if slot.is_float else int(value)  # type: ignore[arg-type, call-overload]  # a number
            getattr(self.f, f"{slot}_const")(number)

    def _push_item(self, node: ast.Subscript) -> Kind:
        kind = self._item_kind(node)
        of = self.kind(node.value)
        if isinstance(of, Tuple):
            tuple_code.push_items(self, node, of)
            return kind
        if isinstance(of, List) and isinstance(node.slice, ast.Slice):
            list_slice.push(self, node, self.slots(node.value)[0], of)
            return kind
        if isinstance(of, List):
            assert of.item is not None
            if has_either(of.item):
                self.get(name_of_item(node), kind)
                return kind
            return list_code.item(self, node, self.slots(node.value)[0], of)
        text = text_of(of)
        if text is not None:
            text_code.push_item(self, node, text)
            return kind
        assert isinstance(of, Array)
        slots = self.slots(node.value)
        if isinstance(kind, Array):
            array_code.push_view(self, node, of, slots)
            return kind
        self.f.local_get(slots[0])
        array_code.push_place(self, node, of, slots)
        self.at(node)
        array_code.push_element(self, of)
        return kind

    def _push_attribute(self, node: ast.Attribute) -> Kind:
        kind = self._attribute_kind(node)
        of = self.kind(node.value)
        if not isinstance(of, Array):
            complex_code.push_attribute(self, node, kind)
            return kind
        match node.attr:
            case "shape":
                for axis in range(of.dimensions):
                    self.push_slot(node.value, axis + (2 if of.is_view else 1))
            case "ndim":
                self.f.i64_const(of.dimensions)
            case "size":
                for axis in range(of.dimensions):
                    self.push_slot(node.value, axis + (2 if of.is_view else 1))
                    if axis:
                        self.f.i64_mul()
        return kind
