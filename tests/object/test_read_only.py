# SPDX-License-Identifier: Apache-2.0
"""Arrays that are marked as read-only: what stores into them traps, what reads them does not."""

from __future__ import annotations

import ctypes

import pytest

import ferryvm
from ferryvm.engine.result import TrapError
from ferryvm.isa import Trap
from ferryvm.isa.object import READ_ONLY
from ferryvm.machine.state import Machine

STORES = {
    "set": "i64.const 1 / f32.const 1 / array.set_f32",
    "fill": "i64.const 0 / f32.const 1 / i64.const 2 / array.fill_f32",
    "copy": "i64.const 0 / static.get lent / i64.const 0 / i64.const 2 / array.copy_f32",
    "load": "i64.const 0 / i64.const 0 / i64.const 1 / array.load_f32",
    "update": "i64.const 1 / i32.const 1 / array.atomic_add_u32 / drop",
    "compare and exchange": (
        "i64.const 1 / i32.const 0 / i32.const 1 / array.atomic_compare_exchange_u32 / drop"
    ),
    "nothing": "i64.const 0 / f32.const 1 / i64.const 0 / array.fill_f32",
}
READS = "i64.const 1 / array.get_f32"
TEXT = """
.data 0 "12345678"
.static lent f32[]
.host lend
.function main
    i64.const 4
    array.new_default_f32
    static.set lent
    host lend
    static.get lent
    {}
    halt
"""


def run(use: str, backend: str) -> Machine:
    """The machine after an array was marked, and used in this way."""
    machines: list[Machine] = []

    @ferryvm.host(name="lend")
    def lend() -> None:
        control, statics = machines[0].control, machines[0].memory.statics
        header = ctypes.c_uint64.from_address(control.objects + statics[0])
        header.value |= READ_ONLY

    text = TEXT.format(use.replace(" / ", "\n    "))
    if "u32" in use:
        text = text.replace("f32", "u32")
    program = ferryvm.assemble(text)
    execution = ferryvm.Engine(backend, hosts=[lend]).start(program)
    machines.append(execution.machine)
    execution.run()
    return execution.machine


@pytest.mark.rotate("store", "backend")
@pytest.mark.parametrize("backend", ["reference", "switch", "threaded"])
@pytest.mark.parametrize("store", STORES)
def test_a_store_traps(store: str, backend: str) -> None:
    with pytest.raises(TrapError) as caught:
        run(STORES[store], backend)
    assert caught.value.kind is Trap.READ_ONLY_ARRAY


def test_a_read_and_a_copy_from_it_do_not_trap() -> None:
    run(READS, "threaded")
    run("drop / i64.const 4 / array.new_default_f32 / " + STORES["copy"], "threaded")
