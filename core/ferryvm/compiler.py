# SPDX-License-Identifier: Apache-2.0
"""The base of compilers that use the region IR: the parts that do not depend on the target.

    compile ── limits ──> Compilation ── key ──> cache ──┬─ found ──────────────> load ─> Code
                               │                         └─ build ─> keep, once loaded ─┘
                               └─ module (lift, passes) ─> lowered    each once, if it is needed

A compiler implements a `Target`, an object with `lower`, `build` and `load`. This is composition,
not inheritance: `RegionCompiler` calls the target. A backend that does not use the IR implements
`ferryvm.backend.Compiler` directly.

Invariants: code from the cache equals the result of `build`, since the key covers everything that
it depends on; a step is charged to its name once, however often its result is used.
"""

from __future__ import annotations

import abc
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ferryvm import cache
from ferryvm.backend import (
    BackendError,
    Code,
    Compiler,
    Options,
    RefusalError,
    TooLargeError,
)
from ferryvm.garbage import collector_suspended
from ferryvm.notice import Log

if TYPE_CHECKING:
    from ferryvm.ir.graph import Module
    from ferryvm.region.region import Region

__all__ = ["IR", "Compilation", "RegionCompiler", "Target", "code_facts", "lifted"]

IR = "ir"
"""The stage that every such compiler has: the region IR that it lowers."""

L = TypeVar("L")
"""Type of a target's lowered code: a text, a module, operations."""

_log = Log("ferryvm")


def lifted(
    region: Region,
    options: Options,
    *,
    least: int = 0,
    unrolled: bool = False,
    remarks: bool = False,
    natives: bool = False,
    exceptions: bool = False,
    launches: bool = False,
    items: bool = False,
    fields: bool = False,
    groups: bool = False,
    rows: bool = False,
    prepare: Callable[[Module], None] = lambda _module: None,
) -> Module:
    """The region IR, improved by the passes that every compiler shares.

    `exceptions`: the target lowers `caught`, so that calls catch what their callees throw; `least`:
    the lowest level at which they are run; `natives`: the target lowers `call_host`, so that native
    functions are called; `groups`: it lowers `release_objects`, and parallel regions of groups, see
    `ferryvm.ir.group`; `launches`: the target lowers `launch_word` and `parallel_if`; `items`: it
    runs items out of order only, so that `options.known` holds; `prepare`: a change before these
    passes; `unrolled`, `remarks`, `fields`, `rows`: as for `ferryvm.ir.passes.optimise`.
    """
    from ferryvm.ir.lift import lift
    from ferryvm.ir.passes import optimise
    from ferryvm.ir.passes.inline import inline_items

    called = options.natives if natives else ()
    left = dict(options.launches) if launches else {}
    known = options.known if launches or items else frozenset()
    module = lift(
        region, options.counting, options.unseen, called, exceptions, left, known, not items
    )
    level = max(options.optimize, least)
    if level >= 2:
        inline_items(module, region.verified.program)
        if groups:
            from ferryvm.ir.group.form import form_groups
            from ferryvm.ir.passes.item_object import release_item_objects

            for body in module.bodies:
                release_item_objects(module, body, region.verified)
            form_groups(module, region.verified)
    prepare(module)
    optimise(
        module,
        level,
        region.verified,
        unrolled=unrolled,
        check=options.check,
        remarks=remarks,
        fields=fields,
        rows=rows,
    )
    return module


def code_facts(region: Region, options: Options) -> list[str | bytes]:
    """The facts of program and options that the code of a region depends on: facts for
    `ferryvm.cache.key`, to which a compiler adds its version and its target machine.

    Options for the cache and for IR verification are not included: they do not change the code.
    """
    from ferryvm.region.fingerprint import fingerprint

    hosts = region.verified.program.hosts
    chosen = (
        options.optimize,
        options.counting,
        sorted(options.unseen),
        [(number, str(hosts[number].signature)) for number in sorted(options.natives)],
        options.guard_limit,
        options.recompile_after,
        options.observe,
        sorted(kind.value for kind in options.forcing),
        options.device,
        options.quick,
        sorted(options.launches),
        options.lanes,
        sorted(options.known),
    )
    return [repr(chosen), *fingerprint(region)]


class Compilation(Generic[L]):
    """The compilation of a region by a target; intermediate results are computed on first use."""

    def __init__(
        self, target: Target[L], region: Region, options: Options, notes: dict[str, float]
    ) -> None:
        """`notes`: receives the seconds of each step, by name."""
        self.target, self.region, self.options, self.notes = target, region, options, notes
        self._last = time.perf_counter()

    def step(self, name: str = "") -> None:
        """Charge the time since the last step to the step of this name; without a name, to none."""
        now = time.perf_counter()
        if name:
            self.notes[name] = self.notes.get(name, 0.0) + now - self._last
        self._last = now

    @functools.cached_property
    def module(self) -> Module:
        """The IR that is lowered."""
        self.target.prepare()
        self.step()
        with collector_suspended():
            module = self.target.lift(self.region, self.options)
        self.step("lift")
        return module

    @functools.cached_property
    def lowered(self) -> L:
        """The target's lowered code."""
        _ = self.module  # charged to itself
        with collector_suspended():
            lowered = self.target.lower(self)
        self.step(self.target.lowering)
        return lowered


class Target(abc.ABC, Generic[L]):
    """The target-dependent part of a compiler. Each compilation has its own target, which may hold
    state that its steps share."""

    kind = ""
    """Name of its cache entries; empty: the backend's name."""
    lowering, building, loading = "lower", "build", "load"
    """Names of its steps in `Code.notes`."""

    def prepare(self) -> None:
        """Import the libraries that generate code, unless the target's module does. It is called
        before `lift`, and the time is charged to no step."""
        import ferryvm.ir.lift
        import ferryvm.ir.passes  # noqa: F401 - for `lifted`

    def lift(self, region: Region, options: Options) -> Module:
        """The IR that is lowered. Raises RefusalError for a region that it cannot compile."""
        return lifted(region, options)

    @abc.abstractmethod
    def lower(self, work: Compilation[L]) -> L:
        """The lowered code that `build` and `load` start from. Raises RefusalError likewise."""

    def key(self, work: Compilation[L]) -> str | None:
        """The key of the cache entry, see `ferryvm.cache.key`; None: no caching. A key that does
        without `work.lowered`, such as one of `code_facts`, saves lifting and lowering when the
        code is cached."""
        return None

    def fault(self, payload: bytes) -> str | None:
        """The reason that the payload cannot be a result of `build`; None if it can. Called before
        `load` gets a payload from the cache, and before the cache stores one."""
        return None

    def build(self, work: Compilation[L]) -> bytes:
        """The payload that is cached; empty if `load` needs none. Raises BackendError."""
        return b""

    @abc.abstractmethod
    def load(self, work: Compilation[L], payload: bytes, found: cache.Entry | None) -> Code | None:
        """Code that can be entered; None to try the compiler's next target.

        `found`: the cache entry of the payload, None if it was built. The base sets `is_from_cache`
        and `notes`.
        """

    def show(self, work: Compilation[L], stage: str) -> str:
        """A stage of the backend, other than the IR, as text."""
        raise NotImplementedError(f"{type(self).__name__} shows no {stage!r}")

    def picture(self, work: Compilation[L], stage: str) -> str:
        """A stage of the backend as an HTML page."""
        raise NotImplementedError(f"{type(self).__name__} has no picture of {stage!r}")


class RegionCompiler(Compiler):
    """A compiler that uses the region IR; `targets` generate the code."""

    stages: tuple[str, ...] = (IR,)

    @abc.abstractmethod
    def targets(self, options: Options) -> Sequence[Target[Any]]:
        """The targets, in the order in which they are tried. Raises BackendError."""

    def warm_up(self) -> None:
        """Import the libraries of the first target. Raises BackendError if there is none."""
        self.targets(Options())[0].prepare()

    def compile(self, region: Region, options: Options) -> Code:
        """The region's code, from the cache or built. Raises TooLargeError beyond the limits, and
        the target's exceptions."""
        from ferryvm.region.cost import too_costly

        self._check_references(region)
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
            with collector_suspended():
                payload = target.build(work)
            if payload:
                work.step(target.building)
        with collector_suspended():
            code = target.load(work, payload, found)
        work.step(target.loading)
        if code is None:
            return None
        code.is_from_cache = found is not None
        if entry is not None and found is None:  # not before it has shown that it can be loaded
            reason = target.fault(payload)
            if reason is None:
                entry.try_store(payload)
            else:
                _warn_not_cached(f"{self.name}: what {target} builds is not kept: {reason}")
        return code

    def _check_references(self, region: Region) -> None:
        from ferryvm.region.reference import refused

        reason = None if self.capabilities.references else refused(region, self.name)
        if reason is not None:
            raise RefusalError(f"{self.name}: region {region.name}: {reason}")

    def show(self, region: Region, options: Options, stage: str) -> str:
        """A stage as text: the IR, or a stage of the first target."""
        if stage not in self.stages:
            return super().show(region, options, stage)
        work = self._compilation(region, options)
        if stage != IR:
            return work.target.show(work, stage)
        from ferryvm.ir.text import module_text

        scalar = work.module.scalar
        return module_text(work.module) + (f"; not in lanes: {scalar}\n" if scalar else "")

    def picture(self, region: Region, options: Options, stage: str) -> str:
        """A stage of the first target as an HTML page."""
        if stage not in self.pictures:
            return super().picture(region, options, stage)
        work = self._compilation(region, options)
        return work.target.picture(work, stage)

    def _compilation(self, region: Region, options: Options) -> Compilation[Any]:
        self._check_references(region)
        return Compilation(self.targets(options)[0], region, options, {})


@functools.cache  # once is enough
def _warn_not_cached(message: str) -> None:
    _log.warning("%s", message)
