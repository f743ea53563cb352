# SPDX-License-Identifier: Apache-2.0
"""Structs and arrays of references that Python makes by `Instance.new`."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine, Instance, assemble, host
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.machine.memory import Limits
from ferryvm.machine.object_memory import ObjectMemory

TEXT = """
.struct node value i64 next node
.struct leaf extends node weight f64 small i32 any anyref bytes u8[]
.static kept node
.host ask () -> (node)
.export sum
.export count
.export asked
.function start
    halt
.function sum (list node) -> (i64)
    .local total i64
:next
    local.get list
    ref.is_null
    jump_if done
    local.get total
    local.get list
    struct.get node.value
    i64.add
    local.set total
    local.get list
    struct.get node.next
    local.set list
    jump next
:done
    local.get total
    return
.function count (nodes node[]) -> (i64)
    local.get nodes
    array.length
    return
.function asked -> (node)
    host ask
    return
"""


@host(signature="() -> (node)")
def ask(instance: Instance) -> object:
    return instance.new("node", 40, instance.new("leaf", 2))


def start(backend: str = "threaded", objects: int = 1 << 20) -> Instance:
    limits = Limits(stack=1 << 16, heap=1 << 16, objects=objects)
    return Engine(backend, limits=limits).instantiate(assemble(TEXT), hosts=[ask])


def memory(one: Instance) -> ObjectMemory:
    found = one.idle_execution().machine.objects
    assert found is not None
    return found


@pytest.mark.parametrize("backend", ["reference", "threaded", "llvm"])
def test_a_program_reads_structs_and_arrays_that_python_made(backend: str) -> None:
    one = start(backend)
    tail = one.new("leaf", 3, weight=2.5)
    assert one.call("sum", one.new("node", 4, tail)) == 7
    assert one.call("count", one.new("node[]", [tail, None])) == 2
    assert one.call("count", one.new("node[]", 0)) == 0


def test_fields_are_given_in_order_or_by_name_and_are_zero_or_null_else() -> None:
    one = start()
    leaf = one.new("leaf", 1, None, 2.5, bytes=bytearray(b"ab"))
    assert (leaf.value, leaf.next, leaf.weight, leaf.small, leaf.any) == (1, None, 2.5, 0, None)
    assert bytes(leaf.bytes) == b"ab"
    assert ferryvm.type_name(leaf) == "leaf"
    other = one.new("node", next=leaf)
    assert (other.value, other.next) == (0, leaf)


def test_elements_are_a_sequence_or_null() -> None:
    one = start()
    leaf = one.new("leaf")
    made = one.new("node[]", (each for each in (leaf, None, leaf)))
    assert [*made] == [leaf, None, leaf]
    assert [*one.new("node[]", 2)] == [None, None]


def test_new_objects_stay_while_python_holds_them_and_no_longer() -> None:
    one = start()
    head = None
    for number in range(100):
        head = one.new("leaf", number, head)
    large = one.new("node[]", 1000)  # its elements are outside of the space
    large[999] = head
    memory(one).collect()
    held = memory(one).space.metrics.live
    assert held == 8 + 100 * 56 + 24 + 8000
    assert one.call("sum", head) == 4950
    assert large[999].next.value == 98
    del head, large
    gc.collect()
    memory(one).collect()
    assert memory(one).space.metrics.live == 8


def test_objects_are_made_where_each_of_them_causes_a_collection() -> None:
    one = start()
    memory(one).force()
    leaf = one.new("leaf", 5, one.new("node", 6, one.new("leaf", 7)), any=one.new("node[]", 600))
    assert one.call("sum", one.new("node", 1, leaf)) == 19
    assert len(leaf.any) == 600


@pytest.mark.parametrize("backend", ["reference", "threaded"])
def test_the_result_of_a_run_is_what_a_call_returns(backend: str) -> None:
    def result(text: str) -> object:
        found = ferryvm.run(ferryvm.compile(text), backend=backend)
        assert found.value is None
        return found.reference

    struct = result("(define-struct pair (a i64) (b f64)) (make-array i64 3) (make-pair 1 2.5)")
    assert repr(struct) == "<pair a=1 b=2.5>"
    text = result('"text"')
    assert isinstance(text, np.ndarray)
    assert text.tobytes() == b"text"
    assert result("(ref.i31 -5)") == -5
    assert result("(cast string null)") is None
    assert ferryvm.run(ferryvm.compile("(array i64) 7"), backend=backend).reference is None


def test_a_host_function_makes_what_it_returns() -> None:
    asked = start().call("asked")
    assert (asked.value, asked.next.value) == (40, 2)  # type: ignore[union-attr]  # a struct


def test_the_limit_of_objects_holds_for_python_and_nothing_is_lost() -> None:
    one, made = start(objects=4096), list[object]()
    for _ in range((4096 - 8) // 24):
        made.append(one.new("node", 1, made[-1] if made else None))
    with pytest.raises(CallError, match=r"node: no memory for 24 more bytes .* 4096 bytes; raise"):
        one.new("node")
    assert one.call("sum", made[-1]) == len(made)
    with pytest.raises(CallError, match=r"node\[\]: no memory for"):
        one.new("node[]", 1 << 60)
    made.clear()
    assert one.call("sum", one.new("node", 2)) == 2


@pytest.mark.parametrize(
    ("values", "fields", "message"),
    [
        (("nod",), {}, "no type of structs or arrays of references 'nod'; did you mean 'node'?"),
        (("f64[]", 3), {}, "made by NumPy, and used where they lie: numpy.zeros(length, numpy.fl"),
        (("anyref",), {}, "anyref: no object has this type itself"),
        (("node",), {"nxt": None}, "a node has no field 'nxt'; did you mean 'next'?; it has value"),
        (("node", 1), {"value": 1}, "node.value is given twice, as value 1 too"),
        (("node", 1, None, 2), {}, "node: 3 values, a node has 2 fields: value, next"),
        (("node", "1"), {}, "node.value is '1'; an int from"),
        (("leaf",), {"weight": None}, "leaf.weight is None; a number for an f64 is expected"),
        (("node", 1, 2), {}, "node.next is 2; a node of this instance, or None, is expected"),
        (("leaf",), {"bytes": "ab"}, "of uint8 is expected for u8[]: set it to a.encode()"),
        (("leaf",), {"bytes": np.zeros(2)}, "leaf.bytes is an array of float64; a contiguous"),
        (("node[]",), {}, "node[]: a length, or the elements in a sequence, are expected; found 0"),
        (("node[]", 2.5), {}, "are expected; found 2.5"),
        (("node[]", np.array(2.5)), {}, "in a sequence, are expected; found array(2.5)"),
        (("node[]", -1), {}, "node[]: a length of -1; 0 or more is allowed"),
        (("node[]", [None, 5]), {}, "element 1 of a node[] is 5; a node of this instance"),
    ],
)
def test_what_fits_no_type_is_one_clear_line(
    values: tuple[str, object], fields: dict[str, object], message: str
) -> None:
    one = start()
    with pytest.raises((CallError, UnknownNameError)) as caught:
        one.new(*values, **fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_structs_of_another_instance_and_of_a_supertype_are_refused() -> None:
    one, other = start(), start()
    with pytest.raises(CallError, match=r"node\.next is a node of another instance"):
        one.new("node", 1, other.new("node"))
    leaves = assemble(
        ".struct node next node\n.struct leaf extends node left leaf\n.static s leaf\n.function main\n    halt\n"
    )
    third = Engine("threaded").instantiate(leaves)
    with pytest.raises(CallError, match=r"leaf\.left is a node; a leaf of this instance, or None"):
        third.new("leaf", left=third.new("node"))


def test_a_program_without_references_says_that_it_has_no_objects() -> None:
    one = Engine("threaded").instantiate(assemble(".struct a x i64\n.function main\n    halt\n"))
    with pytest.raises(FerryError, match="a: the program uses no references, so it has no objects"):
        one.new("a")
