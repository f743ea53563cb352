# SPDX-License-Identifier: Apache-2.0
"""Long fills and copies: in parts, interrupted between two of them, the same on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from ferryvm import Engine, Instance, ProgramInterrupted, assemble
from ferryvm.isa.object import LARGEST_TRANSFER
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.element_transfer import ElementTransfer
from ferryvm.machine.memory import Limits

BACKENDS = ("reference", "switch", "threaded", "llvm")
MANY = 2 * LARGEST_TRANSFER + 12_345
"""Elements of a byte: two whole parts and a rest."""
TEXT = """
.static kept u8[]
.export fill
.export copy
.export load
.export store
.export make
.export table
.function start
    i64.const {many}
    heap.alloc
    drop
    halt
.function fill (to u8[], index i64, count i64)
    local.get to
    local.get index
    i32.const 0x1ff
    local.get count
    array.fill_u8
    return
.function copy (to u8[], index i64, from u8[], start i64, count i64)
    local.get to
    local.get index
    local.get from
    local.get start
    local.get count
    array.copy_u8
    return
.function load (to u8[], index i64, address i64, count i64)
    local.get to
    local.get index
    local.get address
    local.get count
    array.load_u8
    return
.function store (from u8[], index i64, address i64, count i64)
    local.get from
    local.get index
    local.get address
    local.get count
    array.store_u8
    return
.function make (value i32 count i64) -> (i16[])
    local.get value
    local.get count
    array.new_i16
    return
.function table (what anyref, count i64) -> (i64)
    local.get what
    local.get count
    array.new_ref anyref[]
    local.get count
    i64.const 1
    i64.sub
    array.get_ref anyref[]
    ref.cast u8[]
    array.length
    return
"""


def instance(backend: str) -> Instance:
    limits = Limits(stack=1 << 16, heap=1 << 26, objects=1 << 28)
    return Engine(backend, limits=limits).instantiate(assemble(TEXT.format(many=MANY)))


@pytest.mark.rotate("backend", most=2)
@pytest.mark.parametrize("backend", BACKENDS)
def test_long_transfers_do_what_short_ones_do(backend: str) -> None:
    one, a = instance(backend), np.zeros(MANY + 10, "u1")
    one.call("fill", a, 7, MANY)
    assert (a[:7].any(), a[7:-3].min(), a[-3:].any()) == (False, 255, False)
    a[:] = np.arange(len(a)) % 251
    b, expected = np.zeros(MANY, "u1"), a.copy()
    one.call("copy", b, 0, a, 5, MANY)
    assert np.array_equal(b, a[5 : 5 + MANY])
    for index, start in ((10, 0), (0, 10), (3, 3)):
        expected[index : index + MANY] = expected[start : start + MANY].copy()
        one.call("copy", a, index, a, start, MANY)
        assert np.array_equal(a, expected)
    one.call("store", a, 2, 0, MANY)
    assert np.array_equal(one.heap[:MANY], a[2 : 2 + MANY])
    one.call("load", b, 0, 0, MANY)
    assert np.array_equal(b, a[2 : 2 + MANY])


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_large_new_array_has_its_first_value_everywhere(backend: str) -> None:
    one = instance(backend)
    for count in (100, 2_500, LARGEST_TRANSFER // 2, LARGEST_TRANSFER // 2 + 1, MANY // 2 | 1):
        made = one.call("make", -3, count)
        assert isinstance(made, np.ndarray)
        assert (len(made), made.min(), made.max()) == (count, -3, -3)
    assert one.call("table", np.zeros(5, "u1"), LARGEST_TRANSFER // 8 + 9) == 5


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sets the interrupt flag after the first part; the parts that were performed."""
    performed: list[int] = []
    plain = ElementTransfer.fill

    def note() -> None:
        performed.append(len(performed))
        if len(performed) == 1:
            blocks[0].interrupt = 1

    def fill(address: int, size: int, count: int, word: int) -> None:
        plain(address, size, count, word)
        note()

    blocks: list[ControlBlock] = []
    made = ElementTransfer.__init__

    def begin(self: ElementTransfer, memory: object, space: object, shapes: object) -> None:
        made(self, memory, space, shapes)  # type: ignore[arg-type]  # as they are
        blocks.append(memory.control)  # type: ignore[attr-defined]  # it has one

    monkeypatch.setattr(ElementTransfer, "__init__", begin)
    monkeypatch.setattr(ElementTransfer, "fill", staticmethod(fill))
    return performed


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_comes_between_two_parts_and_the_call_goes_on(
    backend: str, parts: list[int]
) -> None:
    one, a = instance(backend), np.zeros(MANY, "u1")
    with pytest.raises(ProgramInterrupted) as caught:
        one.call("fill", a, 0, MANY)
    assert len(parts) == 1
    assert (a[:LARGEST_TRANSFER].min(), a[LARGEST_TRANSFER:].any()) == (255, False)
    assert caught.value.call is not None
    caught.value.call.resume()
    assert a.min() == 255


def test_an_interrupt_while_a_new_array_is_filled_makes_none(parts: list[int]) -> None:
    one = instance("switch")
    with pytest.raises(ProgramInterrupted) as caught:
        one.call("make", 5, MANY // 2)
    memory = one._execution.machine.objects
    assert memory is not None
    assert (memory.space.outside_bytes, one._execution.machine.control.prepared) == (0, 0)
    assert caught.value.call is not None
    made = caught.value.call.resume()
    assert isinstance(made, np.ndarray)
    assert (len(made), made.min(), made.max()) == (MANY // 2, 5, 5)
    assert len(parts) > 2
