# SPDX-License-Identifier: Apache-2.0
"""Calls of an instance that stopped: they go on, here or from a saved state elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm import Instance, host, i64

from .calls_program import PROGRAM, ask


def test_call_that_ran_out_of_fuel_goes_on(instance: Instance) -> None:
    with pytest.raises(ferryvm.OutOfFuelError, match="spin: out of fuel") as caught:
        instance.call("spin", 1000, fuel=500)
    call = caught.value.call
    assert instance.suspended is call
    assert repr(call) == "<ferryvm call of spin>"
    assert instance.add(1, 2) == 3  # on top of it
    with pytest.raises(ferryvm.OutOfFuelError):
        call.resume(fuel=100)
    assert call.resume() == 77
    assert instance.suspended is None
    with pytest.raises(ferryvm.CallError, match="this call has ended; there is nothing"):
        call.resume()
    assert instance.add(1, 2) == 3


def test_call_that_cannot_be_resumed_as_wanted_stays(instance: Instance) -> None:
    with pytest.raises(ferryvm.OutOfFuelError) as caught:
        instance.call("spin", 1000, fuel=500)
    for wanted in ({"backend": "nope"}, {"fuel": -1}):
        with pytest.raises(ferryvm.FerryError, match=r"no backend 'nope'|fuel is -1"):
            caught.value.call.resume(**wanted)
        assert instance.suspended is caught.value.call
        assert instance.add(1, 2) == 3
    assert caught.value.call.resume() == 77


def test_calls_that_stopped_are_a_stack(instance: Instance) -> None:
    calls = []
    for _ in range(2):
        with pytest.raises(ferryvm.OutOfFuelError) as caught:
            instance.call("spin", 1000, fuel=500)
        calls.append(caught.value.call)
    with pytest.raises(ferryvm.CallError, match="not the call that stopped last"):
        calls[0].resume()
    calls[1].abandon()
    assert calls[0].resume() == 77


def test_state_of_a_call_goes_on_elsewhere(
    instance: Instance, backend: str, tmp_path: Path
) -> None:
    instance.both(1, 1.0)
    with pytest.raises(ferryvm.OutOfFuelError):
        instance.call("spin", 1000, fuel=500)
    instance.save(tmp_path / "s.ferry")
    for other in ("reference", "threaded", backend):
        engine = ferryvm.Engine(other, hosts=[ask])
        resumed = engine.resume_instance(tmp_path / "s.ferry")
        assert resumed.suspended is not None
        assert resumed.add(1, 2) == 3
        assert resumed.suspended.resume() == 77
        assert resumed.both(1, 1.0) == (1, 1.0)
        assert resumed.static("calls") == 2
        assert engine.resume(tmp_path / "s.ferry").run().value == 77


def test_calls_that_stopped_on_top_of_each_other_go_on_elsewhere(
    instance: Instance, backend: str, tmp_path: Path
) -> None:
    for name, arguments, fuel in (
        ("spin", (1000,), 500),
        ("asking", (0,), 1),
        ("spin", (900,), 501),
    ):
        with pytest.raises(ferryvm.OutOfFuelError):
            instance.call(name, *arguments, fuel=fuel)
    instance.save(tmp_path / "s.ferry")
    for other in ("reference", "threaded", backend):
        engine = ferryvm.Engine(other, hosts=[ask])
        resumed = engine.resume_instance(tmp_path / "s.ferry")
        found = []
        while resumed.suspended is not None:
            assert resumed.add(1, 2) == 3
            found.append((resumed.suspended.name, resumed.suspended.resume()))
        assert found == [("spin", 77), ("asking", 101), ("spin", 77)]
        assert resumed.both(1, 1.0) == (1, 1.0)
        assert engine.resume(tmp_path / "s.ferry").run().value == 77


def test_call_in_a_host_function_cannot_be_saved(backend: str, tmp_path: Path) -> None:
    """Python would be in the middle of it, and no other process could go on there."""

    @host(name="ask")
    def save(instance: Instance, x: i64) -> i64:
        for _ in range(2):
            with pytest.raises(ferryvm.CallError, match=r"inside a host function.*save it when"):
                instance.save(tmp_path / "s.ferry")
        return x

    instance = ferryvm.Engine(backend).instantiate(PROGRAM, hosts=[save])
    assert instance.asking(5) == 6
    assert not (tmp_path / "s.ferry").exists()
    instance.save(tmp_path / "s.ferry")


def test_nested_call_that_stops_ends_the_calls_around_it(backend: str, tmp_path: Path) -> None:
    """They are saved as if they had not begun: Python cannot be gone on with."""

    @host(name="ask")
    def spin(instance: Instance, x: i64) -> i64:
        return int(instance.spin(x))

    instance = ferryvm.Engine(backend).instantiate(PROGRAM, hosts=[spin])
    with pytest.raises(ferryvm.OutOfFuelError) as caught:
        instance.call("asking", 1000, fuel=500)
    assert instance.suspended is None
    with pytest.raises(ferryvm.CallError, match=r"ended.*inside a host function"):
        caught.value.call.resume()
    instance.save(tmp_path / "s.ferry")
    assert (
        ferryvm.Engine("threaded", hosts=[ask]).resume_instance(tmp_path / "s.ferry").add(1, 2) == 3
    )


def test_idle_instance_is_saved_after_any_call(instance: Instance, tmp_path: Path) -> None:
    for _ in range(3):
        instance.both(1, 2.5)
    instance.save(tmp_path / "s.ferry")
    resumed = ferryvm.Engine("reference", hosts=[ask]).resume_instance(tmp_path / "s.ferry")
    assert resumed.suspended is None
    assert resumed.static("calls") == 3
    assert resumed.add(1, 2) == 3


def test_state_of_a_plain_program_is_no_instance(backend: str, tmp_path: Path) -> None:
    execution = ferryvm.Engine(backend).start(ferryvm.compile("(define (f) (f)) (f)"))
    execution.run(fuel=50)
    execution.save(tmp_path / "s.ferry")
    with pytest.raises(ferryvm.CallError, match=r"no call of an instance.*Engine\.resume"):
        ferryvm.Engine(backend).resume_instance(tmp_path / "s.ferry")
