# SPDX-License-Identifier: Apache-2.0
"""Wrappers of backends, artifacts and code that delegate to the wrapped object.

    InterpreterWrapper ── prepare ──> ArtifactWrapper
    CompilerWrapper    ── compile ──> CodeWrapper

A subclass overrides only what differs. Invariant: every method of the contract in
`ferryvm.backend` is delegated, since a missing one would return the contract's default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ferryvm.backend import (
    Activity,
    Artifact,
    Backend,
    Code,
    Compiler,
    DirectEntry,
    Finding,
    Forcing,
    Interpreter,
    Options,
)
from ferryvm.machine.control import Status
from ferryvm.machine.python_call import CallForm
from ferryvm.machine.state import Machine
from ferryvm.program import Signature
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.item_range import RangeRunner
    from ferryvm.machine.chunk import ChunkLoop
    from ferryvm.machine.control import ControlBlock
    from ferryvm.machine.slot_code import SlotCode
    from ferryvm.region.region import Region


class _BackendWrapper(Backend):
    """The base of both kinds; it copies the attributes when it is created."""

    inner: Backend

    def __init__(self, inner: Backend) -> None:
        self.name, self.version, self.protocol = inner.name, inner.version, inner.protocol
        self.capabilities = inner.capabilities
        self.inner = inner

    def probe(self) -> str | None:
        return self.inner.probe()

    def examine(self) -> Sequence[Finding]:
        return self.inner.examine()


class InterpreterWrapper(_BackendWrapper, Interpreter):
    """An interpreter that delegates to another one."""

    inner: Interpreter

    def __init__(self, inner: Interpreter) -> None:
        super().__init__(inner)

    def accepts(self, program: Verified) -> str | None:
        return self.inner.accepts(program)

    def prepare(self, program: Verified) -> Artifact:
        return self.wrapped(program, self.inner.prepare(program))

    def prepare_soon(self, program: Verified) -> Artifact:
        return self.wrapped(program, self.inner.prepare_soon(program))

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        return self.wrapped(program, self.inner.prepare_forced(program, forcing))

    def wrapped(self, program: Verified, artifact: Artifact) -> Artifact:
        """The artifact that wraps an artifact of the inner interpreter."""
        return artifact


class ArtifactWrapper(Artifact):
    """An artifact that delegates to another one."""

    def __init__(self, inner: Artifact) -> None:
        self.inner = inner

    def native_callers(self, imports: Mapping[int, Signature]) -> Mapping[int, int] | None:
        return self.inner.native_callers(imports)

    def collector(self) -> int | None:
        return self.inner.collector()

    def item_writer(self) -> int | None:
        return self.inner.item_writer()

    def host_loop(self) -> int | None:
        return self.inner.host_loop()

    def bind_slots(self, control: ControlBlock) -> SlotCode | None:
        return self.inner.bind_slots(control)

    def python_caller(self, form: CallForm) -> int | None:
        return self.inner.python_caller(form)

    @property
    def waited(self) -> float:  # type: ignore[override]  # it is the inner one that waits
        return self.inner.waited

    @property
    def compiled(self) -> float:  # type: ignore[override]  # it is the inner one that has compilers
        return self.inner.compiled

    def enter(self, machine: Machine, counting: bool) -> Status:
        return self.inner.enter(machine, counting)

    def direct(self, machine: Machine, counting: bool) -> DirectEntry | None:
        if type(self).enter is not ArtifactWrapper.enter:
            return None  # it would bypass a subclass's actions on entry
        return self.inner.direct(machine, counting)

    def count(self, pc: int, times: int, counting: bool) -> None:
        self.inner.count(pc, times, counting)

    def counted(self, pc: int, counting: bool) -> int:
        return self.inner.counted(pc, counting)

    def install(self, pc: int, address: int, counting: bool) -> None:
        self.inner.install(pc, address, counting)

    def remove(self, pc: int, counting: bool) -> None:
        self.inner.remove(pc, counting)

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        return self.inner.metrics()


class CompilerWrapper(_BackendWrapper, Compiler):
    """A compiler that delegates to another one."""

    inner: Compiler

    def __init__(self, inner: Compiler) -> None:
        super().__init__(inner)
        self.stages, self.pictures = inner.stages, inner.pictures

    def accepts(self, region: Region) -> str | None:
        return self.inner.accepts(region)

    def compile(self, region: Region, options: Options) -> Code:
        return self.inner.compile(region, options)

    def chunk_loop(self) -> ChunkLoop | None:
        return self.inner.chunk_loop()

    def warm_up(self) -> None:
        self.inner.warm_up()

    def check_device(self, device: str) -> None:
        self.inner.check_device(device)

    def device_names(self) -> Sequence[str]:
        return self.inner.device_names()

    def versions(self, device: str) -> Mapping[str, str]:
        return self.inner.versions(device)

    def report(self, all_metrics: Sequence[object]) -> Mapping[str, object]:
        return self.inner.report(all_metrics)

    def show(self, region: Region, options: Options, stage: str) -> str:
        return self.inner.show(region, options, stage)

    def picture(self, region: Region, options: Options, stage: str) -> str:
        return self.inner.picture(region, options, stage)


class CodeWrapper(Code):
    """Code that delegates to another one, with the same address."""

    def __init__(self, inner: Code) -> None:
        self.inner = inner
        self.address, self.notes = inner.address, inner.notes
        self.is_from_cache = inner.is_from_cache
        self.lanes, self.scalar = inner.lanes, inner.scalar
        self.ungrouped, self.limited = inner.ungrouped, inner.limited
        self.one_by_one = inner.one_by_one

    @property
    def lost(self) -> str:
        return self.inner.lost

    @property
    def long(self) -> str:
        return self.inner.long

    @property
    def ranges(self) -> RangeRunner | None:
        return self.inner.ranges

    def activity(self) -> Activity:
        return self.inner.activity()

    def metrics(self) -> object:
        return self.inner.metrics()
