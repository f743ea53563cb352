# SPDX-License-Identifier: Apache-2.0
"""Objects: collected when they do not fit, counted against a limit, the same on every backend."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine, Execution, OutOfFuelError, TrapError, cache
from ferryvm.engine.saved import pack_state, unpack_state
from ferryvm.errors import FerryError
from ferryvm.isa import Trap
from ferryvm.machine.memory import AddressSpaceError, Limits
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_space import ObjectSpace
from ferryvm.testing import Schedule
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.verify import Verified
from ferryvm_backends._llvm import collector, native
from ferryvm_backends._llvm.loader import NativeCode

from ..tier import together
from .object_program import GARBAGE, HOARD, MIXED, program

BACKENDS = ("reference", "switch", "threaded")
LIMITS = Limits(stack=1 << 16, heap=1 << 16, objects=1 << 20)


def start(backend: str, text: str, limits: Limits = LIMITS) -> Execution:
    return Engine(backend, limits=limits).start(program(text))


def objects(execution: Execution) -> ObjectMemory:
    found = execution.machine.objects
    assert found is not None
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_that_makes_arrays_runs_in_a_limit_of_a_few(backend: str) -> None:
    execution = start(backend, GARBAGE.format(rounds=100))
    assert execution.run().output == "1\n"
    space = objects(execution).space
    assert space.metrics.count >= 100 * 80_000 // LIMITS.objects
    assert space.outside_bytes <= LIMITS.objects
    objects(execution).collect()
    assert space.outside_bytes == 80_000
    assert space.metrics.live == 80_000 + 8 + 24 + 10 * 24


def test_a_program_that_keeps_all_traps_at_the_same_instruction_on_every_backend() -> None:
    states = []
    for backend in BACKENDS:
        execution = start(backend, HOARD, Limits(stack=1 << 16, objects=1 << 12))
        with pytest.raises(TrapError) as caught:
            execution.run(count=True)
        assert caught.value.kind is Trap.HEAP_EXHAUSTED
        states.append((execution.machine.snapshot(), execution.instructions))
    assert states[0] == states[1] == states[2]
    image = states[0][0].objects
    assert image is not None
    assert len(image.space) == (1 << 12) - 8  # 255 cells of 16 bytes, and the first word


def test_the_trap_names_the_limit_that_an_allocation_would_have_passed() -> None:
    with pytest.raises(TrapError, match=r"may take 4096 bytes \(--object-limit, Limits.objects\)"):
        start("switch", HOARD, Limits(stack=1 << 16, objects=1 << 12)).run()
    text = ".function main / i64.const 70000 / heap.alloc / halt".replace(" / ", "\n")
    with pytest.raises(TrapError, match=r"may grow to 65536 bytes \(--heap-limit, Limits.heap\)"):
        start("switch", text).run()


@pytest.mark.parametrize("length", [-1, 1 << 62])
def test_the_trap_names_a_length_that_no_array_has(length: int) -> None:
    text = f".function main / i64.const {length} / array.new_default_i64 / drop / halt"
    wanted = rf"heap exhausted: an array of {length} elements; live objects may take 1048576 bytes"
    with pytest.raises(TrapError, match=wanted):
        start("switch", text.replace(" / ", "\n")).run()


@together(
    "case",
    (
        ("(array-ref (array i64 1) -1)", "index -1, and the length is 1"),
        ("(array-set! (make-array (array u8) 3) 3 null)", "index 3, and the length is 3"),
        ("(array-fill! (array u8 1 2) 9 1 4)", "3 elements from index 1, and the length is 2"),
        ("(array-copy! (array i64 1) 0 (array i64 1 2))", "2 elements from index 0, and the l.* 1"),
        ("(array-copy! (array i64 1 2 3) 0 (array i64 1 2) 1 3)", "2 .* index 1, and .* is 2"),
        ("(atomic-add! (array u32 1) 1 2)", "index 1, and the length is 1"),
        ("(atomic-compare-exchange! (array u32 1) -1 2 3)", "index -1, and the length is 1"),
        ("(define (f i) (print! i)) (for-each-item -3 (f))", "-3"),
        ("(index-2d 1 2 1 2)", "index 1, and the length is 1"),
        ('(define-struct p (x i64)) (define (f (a anyref)) (cast p a)) (f "")', "a u8.. is no p"),
        ("(define (f (a anyref)) (cast string a)) (f (ref.i31 5))", "an i31ref is no u8.."),
    ),
)
def test_the_trap_names_the_operands_that_trapped(case: tuple[str, str]) -> None:
    text, wanted = case
    with pytest.raises(TrapError, match=f"trap: [a-z ]+: {wanted}\n"):
        Engine("threaded").start(ferryvm.compile(text)).run()


def test_memory_that_the_system_lacks_is_taken_from_dead_arrays_else_the_trap_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = ObjectSpace.make_block

    def short(space: ObjectSpace, size: int) -> int | None:
        return blocks(space, size) if len(space.outside) < most else None

    monkeypatch.setattr(ObjectSpace, "make_block", short)
    most = 2
    execution = start("threaded", GARBAGE.format(rounds=8), Limits(objects=1 << 30))
    assert execution.run().output == "1\n"
    assert objects(execution).space.metrics.count >= 6
    most = 0
    wanted = "an array of 10000 elements; the system has no memory for 80000 bytes"
    execution = start("threaded", GARBAGE.format(rounds=8))
    reserve = objects(execution).space._reserve
    with pytest.raises(TrapError, match=wanted):
        execution.run()
    assert reserve.closed, "a report of the trap may need memory"


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_object_fits_a_limit_of_nothing_and_the_state_can_be_saved(backend: str) -> None:
    nothing = Limits(stack=1 << 16, heap=1 << 16, objects=0)
    execution = start(backend, HOARD, nothing)
    with pytest.raises(TrapError) as caught:
        execution.run()
    assert caught.value.kind is Trap.HEAP_EXHAUSTED
    machine, _ = unpack_state(pack_state(execution.machine, None), nothing, "saved")
    assert machine.snapshot() == execution.machine.snapshot()


def test_a_limit_past_the_addresses_is_one_line_and_nothing_else() -> None:
    wanted = r"for objects \(more than there are addresses\); lower the limit of objects"
    with pytest.raises(AddressSpaceError, match=wanted):  # an exception in __del__ is an error, too
        start("reference", HOARD, Limits(stack=1 << 16, heap=1 << 16, objects=1 << 80))


@pytest.mark.rotate("schedule", "text")
@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("text", [MIXED, GARBAGE.format(rounds=3)], ids=["mixed", "garbage"])
def test_backends_agree_on_objects_however_the_program_moves(text: str, schedule: Schedule) -> None:
    found = Differ(BACKENDS, limits=LIMITS).compare(program(text), schedule, seed=1)
    assert [one.difference for one in found] == [None] * len(found)
    assert all(one.verdict is Verdict.AGREE for one in found)


def test_a_collection_at_any_boundary_changes_no_state() -> None:
    plain, collected = start("reference", MIXED), start("switch", MIXED)
    while plain.run(fuel=17).status.name == "FUEL":
        collected.run(fuel=17)
        objects(collected).collect()
        assert plain.machine.snapshot() == collected.machine.snapshot()


def test_collections_are_native_where_the_backend_offers_it_else_for_a_reason() -> None:
    collector.address()  # now, and not in the background
    for backend in BACKENDS:
        execution = start(backend, GARBAGE.format(rounds=20))
        execution.run()
        is_native, reason = objects(execution).is_native, objects(execution).reason
        assert is_native == (backend != "reference")
        assert reason == ("" if is_native else f"backend '{backend}' has no native collector")
        found = execution.collections()
        assert found is not None
        assert (found["native"], found["reason"]) == (is_native, reason or None)
        assert found["count"] == objects(execution).space.metrics.count > 0
        assert 0 < found["longest"] <= found["seconds"]  # type: ignore[operator]  # floats


def test_a_copy_keeps_objects_of_its_own() -> None:
    execution = start("switch", GARBAGE.format(rounds=20))
    execution.run(fuel=500)
    twin = execution.fork()
    assert twin.machine.snapshot() == execution.machine.snapshot()
    execution.run()
    assert twin.run().output == "1\n"
    assert twin.machine.snapshot() == execution.machine.snapshot()
    assert objects(twin).space.base != objects(execution).space.base


def test_a_program_that_goes_on_after_another_has_its_objects() -> None:
    engine = Engine("switch", limits=LIMITS)
    first = engine.start(program(GARBAGE.format(rounds=5)))
    first.run()
    text = """
        .host print_i64 (i64)
        .struct cell value i64 next cell
        .static kept cell
        .function main
            static.get kept
            struct.get cell.next
            struct.get cell.value
            host print_i64
            halt
    """
    assert engine.start(program(text), first).run().output == "2\n"
    other = text.replace("value i64 next cell", "value i64 next cell more i32")
    with pytest.raises(FerryError, match="its types differ"):
        engine.start(program(other), first)


def test_roots_of_a_deep_stack_are_the_same_natively_and_in_python() -> None:
    deep = """
        .struct cell value i64 next cell
        .function main
            ref.null cell
            i64.const 5000
            call down
            drop
            halt
        .function down (list cell, n i64) -> (cell)
        .local own cell
            local.get n
            local.get list
            struct.new cell
            local.set own
            local.get list
            local.get own
            local.get n
            i64.const 1
            i64.sub
            call down
            drop
            return
    """
    collector.address()
    execution = start("switch", deep, Limits(stack=1 << 20, objects=1 << 20))
    execution.run(fuel=20_000)
    twin = execution.fork()
    objects(twin).collect_in_python()
    assert not objects(twin).is_native
    assert objects(execution).is_native
    assert twin.machine.snapshot() == execution.machine.snapshot()


def test_collections_are_in_python_while_native_code_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = start("switch", GARBAGE.format(rounds=60))  # its native code is made already
    can_end, loaded = threading.Event(), collector._loaded()

    def made() -> NativeCode:
        assert can_end.wait(60)
        return loaded

    entry = cache.Entry("collector", cache.key([str(tmp_path)]))  # there is none
    monkeypatch.setattr(
        collector, "soon", lambda: native.soon(entry, made).address(collector._SYMBOL)
    )
    plain = start("reference", GARBAGE.format(rounds=60))
    execution.run(fuel=2000)
    plain.run(fuel=2000)
    assert not objects(execution).is_native
    assert objects(execution).reason == "native code is still made"
    assert objects(execution).space.metrics.count > 0
    can_end.set()
    native._soon[entry].wait()
    execution.run()
    plain.run()
    assert objects(execution).is_native
    assert plain.machine.snapshot() == execution.machine.snapshot()


STOPPED = """
    .struct cell value i64 next cell
    .export first
    .export second
    .function main
        halt
    .function first (n i64) -> (i64)
        local.get n
        ref.null cell
        struct.new cell
        call value
        return
    .function value (own cell) -> (i64)
        local.get own
        struct.get cell.value
        return
    .function second (n i64) -> (i64)
    :again
        i64.const 2
        ref.null cell
        struct.new cell
        drop
        local.get n
        i64.const 1
        i64.sub
        local.set n
        local.get n
        i64.eqz
        jump_unless again
        i64.const 3
        return
"""


@pytest.mark.parametrize("fuel", range(3, 10))
def test_operands_of_a_stopped_call_are_roots_of_the_calls_on_top(fuel: int) -> None:
    limits = Limits(stack=1 << 16, objects=1 << 12)
    engine = Engine("switch", limits=limits)
    instance = engine.instantiate(program(STOPPED).program)
    with pytest.raises(OutOfFuelError) as caught:
        instance.call("first", 41, fuel=fuel)
    assert instance.call("second", 600) == 3
    assert caught.value.call.resume() == 41


def test_a_program_that_calls_a_function_with_the_name_of_a_stub_is_refused() -> None:
    text = """
        .export f
        .function main
            call "<call of f>"
            halt
        .function f
            return
        .function "<call of f>"
            call f
            halt
    """
    with pytest.raises(FerryError, match="has the name of an entry stub, and is called"):
        Engine("switch").instantiate(program(text).program)


def test_elements_that_nobody_took_are_given_back() -> None:
    verified: Verified = program(GARBAGE.format(rounds=1))
    execution = Engine("switch", limits=LIMITS).start(verified)
    memory, control = objects(execution), execution.machine.control
    control.wanted, control.wanted_type = 80_024, 9
    assert memory.allocate()
    assert memory.space.outside_bytes == 80_000
    assert memory.allocate()
    assert memory.space.outside_bytes == 160_000  # one of them ahead, since the size is the same
    memory.discard_prepared()
    assert (memory.space.outside_bytes, control.prepared) == (0, 0)
    assert execution.run().output == "1\n"


def test_a_copy_makes_its_next_collection_when_the_original_does() -> None:
    execution = start("switch", HOARD)
    execution.run(fuel=400)
    objects(execution).space.budget = 10_000  # as after a collection that found little alive
    copy = execution.machine.copy()
    assert copy.control.object_end == execution.machine.control.object_end == 10_000
    objects(execution).force()
    copy = execution.machine.copy()
    assert copy.control.object_end == copy.control.object_top > 8
