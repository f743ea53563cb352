# SPDX-License-Identifier: Apache-2.0
"""References between programs and Python: arrays, structs, null, small integers, both ways."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine, StructView, assemble
from ferryvm.engine.marshal import CallError

from .node_program import BACKENDS, nodes, objects


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
    with pytest.raises(AttributeError, match="the fields of a leaf cannot be deleted"):
        del leaf.value
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
