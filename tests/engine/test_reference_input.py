# SPDX-License-Identifier: Apache-2.0
"""Bad input at the doors of references: one error or trap each, and the instance serves on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest

from ferryvm import CallError, Engine, FerryError, Instance, StructView, TrapError, assemble, host
from ferryvm.isa import Trap
from ferryvm.machine.host import HostError
from ferryvm.machine.memory import Limits
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_space import ObjectSpace

BACKENDS = ("reference", "switch", "threaded", "llvm")
LIMITS = Limits(stack=1 << 16, heap=1 << 16, objects=1 << 16)
TEXT = """
.struct node value i64 next node
.struct other value f64
.static kept node
.host visit (node f64[])
.export make
.export node
.export cast
.export value
.export first
.export hoard
.export visiting
.export total
.function start
    halt
.function make (length i64) -> (f64[])
    local.get length
    array.new_default_f64
    return
.function node (value i64) -> (node)
    local.get value
    ref.null node
    struct.new node
    return
.function cast (what anyref) -> (node)
    local.get what
    ref.cast node
    return
.function value (one node) -> (i64)
    local.get one
    struct.get node.value
    return
.function first (numbers f64[] at i64) -> (f64)
    local.get numbers
    local.get at
    array.get_f64
    return
.function hoard (count i64)
:top
    i64.const 1
    static.get kept
    struct.new node
    static.set kept
    local.get count
    i64.const 1
    i64.sub
    local.set count
    local.get count
    i64.eqz
    jump_unless top
    return
.function visiting (one node, numbers f64[]) -> (i64)
    local.get one
    local.get numbers
    host visit
    local.get one
    struct.get node.value
    return
.function total (numbers f64[]) -> (f64)
    local.get numbers
    i64.const 0
    array.get_f64
    return
"""


@host
def visit(one: Annotated[StructView | None, "node"], numbers: Annotated[Any, "f64[]"]) -> None:
    pass


def instance(backend: str = "threaded", hook: Callable[..., object] = visit) -> Instance:
    engine = Engine(backend, limits=LIMITS)
    return engine.instantiate(assemble(TEXT), hosts={"visit": hook})


def objects(one: Instance) -> ObjectMemory:
    found = one.idle_execution().machine.objects
    assert found is not None
    return found


def serves(one: Instance) -> bool:
    """True if the instance can be called, and has lost nothing."""
    one.set_static("kept", None)
    made = one.call("node", 3)
    return one.call("value", made) == 3 and one.call("total", np.ones(2)) == 1


TRAPS: dict[str, tuple[str, tuple[object, ...], Trap]] = {
    "negative length": ("make", (-1,), Trap.HEAP_EXHAUSTED),
    "length past all": ("make", (1 << 62,), Trap.HEAP_EXHAUSTED),
    "length past the limit": ("make", (1 << 20,), Trap.HEAP_EXHAUSTED),
    "cast of another array": ("cast", (np.zeros(2),), Trap.CAST_FAILURE),
    "cast of a small integer": ("cast", (5,), Trap.CAST_FAILURE),
    "null struct": ("value", (None,), Trap.NULL_REFERENCE),
    "null array": ("first", (None, 0), Trap.NULL_REFERENCE),
    "negative index": ("first", (np.zeros(2), -1), Trap.INDEX_OUT_OF_BOUNDS),
    "index past the end": ("first", (np.zeros(2), 2), Trap.INDEX_OUT_OF_BOUNDS),
    "index of none": ("first", (np.zeros(0), 0), Trap.INDEX_OUT_OF_BOUNDS),
    "too many objects": ("hoard", (1 << 20,), Trap.HEAP_EXHAUSTED),
}


@pytest.mark.rotate("case", "backend")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", TRAPS)
def test_a_bad_value_is_a_trap_after_which_the_instance_serves_on(case: str, backend: str) -> None:
    name, arguments, kind = TRAPS[case]
    one = instance(backend)
    held = one.call("node", 8)
    with pytest.raises(TrapError) as caught:
        one.call(name, *arguments)
    assert caught.value.kind is kind
    assert serves(one)
    assert one.call("value", held) == 8


def test_an_array_for_which_the_objects_leave_no_memory_is_an_error() -> None:
    one = instance()
    memory = objects(one)
    with pytest.raises(TrapError):
        one.call("hoard", 1 << 20)
    memory.collect()
    with pytest.raises(CallError, match=r"total: argument 1 \(numbers\): .* raise Limits.objects"):
        one.call("total", np.ones(2))
    assert serves(one)


def test_an_array_for_which_the_system_has_no_memory_is_an_error_and_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = instance()
    with monkeypatch.context() as patched:
        patched.setattr(ObjectSpace, "make_block", lambda self, size: None)
        with pytest.raises(CallError, match="make: no memory for an array of 24 bytes"):
            one.call("make", 3)
        with pytest.raises(TrapError, match="heap exhausted"):
            one.call("make", 1 << 13)
    assert one.call("make", 3).tolist() == [0, 0, 0]  # type: ignore[union-attr]  # an ndarray
    assert serves(one)


def test_a_host_function_for_whose_array_there_is_no_memory_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """
        .host visit (f64[])
        .function main
            i64.const 3
            array.new_default_f64
            host visit
            i64.const 7
            halt
    """
    seen: list[object] = []
    engine = Engine("switch", hosts=[host(name="visit", signature="(f64[]) -> ()")(seen.append)])
    execution = engine.start(assemble(text))
    with monkeypatch.context() as patched:
        patched.setattr(ObjectSpace, "make_block", lambda self, size: None)
        with pytest.raises(HostError, match="host function visit: no memory for an array of 24"):
            execution.run()
    assert not seen
    assert execution.run().value == 7
    assert len(seen) == 1


def test_another_thread_cannot_look_into_objects_during_a_call() -> None:
    errors: list[BaseException] = []

    def in_thread(action: Callable[[], object]) -> None:
        def run() -> None:
            try:
                action()
            except FerryError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    def hook(one: StructView, numbers: object) -> None:
        in_thread(lambda: one.value)
        in_thread(lambda: setattr(one, "value", 1))
        in_thread(lambda: one.next)
        one.value += 1

    declared = host(name="visit", signature="(node f64[]) -> ()")(hook)
    one = instance("threaded", declared)
    held = one.call("node", 8)
    assert one.call("visiting", held, None) == 9
    assert len(errors) == 3
    assert all("in use by another thread" in str(error) for error in errors)
    in_thread(lambda: setattr(held, "value", 2))
    assert len(errors) == 3
    assert one.call("value", held) == 2


def test_views_that_end_in_another_thread_release_their_objects() -> None:
    one = instance()
    memory = objects(one)
    held = [one.call("node", n) for n in range(100)]
    memory.collect()
    assert memory.space.metrics.live == 8 + 100 * 24
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    again = [one.call("node", n) for n in range(50)]
    assert len(memory.handles.words) <= 101
    memory.collect()
    assert memory.space.metrics.live == 8 + 50 * 24
    assert [view.value for view in again] == list(range(50))  # type: ignore[union-attr]  # views


def test_a_fork_and_a_later_program_do_not_hold_what_views_of_the_first_hold() -> None:
    one = instance()
    held = [one.call("node", n) for n in range(10)]
    later = Engine("switch", limits=LIMITS).instantiate(
        assemble(TEXT), hosts={"visit": visit}, after=one
    )
    objects(later).collect()
    assert objects(later).space.metrics.live <= 8 + 24
    with pytest.raises(CallError, match=r"argument 1 .* is a node of another instance"):
        later.call("value", held[0])
    assert one.call("value", held[9]) == 9
    assert serves(later)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((3, None), r"visiting: argument 1 \(one\) is 3; a node of this instance, or None, is exp"),
        ((None, 3), r"visiting: argument 2 \(numbers\) is 3; a contiguous array of float64 is expe"),
        ((None, [1.0]), r"argument 2 \(numbers\) is \[1.0\]; .*pass numpy.array\(numbers, dtype=nump"),
        ((None, np.zeros(2, "i8")), r"is an array of int64; .*: pass numbers.astype\(numpy.float64"),
        ((None, np.zeros(2, ">f8")), r"an array of byte-swapped float64; .*pass numbers.astype\("),
        ((None,), r"visiting\(one: node, numbers: f64\[\]\) -> i64 takes 2 arguments, found 1"),
    ],
)  # fmt: skip
def test_an_argument_of_the_wrong_kind_is_an_error_with_place_and_expected(
    arguments: tuple[object, ...], text: str
) -> None:
    one = instance()
    with pytest.raises(CallError, match=text):
        one.call("visiting", *arguments)
    assert serves(one)


def test_a_mapped_file_and_shared_memory_stay_open_while_a_program_has_them(tmp_path: Any) -> None:
    import mmap

    one, path = instance(), tmp_path / "numbers"
    path.write_bytes(np.ones(4).tobytes())
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    assert one.call("total", memoryview(mapped).cast("d")) == 1
    with pytest.raises(BufferError):
        mapped.close()
    assert one.call("total", np.frombuffer(mapped)) == 1


def test_dlpack_of_another_device_and_read_only_memory() -> None:
    class Elsewhere:
        def __dlpack__(self, **_options: object) -> object:
            raise BufferError("not in memory of the host")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    one, a = instance(), np.ones(3)
    with pytest.raises(
        CallError, match=r"argument 1 \(numbers\) is <.*Elsewhere object.*numpy.array"
    ):
        one.call("total", Elsewhere())
    a.flags.writeable = False
    assert one.call("total", memoryview(a)) == 1
    assert serves(one)
