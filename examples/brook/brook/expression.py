# SPDX-License-Identifier: Apache-2.0
"""Expressions to instructions, with types checked on the way."""

from __future__ import annotations

from brook import tree
from brook.closure import Scope, Types, Variable
from brook.unit import Unit
from ferryvm.build import I32, I64, U8_ARRAY, Function, Local, Signature, Static
from ferryvm.source import SourceText

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
_COMPARISON = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_BUILT_IN = ("len", "array", "int", "float")


def signature_of(kind: tree.Kind, types: Types) -> Signature:
    """The signature of functions of a type: the record, then the parameters."""
    *parameters, result = kind.parts
    results = () if result == tree.NOTHING else (types.of(result),)
    return Signature((types.closure.type, *map(types.of, parameters)), results)


class Expressions:
    """The part of a function's compiler that pushes values."""

    f: Function
    unit: Unit
    source: SourceText
    scope: Scope
    record: Local
    """The record of the function; the top level has none."""

    def at(self, place: tree.Place) -> None:
        """Give the instructions from here on a place in the text."""
        self.f.at(self.source.file, *place)

    def closure(self, node: tree.Function) -> tree.Kind:
        """Push a new function value."""
        raise NotImplementedError

    def expect(self, node: tree.Node, kind: tree.Kind) -> None:
        """Push the value of an expression, which must be of a type."""
        found = self.value(node, may_be_nothing=True)
        if found != kind:
            raise tree.BrookError(node.place, f"expected {kind}, found {found}")

    def value(self, node: tree.Node, may_be_nothing: bool = False) -> tree.Kind:
        """Push the value of an expression; its type."""
        self.at(node.place)
        match node:
            case tree.Literal():
                return self.literal(node.value)
            case tree.Name():
                return self.load(self.variable(node))
            case tree.Operation():
                return self.operation(node)
            case tree.Array():
                return self.array(node)
            case tree.Index():
                kind = self.element(node)
                self.on_array("get", kind)
                return kind.parts[0]
            case tree.Function():
                return self.closure(node)
            case tree.Call():
                found = self.call(node)
                if found == tree.NOTHING and not may_be_nothing:
                    raise tree.BrookError(node.place, "this call has no value")
                return found
        raise tree.BrookError(node.place, "expected a value")

    def literal(self, value: bool | float | str) -> tree.Kind:
        if isinstance(value, bool):
            self.f.i32_const(value)
            return tree.BOOL
        if isinstance(value, int):
            self.f.i64_const(value)
            return tree.INT
        if isinstance(value, float):
            self.f.f64_const(value)
            return tree.FLOAT
        self.text(value)
        return tree.STR

    def text(self, value: str) -> None:
        """Push a string literal; the first time it is made."""
        f, data = self.f, value.encode()
        if value not in self.unit.texts:
            self.unit.texts[value] = self.unit.program.static(f"text {value!r}", U8_ARRAY)
        static = self.unit.texts[value]
        f.static_get(static)
        f.ref_is_null()
        with f.if_():
            f.i64_const(len(data))
            f.array_new_default_u8()
            f.static_set(static)
            for place, byte in enumerate(data):
                f.static_get(static)
                f.i64_const(place)
                f.i32_const(byte)
                f.array_set_u8()
        f.static_get(static)

    def variable(self, node: tree.Name) -> Variable:
        found = self.scope.find(node.name)
        if found is None:
            raise tree.BrookError(node.place, f"no variable {node.name!r}", len(node.name))
        return found

    def load(self, variable: Variable) -> tree.Kind:
        home, f = variable.home, self.f
        if isinstance(home, Local):
            f.local_get(home)
        elif isinstance(home, Static):
            f.static_get(home)
        elif isinstance(home, Function):
            self.make(home, Scope({}, self.unit.types))
        else:
            f.local_get(self.record)
            f.ref_cast(home.struct)
            f.struct_get(home)
        return variable.kind

    def make(self, function: Function, scope: Scope) -> None:
        """Push a new record of a function, with copies of the variables that it captured."""
        f = self.f
        f.i32_const(self.unit.number(function))
        for name in scope.captured:
            variable = self.scope.find(name)
            assert variable is not None
            self.load(variable)
        f.struct_new(scope.record)

    def on_array(self, name: str, kind: tree.Kind) -> None:
        """Append an instruction of arrays of a type: "get", "set" or "new"."""
        suffix = {"int": "i64", "float": "f64", "bool": "i32"}.get(kind.parts[0].name)
        if suffix is not None:
            getattr(self.f, f"array_{name}_{suffix}")()
        else:
            getattr(self.f, f"array_{name}_ref")(self.unit.types.array(kind))

    def array(self, node: tree.Array) -> tree.Kind:
        if not node.elements:
            raise tree.BrookError(
                node.place, "an empty array has no type: array(0, value) makes one"
            )
        f, (first, *others) = self.f, node.elements
        kind = tree.Kind("array", (self.value(first),))
        f.i64_const(len(node.elements))
        self.on_array("new", kind)
        array = f.local(None, self.unit.types.of(kind))
        f.local_set(array)
        for number, element in enumerate(others, start=1):
            f.local_get(array)
            f.i64_const(number)
            self.expect(element, kind.parts[0])
            self.on_array("set", kind)
        f.local_get(array)
        return kind

    def element(self, node: tree.Index) -> tree.Kind:
        """Push an array and an index; the type of the array."""
        kind = self.value(node.array)
        if kind.name != "array":
            raise tree.BrookError(node.place, f"expected an array, found {kind}")
        self.expect(node.index, tree.INT)
        self.at(node.place)
        return kind

    def call(self, node: tree.Call) -> tree.Kind:
        callee, f = node.callee, self.f
        known = self.scope.find(callee.name) if isinstance(callee, tree.Name) else None
        if known is None and isinstance(callee, tree.Name) and callee.name in _BUILT_IN:
            return self.built_in(node, callee.name)
        if known is not None and isinstance(known.home, Function):
            kind = known.kind
            f.ref_null(self.unit.types.closure)
        else:
            kind = self.value(callee)
            if kind.name != "fun":
                raise tree.BrookError(callee.place, f"expected a function, found {kind}")
            record = f.local(None, self.unit.types.closure)
            f.local_set(record)
            f.local_get(record)
        *parameters, result = kind.parts
        if len(parameters) != len(node.arguments):
            wanted = f"expected {len(parameters)} arguments, found {len(node.arguments)}"
            raise tree.BrookError(node.place, wanted)
        for argument, parameter in zip(node.arguments, parameters, strict=True):
            self.expect(argument, parameter)
        self.at(node.place)
        if known is not None and isinstance(known.home, Function):
            f.call(known.home)
        else:
            f.local_get(record)
            f.struct_get(self.unit.types.closure["number"])
            f.call_indirect(signature_of(kind, self.unit.types))
        return result

    def built_in(self, node: tree.Call, name: str) -> tree.Kind:
        """len(array or str), array(length, value), int(float), float(int)"""
        f, arguments = self.f, node.arguments
        if len(arguments) != 1 + (name == "array"):
            raise tree.BrookError(node.place, f"{name} takes another number of arguments")
        if name == "array":
            return self.filled(arguments[0], arguments[1])
        kind = self.value(arguments[0])
        self.at(node.place)
        if name == "len" and (kind == tree.STR or kind.name == "array"):
            f.array_length()
            return tree.INT
        if name == "int" and kind == tree.FLOAT:
            f.i64_trunc_f64_s()
            return tree.INT
        if name == "float" and kind == tree.INT:
            f.f64_convert_i64_s()
            return tree.FLOAT
        raise tree.BrookError(node.place, f"{name} does not take {kind}")

    def filled(self, length: tree.Node, value: tree.Node) -> tree.Kind:
        f = self.f
        number = f.local(None, I64)
        self.expect(length, tree.INT)
        f.local_set(number)
        kind = tree.Kind("array", (self.value(value),))
        f.local_get(number)
        self.on_array("new", kind)
        return kind

    def operation(self, node: tree.Operation) -> tree.Kind:
        f, sign = self.f, node.sign
        if sign in ("and", "or"):
            self.expect(node.operands[0], tree.BOOL)
            with f.if_(results=[I32]):
                self.expect(node.operands[1], tree.BOOL) if sign == "and" else f.i32_const(1)
                f.else_()
                self.expect(node.operands[1], tree.BOOL) if sign == "or" else f.i32_const(0)
            return tree.BOOL
        if sign == "not":
            self.expect(node.operands[0], tree.BOOL)
            f.i32_eqz()
            return tree.BOOL
        if len(node.operands) == 1:
            return self.negation(node)
        kind = self.value(node.operands[0])
        self.expect(node.operands[1], kind)
        self.at(node.place)
        if kind == tree.STR and sign in ("+", "==", "!="):
            f.call(self.unit.runtime.join if sign == "+" else self.unit.runtime.same)
            if sign == "!=":
                f.i32_eqz()
            return tree.STR if sign == "+" else tree.BOOL
        name = _ARITHMETIC.get(sign) or _COMPARISON[sign]
        is_number = kind == tree.INT or (kind == tree.FLOAT and sign != "%")
        if not is_number and not (kind == tree.BOOL and sign in ("==", "!=")):
            raise tree.BrookError(node.place, f"{sign} does not take {kind}", len(sign))
        if kind == tree.INT and name not in ("add", "sub", "mul", "eq", "ne"):
            name += "_s"
        getattr(f, f"{self.unit.types.of(kind)}_{name}")()
        return kind if sign in _ARITHMETIC else tree.BOOL

    def negation(self, node: tree.Operation) -> tree.Kind:
        kind = self.value(node.operands[0])
        if kind == tree.FLOAT:
            self.f.f64_neg()
        elif kind == tree.INT:
            self.f.i64_const(-1)
            self.f.i64_mul()
        else:
            raise tree.BrookError(node.place, f"- does not take {kind}")
        return kind
