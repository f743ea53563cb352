# SPDX-License-Identifier: Apache-2.0
"""Native host functions: C functions that native code calls by address."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from array import array
from pathlib import Path

import pytest

import ferryvm
from ferryvm import CallError, native_host
from ferryvm.backend import Options
from ferryvm.compiler import lifted
from ferryvm.engine.host_declaration import parse_signature
from ferryvm.ir.verify import verify_module
from ferryvm.machine.host import Determinism
from ferryvm.machine.native import NATIVE_WORDS, NativeField
from ferryvm.region.region import regions
from ferryvm.verify import verify

from .native_call import calling, host_function

BACKENDS = ["reference", "threaded", "switch", "llvm"]
SIGNATURES = [
    "()",
    "() -> (i32)",
    "() -> (f32)",
    "(i32) -> (i32)",
    "(i64) -> (i64)",
    "(f32) -> (f32)",
    "(f64) -> (f64)",
    "(i32 f32 i64 f64)",
    "(f64 i32) -> (f32)",
    "(i64 i64 i64 i64 i64 i64 i64 i64 i64) -> (i64)",
    "(f64 f64 f64 f64 f64 f64 f64 f64 f64 f64) -> (f64)",
    "(i32 f32 i32 f64 i64 f32 i32 f64 i64 f32 i32 f64 i64 f32 i32 f64 i64 f32 i32 f64) -> (f64)",
    "(f32 i32 i32 i32 i32 i32 i32 i32 f32 f32 f32 f32 f32 f32 f32 f32 i32) -> (i32)",
]


def _arguments(signature: str) -> list[float]:
    values: list[float] = []
    for number, t in enumerate(parse_signature(signature).parameters):
        if t.is_float:
            values.append((-1) ** number * (number + 0.5))
        else:
            values.append((-1) ** number * ((1 << (t.bits - 2)) + number))
    return values


@pytest.mark.rotate("signature", "backend", "fuel")
@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("fuel", [None, 1000])
@pytest.mark.parametrize("backend", BACKENDS)
def test_arguments_and_result(backend: str, fuel: int | None, signature: str) -> None:
    seen: list[tuple[float, ...]] = []
    results = parse_signature(signature).results
    result = None if not results else -2.25 if results[0].is_float else -(1 << 30)

    def body(*arguments: float) -> float | None:
        seen.append(arguments)
        return result

    host = host_function(signature, body)
    instance = ferryvm.Engine(backend).instantiate(calling(signature), hosts=[host])
    arguments = _arguments(signature)
    for _ in range(2):
        assert instance.call("call", *arguments, fuel=fuel) == result
    assert seen == [tuple(arguments)] * 2


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_it_is_called_without_leaving(backend: str) -> None:
    function = host_function("(i64) -> (i64)", lambda n: n + 1)
    execution = ferryvm.Engine(backend, hosts=[function]).start(calling("(i64) -> (i64)"))
    assert not any(execution.machine.natives)
    execution.run()
    row = execution.machine.natives[:NATIVE_WORDS]
    assert row[NativeField.FUNCTION]
    assert row[NativeField.CALLER]
    assert [*row[2:]] == [1, 1]


def test_one_under_way_goes_on_in_a_backend_that_leaves() -> None:
    program = ferryvm.assemble(LOOP)
    function = host_function("(i64 f64) -> (f64)", lambda n, total: total + n)
    instance = ferryvm.Engine("threaded", hosts=[function]).instantiate(program)
    assert instance.call("sum", 5) == 15.0
    assert instance.call("sum", 5, backend="reference") == 15.0
    assert instance.call("sum", 5, backend="switch") == 15.0
    assert instance.call("sum", 5, backend="llvm") == 15.0
    assert instance.call("sum", 5) == 15.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits", [0x7F800001, 0xFFC12345, 0x80000000, 0x00000001])
def test_bits_of_floats_stay(backend: str, bits: int) -> None:
    function = native_host("f", "(f32 f32) -> (f32)", ctypes.CDLL(None).copysignf)
    program = ferryvm.assemble(
        f"""
.host f (f32 f32) -> f32
.function main
    i32.const {bits}
    f32.reinterpret_i32
    i32.const {bits}
    f32.reinterpret_i32
    host f
    i32.reinterpret_f32
    halt
"""
    )
    result = ferryvm.Engine(backend, hosts=[function]).start(program).run()
    assert result.value is not None
    assert int(result.value) & 0xFFFFFFFF == bits


LOOP = """
.host f (i64 f64) -> f64
.export sum
.function start
    halt
.function sum (n i64) -> f64
.local total f64
:top
    local.get n
    local.get total
    host f
    local.set total
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.ne
    jump_if top
    local.get total
    return
"""


@pytest.mark.rotate("first", most=3)
@pytest.mark.parametrize(
    ("first", "second"), [*itertools.pairwise([*BACKENDS, "threaded", "reference"])]
)
def test_a_saved_call_goes_on_elsewhere(first: str, second: str, tmp_path: Path) -> None:
    program = ferryvm.assemble(LOOP)
    seen: list[int] = []

    def body(n: int, total: float) -> float:
        seen.append(n)
        return total + n

    function = host_function("(i64 f64) -> (f64)", body)
    instance = ferryvm.Engine(first, hosts=[function]).instantiate(program)
    fuel = 30
    for fuel in range(1, 30):
        with pytest.raises(ferryvm.OutOfFuelError):
            instance.call("sum", 5, fuel=fuel)
        instance.save(tmp_path / "state")
        assert instance.suspended is not None
        instance.suspended.abandon()
        again = ferryvm.Engine(second, hosts=[function]).resume_instance(tmp_path / "state")
        assert again.suspended is not None
        seen.clear()
        assert again.suspended.resume() == 15.0
    assert seen[-1] == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_fuel_is_counted_as_by_the_reference(backend: str) -> None:
    function = host_function("(i64 f64) -> (f64)", lambda n, total: total + n)
    engine = ferryvm.Engine(backend, hosts=[function])
    execution = engine.start(
        ferryvm.assemble(
            ".host f (i64 f64) -> f64\n.function main\n    i64.const 3\n    f64.const 1.5\n"
            "    host f\n    halt\n"
        )
    )
    result = execution.run(count=True)
    assert (result.value, execution.instructions) == (4.5, 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_native_function_cannot_call_the_program(backend: str) -> None:
    """Its exact state is not in memory then."""
    errors: list[Exception] = []

    def body(n: int) -> int:
        try:
            instance.call("call", n)
        except CallError as error:
            errors.append(error)
        return n

    instance = ferryvm.Engine(backend).instantiate(
        calling("(i64) -> (i64)"), hosts=[host_function("(i64) -> (i64)", body)]
    )
    assert instance.call("call", 7) == 7
    assert instance.call("call", 8) == 8
    message = (
        "this instance is in use; it can be called again from a host function only, "
        "and not from a native one"
    )
    assert [str(error) for error in errors] == [message] * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_called_inside_a_call_of_a_host_function(backend: str) -> None:
    program = ferryvm.assemble(
        """
.host f (i64) -> i64
.host back (i64) -> i64
.export outer
.export inner
.function start
    halt
.function outer (i64) -> i64
    local.get 0
    host back
    local.get 0
    host f
    i64.add
    return
.function inner (i64) -> i64
    local.get 0
    host f
    return
"""
    )

    @ferryvm.host
    def back(instance: ferryvm.Instance, x: ferryvm.i64) -> ferryvm.i64:
        result: int = instance.inner(x) * 1000
        return result

    hosts = [back, host_function("(i64) -> (i64)", lambda n: n + 1)]
    instance = ferryvm.Engine(backend).instantiate(program, hosts=hosts)
    assert instance.call("outer", 4) == 5005


def test_recorded_calls_are_played() -> None:
    seen: list[float] = []

    def body(n: float) -> float:
        seen.append(n)
        return n / 2

    program = ferryvm.assemble(
        ".host f (f64) -> f64\n.function main\n    f64.const 5\n    host f\n    halt\n"
    )
    function = dataclasses.replace(
        host_function("(f64) -> (f64)", body), determinism=Determinism.REPLAYABLE
    )
    log = ferryvm.HostLog()
    engine = ferryvm.Engine("threaded", hosts=[function])
    assert engine.start(program, record=log).run().value == 2.5
    assert ferryvm.Engine("switch").start(program, replay=log).run().value == 2.5
    assert seen == [5.0]


def test_compiled_code_leaves_where_nothing_is_bound() -> None:
    seen: list[int] = []

    def body(n: int, total: float) -> float:
        seen.append(n)
        return total + n

    function = host_function("(i64 f64) -> (f64)", body)
    instance = ferryvm.Engine("llvm", hosts=[function]).instantiate(ferryvm.assemble(LOOP))
    assert instance.call("sum", 5) == 15.0
    natives = instance._execution.machine.natives
    natives[:] = array("Q", bytes(8 * len(natives)))
    assert instance.call("sum", 5) == 15.0
    assert seen == [5, 4, 3, 2, 1] * 2


CALLED = (
    LOOP.replace("    host f\n", "    call g\n")
    + """
.function g (n i64, total f64) -> f64
    local.get n
    local.get total
    host f
    return
"""
)

COUNTED = """
.host f (i64 f64) -> f64
.export sum
.function start
    halt
.function sum (n i64) -> f64
.local total f64
.local i i64
:top
    local.get i
    local.get n
    i64.ge_s
    jump_if end
    local.get i
    local.get total
    host f
    local.set total
    local.get i
    i64.const 1
    i64.add
    local.set i
    jump top
:end
    local.get total
    return
"""


@pytest.mark.rotate("backend", "text")
@pytest.mark.parametrize("text", [LOOP, CALLED, COUNTED], ids=["loop", "called", "counted"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_interrupt_is_seen_after_the_call_under_way(backend: str, text: str) -> None:
    """However long a call takes: the flag that comes in it stops the loop before the next one."""
    last, seen = 0, 0

    def body(n: int, total: float) -> float:
        nonlocal seen
        seen += 1
        if seen == last:
            control.interrupt = 1
        return total + n

    function = host_function("(i64 f64) -> (f64)", body)
    instance = ferryvm.Engine(backend, hosts=[function]).instantiate(ferryvm.assemble(text))
    control = instance._execution.machine.control
    expected = instance.call("sum", 1000)
    for last in (1, 2, 10, 999):
        seen = 0
        with pytest.raises(ferryvm.ProgramInterrupted) as caught:
            instance.call("sum", 1000, backend=backend)
        assert seen == last
        assert caught.value.call is not None
        assert caught.value.call.resume() == expected


HEAP = """
.host f (i64) -> i64
.export sum
.function start
    i64.const 16
    heap.alloc
    drop
    halt
.function sum (address i64, n i64) -> i64
.local total i64
:top
    i64.const 0
    i64.const 7
    i64.store
    local.get address
    host f
    i64.const 0
    i64.load
    i64.add
    local.get total
    i64.add
    local.set total
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.ne
    jump_if top
    local.get total
    return
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_may_change_the_heap(backend: str) -> None:
    def body(address: int) -> int:
        cell = ctypes.c_int64.from_address(address)
        old = cell.value
        cell.value = 100
        return old

    function = host_function("(i64) -> (i64)", body)
    instance = ferryvm.Engine(backend, hosts=[function]).instantiate(ferryvm.assemble(HEAP))
    assert instance.call("sum", instance.heap.ctypes.data, 1000) == 107 * 1000


CAUGHT = """
.host f (i64) -> i64
.tag python.ZeroDivisionError i64
.export call
.function start
    halt
.function call (n i64) -> i64
:try
    local.get n
    host f
:end
    return
:handler
    drop
    i64.const -1
    return
.catch python.ZeroDivisionError from try to end using handler
"""


@pytest.mark.parametrize("fuel", [None, 1000])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_under_a_clause(backend: str, fuel: int | None) -> None:
    """A Python function can stand in its place."""
    program = ferryvm.assemble(CAUGHT)
    native = host_function("(i64) -> (i64)", lambda n: 100 // n)
    instance = ferryvm.Engine(backend).instantiate(program, hosts=[native])
    assert instance.call("call", 4, fuel=fuel) == 25

    @ferryvm.host(name="f")
    def plain(n: ferryvm.i64) -> ferryvm.i64:
        return 100 // n

    instance = ferryvm.Engine(backend).instantiate(program, hosts=[plain])
    assert (instance.call("call", 4, fuel=fuel), instance.call("call", 0, fuel=fuel)) == (25, -1)


def test_compiled_code_calls_it_under_a_clause_without_leaving() -> None:
    verified = verify(ferryvm.assemble(CAUGHT))
    (found,) = [region for region in regions(verified) if region.name == "call"]
    module = lifted(found, Options(natives=frozenset({0}), check=True), natives=True)
    (body,) = module.functions.values()
    assert [operation.name for operation in body.operations] == ["call_host"]
    assert [block.end.name for block in body.blocks if block.end.name != "jump"] == ["return"]


@pytest.mark.parametrize("counting", [False, True])
def test_compiled_code_calls_it_and_goes_on(counting: bool) -> None:
    """In the compiled loop there is a call and no exit."""
    verified = verify(ferryvm.assemble(LOOP))
    (found,) = [region for region in regions(verified) if region.name == "sum/loop.1"]
    module = lifted(
        found, Options(natives=frozenset({0}), counting=counting, check=True), natives=True
    )
    names = [operation.name for block in module.root.blocks for operation in block.operations]
    assert names.count("call_host") == 1
    assert "host" not in [block.end.name for block in module.root.blocks]
    plain = lifted(found, Options(natives=frozenset({0}), counting=counting, check=True))
    assert "host" in [block.end.name for block in plain.root.blocks]
    verify_module(module, verified)
