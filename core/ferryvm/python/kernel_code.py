# SPDX-License-Identifier: Apache-2.0
"""Code of barriers and launches of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.build import Label
from ferryvm.python.dead_local import DeadLocals, VersionKey
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.graph import Barrier, Block, Call, Launch, Statement
from ferryvm.python.kernel_source import KernelFunction, needs_item
from ferryvm.python.kind import INT
from ferryvm.python.pause import Point
from ferryvm.python.work_item import barrier

if TYPE_CHECKING:
    from ferryvm.python.code import Code, Functions


def is_waiting(statement: Statement) -> bool:
    """True for a barrier, and for a call of a function that may wait."""
    if isinstance(statement, Call) and isinstance(statement.function, KernelFunction):
        return needs_item(statement.function.function, lambda value: value is barrier)
    return isinstance(statement, Barrier)


class SharedBarrier:
    """One instruction for several versions of a barrier, see `barrier_version`."""

    def __init__(self, statement: Statement, block: Block, number: int, of: int) -> None:
        """`of`: the number of the class. Raises NotCompilableError for a call, whose places in the versions
        are different ones."""
        if not isinstance(statement, Barrier):
            message = (
                "items of a group may wait here with variables of different types, such as a float and a "
                "numpy.float64; give each variable one type, as in numpy.float64(0.0)"
            )
            raise NotCompilableError(statement.node, message)
        self._node, self._block, self._number = statement.node, block, number
        self._key = "shared barrier", of
        self._versions: list[tuple[Label, VersionKey]] = []
        self._label: Label | None = None

    def come(self, b: Code, behind: Label, version: VersionKey, dead: DeadLocals) -> None:
        """Come from a version, and go on behind the barrier in another one."""
        if self._label is None:
            self._label = b.f.label()
        b.f.i64_const(len(self._versions))
        b.f.local_set(b.scratch("%version"))
        self._versions.append((behind, version))
        dead.leads_to(self._key)
        b.f.jump(self._label)

    def emit(self, b: Code, dead: DeadLocals) -> Point:
        """Add the instruction and what follows; the place of the statement."""
        assert self._label is not None
        b.f.place(self._label)
        assert self._label.pc is not None
        dead.at(self._label.pc, self._key, self._block, ())
        b.at(self._node)
        b.f.barrier()
        for number, (behind, version) in enumerate(self._versions):
            dead.leads_to(version)
            if number == len(self._versions) - 1:
                b.f.jump(behind)
                continue
            b.f.local_get(b.scratch("%version"))
            b.f.i64_const(number)
            b.f.i64_eq()
            b.f.jump_if(behind)
        return Point(self._label.pc, self._block, self._number, {})


def emit(b: Code, statement: Barrier | Launch, functions: Functions) -> None:
    """Add the code of a statement."""
    b.has_effect()
    if isinstance(statement, Barrier):
        b.f.barrier()
        return
    sizes, arguments = statement.sizes, statement.arguments
    kinds = (*(INT for _ in sizes), *map(b.kind, arguments))
    found = functions.compiled(statement.function, kinds, frozenset(), None, statement.node)
    for each in (*arguments, *sizes):
        b.push(each)
    b.at(statement.node)
    b.f.launch(found.function, len(sizes))
