# SPDX-License-Identifier: Apache-2.0
"""The places of a launch under a rule: the first compiled, the others when they are wanted.

    rule.backends ─┬─ the first: its code, which the interpreter enters ──┐
                   ├─ one with a device: a place                          ├─> PlacedRanges
                   └─ one without: a place for each calibrated device ────┘

A backend that is not wanted is not asked for anything, since some take long to load; so its places
are known by their calibrations alone.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.backend import Code
from ferryvm.engine.compilation import Job, submit
from ferryvm.engine.launch_place import calibration, model
from ferryvm.engine.launch_place.calibration import Calibration
from ferryvm.engine.launch_place.chooser import PlacedCode, PlacedRanges
from ferryvm.engine.launch_place.model import CostModel
from ferryvm.engine.launch_place.place import LaunchPlace
from ferryvm.engine.launch_place.split import SplitRanges
from ferryvm.errors import FerryError
from ferryvm.item_range import RangeRunner
from ferryvm.policy import LaunchPlacing
from ferryvm.policy.machine import cpus

if TYPE_CHECKING:
    from ferryvm.backend import Compiler
    from ferryvm.engine.journal import Attempt
    from ferryvm.engine.site import Site
    from ferryvm.machine.state import Machine
    from ferryvm.policy import Choice

BACKGROUND = 0.25
"""The part of the time that compiling takes after which it is begun in the background: the launch
waits for nothing meanwhile."""

Find = Callable[[str], "Compiler"]
"""The compiler of a name; raises BackendError."""

Ask = Callable[["Choice"], "Attempt"]
"""Requests the code of the launch from the backend of a choice."""


def placed(site: Site, code: Code, compiler: Find, ask: Ask) -> Code:
    """The code of a launch, with the backends of its rule as places; `code`: the first one's;
    `compiler`: the compiler of a name."""
    runner, rule = code.ranges, site.rule
    if runner is None or rule is None:
        return code
    models = _Models(site)
    first = rule.backends[0]
    name = f"{first.backend} on {runner.where}"
    own = calibration.load(first.backend)
    base = next(iter(own.by_device.values()), None)
    why = own.why_not
    if base is not None:
        why = calibration.staleness(base, compiler(first.backend))
        if not why and not base.in_order:
            why = f"{first.backend} runs no items in order natively"
        base = None if why else base
    threads = first.options.threads or cpus()
    places = [
        LaunchPlace(name, models.model(base, base, threads, why, code.lanes is not None), runner)
    ]
    places[0].activity.state = "compiled first"
    choices = [first]
    for choice in rule.backends[1:]:
        for one, known, reason in _expanded(choice):
            has_threads = known is not None and bool(known.in_order)
            has_lanes = one.options.lanes != 1
            threads = (one.options.threads or cpus()) if has_threads else 0
            title = calibration.title(one.backend, one.options.device)
            made = models.model(known, base, threads, reason or why, has_lanes)
            place = LaunchPlace(title, made)
            if one.options.background and cpus() > 1:
                place.patience *= BACKGROUND
            places.append(place)
            choices.append(one)

    def make(number: int) -> RangeRunner | str:
        return _runner(compiler, choices[number], ask)

    def compile_(
        machine: Machine, number: int, receive: Callable[[RangeRunner | str], None]
    ) -> None:
        # A program that has ended need not be compiled any more.
        job = Job(functools.partial(_receive, weakref.ref(make), number, receive))
        submit(job)
        if not choices[number].options.background:
            job.wait(machine.control)

    kind = SplitRanges if rule.place is LaunchPlacing.SPLIT else PlacedRanges
    return PlacedCode(code, kind(places, compile_))


def _receive(
    made: weakref.ref[Callable[[int], RangeRunner | str]],
    number: int,
    receive: Callable[[RangeRunner | str], None],
) -> None:
    """Make the runner of a place, in the compile thread."""
    make = made()
    if make is not None:
        receive(make(number))


def _expanded(choice: Choice) -> Iterator[tuple[Choice, Calibration | None, str]]:
    """The choice for each calibrated device, if it names none; its calibration, or why there is
    none."""
    known = calibration.load(choice.backend)
    device = choice.options.device
    if device or not known.by_device:
        found = known.by_device.get(device)
        missing = f"{calibration.title(choice.backend, device)} is not calibrated; run "
        why = known.why_not or f"{missing}`{calibration.COMMAND}`"
        yield choice, found, "" if found else why
        return
    for name, one in known.by_device.items():
        yield record.replace(choice, options=record.replace(choice.options, device=name)), one, ""


def _runner(compiler: Find, choice: Choice, ask: Ask) -> RangeRunner | str:
    """The runner of a place, or the reason that there is none."""
    known = calibration.load(choice.backend).by_device.get(choice.options.device)
    if known is not None:
        try:
            stale = calibration.staleness(known, compiler(choice.backend))
        except FerryError as error:
            stale = str(error)
        if stale:
            return stale
    attempt = ask(choice)
    if attempt.code is None:
        return attempt.reason
    return attempt.code.ranges or "its code runs the items in order"


class _Models:
    """Models of places of one launch."""

    def __init__(self, site: Site) -> None:
        from ferryvm.region.fact import facts

        region = site.region
        assert region is not None
        profile = site.placement.profile if site.placement is not None else None
        found = facts(region, 0, profile)
        self._mix = model.weights(found.floats, found.integers, found.memory, found.control)
        self._bytes = found.bytes_read, found.bytes_written

    def model(
        self,
        own: Calibration | None,
        base: Calibration | None,
        threads: int,
        why: str,
        has_lanes: bool,
    ) -> CostModel:
        """The model of a place; `why`: the reason if there are no calibrations for it."""
        if own is None or base is None:
            return model.assumed(why, threads, *self._bytes)
        return model.calibrated(own, base, self._mix, threads, has_lanes, *self._bytes)
