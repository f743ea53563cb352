# SPDX-License-Identifier: Apache-2.0
"""From a region to its object code.

Region ─ lift, passes ─> Module ─ lower ─> LLVM IR ─ optimise ─> ─ emit ─> object code
                                             ▲           │
                                             └─ polls ───┘ if a loop is left that has none
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator

import llvmlite.binding as llvm

from ferryvm.backend import BackendError, Options
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.pipeline import checker
from ferryvm.ir.passes.pipeline import optimise as improve
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.region.region import Region
from ferryvm_backends.llvm.lower import lower
from ferryvm_backends.llvm.native import (
    emitted,
    has_loop,
    packed,
    parsed,
    stack_bytes,
)
from ferryvm_backends.llvm.native import optimised as run_passes

_CLOSED_FORM = frozenset(
    [
        "add",
        "all",
        "any",
        "bit_and",
        "compare",
        "mul",
        "none",
        "poll",
        "select",
        "set_static",
        "shl",
        "static",
        "sub",
        "word",
    ]
)
"""Operations of loops that LLVM can replace by a formula, and of what stands around them."""

Step = Callable[[str], None]
"""Told the name of a step when it is done."""


def improved(region: Region, options: Options) -> tuple[Module, int]:
    """The IR that is lowered, and at which of its levels LLVM is to optimise it."""
    module = lift(region, options.counting, options.unseen)
    improve(
        module,
        max(options.optimize, 1),
        region.verified,
        check=options.check,
        told=options.observe,
    )
    asked = 0
    if options.optimize >= 2:
        asked = sum(hoist_range_checks(body) for body in module.bodies)
        checker(module, region.verified, options.check)()
    # Level 3 makes two loops of one where a condition does not vary.
    return module, 3 if asked else options.optimize


def build(region: Region, options: Options, notes: dict[str, float]) -> bytes:
    """What the cache keeps of a region; `notes` gets the seconds of each step.

    Raises BackendError where LLVM does.
    """
    with _collector_waiting():
        return _build(region, options, notes)


@contextlib.contextmanager
def _collector_waiting() -> Iterator[None]:
    """Have Python's collector of cycles wait: all that is made here lives to the end, and looking
    through it time and again takes a third of what lifting and lowering take."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build(region: Region, options: Options, notes: dict[str, float]) -> bytes:
    began = time.perf_counter()

    def step(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        notes[name] = notes.get(name, 0.0) + now - began
        began = now

    module, level = improved(region, options)
    step("lift")
    try:
        native = optimised(module, options, level, step)
        code = emitted(native, 0 if options.quick else 2)
        stack = stack_bytes(native, code)
        step("emit")
    except RuntimeError as error:
        line = str(error).strip().splitlines()[0]
        raise BackendError(f"llvm: region {region.name}: LLVM refuses the code: {line}") from error
    return packed(module, stack, code)


def optimised(
    module: Module, options: Options, level: int, step: Step = lambda name: None
) -> llvm.ModuleRef:
    """The optimised LLVM IR of a region; `level`: of LLVM.

    A poll in a loop keeps LLVM from replacing the loop by a formula. So where that may be possible
    polls are left out at first, and what comes of it is taken only if no loop at all is left: then
    every way through it is short. That includes loops without an end, which LLVM leaves alone.
    """

    def attempt(polls: bool) -> llvm.ModuleRef:
        native = parsed(lower(module, options, polls))
        step("lower")
        native = run_passes(native, 0 if options.quick else level)
        step("optimise")
        return native

    if may_be_closed_form(module):
        native = attempt(polls=False)
        if not has_loop(native):
            return native
    return attempt(polls=True)


def may_be_closed_form(module: Module) -> bool:
    """True if a region's loops do nothing but count, so that LLVM may need none."""
    return (
        not module.functions
        and not module.counting
        and all(operation.name in _CLOSED_FORM for operation in module.root.operations)
    )
