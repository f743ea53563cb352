# SPDX-License-Identifier: Apache-2.0
"""LLVM IR as text, written as it is built.

An instruction is a line of its block, a value just its type and its name: the part of `llvmlite.ir`
that the backends use, in a fifth of its time, which was half of the compile time of a small region.
LLVM checks types when it parses the text.

    Module ── globals: Function ── Block: phis, lines, end
              GlobalVariable
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

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


_BOOLEAN = IntType(1)
_VOID = VoidType()
_POINTER = PointerType()

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
        super().__init__(_POINTER, reference)
        self.value_type = value_type


class Callee(Value):
    """A function, or an address that is called as one."""

    __slots__ = ("signature",)

    def __init__(self, address: Value, signature: FunctionType) -> None:
        super().__init__(_POINTER, address.reference)
        self.signature = signature


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


class PhiInstr(Value):
    """A value that depends on where control comes from."""

    __slots__ = ("incoming",)

    def __init__(self, kind: Type, reference: str) -> None:
        super().__init__(kind, reference)
        self.incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """It is this value where control comes from this block."""
        self.incoming.append(f"[{value.reference}, {block.reference}]")

    def __str__(self) -> str:
        return f"{self.reference} = phi {self.type.text} {', '.join(self.incoming)}"


class SwitchInstr:
    """A jump to one of many blocks."""

    def __init__(self, value: Value, default: Block) -> None:
        self._head = f"switch {value.type.text} {value.reference}, label {default.reference}"
        self._cases: list[str] = []

    def add_case(self, value: Value, block: Block) -> None:
        """Go to a block if it is this constant."""
        self._cases.append(f"{value.type.text} {value.reference}, label {block.reference}")

    def __str__(self) -> str:
        return f"{self._head} [{' '.join(self._cases)}]"


# --- modules --------------------------------------------------------------------------------


_PLAIN = re.compile(r"[-a-zA-Z$._][-a-zA-Z0-9$._]*")


def _quoted(name: str) -> str:
    """A name in LLVM's syntax: in quotation marks, if it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    escaped = re.sub(r'["\\]|[^ -~]', lambda found: f"\\{ord(found[0]) & 0xFF:02x}", name)
    return f'"{escaped}"'


class Module:
    """Functions and variables that are compiled together; its text is LLVM IR."""

    def __init__(self, name: str = "") -> None:
        self.name, self.triple, self.data_layout = name, "unknown-unknown-unknown", ""
        self.globals: dict[str, Function | GlobalVariable] = {}
        """By name, in the order in which they were made."""
        self._metadata: dict[str, str] = {}

    def add_metadata(self, text: str) -> str:
        """The name in instructions of a node of metadata, made of the text of its operands."""
        return self._metadata.setdefault(text, f"!{len(self._metadata)}")

    def intrinsic(self, name: str, result: Type, parameters: Iterable[Type]) -> Function:
        """A function of LLVM's own, declared once; the name spells its types out."""
        found = self.globals.get(name)
        if found is None:
            found = Function(self, FunctionType(result, parameters), name)
        assert isinstance(found, Function)
        return found

    def __str__(self) -> str:
        lines = [
            f"; {_quoted(self.name)}",
            f'target triple = "{self.triple}"',
            f'target datalayout = "{self.data_layout}"',
            "",
        ]
        for each in self.globals.values():
            each.write(lines)
        lines += [f"{name} = !{{ {text} }}" for text, name in self._metadata.items()]
        lines.append("")
        return "\n".join(lines)


class GlobalVariable(Place):
    """A variable of a module."""

    __slots__ = ("align", "global_constant", "initializer", "linkage")

    def __init__(self, module: Module, kind: Type, name: str) -> None:
        super().__init__(f"@{_quoted(name)}", kind)
        _declare(module, name, self)
        self.initializer: Constant | None = None
        self.global_constant, self.linkage, self.align = False, "", 0

    def write(self, lines: list[str]) -> None:
        """Add its text."""
        words = [self.reference, "="]
        words.append(self.linkage or ("external" if self.initializer is None else ""))
        words += ["constant" if self.global_constant else "global", self.value_type.text]
        if self.initializer is not None:
            words.append(self.initializer.reference)
        lines.append(" ".join(filter(None, words)) + (f", align {self.align}" * bool(self.align)))


class Function(Callee):
    """A function of a module: a declaration, until it has a block."""

    def __init__(self, module: Module, signature: FunctionType, name: str) -> None:
        super().__init__(Value(_POINTER, f"@{_quoted(name)}"), signature)
        _declare(module, name, self)
        self.module, self.name = module, name
        self.linkage, self.calling_convention = "", ""
        self.attributes: set[str] = set()
        self.blocks: list[Block] = []
        self.args = tuple(
            Argument(kind, f"%.{number}") for number, kind in enumerate(signature.parameters, 1)
        )
        self._values, self._names = len(self.args), {""}
        self._suffixes: dict[str, int] = {}
        """The suffix of the last block with a given name."""

    def new_reference(self) -> str:
        """A name that no value of the function has."""
        self._values += 1
        return f"%.{self._values}"

    def append_basic_block(self, name: str = "block") -> Block:
        """A new block at the end, named alike."""
        found, number = name, self._suffixes.get(name, 0)
        while found in self._names:
            number += 1
            found = f"{name}.{number}"
        self._names.add(found)
        self._suffixes[name] = number
        block = Block(self, found)
        self.blocks.append(block)
        return block

    def write(self, lines: list[str]) -> None:
        """Add its text."""
        words = ["define" if self.blocks else "declare", self.linkage, self.calling_convention]
        words += [self.signature.result.text]
        head = " ".join(filter(None, words))
        arguments = ", ".join(map(str, self.args))
        attributes = " ".join(sorted(self.attributes))
        lines.append(f"{head} {self.reference}({arguments}) {attributes}")
        if self.blocks:
            lines.append("{")
            for block in self.blocks:
                block.write(lines)
            lines.append("}")


def _declare(module: Module, name: str, what: Function | GlobalVariable) -> None:
    if name in module.globals:
        raise ValueError(f"the module has two of {name!r}")
    module.globals[name] = what


class Block:
    """A basic block: phis, then instructions, then one that ends it."""

    __slots__ = ("end", "function", "lines", "name", "phis", "reference")

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, name
        self.reference = f"%{_quoted(name)}"
        self.phis: list[PhiInstr] = []
        self.lines: list[str] = []
        self.end: str | SwitchInstr | None = None

    def write(self, lines: list[str]) -> None:
        """Add its text; one without an end is refused by LLVM."""
        lines.append(f"{self.reference[1:]}:")
        lines += map(str, self.phis)
        lines += self.lines
        if self.end is not None:
            lines.append(str(self.end))


# --- building -------------------------------------------------------------------------------


class _Ended(list[str]):
    """The lines of a block that has ended."""

    def append(self, line: str) -> NoReturn:
        raise ValueError(f"the block has ended in front of {line!r}")


_ENDED = _Ended()


def _binary(operation: str) -> Callable[..., Value]:
    def build(self: IRBuilder, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        if flags:
            text = f"{operation} {' '.join(flags)} {a.type.text} {a.reference}, {b.reference}"
        else:
            text = f"{operation} {a.type.text} {a.reference}, {b.reference}"
        return self._value(a.type, text)

    return build


def _cast(operation: str) -> Callable[[IRBuilder, Value, Type], Value]:
    def build(self: IRBuilder, a: Value, to: Type) -> Value:
        if a.type.text == to.text:
            return a
        return self._value(to, f"{operation} {a.type.text} {a.reference} to {to.text}")

    return build


def _comparison(operation: str, prefix: str, equality: str) -> Callable[..., Value]:
    """`prefix`: of the names of orders, `equality`: of `eq` and `ne`."""
    names = {"==": f"{equality}eq", "!=": f"{equality}ne"}
    orders = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    names |= {sign: prefix + order for sign, order in orders.items()}

    def build(self: IRBuilder, sign: str, a: Value, b: Value) -> Value:
        text = f"{operation} {names[sign]} {a.type.text} {a.reference}, {b.reference}"
        return self._value(_BOOLEAN, text)

    return build


class IRBuilder:
    """Adds instructions to a block; each method adds that of its name, and returns its value."""

    def __init__(self, block: Block) -> None:
        self.position_at_end(block)

    @property
    def module(self) -> Module:
        """The module that is built."""
        return self.function.module

    def position_at_end(self, block: Block) -> None:
        """Go on at the end of a block."""
        self.block, self.function = block, block.function
        self._lines = block.lines if block.end is None else _ENDED

    @contextlib.contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """In the context, append to a block, before its terminator if it has one."""
        here = self.block
        self.position_at_end(block)
        self._lines = block.lines
        try:
            yield
        finally:
            self.position_at_end(here)

    def _value(self, kind: Type, text: str) -> Value:
        reference = self.function.new_reference()
        self._lines.append(f"{reference} = {text}")
        return Value(kind, reference)

    # --- arithmetic -------------------------------------------------------------------------

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    sdiv, udiv, srem, urem = _binary("sdiv"), _binary("udiv"), _binary("srem"), _binary("urem")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, ashr, lshr = _binary("shl"), _binary("ashr"), _binary("lshr")
    fadd, fsub, fmul, fdiv = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")

    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    sitofp, uitofp, fptosi, fptoui = (
        _cast("sitofp"),
        _cast("uitofp"),
        _cast("fptosi"),
        _cast("fptoui"),
    )
    fpext, fptrunc, bitcast = _cast("fpext"), _cast("fptrunc"), _cast("bitcast")
    ptrtoint, inttoptr = _cast("ptrtoint"), _cast("inttoptr")

    icmp_signed = _comparison("icmp", "s", "")
    icmp_unsigned = _comparison("icmp", "u", "")
    fcmp_ordered = _comparison("fcmp", "o", "o")
    fcmp_unordered = _comparison("fcmp", "u", "u")

    def not_(self, a: Value) -> Value:
        return self._value(a.type, f"xor {a.type.text} {a.reference}, -1")

    def select(self, p: Value, a: Value, b: Value) -> Value:
        kind = a.type.text
        text = f"select i1 {p.reference}, {kind} {a.reference}, {b.type.text} {b.reference}"
        return self._value(a.type, text)

    def extract_value(self, a: Value, number: int) -> Value:
        assert isinstance(a.type, LiteralStructType)
        text = f"extractvalue {a.type.text} {a.reference}, {number}"
        return self._value(a.type.elements[number], text)

    def insert_value(self, a: Value, value: Value, number: int) -> Value:
        what = f"{value.type.text} {value.reference}"
        return self._value(a.type, f"insertvalue {a.type.text} {a.reference}, {what}, {number}")

    def phi(self, kind: Type) -> PhiInstr:
        phi = PhiInstr(kind, self.function.new_reference())
        self.block.phis.append(phi)
        return phi

    # --- memory -----------------------------------------------------------------------------

    def alloca(self, kind: Type, align: int = 0) -> Place:
        reference = self.function.new_reference()
        suffix = f", align {align}" if align else ""
        self._lines.append(f"{reference} = alloca {kind.text}{suffix}")
        return Place(reference, kind)

    def gep(self, pointer: Value, indices: Sequence[Value], source_etype: Type) -> Value:
        places = ", ".join(f"{index.type.text} {index.reference}" for index in indices)
        text = f"getelementptr {source_etype.text}, ptr {pointer.reference}, {places}"
        return self._value(_POINTER, text)

    def load(
        self, pointer: Value, align: int = 0, typ: Type | None = None, metadata: str = ""
    ) -> Value:
        """`typ`: if it is not that of the place. `metadata`: such as `!tbaa !1`."""
        if typ is None:
            assert isinstance(pointer, Place)
            typ = pointer.value_type
        text = f"load {typ.text}, ptr {pointer.reference}{_suffix(align, metadata)}"
        return self._value(typ, text)

    def load_atomic(self, pointer: Value, ordering: str, align: int, typ: Type) -> Value:
        text = f"load atomic {typ.text}, ptr {pointer.reference} {ordering}, align {align}"
        return self._value(typ, text)

    def store(self, value: Value, pointer: Value, align: int = 0, metadata: str = "") -> None:
        what = f"{value.type.text} {value.reference}"
        self._lines.append(f"store {what}, ptr {pointer.reference}{_suffix(align, metadata)}")

    def fence(self, ordering: str) -> None:
        self._lines.append(f"fence {ordering}")

    # --- control ----------------------------------------------------------------------------

    def call(
        self, callee: Callee, arguments: Sequence[Value], cconv: str = "", tail: str = ""
    ) -> Value:
        result = callee.signature.result
        given = ", ".join([f"{each.type.text} {each.reference}" for each in arguments])
        words = f"{tail} call {cconv}" if tail or cconv else "call"
        text = f"{words} {result.text} {callee.reference}({given})"
        if result.text != "void":
            return self._value(result, text)
        self._lines.append(text)
        return Value(_VOID, "")

    def _end(self, end: str | SwitchInstr) -> None:
        if self._lines is not self.block.lines or self.block.end is not None:
            raise ValueError(f"the block has ended in front of {end}")
        self.block.end, self._lines = end, _ENDED

    def branch(self, to: Block) -> None:
        self._end(f"br label {to.reference}")

    def cbranch(
        self, p: Value, yes: Block, no: Block, weights: tuple[int, int] | None = None
    ) -> None:
        """`weights`: how often each is taken, in proportion."""
        suffix = ""
        if weights is not None:
            text = f'!"branch_weights", i32 {weights[0]}, i32 {weights[1]}'
            suffix = f", !prof {self.module.add_metadata(text)}"
        self._end(f"br i1 {p.reference}, label {yes.reference}, label {no.reference}{suffix}")

    def switch(self, value: Value, default: Block) -> SwitchInstr:
        switch = SwitchInstr(value, default)
        self._end(switch)
        return switch

    def ret(self, value: Value) -> None:
        self._end(f"ret {value.type.text} {value.reference}")

    def ret_void(self) -> None:
        self._end("ret void")

    def unreachable(self) -> None:
        self._end("unreachable")

    @contextlib.contextmanager
    def if_then(self, p: Value, likely: bool | None = None) -> Iterator[None]:
        """In the context, append to a block that runs only if `p` holds; afterwards to the join."""
        name = self.block.name
        yes = self.function.append_basic_block(f"{name}.if")
        onward = self.function.append_basic_block(f"{name}.endif")
        weights = {None: None, True: (99, 1), False: (1, 99)}[likely]
        self.cbranch(p, yes, onward, weights)
        self.position_at_end(yes)
        yield
        if self.block.end is None:
            self.branch(onward)
        self.position_at_end(onward)


def _suffix(align: int, metadata: str) -> str:
    if align:
        return f", align {align}, {metadata}" if metadata else f", align {align}"
    return f", {metadata}" if metadata else ""
