# SPDX-License-Identifier: Apache-2.0
"""Arrays between Python and programs: one memory, whichever side made it, as long as either has
it."""

from __future__ import annotations

import array
import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from ferryvm import Engine, Instance, OutOfFuelError, TrapError, assemble, host
from ferryvm.engine.marshal import CallError
from ferryvm.isa import Trap
from ferryvm.isa.element import Element
from ferryvm.machine.memory import Limits
from ferryvm.machine.object_memory import ObjectMemory

BACKENDS = ("reference", "switch", "threaded", "llvm")
TEXT = """
.static kept f64[]
.export add
.export same
.export make
.export keep
.export kept
.export is_same
.function start
    halt
.function add (f64[] f64) -> (f64)
    .local i i64 total f64
:top
    local.get i
    local.get 0
    array.length
    i64.ge_u
    jump_if done
    local.get 0
    local.get i
    local.get 0
    local.get i
    array.get_f64
    local.get 1
    f64.add
    array.set_f64
    local.get total
    local.get 0
    local.get i
    array.get_f64
    f64.add
    local.set total
    local.get i
    i64.const 1
    i64.add
    local.set i
    jump top
:done
    local.get total
    return
.function same (f64[]) -> (f64[])
    local.get 0
    return
.function make (f64 i64) -> (i64 f64[])
    local.get 1
    local.get 0
    local.get 1
    array.new_f64
    return
.function keep (f64[])
    local.get 0
    static.set kept
    return
.function kept -> (f64[])
    static.get kept
    return
.function is_same (f64[] f64[]) -> (i32)
    local.get 0
    local.get 1
    ref.eq
    return
"""


def instance(backend: str = "threaded", limits: Limits | None = None) -> Instance:
    return Engine(backend, limits=limits).instantiate(assemble(TEXT))


def objects(one: Instance) -> ObjectMemory:
    found = one.idle_execution().machine.objects
    assert found is not None
    return found


def address(of: object) -> int:
    assert isinstance(of, np.ndarray)
    found: int = of.__array_interface__["data"][0]
    return found


@pytest.mark.rotate("backend", "is_forced", most=3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_forced", [False, True])
def test_stores_are_seen_by_both_sides(backend: str, is_forced: bool) -> None:
    one, a = instance(backend), np.arange(5.0)
    if is_forced:
        objects(one).force()
    assert one.call("add", a, 1) == 15
    assert a.tolist() == [1, 2, 3, 4, 5]
    one.call("keep", a)
    a[0] = 100
    assert one.call("add", a, 0) == 114
    assert one.call("kept") is a


@pytest.mark.rotate("backend", "length")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("length", [0, 3, 1_000])
def test_a_result_is_memory_of_both_and_outlives_the_instance(backend: str, length: int) -> None:
    one = instance(backend)
    count, made = one.call("make", 1.5, length)  # type: ignore[misc]  # two results
    assert isinstance(made, np.ndarray)
    assert (count, made.dtype, made.tolist()) == (length, np.float64, [1.5] * length)
    one.call("keep", made)
    objects(one).collect()
    kept = one.call("kept")
    assert one.call("add", made, 1) == 2.5 * length
    if length:
        assert kept is made
    before = address(made)
    del one, kept
    gc.collect()
    assert address(made) == before
    assert made.tolist() == [2.5] * length


def test_an_array_of_the_program_is_returned_as_one_ndarray_and_moved_once() -> None:
    one = instance()
    one.call("keep", one.call("same", one.call("make", 0, 4)[1]))  # type: ignore[index]  # a tuple
    first = one.call("kept")
    objects(one).collect()
    assert one.call("kept") is first
    assert one.call("same", first) is first


def test_the_same_array_is_the_same_object_while_the_program_has_it() -> None:
    one, a = instance(), np.zeros(4)
    assert one.call("is_same", a, a) == 1
    assert one.call("is_same", a, a[:]) == 1
    assert one.call("is_same", a, a.copy()) == 0
    one.call("keep", a)
    objects(one).collect()
    assert one.call("is_same", a, one.call("kept")) == 1


def test_null_is_none() -> None:
    one = instance()
    assert one.call("kept") is None
    assert one.call("same", None) is None


def test_the_program_keeps_an_array_alive_and_a_collection_releases_it() -> None:
    one, a = instance(), np.full(4, 2.0)
    died = weakref.ref(a)
    one.call("keep", a)
    del a
    objects(one).collect()
    assert died() is not None
    assert one.call("add", one.call("kept"), 0) == 8
    one.call("keep", None)
    objects(one).collect()
    assert died() is None


def test_dead_arrays_are_released_before_they_take_much_memory() -> None:
    one = instance()
    for _ in range(40):
        one.call("same", np.zeros(1 << 20))  # 8 MiB
        one.call("make", 0, 1 << 17)
        hosts = objects(one).space.hosts
        assert sum(each.size for each in hosts) <= 2 * (64 << 20)
    assert objects(one).space.metrics.count > 2


def test_memory_of_python_does_not_count_against_the_limit() -> None:
    one = instance(limits=Limits(objects=1 << 16))
    one.call("keep", np.ones(1 << 17))
    assert one.call("add", one.call("kept"), 0) == 1 << 17
    objects(one).collect()
    assert objects(one).space.outside_bytes == 0


@pytest.mark.parametrize("refcheck", [True, False])
def test_an_array_that_a_program_may_have_cannot_be_resized(refcheck: bool) -> None:
    one, a = instance(), np.zeros(8)
    one.call("keep", a[2:])
    with pytest.raises(ValueError, match="cannot resize"):
        a.resize(1 << 20, refcheck=refcheck)
    buffer = bytearray(64)
    one.call("keep", memoryview(buffer).cast("d"))
    with pytest.raises(BufferError):
        buffer.extend(b"more")


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # of NumPy from 2.5 on
def test_an_array_that_has_changed_since_the_last_call_is_looked_at_again() -> None:
    program = instance("threaded")
    a = np.ones(4)
    assert [program.add(a, 0.0) for _ in range(3)] == [4.0] * 3
    a.shape = (2, 2)
    assert program.add(a, 0.0) == 4.0
    a.shape = (4,)
    a.dtype = np.dtype(np.int64)
    with pytest.raises(CallError, match="int64"):
        program.add(a, 0.0)
    a.dtype = np.dtype(np.float64)
    a.flags.writeable = False
    with pytest.raises(TrapError):
        program.add(a, 0.0)
    a.flags.writeable = True
    assert program.add(a, 1.0) == 8.0
    with pytest.raises(CallError, match="shares memory"):
        program.is_same(a, a[1:])
    assert program.is_same(a, a)


def test_a_store_into_a_read_only_array_traps() -> None:
    one, a = instance(), np.zeros(3)
    a.flags.writeable = False
    with pytest.raises(TrapError) as caught:
        one.call("add", a, 1)
    assert caught.value.kind is Trap.READ_ONLY_ARRAY
    assert a.tolist() == [0, 0, 0]
    assert one.call("same", a) is a


MISFITS = {
    "float32": (np.zeros(3, "f4"), "an array of float32", "numbers.astype(numpy.float64)"),
    "swapped": (np.zeros(3, ">f8"), "byte-swapped float64", "numbers.astype(numpy.float64)"),
    "stride": (np.zeros(6)[::2], "not contiguous", "numpy.ascontiguousarray(numbers)"),
    "scalar": (np.float64(2), "no dimensions", "numbers.reshape(-1)"),
    "fortran": (
        np.zeros((2, 3)).T, "in the order of Fortran", "numpy.ascontiguousarray(numbers)"
    ),
    "strided": (np.zeros((4, 4))[1:3, 1:3], "not contiguous", "numpy.ascontiguousarray(numbers)"),
    "unaligned": (
        np.zeros(25, "u1")[1:].view("f8"), "not aligned", "numbers.copy()"
    ),
    "complex": (np.zeros(3, complex), "an array of complex128", "numbers.real.copy()"),
    "fields": (
        np.zeros(3, [("x", "f8")]), "an array of void64", "numpy.ascontiguousarray(numbers['x'])"
    ),
    "masked": (np.ma.array([1.0, 2.0], mask=[0, 1]), "is masked_array", "numbers.filled()"),
    "list": ([1.0, 2.0], "[1.0, 2.0]", "numpy.array(numbers, dtype=numpy.float64)"),
    "number": (1.0, "is 1.0", "numpy.array(numbers, dtype=numpy.float64)"),
    "bytes": (b"12345678", "an array of uint8", "numbers.astype(numpy.float64)"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_an_array_that_does_not_fit_is_an_error_with_the_call_that_mends_it(case: str) -> None:
    argument, found, mend = MISFITS[case]
    program = assemble("""
        .export f
        .function start
            halt
        .function f (i64 f64[])
            return
    """)
    one = Engine("threaded").instantiate(program)
    with pytest.raises(CallError) as caught:
        one.call("f", 1, argument)
    text = str(caught.value)
    assert text.startswith("f: argument 2 is ")
    assert found in text
    assert text.endswith(f"float64 is expected for f64[]: pass {mend.replace('numbers', 'a')}")
    one.call("f", 1, np.zeros(1))
    with pytest.raises(CallError, match="f: argument 1 is 'x'; an int from"):
        one.call("f", "x", np.zeros(1))


def test_the_error_names_the_parameter_and_the_mended_call_works() -> None:
    program = assemble(TEXT.replace("add (f64[] f64)", "add (values f64[], by f64)"))
    one, a = Engine("threaded").instantiate(program), np.arange(6.0)[::2]
    with pytest.raises(CallError, match=r"^add: argument 1 \(values\) is .*array\(values\)$"):
        one.call("add", a, 1)
    assert one.call("add", np.ascontiguousarray(a), 0) == 6


def test_an_array_of_several_dimensions_is_its_elements_in_the_order_of_c() -> None:
    one, a = instance(), np.zeros((2, 3))
    a[:] = [[0, 1, 2], [3, 4, 5]]
    assert one.call("add", a, 1) == 21
    assert a.tolist() == [[1, 2, 3], [4, 5, 6]]
    one.call("keep", a)
    kept = one.call("kept")
    assert isinstance(kept, np.ndarray)
    assert (kept.shape, kept.base is a) == ((6,), True)
    assert one.call("is_same", a, kept) == 1
    with pytest.raises(ValueError, match="cannot resize"):
        a.resize((4, 5), refcheck=False)


def test_overlapping_arrays_are_refused_unless_all_are_read_only() -> None:
    one, a = instance(), np.zeros(8)
    with pytest.raises(CallError, match=r"argument 2 shares memory with argument 1; .*a\.copy\(\)"):
        one.call("is_same", a, a[1:])
    one.call("keep", a)
    with pytest.raises(CallError, match="argument 1 shares memory with an array that the program"):
        one.call("add", a[4:], 1)
    one.call("keep", None)
    assert one.call("add", a[4:], 1) == 4
    assert one.call("is_same", a[:4], a[4:]) == 0
    a.flags.writeable = False
    assert one.call("is_same", a[1:], a[2:5]) == 0
    assert one.call("is_same", a[1:], a[2:5]) == 0


def test_a_long_read_only_array_is_seen_behind_a_short_one() -> None:
    one, a = instance(), np.zeros(100)
    readable = a[:]
    readable.flags.writeable = False
    one.call("is_same", readable, readable[1:2])
    one.call("keep", readable)
    with pytest.raises(CallError, match="shares memory with an array that the program has"):
        one.call("add", a[50:], 1)


@pytest.mark.parametrize("element", Element)
def test_each_element_kind_has_its_dtype(element: Element) -> None:
    program = assemble(f"""
        .export f
        .function start
            halt
        .function f ({element}[]) -> ({element.type})
            local.get 0
            i64.const 1
            array.get_{element}
            return
    """)
    dtype = {"i": "int", "u": "uint", "f": "float"}[element.kind[0]] + str(element.bits)
    one = Engine("switch").instantiate(program)
    assert one.call("f", np.array([0, 100], dtype)) == 100


def test_other_objects_with_memory_are_used_where_they_lie() -> None:
    class Interface:
        def __init__(self, of: np.ndarray) -> None:
            self.of, self.__array_interface__ = of, of.__array_interface__

    class Capsule:
        def __init__(self, of: np.ndarray) -> None:
            self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__

    one, buffer, a = instance(), array.array("d", [1, 2, 3]), np.ones(3)
    assert one.call("add", buffer, 1) == 9
    assert buffer.tolist() == [2, 3, 4]
    assert one.call("add", Interface(a), 1) == 6
    assert a.tolist() == [2, 2, 2]
    assert address(one.call("same", Capsule(a))) == address(a)


def test_a_fork_and_a_saved_state_have_copies(tmp_path: Path) -> None:
    one, a = instance(), np.ones(1001)
    a.flags.writeable = True
    one.call("keep", a)
    one.save(tmp_path / "state.ferry")
    execution = one.idle_execution()
    snapshot = execution.machine.snapshot()
    twin = execution.machine.copy()
    assert twin.snapshot() == snapshot
    a[:] = 5
    assert twin.snapshot() == snapshot
    assert execution.machine.snapshot() != snapshot
    later = Engine("switch").resume_instance(tmp_path / "state.ferry")
    kept = later.call("kept")
    assert later.call("add", kept, 1) == 2002
    assert a[0] == 5


def test_a_call_that_stops_goes_on_with_its_array(tmp_path: Path) -> None:
    one, a = instance(), np.zeros(10)
    memory = objects(one)
    with pytest.raises(OutOfFuelError) as caught:
        one.call("add", a, 1, fuel=50)
    assert 0 < a.sum() < 10
    one.save(tmp_path / "state.ferry")
    memory.collect()
    before = a.sum()
    assert caught.value.call.resume() == 10
    assert a.sum() == 10
    later = Engine("reference").resume_instance(tmp_path / "state.ferry").suspended
    assert later is not None
    assert before < 10 == later.resume()


def test_a_host_function_passes_arrays_to_the_program_that_calls_it() -> None:
    seen: list[object] = []

    @host(name="ask")
    def ask(one: Instance) -> None:
        seen.append(one.call("same", held))

    held = np.ones(3)
    program = assemble("""
        .host ask
        .export f
        .export same
        .function start
            halt
        .function f (f64[]) -> (f64[])
            .local made f64[]
            f64.const 7
            i64.const 2
            array.new_f64
            local.set made
            host ask
            local.get made
            return
        .function same (f64[]) -> (f64[])
            local.get 0
            return
    """)
    one = Engine("threaded").instantiate(program, hosts=[ask])
    objects(one).force()
    made = one.call("f", held)
    assert isinstance(made, np.ndarray)
    assert made.tolist() == [7, 7]
    assert seen[0] is held
