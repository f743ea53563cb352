# SPDX-License-Identifier: Apache-2.0
"""Backends that record when they get control, so that one that ends the process can be named."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

from ferryvm.backend import (
    Artifact,
    Backend,
    Code,
    Compiler,
    Interpreter,
    Options,
    RefusalError,
)
from ferryvm.engine.runnable import runnable
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.policy import Policy
from ferryvm.region.region import Region
from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.mixed import MixedRegistry
from ferryvm.verify import Verified
from ferryvm.wrapper import ArtifactWrapper, CompilerWrapper, InterpreterWrapper


@dataclasses.dataclass(frozen=True)
class CompilerFault:
    """A compiler failed at a region."""

    error: Exception
    program: Verified


@dataclasses.dataclass
class Effort:
    """The effort of compilers in the current trial."""

    quick: bool = False
    """As `Options.quick`."""


class WatchedRegistry(MixedRegistry):
    """A registry whose backends are watched; a compiler comes with the interpreter it needs."""

    def __init__(self, notes: Notes, policy: Policy | None = None) -> None:
        """`notes`: the record of each time that one of its backends gets control."""
        super().__init__(policy, discover=False)
        self._notes, self._inner = notes, _WithCompilers(notes, policy)
        self._watched: dict[str, _WatchedBackend] = {}
        self.effort = self._inner.effort
        self.compiler_faults = self._inner.compiler_faults
        """Exceptions of compilers: comparisons have them without the traceback."""

    def get(self, name: str) -> Backend:
        """As a registry's, watched, and probed once: every program asks for it."""
        if name not in self._watched:
            if name not in self._notes.names:
                return self._inner.get(name)
            backend, number = runnable(self._inner, name), self._notes.names.index(name)
            self._watched[name] = _WatchedBackend(backend, lambda: self._notes.enter(number))
        return self._watched[name]


class _WithCompilers(MixedRegistry):
    """The registry in which mixed execution finds its compilers."""

    def __init__(self, notes: Notes, policy: Policy | None) -> None:
        super().__init__(policy)
        self._notes, self.compiler_faults = notes, list[CompilerFault]()
        self.effort = Effort()

    def get(self, name: str) -> Backend:
        backend = super().get(name)
        if not isinstance(backend, Compiler):
            return backend
        return _WatchedCompiler(backend, self._notes, self.compiler_faults, self.effort)


class _WatchedBackend(InterpreterWrapper):
    def __init__(self, inner: Interpreter, note: Callable[[], None]) -> None:
        super().__init__(inner)
        self._note = note

    def probe(self) -> str | None:
        return None  # it was found usable at its first use

    def accepts(self, program: Verified) -> str | None:
        self._note()
        return self.inner.accepts(program)

    def wrapped(self, program: Verified, artifact: Artifact) -> Artifact:
        return _WatchedArtifact(artifact, self._note)


class _WatchedArtifact(ArtifactWrapper):
    def __init__(self, inner: Artifact, note: Callable[[], None]) -> None:
        super().__init__(inner)
        self._note = note

    def enter(self, machine: Machine, counting: bool) -> Status:
        self._note()
        return self.inner.enter(machine, counting)


class _WatchedCompiler(CompilerWrapper):
    """A compiler whose regions are counted, and not cached on disk: they are never needed again."""

    def __init__(
        self, inner: Compiler, notes: Notes, faults: list[CompilerFault], effort: Effort
    ) -> None:
        super().__init__(inner)
        self._notes, self._faults, self._effort = notes, faults, effort

    def accepts(self, region: Region) -> str | None:
        with self._watched(region):
            return self.inner.accepts(region)

    def compile(self, region: Region, options: Options) -> Code:
        with self._watched(region):
            wanted = dataclasses.replace(options, cache=False, quick=self._effort.quick)
            code = self.inner.compile(region, wanted)
        self._notes.compile()
        return code

    @contextlib.contextmanager
    def _watched(self, region: Region) -> Iterator[None]:
        try:
            yield
        except RefusalError:
            raise
        except Exception as error:
            self._faults.append(CompilerFault(error, region.verified))
            raise
