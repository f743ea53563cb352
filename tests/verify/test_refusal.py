# SPDX-License-Identifier: Apache-2.0
"""Each way to be refused: its code, its place and its message, to the letter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm import Program, VerifyError
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, F32, I32, I64, INSTRUCTIONS
from ferryvm.isa.declared_type import ArrayType, DeclaredType, Field, StructType
from ferryvm.isa.type import ANYREF, Reference
from ferryvm.program import (
    Clause,
    Code,
    Data,
    Export,
    Function,
    HostImport,
    Signature,
    SourceMap,
    Static,
    Tag,
)
from ferryvm.verify import VerifyCode, structure, verify
from ferryvm.verify.structure import MAX_DATA_END, MAX_LOCALS, MAX_PARAMETERS

from ..tier import together

Alter = Callable[[Program], Program]


@dataclasses.dataclass(frozen=True)
class Case:
    """A program, what is done to it, and how it is then refused."""

    code: VerifyCode
    pc: int | None
    message: str
    text: str = ".function main / halt"
    alter: Alter = lambda program: program

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message[:40]}"


def replace(**parts: object) -> Alter:
    return lambda program: dataclasses.replace(program, **parts)  # type: ignore[arg-type]  # any field


def poke(pc: int, mnemonic: str | int | None = None, immediate: int | None = None,
         zero: bytes | None = None) -> Alter:  # fmt: skip
    """Change fields of one instruction."""

    def alter(program: Program) -> Program:
        code = program.code.records.copy()
        if isinstance(mnemonic, str):
            code["opcode"][pc] = BY_MNEMONIC[mnemonic].opcode
        elif mnemonic is not None:
            code["opcode"][pc] = mnemonic
        if immediate is not None:
            code["immediate"][pc] = immediate
        if zero is not None:
            code["zero"][pc] = zero
        return dataclasses.replace(program, code=Code(code.tobytes()))

    return alter


def functions(*entries: int) -> Alter:
    return replace(functions=tuple(Function(f"f{pc}", pc, 0) for pc in entries))


COUNT = len(INSTRUCTIONS)
MANY = Signature((I32,) * (MAX_PARAMETERS + 1))
TABLE = ".function main / i32.const 0 / jump_table a a / :a / halt"
CALLS = " / .function f (i64 i32) -> f64 / f64.const 1 / return"

CATCH = (
    ".tag e i64 / .function main / i64.const 1 / :a / call f / :b / drop / drop / :h / halt / {} / "
    ".function f -> i64 / i64.const 1 / return"
)


def clauses(*found: Clause) -> Alter:
    return replace(clauses=found)


def types(*found: DeclaredType) -> Alter:
    return replace(types=found)


NODE = (
    ".struct node value i64 / .struct leaf extends node more i64 / .struct other value i64 / "
    ".array node[] / .array leaf[] / "
)

CASES = [
    Case(VerifyCode.NO_CODE, None, "a program needs at least one function and its code",
         alter=replace(functions=())),
    Case(VerifyCode.NO_CODE, None, "a program needs at least one function and its code",
         alter=lambda p: dataclasses.replace(p, code=Code())),
    Case(VerifyCode.FUNCTION_ENTRY, None, "function 'f1' starts at 1, code has 1",
         alter=functions(0, 1)),
    Case(VerifyCode.FUNCTION_ENTRY, None, "function 'f-1' starts at -1, code has 1",
         alter=functions(-1)),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "function 'main' has signature 0, there are 0",
         alter=replace(signatures=())),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "function 'f\\n' has signature 7, there are 1",
         alter=replace(functions=(Function("f\n", 0, 7),))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "function 'f' has 1 names for 0 parameters",
         alter=replace(functions=(Function("f", 0, 0, (), ("x",)),))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "function 'f' has two parameters of one name",
         alter=replace(signatures=(Signature((I64, I64)),),
                       functions=(Function("f", 0, 0, (), ("x", "x")),))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "signature 1 has 1001 results, at most 1000",
         alter=replace(signatures=(Signature(), Signature((), MANY.parameters)))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "signature 1 has 1001 parameters, at most 1000",
         alter=replace(signatures=(Signature(), MANY))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "signature 2 is the same as signature 1",
         alter=replace(signatures=(Signature(), Signature((F32,)), Signature((F32,))))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "host import 'h' has 2 results, at most 1",
         alter=replace(hosts=(HostImport("h", Signature((), (I32, I32))),))),
    Case(VerifyCode.FUNCTION_SIGNATURE, None, "host import 'h' has 1001 parameters, at most 1000",
         alter=replace(hosts=(HostImport("h", MANY),))),
    Case(VerifyCode.FUNCTION_LOCALS, None, "function 'f' has 32769 locals, at most 32768",
         alter=replace(functions=(Function("f", 0, 0, (I64,) * (MAX_LOCALS + 1)),))),
    Case(VerifyCode.MAIN_SIGNATURE, None,
         "function 'main' starts the program: () -> () expected, found (i64) -> ()",
         alter=replace(signatures=(Signature((I64,)),))),
    Case(VerifyCode.MAIN_SIGNATURE, None,
         "function 'main' starts the program: () -> () expected, found () -> (f32)",
         alter=replace(signatures=(Signature((), (F32,)),))),
    Case(VerifyCode.STATIC_BITS, None, "static 's' starts with 0x100000000, not an i32",
         alter=replace(statics=(Static("s", I32, 1 << 32),))),
    Case(VerifyCode.STATIC_BITS, None, "static 's' starts with -0x1, not an i64",
         alter=replace(statics=(Static("s", I64, -1),))),
    Case(VerifyCode.TABLE_ENTRY, None, "the table names function 1, there are 1",
         alter=replace(table=(0, 1))),
    Case(VerifyCode.DATA_RANGE, None, "3 bytes of data at 6 overlap others or pass 0x100000000",
         alter=replace(data=(Data(6, b"abc"), Data(0, b"1234567")))),
    Case(VerifyCode.DATA_RANGE, None,
         "2 bytes of data at 4294967295 overlap others or pass 0x100000000",
         alter=replace(data=(Data(MAX_DATA_END - 1, b"ab"),))),
    Case(VerifyCode.DATA_RANGE, None, "1 bytes of data at -1 overlap others or pass 0x100000000",
         alter=replace(data=(Data(-1, b"a"),))),
    Case(VerifyCode.OPCODE, 0, f"opcode {COUNT}, there are {COUNT} instructions",
         alter=poke(0, COUNT)),
    Case(VerifyCode.OPCODE, 0, "halt: reserved bytes are not zero",
         alter=poke(0, zero=b"\0\0\0\0\0\1")),
    Case(VerifyCode.OPCODE, 1, f"opcode 65535, there are {COUNT} instructions",
         ".function main / halt / nop", poke(1, 65535)),
    Case(VerifyCode.IMMEDIATE, 0, "halt: it takes no immediate, found 1", alter=poke(0, None, 1)),
    Case(VerifyCode.IMMEDIATE, 0, "i32.const: i32 literal 4294967296 is not below 4294967296",
         ".function main / i32.const 1 / halt", poke(0, None, 1 << 32)),
    Case(VerifyCode.IMMEDIATE, 0, "f32.const: f32 literal 4294967296 is not below 4294967296",
         ".function main / f32.const 1 / halt", poke(0, None, 1 << 32)),
    Case(VerifyCode.IMMEDIATE, 1, "local.get: local 4294967296 words from the header of the frame",
         ".function main / halt / nop", poke(1, "local.get", 1 << 32)),
    Case(VerifyCode.IMMEDIATE, 0, "static.get: static number 0 is not below 0",
         alter=poke(0, "static.get")),
    Case(VerifyCode.IMMEDIATE, 1,
         "i64.load: unsigned 32-bit byte offset 4294967296 is not below 4294967296",
         ".function main / i64.const 1 / i64.load / halt", poke(1, None, 1 << 32)),
    Case(VerifyCode.IMMEDIATE, 0, "jump: label 2 is not below 2",
         ".function main / jump a / :a / halt", poke(0, None, 2)),
    Case(VerifyCode.IMMEDIATE, 0, "call: function 1 is not below 1", alter=poke(0, "call", 1)),
    Case(VerifyCode.IMMEDIATE, 0, "call_indirect: signature number 1 is not below 1",
         alter=poke(0, "call_indirect", 1)),
    Case(VerifyCode.IMMEDIATE, 0, "host: host import 0 is not below 0", alter=poke(0, "host")),
    Case(VerifyCode.LOCAL, 0, "local.get: local number 1 is not below 1",
         ".function main / .local i64 / local.get 0 / halt", poke(0, None, 3)),
    Case(VerifyCode.LOCAL, 0, "local.get: word 1 of the frame is no local",
         ".function main / .local i64 / local.get 0 / halt", poke(0, None, 1)),
    Case(VerifyCode.LOCAL, 1, f"local.set: local number {(1 << 32) - 3} is not below 0",
         ".function main / i64.const 1 / drop / halt", poke(1, "local.set", (1 << 32) - 1)),
    Case(VerifyCode.LOCAL, 1, "local.get: word -2 of the frame is no local",
         ".function main / halt / .function f (i64) / local.get 0 / drop / return",
         poke(1, None, (1 << 64) - 2)),
    Case(VerifyCode.JUMP_TABLE, 1, "jump_table: 4 jumps must follow", TABLE, poke(1, None, 3)),
    Case(VerifyCode.JUMP_TABLE, 1, f"jump_table: {1 << 64} jumps must follow",
         TABLE, poke(1, None, (1 << 64) - 1)),
    Case(VerifyCode.JUMP_TABLE, 1, "jump_table: 2 jumps must follow", TABLE, poke(3, "nop", 0)),
    Case(VerifyCode.FALLS_OFF_END, 0, "nop: control runs past the end of the code",
         alter=poke(0, "nop")),
    Case(VerifyCode.FALLS_OFF_END, 1, "jump_if: control runs past the end of the code",
         ".function main / i32.const 1 / jump_if a / :a / halt",
         lambda p: dataclasses.replace(p, code=Code(poke(1, None, 0)(p).code.tobytes()[:32]))),
    Case(VerifyCode.SHARED_CODE, 0, "halt: reached from function 'f0' and from function 'f0'",
         alter=functions(0, 0)),
    Case(VerifyCode.SHARED_CODE, 1, "halt: reached from function 'f0' and from function 'f2'",
         ".function main / nop / halt / nop / halt",
         lambda p: functions(0, 2)(poke(2, "jump", 1)(p))),
    Case(VerifyCode.RETURN_IN_MAIN, 0, "return: function 0 ends with halt",
         ".function main / return"),
    Case(VerifyCode.RESULTS, 2, "return: 0 results, function 'f' has 1",
         ".function main / halt / .function f -> i64 / i64.const 1 / return 0"),
    Case(VerifyCode.RESULTS, 2, "return: 1 results, function 'f' has 0",
         ".function main / halt / .function f / i64.const 1 / return 1"),
    Case(VerifyCode.RESULTS, 1, "return: 1 parameters, function 'f' has 0",
         ".function main / halt / .function f / return", poke(1, None, 1 << 32)),
    Case(VerifyCode.OPERAND_TYPE, 3, "return: operand of type i32 expected, found i64",
         ".function main / halt / .function f -> (i64 i32) / i32.const 1 / i64.const 1 / return"),
    Case(VerifyCode.UNDERFLOW, 0, "drop: operand of type any value expected, the stack is empty",
         ".function main / drop / halt"),
    Case(VerifyCode.UNDERFLOW, 1, "i64.add: operand of type i64 expected, the stack is empty",
         ".function main / i64.const 1 / i64.add / halt"),
    Case(VerifyCode.UNDERFLOW, 1, "return: operand of type i64 expected, the stack is empty",
         ".function main / halt / .function f -> i64 / return 1"),
    Case(VerifyCode.UNDERFLOW, 0, "host: operand of type i64 expected, the stack is empty",
         ".host print_i64 (i64) / .function main / host print_i64 / halt"),
    Case(VerifyCode.UNDERFLOW, 0, "jump_table: operand of type i32 expected, the stack is empty",
         ".function main / jump_table a / :a / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "i64.eqz: operand of type i64 expected, found i32",
         ".function main / i32.const 1 / i64.eqz / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "local.set: operand of type f32 expected, found i32",
         ".function main / .local f32 / i32.const 1 / local.set 0 / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "static.set: operand of type f64 expected, found i64",
         ".static s f64 / .function main / i64.const 1 / static.set 0 / halt"),
    Case(VerifyCode.OPERAND_TYPE, 3, "select: operand of type f32 expected, found i32",
         ".function main / i32.const 1 / f32.const 1 / i32.const 1 / select / halt"),
    Case(VerifyCode.OPERAND_TYPE, 2, "call: operand of type i32 expected, found i64",
         ".function main / i64.const 1 / i64.const 1 / call f / halt" + CALLS),
    Case(VerifyCode.UNDERFLOW, 1, "call: operand of type i64 expected, the stack is empty",
         ".function main / i32.const 1 / call f / halt" + CALLS),
    Case(VerifyCode.JOIN, 4, "halt: operands are (i32) one way, () from pc 3",
         ".function main / i32.const 1 / i32.const 1 / jump_if a / nop / :a / halt",
         poke(3, "drop")),
    Case(VerifyCode.JOIN, 0, "i64.const: operands are () one way, (i64) from pc 1",
         ".function main / :a / i64.const 1 / jump a"),
    Case(VerifyCode.JOIN, 15,
         "halt: operands are (... i64 f32 i64 f32 i64 f32 i64 f32) one way, "
         "(... i64 f32 i64 f32 i64 f32 i64 i32) from pc 14",
         ".function main / " + "i64.const 1 / f32.const 1 / " * 6
         + "i32.const 1 / jump_if a / drop / :a / halt",
         poke(14, "i32.reinterpret_f32")),
    Case(VerifyCode.STATIC_TYPES, 1,
         "static.load: every static must be i64 for statics to be numbered at run time",
         ".static a i64 / .static b i32 / .function main / i64.const 0 / static.load / halt"),
    Case(VerifyCode.STATIC_TYPES, 2,
         "static.store: every static must be i64 for statics to be numbered at run time",
         ".static b f64 / .function main / i64.const 0 / i64.const 0 / static.store / halt"),
    Case(VerifyCode.EXPORT, None, "two exports are named 'f'",
         alter=replace(exports=(Export("f", 0), Export("f", 0)))),
    Case(VerifyCode.EXPORT, None, "export 'f' is function 1, there are 1",
         alter=replace(exports=(Export("f", 1),))),
    Case(VerifyCode.TAG, None, "two tags are named 'e'", alter=replace(tags=(Tag("e"), Tag("e")))),
    Case(VerifyCode.TAG, None, "tag 'e' has 5 values, at most 4",
         alter=replace(tags=(Tag("e", (I64,) * 5),))),
    Case(VerifyCode.TAG, None,
         "tag 'python.KeyError' is of host exceptions: (i64) expected, found (i32 i64)",
         alter=replace(tags=(Tag("python.KeyError", (I32, I64)),))),
    Case(VerifyCode.CLAUSE, None, "clause 0 covers pcs 0 to 1, code has 1",
         alter=clauses(Clause(0, 2, 0))),
    Case(VerifyCode.CLAUSE, None, "clause 0 covers pcs 0 to -1, code has 1",
         alter=clauses(Clause(0, 0, 0))),
    Case(VerifyCode.CLAUSE, None, "clause 1 has its handler at 1, code has 1",
         alter=clauses(Clause(0, 1, 0), Clause(0, 1, 1))),
    Case(VerifyCode.CLAUSE, None, "clause 0 takes tag 0, there are 0",
         alter=clauses(Clause(0, 1, 0, tag=0))),
    Case(VerifyCode.CLAUSE, None,
         "clause 0 takes one tag and pushes a record, which only one of all tags does",
         CATCH.format(""), clauses(Clause(1, 2, 4, 0, 0, True))),
    Case(VerifyCode.CLAUSE, None, "clause 0 leaves -1 operands",
         alter=clauses(Clause(0, 1, 0, -1))),
    Case(VerifyCode.CLAUSE_NESTING, None,
         "clause 1: the clause of pcs 1 to 2 crosses the clause of pcs 0 to 1; "
         "ranges are disjoint, or one is within the other",
         CATCH.format(""), clauses(Clause(0, 2, 4), Clause(1, 3, 4))),
    Case(VerifyCode.CLAUSE_NESTING, None,
         "clause 1: the clause of pcs 1 to 1 comes after the clause of pcs 0 to 2 around it; "
         "inner clauses come first",
         CATCH.format(""), clauses(Clause(0, 3, 4), Clause(1, 2, 4))),
    Case(VerifyCode.CLAUSE_NESTING, None, "clause 0: 257 clauses cover one instruction, at most 256",
         CATCH.format(""), clauses(*[Clause(1, 2, 4)] * 257)),
    Case(VerifyCode.CLAUSE_DEPTH, 1,
         "call: 1 operands are below its own, a clause leaves 2",
         CATCH.format(".catch_all from a to b using h depth 2")),
    Case(VerifyCode.JOIN, 4, "halt: operands are (i64 i64) one way, () from pc 3",
         CATCH.format(".catch e from a to b using h depth 1")),
    Case(VerifyCode.JOIN, 4, "halt: operands are (i64 i64 i64 i64 i64) one way, () from pc 3",
         CATCH.format(".catch_record from a to b using h")),
    Case(VerifyCode.DECLARED_TYPE, None, "type 15 ('node') has the name of another type",
         alter=types(StructType("node"), StructType("node"))),
    Case(VerifyCode.DECLARED_TYPE, None, "type 14 ('i64') has the name of another type",
         alter=types(StructType("i64"))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 14 ('a.b') has a name with other characters than a name in assembly without quotes",
         alter=types(StructType("a.b"))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 14 ('a[]') has a name with other characters than a name in assembly without quotes",
         alter=types(StructType("a[]"))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 14 ('a') has a field '', which is no name in assembly without quotes",
         alter=types(StructType("a", None, (Field("", I64),)))),
    Case(VerifyCode.DECLARED_TYPE, None, "type 14 ('a') has two fields 'x'",
         alter=types(StructType("a", None, (Field("x", I64),) * 2))),
    Case(VerifyCode.DECLARED_TYPE, None, "type 14 ('a') has 1001 fields, at most 1000",
         alter=types(StructType("a", None, tuple(Field(f"f{n}", I64) for n in range(1001))))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 14 ('a') has type 15 as its parent, which is no struct declared before it",
         alter=types(StructType("a", 15), StructType("b"))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 14 ('a') has type 9 as its parent, which is no struct declared before it",
         alter=types(StructType("a", 9))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 15 ('b') does not begin with the fields of its parent 'a'",
         alter=types(StructType("a", None, (Field("x", I64),)),
                     StructType("b", 14, (Field("x", I32),)))),
    Case(VerifyCode.DECLARED_TYPE, None, "type 26 ('s12') has more than 11 ancestors",
         alter=types(*(StructType(f"s{n}", 13 + n if n else None) for n in range(13)))),
    Case(VerifyCode.DECLARED_TYPE, None,
         "type 14 ('b[]') has elements of type b, which is not declared before it",
         alter=types(ArrayType(Reference(15, "b")), StructType("b"))),
    Case(VerifyCode.DECLARED_TYPE, None, "65537 types are declared, at most 65536",
         alter=types(*[StructType("a")] * 65537)),
    Case(VerifyCode.UNKNOWN_TYPE, None,
         "static 's' has type node, number 14: the program has no such type",
         alter=replace(statics=(Static("s", Reference(14, "node")),))),
    Case(VerifyCode.UNKNOWN_TYPE, None,
         "struct 'a' has type node, number 14: the program has no such type",
         alter=types(StructType("a", None, (Field("x", Reference(14, "node")),)))),
    Case(VerifyCode.STATIC_BITS, None, "static 's' starts with 0x8, not an anyref",
         alter=replace(statics=(Static("s", ANYREF, 8),))),
    Case(VerifyCode.IMMEDIATE, 0, "ref.null: reference type 14 is not below 14",
         alter=poke(0, "ref.null", 14)),
    Case(VerifyCode.IMMEDIATE, 0,
         "struct.new: f64[] is no struct that the program declares", alter=poke(0, "struct.new", 11)),
    Case(VerifyCode.IMMEDIATE, 0,
         "array.new_ref: type 99 is no array of references that the program declares",
         alter=poke(0, "array.new_ref", 99)),
    Case(VerifyCode.IMMEDIATE, 0, "struct.get: struct 'node' has 1 fields, not this one",
         NODE + ".function main / nop / halt", poke(0, "struct.get", 14 << 32 | 16)),
    Case(VerifyCode.IMMEDIATE, 0, "struct.get: struct 'node' has 1 fields, not this one",
         NODE + ".function main / nop / halt", poke(0, "struct.get", 14 << 32 | 4)),
    Case(VerifyCode.IMMEDIATE, 0,
         "struct.new: launch.piece is no struct that the program declares",
         alter=poke(0, "struct.new", 13)),
    Case(VerifyCode.ITEM_SIGNATURE, 2,
         "launch.item: function 'f' takes an item: (i64 ...) -> () expected, found (i32) -> ()",
         ".function main / i64.const 1 / launch.begin / launch.item f / halt"
         " / .function f (a i32) / return"),
    Case(VerifyCode.ITEM_SIGNATURE, 2,
         "launch.item: function 'f' takes an item: (i64 ...) -> () expected, found (i64) -> (i64)",
         ".function main / i64.const 1 / launch.begin / launch.item f / halt"
         " / .function f (a i64) -> i64 / local.get a / return"),
    Case(VerifyCode.OPERAND_TYPE, 3, "launch.item: operand of type f64 expected, found i64",
         ".function main / i64.const 1 / i64.const 1 / launch.begin / launch.item f / halt"
         " / .function f (a i64, b f64) / return"),
    Case(VerifyCode.OPERAND_TYPE, 1, "struct.get: operand of type node expected, found other",
         NODE + ".function main / ref.null other / struct.get node.value / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "struct.get: operand of type leaf expected, found node",
         NODE + ".function main / ref.null node / struct.get leaf.more / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "struct.new: operand of type i64 expected, found i32",
         NODE + ".function main / i32.const 1 / struct.new node / halt"),
    Case(VerifyCode.UNDERFLOW, 1, "struct.new: operand of type i64 expected, the stack is empty",
         NODE + ".function main / i64.const 1 / struct.new leaf / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "i64.eqz: operand of type i64 expected, found node",
         NODE + ".function main / ref.null node / i64.eqz / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "ref.is_null: operand of type anyref expected, found i64",
         ".function main / i64.const 0 / ref.is_null / halt"),
    Case(VerifyCode.OPERAND_TYPE, 2, "array.get_u8: operand of type u8[] expected, found i8[]",
         ".function main / ref.null i8[] / i64.const 0 / array.get_u8 / halt"),
    Case(VerifyCode.OPERAND_TYPE, 2,
         "array.get_ref: operand of type node[] expected, found leaf[]",
         NODE + ".function main / ref.null leaf[] / i64.const 0 / array.get_ref node[] / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "local.set: operand of type leaf expected, found node",
         NODE + ".function main / .local leaf / ref.null node / local.set 0 / halt"),
    Case(VerifyCode.OPERAND_TYPE, 2, "static.set: operand of type node expected, found anyref",
         NODE + ".static s node / .function main / nop / ref.null anyref / static.set s / halt"),
    Case(VerifyCode.OPERAND_TYPE, 3, "select: operand of type node expected, found i64",
         NODE + ".function main / i64.const 1 / ref.null node / i32.const 1 / select / halt"),
    Case(VerifyCode.OPERAND_TYPE, 6, "struct.get: operand of type node expected, found other",
         NODE + ".function main / i32.const 1 / jump_if a / ref.null node / jump b / :a / "
         "ref.null other / nop / :b / struct.get node.value / halt"),
    Case(VerifyCode.OPERAND_TYPE, 1, "struct.get: operand of type leaf expected, found node",
         NODE + ".function main / ref.null leaf / :a / struct.get leaf.more / drop / ref.null node / "
         "jump a"),
    Case(VerifyCode.JOIN, 6, "halt: operands are (node) one way, (i64) from pc 3",
         NODE + ".function main / i32.const 1 / jump_if a / i64.const 1 / jump b / :a / "
         "ref.null node / nop / :b / halt"),
    Case(VerifyCode.STATIC_TYPES, 1,
         "static.load: every static must be i64 for statics to be numbered at run time",
         ".static a i64 / .static b anyref / .function main / i64.const 0 / static.load / halt"),
]  # fmt: skip


def test_more_statics_than_the_limit_are_refused(
    assemble: Callable[[str], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert structure.MAX_STATICS == 1 << 24
    monkeypatch.setattr(structure, "MAX_STATICS", 2)  # sixteen million take seconds
    text = ".static {} i64 / .static b i64 / .function main / halt"
    verify(assemble(text.format("a")))
    with pytest.raises(VerifyError, match="3 statics, at most 2") as caught:
        verify(assemble(text.format("a i64 / .static c")))
    assert caught.value.code is VerifyCode.STATIC_BITS


@together("case", CASES)
def test_refusal_has_its_code_place_and_message(
    case: Case, assemble: Callable[[str], Program]
) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(case.alter(assemble(case.text)))
    where = "" if case.pc is None else f" at pc {case.pc}"
    assert (caught.value.code, caught.value.pc) == (case.code, case.pc)
    assert str(caught.value) == f"{case.code.value}{where}: {case.message}"


def test_every_code_has_a_case() -> None:
    assert {case.code for case in CASES} == set(VerifyCode)


def test_codes_are_stable_and_each_its_own() -> None:
    values = [code.value for code in VerifyCode]
    assert len(set(values)) == len(values)
    assert " ".join(values) == (
        "V01 V02 V03 V04 V05 V06 V07 V08 V10 V11 V12 V13 V20 V21 V22 V23 V30 V31 V33 V34 "
        "V35 V40 V41 V42 V43 V44 V45 V46"
    )


def test_function_may_have_as_many_locals_as_the_limit_says() -> None:
    program = ferryvm.assemble(".function main\nhalt")
    main = dataclasses.replace(program.functions[0], locals=(I64,) * MAX_LOCALS)
    verified = verify(dataclasses.replace(program, functions=(main,)))
    assert verified.frame_words[0] == 2 + MAX_LOCALS


def test_refusal_of_an_instruction_names_its_source_position() -> None:
    program = ferryvm.assemble(".function main\n    i64.add\n    halt\n", "bad.fasm")
    with pytest.raises(VerifyError) as caught:
        verify(program)
    assert caught.value.position == Position("bad.fasm", 2, 5)
    assert str(caught.value) == (
        "V30 at pc 0 (bad.fasm:2:5): i64.add: operand of type i64 expected, the stack is empty"
    )


def test_faults_of_tables_and_immediates_come_before_those_of_flow(
    assemble: Callable[[str], Program],
) -> None:
    program = poke(2, None, 9)(assemble(".function main / i64.add / halt / jump a / :a / halt"))
    with pytest.raises(VerifyError) as caught:
        verify(program)
    assert (caught.value.code, caught.value.pc) == (VerifyCode.IMMEDIATE, 2)


def test_first_of_two_bad_immediates_is_named(assemble: Callable[[str], Program]) -> None:
    program = assemble(".function main / halt / nop / jump a / :a / halt")
    with pytest.raises(VerifyError) as caught:
        verify(poke(2, None, 9)(poke(1, None, 5)(program)))
    assert (caught.value.code, caught.value.pc) == (VerifyCode.IMMEDIATE, 1)


def test_largest_values_that_are_allowed_pass(assemble: Callable[[str], Program]) -> None:
    text = (
        ".static s i32 / .function main / .local i64 / i32.const 0xffffffff / static.set 0"
        " / f32.const bits:0xffffffff / drop / i64.const -1 / f64.const bits:0xffffffffffffffff"
        " / drop / i64.load 0xffffffff / local.set 0 / halt"
    )
    program = dataclasses.replace(
        assemble(text),
        data=(Data(MAX_DATA_END - 1, b"a"), Data(0, b"")),
        hosts=(HostImport("h", Signature((I32,) * MAX_PARAMETERS, (I64,))),),
        source_map=SourceMap(("f",), ((1 << 31, 0, 1, 1),)),
    )
    assert verify(program).frame_words == (2 + 1 + 2,)
