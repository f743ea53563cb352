# SPDX-License-Identifier: Apache-2.0
"""Cells set, replaced and taken away: between runs, by another thread, around fused
instructions."""

from __future__ import annotations

import random
import threading

import pytest

import ferryvm
from ferryvm.backend import BackendError
from ferryvm.machine.control import Status
from ferryvm.testing.generate import generate
from ferryvm.verify import verify
from ferryvm_backends.threaded import BACKEND as THREADED
from ferryvm_backends.threaded import ThreadedArtifact
from ferryvm_backends.threaded.form import FusedForm

from ..tier import sample
from .places import (
    ENTRY,
    FORMS,
    INNER,
    INTERPRETERS,
    LOOP,
    PLACES,
    PLENTY,
    Native,
    Run,
    arrivals,
    ends_as_without_cells,
    idle,
    in_front,
    prepare,
)


@pytest.fixture(params=INTERPRETERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each interpreter in turn."""
    return str(request.param)


@pytest.fixture(params=FORMS, ids=["plain", "counting"])
def run(request: pytest.FixtureRequest, name: str) -> Run:
    """The program at its start, in each form of the code of each interpreter."""
    return Run.start(name, bool(request.param))


# --- changes --------------------------------------------------------------------------------


def test_removed_cells_leave_no_trace(run: Run) -> None:
    native = idle()
    for pc in PLACES:
        run.count(pc, 1)
        run.install(pc, native)
        run.remove(pc)
        run.remove(pc)
    ends_as_without_cells(run)
    assert native.calls == 0


def test_a_cell_replaces_the_one_before(run: Run) -> None:
    first, second = idle(), idle()
    run.install(LOOP, first)
    run.install(LOOP, second)
    run.count(ENTRY, 1)
    run.install(ENTRY, first)
    run.install(INNER, first)
    run.count(INNER, 2)
    assert run.enter() is Status.HOT
    assert run.machine.snapshot() == in_front(arrivals(INNER)[1], Status.HOT)
    assert (first.calls, second.calls) == (2, 2)


SPIN = """
.function main
.local i i64
:loop
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const {bound}
    i64.lt_s
    jump_if loop
    halt
"""
BOUNDS = {"reference": 2_000_000, "switch": 4_000_000_000, "threaded": 4_000_000_000}
"""Rounds within which a loop must notice what another thread did."""


@pytest.mark.parametrize("pc", [0, 3], ids=["head", "inside a fused instruction"])
@pytest.mark.parametrize("counting", [False, True], ids=["plain", "counting"])
def test_running_loop_notices_what_another_thread_installs(
    name: str, counting: bool, pc: int
) -> None:
    run = Run.start(name, counting, verify(ferryvm.assemble(SPIN.format(bound=BOUNDS[name]))))
    native = Native(lambda _control: Status.GUARD)
    run.count(5, PLENTY)

    def install() -> None:
        while run.counted(5) > PLENTY - 100:  # until it runs
            pass
        run.install(pc, native)

    other = threading.Thread(target=install)
    other.start()
    status = run.enter()
    other.join()
    assert status is Status.GUARD
    assert run.machine.control.pc == pc
    assert 100 <= run.machine.memory.stack[2] < BOUNDS[name]


@pytest.mark.rotate("native", "iterations", most=1)
@pytest.mark.parametrize("iterations", sample([200_000, 1_000_000], 1))
@pytest.mark.parametrize("native", ["switch", "threaded"])
def test_cells_changed_at_random_by_another_thread_change_no_result(
    native: str, iterations: int
) -> None:
    run = Run.start(native, False, verify(ferryvm.assemble(SPIN.format(bound=iterations))))
    nothing, has_ended = idle(), threading.Event()

    def change() -> None:
        rng = random.Random(4)
        while not has_ended.is_set():
            pc = rng.randrange(9)
            match rng.randrange(3):
                case 0:
                    run.install(pc, nothing)
                case 1:
                    run.count(pc, rng.randrange(1, 1000))
                case _:
                    run.remove(pc)

    other = threading.Thread(target=change)
    other.start()
    try:
        while (status := run.enter()) is Status.HOT:
            pass
    finally:
        has_ended.set()
        other.join()
    assert status is Status.HALT
    assert run.machine.memory.stack[2] == iterations


# --- bad calls ------------------------------------------------------------------------------


@pytest.mark.parametrize("pc", [-1, len(PLACES)])
def test_place_outside_the_code_is_refused(name: str, pc: int) -> None:
    artifact = prepare(name)
    message = f"no cell at pc {pc}; the code has {len(PLACES)} instructions"
    for act in (
        lambda: artifact.count(pc, 1, counting=False),
        lambda: artifact.counted(pc, counting=False),
        lambda: artifact.install(pc, idle().address, counting=False),
        lambda: artifact.remove(pc, counting=False),
    ):
        with pytest.raises(BackendError, match=message):
            act()


def test_impossible_counts_and_functions_are_refused(name: str) -> None:
    artifact = prepare(name)
    for times in (0, -1, 1 << 63):
        with pytest.raises(BackendError, match=f"a cell cannot count {times} times; 1 to"):
            artifact.count(0, times, counting=False)
    with pytest.raises(BackendError, match="pc 0: there is no function at address 0"):
        artifact.install(0, 0, counting=False)


# --- fused instructions ---------------------------------------------------------------------


def _change(form: FusedForm, rng: random.Random, address: int) -> None:
    """Set or take away a cell somewhere."""
    pc = rng.randrange(form.length)
    match rng.randrange(3):
        case 0:
            form.install(pc, address)
        case 1:
            form.count(pc, 5)
        case _:
            form.remove(pc)


def _check(form: FusedForm, length: dict[int, int]) -> int:
    """Check that nothing runs across a cell; how many fused instructions there are."""
    fused = 0
    for pc, operation in enumerate(form.originals.tolist()):
        assert form.places.isdisjoint(range(pc + 1, pc + length[operation]))
        assert pc in form.places or form.code[2 * pc] == operation
        fused += length[operation] > 1
    return fused


def test_fused_instructions_keep_out_of_the_way_of_cells() -> None:
    """Whatever places have cells, and in whatever order they came and went."""
    rng = random.Random(9)
    nothing, fused = idle(), 0
    for number in range(12):
        artifact = THREADED.prepare(verify(generate(1, number)))
        assert isinstance(artifact, ThreadedArtifact)
        form = artifact._form(False)
        assert isinstance(form, FusedForm)
        before = form.code[:]
        handlers = form._handlers
        length = {address: form._fusion.length(n) for n, address in enumerate(handlers)}
        for _ in range(30):
            _change(form, rng, nothing.address)
            fused += _check(form, length)
        for pc in rng.sample(sorted(form.places), len(form.places)):
            form.remove(pc)
        assert form.code == before
    assert fused > 1000


@pytest.mark.parametrize("shard", sample(range(4), 1))
def test_cells_change_no_random_program(shard: int) -> None:
    rng = random.Random(shard)
    hot = 0
    for number in range(shard, 60, 4):
        verified = verify(generate(2, number))
        nothing = idle()
        runs = [Run.start(name, counting, verified) for name in INTERPRETERS for counting in FORMS]
        plain = Run.start("reference", True, verified)
        expected = plain.enter()
        for run in runs:
            for pc in rng.choices(range(len(verified.program.code)), k=12):
                if rng.random() < 0.5:
                    run.count(pc, rng.randrange(1, 4))
                else:
                    run.install(pc, nothing)
            while (status := run.enter()) is Status.HOT:
                hot += 1
            assert status is expected, number
            assert run.machine.snapshot() == plain.machine.snapshot(), number
            assert run.paid in (None, plain.paid)
    assert hot > 25
