# SPDX-License-Identifier: Apache-2.0
"""Entry stubs: functions through which a program is entered from outside.

    f          (i64 i64) -> (f64)     an exported function
    its stub   (i64 i64) -> ()        local.get 0, local.get 1, call f, halt

A stub has the parameters of its function and never returns: it halts, with the results on its
operand stack. It is an ordinary function, so every backend can enter it, and for a state saved
inside it the stack map gives the types of the results. Stubs follow all other code, so numbers and
pcs of the program are unchanged. docs/decisions/2026-11-25-embedding.md has the alternatives.
"""

from __future__ import annotations

import dataclasses
from array import array

from ferryvm.errors import FerryError
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.frame import word_of
from ferryvm.program import Code, Function, Program, Signature, SourceMap

_GET, _CALL, _HALT = (BY_MNEMONIC[name].opcode for name in ("local.get", "call", "halt"))
_MASK = (1 << 64) - 1


def stub_name(export: str) -> str:
    """The name of the entry stub of an export, as stack traces show it."""
    return f"<call of {export}>"


def with_entry_stubs(program: Program) -> Program:
    """The program with a stub for each export that has none. Raises FerryError where its own code
    calls a function with the name of one: a collection tells by that who entered a frame."""
    names = {function.name for function in program.functions}
    opcodes: list[int] = []
    immediates: list[int] = []
    signatures = {signature: number for number, signature in enumerate(program.signatures)}
    functions = list(program.functions)
    size = len(program.code)
    for export in program.exports:
        name = stub_name(export.name)
        if name in names:  # the program of a saved state has them already
            _check_not_called(program, name)
            continue
        parameters = program.signature(export.function).parameters
        signature = signatures.setdefault(Signature(parameters), len(signatures))
        functions.append(Function(name, size + len(opcodes), signature))
        count = len(parameters)
        opcodes += [_GET] * count + [_CALL, _HALT]
        immediates += [word_of(number, count) & _MASK for number in range(count)]
        immediates += [export.function, 0]
    if not opcodes:
        return program
    source_map = program.source_map
    if size and source_map.position(size - 1) is not None:
        nowhere = SourceMap(rows=[(size, 0, 0, 0)])
        content = source_map.tobytes() + nowhere.tobytes()
        source_map = SourceMap.packed(source_map.files, content)
    added = array("Q", bytes(16 * len(opcodes)))
    added[0::2], added[1::2] = array("Q", opcodes), array("Q", immediates)
    return dataclasses.replace(
        program,
        code=Code(program.code.tobytes() + added.tobytes()),
        functions=tuple(functions),
        signatures=tuple(signatures),
        source_map=source_map,
    )


def _check_not_called(program: Program, name: str) -> None:
    numbers = {n for n, function in enumerate(program.functions) if function.name == name}
    code = program.code
    called = {
        immediate
        for opcode, immediate in zip(code.opcodes, code.immediates, strict=True)
        if opcode == _CALL
    }
    if not numbers.isdisjoint(called | {*program.table}):
        raise FerryError(f"function {name!r} has the name of an entry stub, and is called")
