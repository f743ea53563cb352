# SPDX-License-Identifier: Apache-2.0
"""Machine descriptions: those that come with the package, the form of files, every mistake."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from ferryvm.errors import FerryError, UnknownNameError
from ferryvm_backends.vliw.machine.model import FileKind, Machine, Timing, Unit, Work
from ferryvm_backends.vliw.machine.read import MachineError, find, load, read_text, shipped

from .small import SMALL, changed

ROOT = Path(__file__).parents[3]
INTEGER, BOOLEAN = FileKind.INTEGER, FileKind.BOOLEAN


def group(machine: Machine, name: str) -> list[Unit]:
    return [unit for unit in machine.units if unit.group == name]


# --- the machines there are -----------------------------------------------------------------


def test_multi16_has_small_files_with_a_port_each_way() -> None:
    machine = find("multi16")
    assert [file.name for file in machine.files if file.kind is INTEGER] == [
        *("int0", "int1", "int2", "int3")
    ]
    assert len([file for file in machine.files if file.kind is BOOLEAN]) == 5
    for file in machine.files:
        assert file.registers == (32 if file.kind is INTEGER else 16)
        assert (file.read_ports, file.write_ports) == (1, 1)


def test_multi16_has_units_for_everything_with_their_latencies() -> None:
    machine = find("multi16")
    counts = {"alu": 4, "float_adder": 4, "float_multiplier": 4, "memory": 9, "control": 1}
    assert {name: len(group(machine, name)) for name in counts} == counts
    assert len(machine.units) == machine.slots == 22
    one = Timing(1, 1)
    simple = ["move", "add", "logic", "shift", "compare", "extend", "select", "boolean", "count"]
    assert group(machine, "alu")[0].work == {
        **{Work(name): one for name in simple},
        Work.MULTIPLY: Timing(3, 1),
        Work.DIVIDE: Timing(34, 34),
    }
    adder = ("float_add", "float_compare", "float_round", "convert")
    assert group(machine, "float_adder")[3].work == {Work(name): Timing(5, 1) for name in adder}
    assert group(machine, "float_multiplier")[3].work == {
        Work.FLOAT_MULTIPLY: Timing(5, 1),
        Work.FLOAT_DIVIDE: Timing(20, 20),
        Work.FLOAT_ROOT: Timing(24, 24),
    }
    assert group(machine, "memory")[8].work == {Work.LOAD: Timing(3), Work.STORE: one}
    assert group(machine, "control")[0].work == {Work.BRANCH: one}
    every = frozenset(file.name for file in machine.files)
    assert all(unit.reads == unit.writes == every for unit in machine.units)


def test_multi16_is_a_machine_of_100_mhz_with_256_mib() -> None:
    machine = find("multi16")
    assert (machine.clock, machine.memory, machine.instructions) == (100.0, 256 << 20, 65536)
    assert (machine.delay_slots, machine.immediates) == (3, 8)
    assert machine.predication
    assert machine.bypass
    assert (machine.transfer.bytes_per_cycle, machine.transfer.setup) == (8.0, 50)


def test_single_has_one_unit_that_does_everything() -> None:
    machine = find("single")
    (unit,) = machine.units
    assert machine.slots == 1
    assert set(unit.work) == set(Work)
    assert [(file.registers, file.read_ports, file.write_ports) for file in machine.files] == [
        (32, 3, 1),
        (16, 3, 1),
    ]


@pytest.mark.parametrize(
    ("name", "slots", "registers", "ports"),
    [("dsp4", 4, 64, (6, 4)), ("wide16", 16, 128, (24, 12))],
)
def test_a_machine_around_one_file_has_ports_for_its_slots(
    name: str, slots: int, registers: int, ports: tuple[int, int]
) -> None:
    machine = find(name)
    assert machine.slots == slots
    file = machine.file("int")
    assert (file.registers, (file.read_ports, file.write_ports)) == (registers, ports)
    assert [one.kind for one in machine.files] == [INTEGER, BOOLEAN]


@pytest.mark.parametrize("name", shipped())
def test_a_machine_of_the_package_runs_every_operation_and_has_no_warnings(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ferryvm"):
        machine = find(name)
    assert caplog.messages == []
    assert machine.name == name
    assert all(machine.units_for(work) for work in Work)


@pytest.mark.parametrize("name", shipped())
def test_a_machine_of_the_package_is_seen_among_the_examples_and_explained(name: str) -> None:
    example = ROOT / "configs" / "vliw" / f"{name}.toml"
    folder = ROOT / "backends" / "ferryvm_backends" / "vliw" / "machine"
    assert os.readlink(example) == os.path.relpath(folder / f"{name}.toml", example.parent)
    assert example.read_bytes() == shipped()[name].read_bytes()
    licence, *comment = example.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    assert licence == "# SPDX-License-Identifier: Apache-2.0"
    assert len(comment) >= 3


def test_a_name_that_is_no_machine_lists_those_there_are() -> None:
    with pytest.raises(UnknownNameError) as raised:
        find("mutli16")
    assert str(raised.value) == (
        "no machine 'mutli16'; did you mean 'multi16'? (known: dsp4, multi16, single, wide16)"
    )


def test_what_has_a_suffix_or_a_slash_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text(SMALL)
    assert find(f"{tmp_path}/plain").name == "small"
    with pytest.raises(FerryError, match=r"^multi16\.toml: cannot be read: No such file"):
        find("multi16.toml")


# --- the form of files ----------------------------------------------------------------------


def test_a_count_makes_numbered_files_and_units_and_one_alone_has_no_number() -> None:
    text = f'{SMALL}[[unit]]\nname = "side"\ncount = 3\nwork.add = 2\nreads = ["r1", "p"]\n'
    machine = read_text(f'{text}writes = ["r"]\ncost = 1.5\n', "m.toml")
    assert [file.name for file in machine.files] == ["r0", "r1", "p"]
    assert [unit.name for unit in machine.units] == ["core", "side0", "side1", "side2"]
    for unit in group(machine, "side"):
        assert unit.work == {Work.ADD: Timing(2, 1)}
        assert (unit.reads, unit.writes) == ({"r1", "p"}, {"r0", "r1"})
        assert unit.cost == 1.5
    assert machine.units[0].reads == machine.units[0].writes == {"r0", "r1", "p"}


def test_a_number_is_a_latency_and_a_table_says_more() -> None:
    text = changed("add = 1", "add = 2, divide = { latency = 3, interval = 9 }, count.latency = 4")
    work = read_text(text, "m.toml").units[0].work
    assert (work[Work.ADD], work[Work.DIVIDE]) == (Timing(2, 1), Timing(3, 9))
    assert work[Work.COUNT] == Timing(4, 1)


def test_a_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(SMALL)
    assert load(path).transfer.bytes_per_cycle == 0.5
    path.write_text(SMALL.replace("slots = 1", "slots = 0"))
    with pytest.raises(MachineError) as raised:
        load(path)
    assert (
        str(raised.value) == f"{path}:3:1: slots: found 0 (allowed: a whole number from 1 to 1024)"
    )
