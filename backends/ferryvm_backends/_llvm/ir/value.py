# SPDX-License-Identifier: Apache-2.0
"""Types and values of LLVM IR: the text of a type, and the text by which instructions name a value.

They are in one module because the constants of an array are values of its element type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

# --- types ----------------------------------------------------------------------------------


class Type:
    """A type."""

    __slots__ = ("null", "text", "width")

    def __init__(self, text: str, null: str = "zeroinitializer", width: int = 0) -> None:
        """`null`: its value of zeros. `width`: of an integer, in bits."""
        self.text, self.null, self.width = text, null, width

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def constant(self, value: object) -> str:
        """A value of the type in the syntax of an operand."""
        raise TypeError(f"{self.text} has no constant {value!r}")


class IntType(Type):
    """Integers of some width in bits."""

    __slots__ = ()

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}", "0", width)

    def constant(self, value: object) -> str:
        return str(int(value))  # type: ignore[call-overload]  # int checks it


class FloatType(Type):
    """Single-precision floats."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("float", "0.0")

    def constant(self, value: object) -> str:
        return _double(struct.unpack("f", struct.pack("f", value))[0])


class DoubleType(Type):
    """Double-precision floats."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("double", "0.0")

    def constant(self, value: object) -> str:
        return _double(value)


def _double(value: object) -> str:
    return f"0x{struct.pack('>d', value).hex()}"


class ArrayType(Type):
    """Arrays of so many elements."""

    __slots__ = ("element",)

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"[{count} x {element.text}]")
        self.element = element

    def constant(self, value: object) -> str:
        assert isinstance(value, list | tuple)
        items = [v if isinstance(v, Value) else Constant(self.element, v) for v in value]
        return f"[{', '.join(f'{v.type.text} {v.reference}' for v in items)}]"


class VectorType(Type):
    """Vectors of so many elements."""

    __slots__ = ("count", "element")

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"<{count} x {element.text}>")
        self.element, self.count = element, count

    def constant(self, value: object) -> str:
        """A vector of one value in all elements, or of a list of them."""
        values = value if isinstance(value, list) else [value] * self.count
        items = [v if isinstance(v, Value) else Constant(self.element, v) for v in values]
        return f"<{', '.join(f'{v.type.text} {v.reference}' for v in items)}>"


class LiteralStructType(Type):
    """Structures of these elements."""

    __slots__ = ("elements",)

    def __init__(self, elements: Iterable[Type]) -> None:
        self.elements = tuple(elements)
        super().__init__(f"{{{', '.join(each.text for each in self.elements)}}}")


class FunctionType(Type):
    """Functions of these parameters."""

    __slots__ = ("parameters", "result")

    def __init__(self, result: Type, parameters: Iterable[Type]) -> None:
        self.result, self.parameters = result, tuple(parameters)
        super().__init__(f"{result.text} ({', '.join(each.text for each in self.parameters)})")


class VoidType(Type):
    """The type of no value."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("void")


class PointerType(Type):
    """Pointers."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("ptr", "null")


class MetaDataType(Type):
    """The type of metadata that is an argument."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("metadata")


BOOLEAN = IntType(1)
"""The type of the result of a comparison."""
VOID = VoidType()
POINTER = PointerType()

# --- values ---------------------------------------------------------------------------------


class Value:
    """A value: its type, and how instructions name it."""

    __slots__ = ("reference", "type")

    def __init__(self, kind: Type, reference: str) -> None:
        self.type, self.reference = kind, reference


class _UndefinedType:
    """The type of `Undefined`."""


Undefined = _UndefinedType()
"""A constant that may have any value."""


class Constant(Value):
    """A constant of a type; None: of zeros."""

    __slots__ = ()

    def __init__(self, kind: Type, value: object) -> None:
        self.type = kind
        if value is None:
            self.reference = kind.null
        elif value is Undefined:
            self.reference = "undef"
        else:
            self.reference = kind.constant(value)

    def bitcast(self, to: Type) -> Value:
        """The same bits as another type."""
        return Value(to, f"bitcast ({self.type.text} {self.reference} to {to.text})")


class Place(Value):
    """A pointer to a value of a type."""

    __slots__ = ("value_type",)

    def __init__(self, reference: str, value_type: Type) -> None:
        super().__init__(POINTER, reference)
        self.value_type = value_type


class Callee(Value):
    """A function, or an address that is called as one."""

    __slots__ = ("calls", "signature")

    def __init__(self, address: Value, signature: FunctionType) -> None:
        super().__init__(POINTER, address.reference)
        self.signature = signature
        self.calls = 0
        """Calls of it that a builder has made."""


class Argument(Value):
    """An argument of a function."""

    __slots__ = ("attributes",)

    def __init__(self, kind: Type, reference: str) -> None:
        super().__init__(kind, reference)
        self.attributes: list[str] = []

    def add_attribute(self, name: str) -> None:
        """Promise LLVM something of it."""
        self.attributes.append(name)

    def __str__(self) -> str:
        return " ".join([self.type.text, *self.attributes, self.reference])
