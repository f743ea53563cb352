# SPDX-License-Identifier: Apache-2.0
"""Register-file assignment: the file of each register.

Files have few ports, so operands that one operation reads together are put into different files
where necessary; where that is impossible, a move copies one of them to another file. (A greedy
colouring of the graph of registers that are read together, as in Hiser, Carr, Sweany: Global
Register Partitioning, PACT 2000.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

from ferryvm.backend import RefusalError
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.machine.model import FileKind, Machine, RegisterFile


class FileAssignment:
    """The files of code's registers, which are given one as they come."""

    def __init__(self, code: MachineCode, machine: Machine) -> None:
        self.code, self.machine = code, machine
        self.files: dict[FileKind, list[RegisterFile]] = defaultdict(list)
        for file in machine.files:
            self.files[file.kind].append(file)
        self.together: dict[Register, Counter[Register]] = {}
        """For each register without a file the registers that are read together with it."""
        self.load: Counter[str] = Counter()
        self._separated: dict[MachineBlock, list[MachineOperation]] = {}
        """Operations of blocks that read no more registers of a file than it has ports."""

    def run(self, apart: Collection[MachineBlock]) -> None:
        """Assign a file to each register without one. Raises RefusalError if there is none.

        `apart`: blocks that get no moves, since they handle ports themselves.
        """
        self.load.clear()
        for register, count in self._without_file().most_common():
            self._choose(register, count)
        for block in self.code.blocks:
            if block not in apart and self._separated.get(block) is not block.operations:
                self._separate(block)
                self._separated[block] = block.operations

    def _without_file(self) -> Counter[Register]:
        """Registers without a file, and how much each is used."""
        uses: Counter[Register] = Counter()
        self.together = defaultdict(Counter)
        for block in self.code.blocks:
            if self._separated.get(block) is block.operations:
                continue  # they all have one
            weight = 1 if block.is_cold else 16
            for operation in block.operations:
                result = operation.result
                if result is not None and not result.file:
                    uses[result] += weight
                read = dict.fromkeys(operation.registers())  # in order: ties are settled by it
                for register in read:
                    if not register.file:
                        uses[register] += weight
                        for other in read.keys() - {register}:
                            self.together[register][other] += weight
        return uses

    def _choose(self, register: Register, count: int) -> None:
        files = self.files[register.kind]
        if not files:
            raise RefusalError(f"the machine {self.machine.name} has no {register.kind.value} file")
        beside: Counter[str] = Counter()
        for other, weight in self.together[register].items():
            beside[other.file] += weight
        best = min(
            files, key=lambda f: (beside[f.name] / f.read_ports, self.load[f.name] / f.registers)
        )
        register.file = best.name
        self.load[best.name] += count

    def _separate(self, block: MachineBlock) -> None:
        """Limit the registers of a file that an operation reads to its ports."""
        operations: list[MachineOperation] = []
        for operation in block.operations:
            operations += self._constants(operation)
            read = dict.fromkeys(operation.registers())
            if len(read) == 1:
                operations.append(operation)
                continue
            taken: Counter[str] = Counter()
            for register in read:
                if taken[register.file] < self.machine.file(register.file).read_ports:
                    taken[register.file] += 1
                    continue
                copy = self._copy(register, taken)
                operations.append(MachineOperation("move", (), (register,), copy, pc=operation.pc))
                operation.operands = tuple(
                    copy if each is register else each for each in operation.operands
                )
                taken[copy.file] += 1
            operations.append(operation)
        block.operations = operations

    def _constants(self, operation: MachineOperation) -> Iterator[MachineOperation]:
        """Moves for the constants of an operation that exceed the capacity of a bundle."""
        while len(found := operation.constants()) > self.machine.immediates:
            constant = found[-1]
            kind = operation.kind_of(operation.operands.index(constant))
            register = self.code.register(kind, is_spill=True)
            self._choose(register, 1)
            yield MachineOperation("move", (), (constant,), register, pc=operation.pc)
            operation.operands = tuple(register if o == constant else o for o in operation.operands)

    def _copy(self, register: Register, taken: Counter[str]) -> Register:
        copy = self.code.register(register.kind, is_spill=True)
        for file in self.files[register.kind]:
            if taken[file.name] < file.read_ports:
                copy.file = file.name
                return copy
        raise RefusalError(
            f"the files of the machine {self.machine.name} have too few read ports for an operation"
        )
