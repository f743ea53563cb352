# SPDX-License-Identifier: Apache-2.0
"""Host functions that take and return references: arrays, structs, null, small integers."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from typing_extensions import TypeAliasType

import ferryvm
from ferryvm import Engine, HostFunction, Instance, StructView, assemble, f64, host
from ferryvm.engine.marshal import CallError
from ferryvm.machine.host import HostError
from ferryvm.testing import Schedule
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.verify import verify

from .node_program import BACKENDS, Node, nodes, objects

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


@host
def norm(v: npt.NDArray[np.float64]) -> f64:
    return float(np.sqrt((v * v).sum()))


@host
def double(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    v *= 2
    return v


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_function_gets_the_memory_of_an_array_and_returns_it(backend: str) -> None:
    one = Engine(backend).instantiate(assemble(NORM), hosts=[norm, double])
    a = np.array([1.5, 2.0])
    found = one.call("f", a)
    assert found == (5.0, a)
    assert found[1] is a
    assert a.tolist() == [3, 4]


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
    results: list[object] = [np.zeros(2, "f4"), [1.5], np.zeros((2, 3)).T]

    @host(name="double", signature="(f64[]) -> (f64[])")
    def wrong(v: object) -> object:
        return results.pop(0) if results else v

    one, a = Engine("threaded").instantiate(assemble(NORM), hosts=[norm, wrong]), np.ones(1)
    what = "host function double: its result is"
    for text in (
        rf"{what} an array of float32; .* is expected for f64\[\]: return a.astype\(numpy.float64\)",
        rf"{what} \[1.5\]; .*: return numpy.array\(a, dtype=numpy.float64\)",
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
    assert str(log[0]) == "norm(f64[]) = 1.0"
    assert Engine("reference", hosts=[changing]).start(assemble(text), replay=log).run().value == 1
    other = HostFunction("norm", changing.signature, lambda v: 3.0)
    with pytest.raises(ferryvm.ReplayError, match=r"found|is norm\(f64\[\]\) = 3.0, the log has"):
        Engine("reference", hosts=[other]).start(assemble(text), replay=log).run()


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
