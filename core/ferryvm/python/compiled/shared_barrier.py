# SPDX-License-Identifier: Apache-2.0
"""Code of a barrier to which items of a group come from several versions, see `barrier_version`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.build import Label
from ferryvm.python.codegen import group_operation_code
from ferryvm.python.compiled.pause import Point
from ferryvm.python.control_flow.dead_local import DeadLocals, VersionKey
from ferryvm.python.control_flow.graph import Barrier, Block, GroupOperation, Statement
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import Scalar

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_DIFFERENT = (
    "items of a group may wait here with variables of different types, such as a float and a "
    "numpy.float64; give each variable one type, as in numpy.float64(0.0)"
)


class SharedBarrier:
    """One instruction for several versions of a barrier, or of an operation of a group."""

    def __init__(self, statement: Statement, block: Block, number: int, of: int) -> None:
        """`of`: the number of the class. Raises NotCompilableError for a call, whose places in the
        versions are different ones."""
        if not isinstance(statement, Barrier | GroupOperation):
            raise NotCompilableError(statement.node, _DIFFERENT)
        self._statement, self._block, self._number = statement, block, number
        self._element: Scalar | None = None
        """The values that items combine."""
        self._key = "shared barrier", of
        self._versions: list[tuple[Label, VersionKey]] = []
        self._label: Label | None = None

    def prepare(self, b: Code) -> None:
        """Add what a version does before the barrier. Raises NotCompilableError for values that
        cannot be combined with those of other versions."""
        if isinstance(self._statement, GroupOperation):
            element = group_operation_code.prepare(b, self._statement)
            if self._element not in (None, element):
                raise NotCompilableError(self._statement.node, _DIFFERENT)
            self._element = element
            b.env[self._statement.name] = element

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
        b.at(self._statement.node)
        if isinstance(self._statement, GroupOperation):
            assert self._element is not None
            group_operation_code.perform(b, self._statement, self._element)
        else:
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
