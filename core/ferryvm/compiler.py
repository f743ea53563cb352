# SPDX-License-Identifier: Apache-2.0
"""The base of compilers that work from the region IR: what is the same whatever they emit.

    compile ── limits ──> Compilation ── key ──> cache ──┬─ found ──────────────> load ─> Code
                               │                         └─ build ─> keep, once loaded ─┘
                               └─ module (lift, passes) ─> lowered    each once, if it is needed

A compiler says what differs in a `Target`: an object with `lower`, `build` and `load`. There is no
hierarchy of compilers: `RegionCompiler` calls the target and inherits nothing from it. A backend
that has no use for the IR implements `ferryvm.backend.Compiler` itself.

Invariant: code that the cache gives is what `build` would yield, since the key covers all that it
depends on; a step is charged to its name once, however often its result is used.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import gc
import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ferryvm import cache
from ferryvm.backend import BackendError, Code, Compiler, Options, TooLargeError

if TYPE_CHECKING:
    from ferryvm.ir.graph import Module
    from ferryvm.region.region import Region

__all__ = ["IR", "Compilation", "RegionCompiler", "Target", "code_facts", "lifted"]

IR = "ir"
"""The stage that every compiler has: the region IR that it lowers."""

L = TypeVar("L")
"""Type of a target's lowered code: a text, a module, operations."""

_log = logging.getLogger("ferryvm")


def lifted(
    region: Region,
    options: Options,
    *,
    least: int = 0,
    unrolled: bool = False,
    remarks: bool = False,
) -> Module:
    """The region IR, improved by the passes that every compiler shares.

    `least`: the lowest level at which they are run; `unrolled`, `remarks`: as for
    `ferryvm.ir.passes.optimise`.
    """
    from ferryvm.ir.lift import lift
    from ferryvm.ir.passes import optimise

    module = lift(region, options.counting, options.unseen)
    level = max(options.optimize, least)
    optimise(
        module, level, region.verified, unrolled=unrolled, check=options.check, remarks=remarks
    )
    return module


def code_facts(region: Region, options: Options) -> list[str | bytes]:
    """The facts of program and options that the code of a region depends on: facts for
    `ferryvm.cache.key`, to which a compiler adds its own version and what it compiles for.

    Where code is kept and whether the IR is verified does not matter for what it is.
    """
    from ferryvm.region.fingerprint import fingerprint

    chosen = (
        options.optimize,
        options.counting,
        sorted(options.unseen),
        options.guard_limit,
        options.observe,
        sorted(kind.value for kind in options.forcing),
        options.device,
        options.quick,
    )
    return [repr(chosen), *fingerprint(region)]


class Compilation(Generic[L]):
    """A region on its way to code."""

    def __init__(
        self, target: Target[L], region: Region, options: Options, notes: dict[str, float]
    ) -> None:
        """`notes`: gets the seconds of each step, by name."""
        self.target, self.region, self.options, self.notes = target, region, options, notes
        self._last = time.perf_counter()

    def step(self, name: str = "") -> None:
        """Charge the time since the last step to the step of this name; without one, to none."""
        now = time.perf_counter()
        if name:
            self.notes[name] = self.notes.get(name, 0.0) + now - self._last
        self._last = now

    @functools.cached_property
    def module(self) -> Module:
        """The IR that is lowered."""
        self.target.prepare()
        self.step()
        with _collector_waiting():
            module = self.target.lift(self.region, self.options)
        self.step("lift")
        return module

    @functools.cached_property
    def lowered(self) -> L:
        """The target's lowered code."""
        _ = self.module  # charged to itself
        with _collector_waiting():
            lowered = self.target.lower(self)
        self.step(self.target.lowering)
        return lowered


class Target(abc.ABC, Generic[L]):
    """The part that differs between compilers. One is made for each compilation and may keep what
    its steps tell each other."""

    kind = ""
    """Name of its cache entries; empty: the backend's."""
    lowering, building, loading = "lower", "build", "load"
    """Names of its steps in `Code.notes`."""

    def prepare(self) -> None:
        """Import what code is made with, if it is not imported with the target. It is called before
        `lift`, and the time is charged to no step."""
        import ferryvm.ir.lift
        import ferryvm.ir.passes  # noqa: F401 - for `lifted`

    def lift(self, region: Region, options: Options) -> Module:
        """The IR that is lowered. Raises RefusalError for what it does not take after all."""
        return lifted(region, options)

    @abc.abstractmethod
    def lower(self, work: Compilation[L]) -> L:
        """The lowered code that `build` and `load` start from. Raises RefusalError likewise."""

    def key(self, work: Compilation[L]) -> str | None:
        """The key of what `build` yields, see `ferryvm.cache.key`; None: it is not kept. One that
        does without `work.lowered`, as one of `code_facts`, spares the work where code is found."""
        return None

    def fault(self, payload: bytes) -> str | None:
        """Why this is nothing that `build` yields; None if it is. Asked before `load` gets what
        the cache has, and before the cache gets what was built."""
        return None

    def build(self, work: Compilation[L]) -> bytes:
        """Code in the form in which it is kept; nothing where `load` does all. Raises
        BackendError."""
        return b""

    @abc.abstractmethod
    def load(self, work: Compilation[L], payload: bytes, found: cache.Entry | None) -> Code | None:
        """Code that can be entered; None where the compiler's next target is to be tried.

        `found`: the entry that the payload comes from, None if it was built. `is_from_cache` and
        `notes` are set by the base.
        """

    def show(self, work: Compilation[L], stage: str) -> str:
        """One of the backend's stages as text, but the IR."""
        raise NotImplementedError(f"{type(self).__name__} shows no {stage!r}")

    def picture(self, work: Compilation[L], stage: str) -> str:
        """One of the backend's pictures, as a page."""
        raise NotImplementedError(f"{type(self).__name__} has no picture of {stage!r}")


class RegionCompiler(Compiler):
    """A compiler from the region IR. Its class says what it is, `targets` how code is made."""

    stages: tuple[str, ...] = (IR,)

    @abc.abstractmethod
    def targets(self, options: Options) -> Sequence[Target[Any]]:
        """The possible targets: the first one to try, then others. Raises BackendError."""

    def warm_up(self) -> None:
        """Import what the first target takes. Raises BackendError where there is none."""
        self.targets(Options())[0].prepare()

    def compile(self, region: Region, options: Options) -> Code:
        """The region's code, found or made. Raises TooLargeError beyond the limits, and what the
        target raises."""
        from ferryvm.region.cost import too_costly

        reason = too_costly(region, self.capabilities.limits)
        if reason is not None:
            raise TooLargeError(f"{self.name}: region {region.name}: {reason}")
        notes: dict[str, float] = {}
        began = time.perf_counter()
        for target in self.targets(options):
            code = self._code(Compilation(target, region, options, notes))
            if code is not None:
                notes["total"] = time.perf_counter() - began
                code.notes = notes
                return code
        raise BackendError(f"{self.name}: region {region.name}: no target can load its code")

    def _code(self, work: Compilation[Any]) -> Code | None:
        target = work.target
        key = target.key(work) if work.options.cache else None
        entry = None if key is None else cache.Entry(target.kind or self.name, key, self.name)
        payload = None if entry is None else entry.find(target.fault)
        work.step()
        found = entry if payload is not None else None
        if payload is None:
            with _collector_waiting():
                payload = target.build(work)
            if payload:
                work.step(target.building)
        with _collector_waiting():
            code = target.load(work, payload, found)
        work.step(target.loading)
        if code is None:
            return None
        code.is_from_cache = found is not None
        if entry is not None and found is None:  # not before it has shown that it can be loaded
            reason = target.fault(payload)
            if reason is None:
                entry.keep(payload)
            else:
                _tell_not_kept(f"{self.name}: what {target} builds is not kept: {reason}")
        return code

    def show(self, region: Region, options: Options, stage: str) -> str:
        """A stage as text: the IR, or what the first target shows."""
        if stage not in self.stages:
            return super().show(region, options, stage)
        work = self._compilation(region, options)
        if stage != IR:
            return work.target.show(work, stage)
        from ferryvm.ir.text import module_text

        return module_text(work.module)

    def picture(self, region: Region, options: Options, stage: str) -> str:
        """A stage as a page, of the first target."""
        if stage not in self.pictures:
            return super().picture(region, options, stage)
        work = self._compilation(region, options)
        return work.target.picture(work, stage)

    def _compilation(self, region: Region, options: Options) -> Compilation[Any]:
        return Compilation(self.targets(options)[0], region, options, {})


@functools.cache  # once is enough
def _tell_not_kept(message: str) -> None:
    _log.warning("%s", message)


@contextlib.contextmanager
def _collector_waiting() -> Iterator[None]:
    """Suspend Python's collector of cycles: all that is made here lives to the end, and looking
    through it time and again takes a third of what lifting and lowering take."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
