# SPDX-License-Identifier: Apache-2.0
"""Functions that are added to a program, in bytecode: what is exported, and what the reference
interpreter calls."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Sequence

from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import ValueType
from ferryvm.program import Code, Export, Function, Program, Signature, SourceMap

MASK = (1 << 64) - 1
"""Of an immediate."""

_HALT = BY_MNEMONIC["halt"].opcode


class Wrapper:
    """A function under construction, behind the code of a program. Its parameters are the first
    locals."""

    def __init__(
        self, program: Program, name: str, parameters: Sequence[ValueType], names: Sequence[str]
    ) -> None:
        self._program, self._name, self._names = program, name, names
        self._parameters = tuple(parameters)
        self._locals: list[ValueType] = []
        self._code: list[tuple[int, int]] = []

    def emit(self, mnemonic: str, immediate: int = 0) -> None:
        """Append an instruction."""
        self._code.append((BY_MNEMONIC[mnemonic].opcode, immediate & MASK))

    def local(self, t: ValueType) -> int:
        """The number of a new local."""
        self._locals.append(t)
        return len(self._parameters) + len(self._locals) - 1

    def get(self, *locals_: int) -> None:
        """Push locals."""
        for local in locals_:
            self.emit("local.get", word_of(local, len(self._parameters)))

    def set(self, local: int) -> None:
        """Pop into a local."""
        self.emit("local.set", word_of(local, len(self._parameters)))

    def launch(self, function: int, arguments: int) -> None:
        """Launch a function, with so many shared arguments and the number of items on the stack."""
        test = len(self._program.code) + len(self._code) + 1
        self.emit("launch.begin")
        self.emit("launch.test")
        self.emit("jump_unless", test + 5)
        self.emit("launch.item", function)
        self.emit("call", function)
        self.emit("jump", test)
        for _ in range(LAUNCH_WORDS + arguments):
            self.emit("drop")

    def finish(self, results: Sequence[ValueType] = ()) -> Program:
        """The program with the function, whose last one it is, returning what is on the stack."""
        self.emit("return", return_immediate(len(self._parameters), len(results)))
        signature = Signature(self._parameters, tuple(results))
        return with_function(
            self._program, self._name, signature, self._code, self._names, tuple(self._locals)
        )


def with_function(
    program: Program,
    name: str,
    signature: Signature,
    code: Sequence[tuple[int, int]],
    names: Sequence[str],
    locals_: tuple[ValueType, ...] = (),
    origins: Sequence[int] = (),
) -> Program:
    """The program with one more function, which is its only export, and a start function that
    halts.

    `origins`: the instructions whose source positions its own have.
    """
    size = len(program.code)
    signatures = {signature: place for place, signature in enumerate(program.signatures)}
    own = signatures.setdefault(signature, len(signatures))
    function = Function(name, size, own, locals_, tuple(names))
    start = dataclasses.replace(program.functions[0], entry=size + len(code), locals=())
    added = array("Q", bytes(16 * (len(code) + 1)))
    added[0::2] = array("Q", [*(opcode for opcode, _ in code), _HALT])
    added[1::2] = array("Q", [*(immediate for _, immediate in code), 0])
    files = {name: number for number, name in enumerate(program.source_map.files)}
    places = [program.source_map.position(origin) for origin in origins]
    placed = [
        (size + at, files[place.file] if place else 0, *(place[1:] if place else (0, 0)))
        for at, place in enumerate(places)
    ]
    placed.append((size + len(places), 0, 0, 0))
    rows = program.source_map.tobytes() + SourceMap(rows=placed).tobytes()
    return dataclasses.replace(
        program,
        code=Code(program.code.tobytes() + added.tobytes()),
        functions=(start, *program.functions[1:], function),
        signatures=tuple(signatures),
        exports=(Export(name, len(program.functions)),),
        source_map=SourceMap.packed(program.source_map.files, rows),
    )
