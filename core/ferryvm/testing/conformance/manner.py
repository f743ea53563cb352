# SPDX-License-Identifier: Apache-2.0
"""Manners: the modes in which the suite runs one program on a backend.

A case names the manners that suit it. Each makes scripts from a program; it is defined here once,
for all cases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from ferryvm.machine.control import Status
from ferryvm.testing.conformance.record import (
    PLENTY,
    CaseError,
    Recorder,
    Task,
    Walk,
    walk,
)
from ferryvm.testing.conformance.script import Flag, Script, Trail, TrailPosition

Scripts = Iterator[Script]
Manner = Callable[[Task], Scripts]

_SAVES = 12
"""The largest number of points at which a program is saved."""


def plain(task: Task) -> Scripts:
    """From start to end, not counting."""
    yield whole(task, None)[0]


def counting(task: Task) -> Scripts:
    """From start to end, counting, with plenty of fuel."""
    yield whole(task, PLENTY)[0]


def whole(task: Task, fuel: int | None) -> tuple[Script, Recorder]:
    """The script of a run from start to end, and its recorder."""
    recorder = Recorder(task)
    recorder.start()
    if recorder.machines[0].status is Status.RUNNING:
        recorder.run(fuel)
    return recorder.script("counting" if fuel else ""), recorder


def boundaries(task: Task) -> Scripts:
    """Fuel 1 again and again: leaving and entering after every single instruction."""
    recorder = Recorder(task)
    recorder.start()
    recorder.enter(counting=True, fuel=0)
    while recorder.run(fuel=1) is Status.FUEL:
        pass
    yield recorder.script("one instruction at a time")


def cuts(task: Task) -> Scripts:
    """For every k: k instructions, then the rest in one run, not counting; for some, counting."""
    total = _ending(task).total
    recorder = Recorder(task)
    for fuel in range(total + 2):
        for rest in (None, PLENTY) if fuel % 3 == 0 or fuel >= total else (None,):
            recorder.start()
            if recorder.run(fuel=fuel) is Status.FUEL:
                recorder.run(fuel=rest)
    yield recorder.script("cut in two")


def entries(task: Task) -> Scripts:
    """Entered at every reachable pc, in the reference's state there, with litter above sp; then to
    the end, not counting."""
    recorder = Recorder(task)
    for _, state in _ending(task).first_visits():
        recorder.put(state)
        recorder.litter()
        recorder.run()
    yield recorder.script("entered at every pc")


def exits(task: Task) -> Scripts:
    """As `entries`, but left again after 1 instruction, then after 2 more, then to the end."""
    recorder = Recorder(task)
    for _, state in _ending(task).first_visits():
        recorder.put(state)
        recorder.litter()
        if recorder.run(fuel=1) is Status.FUEL and recorder.run(fuel=2) is Status.FUEL:
            recorder.litter()
            recorder.run()
    yield recorder.script("entered and left at every pc")


def again(task: Task) -> Scripts:
    """At each host call, growth and allocation that leaves, entered again before it was handled:
    failing host functions and a lack of memory leave the program there."""
    yield _again(task, None)


def again_counting(task: Task) -> Scripts:
    """As `again`, counting: nothing is paid for what did not complete."""
    yield _again(task, PLENTY)


def _again(task: Task, fuel: int | None) -> Script:
    recorder = Recorder(task)
    recorder.start()
    recorder.enter(fuel is not None, fuel)
    while recorder.machines[0].status in (Status.HOST, Status.GROW, Status.ALLOCATE):
        recorder.enter(fuel is not None)
        if not recorder.serve(fuel is not None):
            break
        recorder.enter(fuel is not None)
    return recorder.script("entered again before it was served")


def machines(task: Task) -> Scripts:
    """Two machines and one artifact, in turn at each host call and growth."""
    recorder = Recorder(task)
    for number in (0, 1):
        recorder.start(number)
    going = {0, 1}
    while going:
        for number in sorted(going):
            recorder.enter(number=number)
            if not recorder.serve(False, number):
                going.discard(number)
    yield recorder.script("two machines in turn")


def turns(task: Task) -> Scripts:
    """Two machines and one artifact, in turn after 3 and 5 instructions."""
    recorder = Recorder(task)
    for number in (0, 1):
        recorder.start(number)
    going = {0, 1}
    while going:
        for number in sorted(going):
            if recorder.run(fuel=3 + 2 * number, number=number) is not Status.FUEL:
                going.discard(number)
    yield recorder.script("two machines in turn, counting")


def moved(task: Task) -> Scripts:
    """Moved to and fro: 2 instructions here, the next 3 in another backend, repeatedly. No part of
    the state may be retained here."""
    states = _ending(task).states
    recorder = Recorder(task)
    for first in range(5):
        recorder.start()
        at, status = first, recorder.run(fuel=first)
        while status is Status.FUEL and at + 5 < len(states):
            at += 3
            recorder.move(states[at])
            status = recorder.run(fuel=2)
            at += 2
        recorder.run()
    yield recorder.script("moved to and fro")


def resumed(task: Task) -> Scripts:
    """Files that the reference saved, resumed and run to the end."""
    recorder = Recorder(task)
    for file in _files(task):
        recorder.load(file)
        recorder.run()
    yield recorder.script("resumed")


def saved(task: Task) -> Scripts:
    """Saved on the way, with the content of the reference's file; resumed from it on another
    machine."""
    recorder = Recorder(task)
    for fuel in _places(_ending(task).total):
        recorder.start()
        recorder.run(fuel=fuel)
        file = recorder.save()
        recorder.load(file, 1)
        recorder.run(number=1)
    yield recorder.script("saved and resumed")


def _files(task: Task) -> list[bytes]:
    recorder = Recorder(task)
    files = []
    for fuel in _places(_ending(task).total):
        recorder.start()
        recorder.run(fuel=fuel)
        files.append(recorder.save())
    return files


def _places(total: int) -> list[int]:
    return sorted({total * index // _SAVES for index in range(_SAVES + 1)})


def interrupted(task: Task) -> Scripts:
    """Stopped by the flag: set before the entry, and by another thread. A program that ends
    continues to its end then."""
    walked = _unserved(task)
    recorder = Recorder(task)
    recorder.start()
    recorder.enter(flag=Flag.SET, expected=TrailPosition.SOMEWHERE)
    recorder.enter(flag=Flag.SET, expected=TrailPosition.SOMEWHERE)
    if walked.period:
        recorder.enter(flag=Flag.LATER, expected=TrailPosition.SOMEWHERE)
        recorder.enter(flag=Flag.SET, expected=TrailPosition.SOMEWHERE)
    else:
        recorder.enter(expected=TrailPosition.LAST)
    yield recorder.script("interrupted", walked.trail)


def stopped(task: Task) -> Scripts:
    """As `interrupted`, counting: it leaves where its fuel says, and continues exactly from
    there."""
    walked = _unserved(task)
    if not walked.period:
        raise CaseError(f"{task.about}: must not end, to be stopped")
    recorder = Recorder(task)
    recorder.start()
    for flag in (Flag.SET, Flag.LATER):
        recorder.enter(True, PLENTY, flag=flag, expected=TrailPosition.SOMEWHERE)
        for ahead in (1, 0, 2, walked.period + 3):
            recorder.enter(True, ahead, expected=ahead)
        recorder.enter(flag=flag, expected=TrailPosition.SOMEWHERE)
        recorder.enter(True, 5, expected=5)
    yield recorder.script("stopped while it counts", walked.trail)


def caught(task: Task) -> Scripts:
    """Stopped by the flag, set before the entry, before it comes to its end; counting too."""
    states = _ending(task).states
    end = dataclasses.replace(states[-1], status=Status.RUNNING, trap=None)
    for is_counting in (False, True):
        recorder = Recorder(task)
        recorder.start()
        fuel = PLENTY if is_counting else None
        recorder.enter(is_counting, fuel, flag=Flag.SET, expected=TrailPosition.SOMEWHERE)
        # The trail is without the end, so that nobody is there.
        about = "interrupted before its end" + (", counting" if is_counting else "")
        yield recorder.script(about, Trail((*states[:-1], end), 0))


def _ending(task: Task) -> Walk:
    walked = walk(task)
    if walked.period:
        raise CaseError(f"{task.about}: never ends")
    return walked


def _unserved(task: Task) -> Walk:
    walked = walk(task)
    if walked.is_served:
        raise CaseError(f"{task.about}: must not call the host or grow its heap, to be interrupted")
    return walked


MANNERS: dict[str, Manner] = {
    manner.__name__: manner
    for manner in (
        plain,
        counting,
        boundaries,
        cuts,
        entries,
        exits,
        again,
        again_counting,
        machines,
        turns,
        moved,
        resumed,
        saved,
        interrupted,
        stopped,
        caught,
    )
}
"""All of them, by name."""
