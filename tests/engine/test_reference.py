# SPDX-License-Identifier: Apache-2.0
"""References between programs and Python: arrays, structs, null, small integers, both ways."""

from __future__ import annotations

import copy
import gc
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from typing_extensions import TypeAliasType

import ferryvm
from ferryvm import Engine, HostFunction, Instance, StructView, assemble, f64, host
from ferryvm.engine.marshal import CallError
from ferryvm.machine.host import HostError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.testing import Schedule
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.verify import verify

BACKENDS = ("reference", "switch", "threaded", "llvm")

NORM = """
.host norm (f64[]) -> (f64)
.host double (f64[]) -> (f64[])
.export f
.function start
    halt
.function f (f64[]) -> (f64 f64[])
    local.get 0
    host double
    local.set 0
    local.get 0
    host norm
    local.get 0
    return
"""

Node = Annotated[StructView | None, "node"]

NODES = """
.struct node value i64 next node
.struct leaf extends node weight f64 any anyref numbers f32[]
.static kept node
.host visit (node) -> (node)
.host all (anyref i31ref node[] arrayref) -> (anyref)
.export visit_list
.export give_all
.export same
.export node
.export kept
.function start
    halt
.function list (count i64) -> (node)
    .local made node
:more
    local.get count
    i64.eqz
    jump_if done
    local.get count
    local.get made
    struct.new node
    local.set made
    local.get count
    i64.const 1
    i64.sub
    local.set count
    jump more
:done
    local.get made
    return
.function visit_list (count i64) -> (node)
    local.get count
    call list
    host visit
    return
.function give_all -> (anyref)
    i64.const 1
    call list
    i32.const -5
    ref.i31
    i64.const 2
    array.new_default_ref node[]
    i64.const 2
    array.new_default_f32
    host all
    return
.function same (anyref) -> (anyref)
    local.get 0
    return
.function node (i64 node) -> (node)
    local.get 0
    local.get 1
    f64.const 2.5
    i32.const 7
    ref.i31
    i64.const 3
    array.new_default_f32
    struct.new leaf
    return
.function kept (node) -> (node)
    static.get kept
    local.get 0
    static.set kept
    return
"""


def objects(one: Instance) -> ObjectMemory:
    found = one.idle_execution().machine.objects
    assert found is not None
    return found


@host
def norm(v: npt.NDArray[np.float64]) -> f64:
    return float(np.sqrt((v * v).sum()))


@host
def double(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    v *= 2
    return v


def nodes(backend: str = "threaded", *hosts: HostFunction) -> Instance:
    offered = {"visit": visit, "all": give} | {one.name: one for one in hosts}
    return Engine(backend).instantiate(assemble(NODES), hosts=offered)


@host
def visit(first: Node) -> Node:
    return first


@host(name="all", signature="(anyref i31ref node[] arrayref) -> (anyref)")
def give(*values: object) -> object:
    return values[0]


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_function_gets_the_memory_of_an_array_and_returns_it(backend: str) -> None:
    one = Engine(backend).instantiate(assemble(NORM), hosts=[norm, double])
    a = np.array([1.5, 2.0])
    found = one.call("f", a)
    assert found == (5.0, a)
    assert found[1] is a
    assert a.tolist() == [3, 4]


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_forced", [False, True])
def test_a_struct_is_a_view_with_typed_fields(backend: str, is_forced: bool) -> None:
    one = nodes(backend)
    if is_forced:
        objects(one).force()
    first = one.call("visit_list", 3)
    assert isinstance(first, StructView)
    assert (first.value, first.next.value, first["next"].next.value) == (1, 2, 3)
    assert first.next.next.next is None
    assert repr(first) == "<node value=1 next=<node value=2 next=<node value=3 next=null>>>"
    assert dir(first) == ["next", "value"]
    first.value = -9
    first.next = one.call("node", 5, first.next)
    assert (first.value, first.next.value, first.next.next.value) == (-9, 5, 2)
    leaf = first.next
    assert ferryvm.type_name(leaf) == "leaf"
    assert (leaf.weight, leaf.any, leaf.numbers.tolist()) == (2.5, 7, [0, 0, 0])
    leaf.any = leaf.numbers
    assert leaf.any is leaf.numbers
    leaf.any = leaf
    leaf.numbers = numbers = np.ones(2, "f4")
    assert leaf.any is leaf
    assert leaf.numbers is numbers


def test_a_field_takes_its_type_alone() -> None:
    one = nodes()
    leaf = one.call("node", 5, None)
    assert isinstance(leaf, StructView)
    for name, value, text in (
        ("value", 1.5, "leaf.value is 1.5; an int from -9223372036854775808"),
        ("weight", "x", "leaf.weight is 'x'; a number for an f64 is expected"),
        ("next", 3, "leaf.next is 3; a node of this instance, or None, is expected for node"),
        ("any", 1 << 30, "leaf.any is 1073741824; a struct or an array of this instance, an array"),
        ("any", 1.5, "leaf.any is 1.5; a struct or an array of this instance"),
        ("any", np.zeros(2, "u8"), r"leaf.any is an array of uint64; .*: set it to a.view\("),
        ("numbers", np.zeros(2), r"of float32 is expected for f32\[\]: set it to a.astype\(numpy"),
        ("numbers", leaf, r"leaf.numbers is a leaf; a contiguous array of float32 is expected"),
    ):
        with pytest.raises(CallError, match=text):
            leaf[name] = value
    with pytest.raises(AttributeError, match="a leaf has no field 'x'; it has value, next, weight"):
        leaf.x = 1
    with pytest.raises(AttributeError, match="a leaf has no field 'x'; it has value, next, weight"):
        leaf.x  # noqa: B018 - it raises
    with pytest.raises(KeyError, match="a leaf has no field 'x'"):
        leaf["x"]
    with pytest.raises(TypeError, match="a leaf of a program cannot be copied or pickled"):
        copy.deepcopy(leaf)
    assert copy.copy(leaf) is leaf
    assert (leaf.value, leaf.weight, leaf.next, leaf.any) == (5, 2.5, None, 7)


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_value_comes_back_as_what_it_is(backend: str) -> None:
    one, a = nodes(backend), np.arange(3.0)
    struct = one.call("node", 1, None)
    for value in (None, 5, -(1 << 30), a, struct):
        assert one.call("same", value) is value or one.call("same", value) == value
    assert one.call("same", a) is a
    assert one.call("same", struct) is struct
    assert one.call("same", np.arange(4, dtype="u2")).dtype == np.uint16  # type: ignore[union-attr]  # an ndarray
    with pytest.raises(CallError, match="kept: argument 1 is 5; a node of this instance, or None"):
        one.call("kept", 5)


def test_an_object_is_alive_while_python_has_its_view_and_no_longer() -> None:
    one = nodes()
    memory = objects(one)
    first, second = one.call("visit_list", 3), one.call("visit_list", 2)
    memory.collect()
    assert memory.space.metrics.live == 8 + 5 * 24
    del second
    memory.collect()
    assert memory.space.metrics.live == 8 + 3 * 24
    assert isinstance(first, StructView)
    last = first.next.next
    del first
    memory.collect()
    assert (memory.space.metrics.live, last.value) == (8 + 24, 3)
    again = one.call("kept", last)
    assert again is None
    assert one.call("kept", None) is last
    del last
    one.call("same", None)  # the frame of the last call has its result
    memory.collect()
    assert memory.space.metrics.live == 8


def test_a_view_outlives_the_name_of_its_instance() -> None:
    first = nodes().call("visit_list", 2)
    gc.collect()
    assert isinstance(first, StructView)
    assert first.next.value == 2


def test_what_python_alone_holds_is_no_part_of_the_state() -> None:
    one, other = nodes(), nodes()
    held = [one.call("visit_list", 3) for _ in range(4)]
    kept = one.call("visit_list", 2)
    one.call("kept", kept)
    other.call("kept", other.call("visit_list", 2))
    machines = [each.idle_execution().machine for each in (one, other)]
    left, right = (machine.snapshot() for machine in machines)
    assert (left.objects, left.statics) == (right.objects, right.statics)
    clone = machines[0].copy()
    assert clone.snapshot() == left
    clone.snapshot()
    machines[0].adopt(clone)
    assert [each.next.value for each in held] == [2] * 4  # type: ignore[union-attr]  # views
    assert one.call("kept", None) is kept


def test_an_object_of_another_instance_is_refused() -> None:
    one, other = nodes(), nodes("switch")
    theirs = other.call("visit_list", 1)
    with pytest.raises(CallError, match="argument 1 is a node of another instance; a node of this"):
        one.call("kept", theirs)
    with pytest.raises(CallError, match="argument 1 is a node of another instance; a struct or an"):
        one.call("same", theirs)
    assert one.call("kept", None) is None


def test_a_host_function_gets_any_reference_and_returns_any() -> None:
    seen: list[Any] = []

    @host(name="all", signature="(anyref i31ref node[] arrayref) -> (anyref)")
    def keep(*values: object) -> object:
        seen.extend(values)
        return np.arange(4, dtype="i2")

    one = nodes("switch", keep)
    objects(one).force()
    made = one.call("give_all")
    struct, small, table, numbers = seen
    assert isinstance(made, np.ndarray)
    assert (made.dtype, small, numbers.tolist()) == (np.int16, -5, [0, 0])
    assert (len(table), list(table), table[-1], repr(table)) == (
        2, [None, None], None, "<node[] of 2: null, null>"
    )  # fmt: skip
    table[1] = struct
    objects(one).collect()
    assert table[1] is struct
    assert table.index(struct) == 1
    with pytest.raises(IndexError, match=r"index 2, a node\[\] has 2 elements"):
        table[2]
    with pytest.raises(IndexError, match=r"index -3, a node\[\] has 2 elements"):
        table[-3] = None
    with pytest.raises(CallError, match=r"element 0 of a node\[\] is 7; a node of this instance"):
        table[0] = 7
    assert table[0] is None


def test_a_host_function_may_call_the_program_with_what_it_got() -> None:
    @host(name="visit")
    def again(one: Instance, first: Node) -> Node:
        assert isinstance(first, StructView)
        memory[0].collect()
        made = one.call("node", first.value + 10, first)
        memory[0].collect()
        assert isinstance(made, StructView)
        return made

    one = nodes("threaded", again)
    memory = [objects(one)]
    first = one.call("visit_list", 1)
    assert isinstance(first, StructView)
    assert (first.value, first.next.value, first.next.next) == (11, 1, None)


def test_a_wrong_result_leaves_the_program_at_the_call() -> None:
    results: list[object] = [np.zeros(2, "f4"), "x", np.zeros((2, 3)).T]

    @host(name="double", signature="(f64[]) -> (f64[])")
    def wrong(v: object) -> object:
        return results.pop(0) if results else v

    one, a = Engine("threaded").instantiate(assemble(NORM), hosts=[norm, wrong]), np.ones(1)
    what = "host function double: its result is"
    for text in (
        rf"{what} an array of float32; .* is expected for f64\[\]: return a.astype\(numpy.float64\)",
        rf"{what} 'x'; .*: return numpy.array\(a, dtype=numpy.float64\)",
        rf"{what} an array in the order of Fortran.*: return numpy.ascontiguousarray\(a\)",
    ):
        with pytest.raises(HostError, match=text):
            one.call("f", a)
    assert one.call("f", a) == (1.0, a)


_Scalar = TypeVar("_Scalar", bound=np.generic)
_ALIAS: Any = TypeAliasType("_ALIAS", np.ndarray[Any, np.dtype[_Scalar]], type_params=(_Scalar,))
"""What NumPy's NDArray is from NumPy 2.5 on."""

DECLARED: dict[Any, str] = {
    npt.NDArray[np.uint8]: "u8[]",
    np.ndarray[Any, np.dtype[np.float32]]: "f32[]",
    npt.NDArray[np.int64] | None: "i64[]",
    _ALIAS[np.float32]: "f32[]",
    Annotated[StructView, "node"]: "node",
    Annotated[StructView | None, "cell[]"]: "cell[]",
    Annotated[int, "i31ref"]: "i31ref",
    object: "anyref",
    Any: "anyref",
}


@pytest.mark.parametrize("annotation", DECLARED)
def test_annotations_declare_reference_types(annotation: Any) -> None:
    def function(a: object) -> object:
        return a

    function.__annotations__ = {"a": annotation, "return": annotation}
    named = DECLARED[annotation]
    assert str(host(function).signature) == f"({named}) -> ({named})"


@pytest.mark.parametrize("annotation", [np.ndarray, StructView, npt.NDArray[np.bool_], list[int]])
def test_an_annotation_without_a_type_is_refused_with_those_that_have_one(annotation: Any) -> None:
    def function(a: object) -> None: ...

    function.__annotations__ = {"a": annotation, "return": None}
    with pytest.raises(HostError, match=r"function: a is .*; one of i32, .*NDArray.* is expected"):
        host(function)


def test_another_type_of_the_program_than_declared_is_refused_with_both_signatures() -> None:
    @host(name="visit")
    def other(first: Annotated[StructView, "nodes"]) -> Node:
        return first

    text = r"host function visit is \(nodes\) -> \(node\), the program imports it as \(node\) -> "
    with pytest.raises(HostError, match=text):
        nodes("switch", other)


def test_a_native_function_takes_numbers_alone() -> None:
    with pytest.raises(HostError, match=r"native host function f is \(f64\[\]\) -> \(\); numbers"):
        ferryvm.native_host("f", "(f64[]) -> ()", 4096)


def test_calls_with_references_are_performed_in_a_replay() -> None:
    @host(name="norm", replayable=True)
    def changing(v: npt.NDArray[np.float64]) -> f64:
        v[0] += 1
        return float(v[0])

    text = """
        .host norm (f64[]) -> (f64)
        .function main
            i64.const 3
            array.new_default_f64
            host norm
            halt
    """
    log = ferryvm.HostLog()
    engine = Engine("threaded", hosts=[changing])
    assert engine.start(assemble(text), record=log).run().value == 1
    assert str(log[0]) == "norm(null) = 1.0"
    assert Engine("reference", hosts=[changing]).start(assemble(text), replay=log).run().value == 1
    other = HostFunction("norm", changing.signature, lambda v: 3.0)
    with pytest.raises(ferryvm.ReplayError, match=r"found|is norm\(null\) = 3.0, the log has"):
        Engine("reference", hosts=[other]).start(assemble(text), replay=log).run()


STATICS = """
.struct node value i64
.static kept node
.static numbers f64[]
.static any anyref
.static count i64
.export sum
.function start
    i64.const 6
    struct.new node
    static.set kept
    halt
.function sum -> (f64)
    static.get numbers
    i64.const 0
    array.get_f64
    static.get kept
    struct.get node.value
    f64.convert_i64_s
    f64.add
    return
"""


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_statics_of_a_reference_type_can_be_read_and_set(backend: str) -> None:
    one, a = Engine(backend).instantiate(assemble(STATICS)), np.array([1.5])
    assert one.static("numbers") is None
    one.set_static("numbers", a)
    one.set_static("any", one.static("kept"))
    objects(one).collect()
    assert one.static("numbers") is a
    kept = one.static("kept")
    assert one.static("any") is kept
    assert one.call("sum") == 7.5
    one.set_static("any", -3)
    assert (one.static("any"), one.static("count")) == (-3, 0)
    one.set_static("kept", None)
    assert isinstance(kept, StructView)
    assert kept.value == 6
    for name, value, text in (
        ("kept", a, r"static kept is array\(\[1.5\]\); a node of this instance, or None"),
        (
            "numbers",
            np.zeros(4)[::2],
            r"static numbers is .* not contiguous; .*: set it to numpy.ascont",
        ),
        ("any", object(), "static any is <object object.*>; a struct or an array of this instance"),
    ):
        with pytest.raises(CallError, match=text):
            one.set_static(name, value)


COMPARED = """
.struct node value i64
.host scaled (f64[] node) -> (f64[])
.static all f64[]
.function main
    .local i i64
:top
    f64.const 1.5
    i64.const 3
    array.new_f64
    local.get i
    struct.new node
    host scaled
    static.set all
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 3
    i64.lt_s
    jump_if top
    static.get all
    i64.const 1
    array.get_f64
    halt
"""


@pytest.mark.rotate("schedule", most=2)
@pytest.mark.parametrize("schedule", Schedule)
def test_runs_are_compared_whatever_a_host_function_holds(schedule: Schedule) -> None:
    held: list[object] = []

    @host(pure=True)
    def scaled(
        v: npt.NDArray[np.float64], one: Annotated[StructView, "node"]
    ) -> npt.NDArray[np.float64]:
        held.append(one)
        doubled: npt.NDArray[np.float64] = v * 2
        return doubled

    differ = Differ(("switch", "llvm"), hosts=[scaled])
    found = differ.compare(verify(assemble(COMPARED)), schedule, seed=1)
    assert [(one.verdict, one.difference) for one in found] == [(Verdict.AGREE, None)] * len(found)
    assert held
