# SPDX-License-Identifier: Apache-2.0
"""What `--vary` says becomes documents, and what it cannot say is one line that says why."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import tomli

from ferryvm.errors import FerryError
from ferryvm_backends.vliw.machine.read import judge, path_of, shipped
from ferryvm_backends.vliw.sweep.variant import MOST, read_axes, shown, variants


def document(name: str = "multi16") -> dict[str, Any]:
    return tomli.loads(path_of(name).read_text(encoding="utf-8"))


def tables(*texts: str, name: str = "multi16") -> list[dict[str, Any]]:
    base = document(name)
    return [variant.document for variant in variants(read_axes(texts, base), base)]


def unit(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(table for table in found["unit"] if table["name"] == name)


def test_the_name_of_a_group_is_how_many_there_are() -> None:
    assert [unit(each, "alu")["count"] for each in tables("alu=1..4")] == [1, 2, 3, 4]
    assert [each["file"][0]["count"] for each in tables("int=2,7,2")] == [2, 7]


def test_a_number_as_deep_as_it_goes_can_be_varied() -> None:
    assert [each["file"][0]["registers"] for each in tables("int.registers=8,16")] == [8, 16]
    assert [each["delay_slots"] for each in tables("delay_slots=0..2")] == [0, 1, 2]
    assert [each["bypass"] for each in tables("bypass=true,false")] == [True, False]
    assert [each["transfer"]["setup"] for each in tables("transfer.setup=9")] == [9]
    assert [each["clock"] for each in tables("clock=12.5, 100")] == [12.5, 100]
    latencies = [unit(each, "alu")["work"]["multiply"] for each in tables("alu.work.multiply=1..2")]
    assert latencies == [1, 2]


def test_a_table_stands_where_a_number_stood_for_it() -> None:
    (multiply,) = tables("alu.work.multiply.interval=2")
    assert unit(multiply, "alu")["work"]["multiply"] == {"latency": 3, "interval": 2}
    (divide,) = tables("alu.work.divide.latency=9")
    assert unit(divide, "alu")["work"]["divide"] == {"latency": 9, "interval": 34}
    (new,) = tables("alu.work.float_add.latency=4")
    assert unit(new, "alu")["work"]["float_add"] == {"latency": 4}
    assert judge(new)[0] is not None


def test_a_group_goes_before_a_key_of_its_name() -> None:
    (group,) = tables("memory=2")
    assert unit(group, "memory")["count"] == 2
    assert group["memory"] == document()["memory"]
    (key,) = tables("machine.memory=200000")
    assert key["memory"] == 200000
    assert unit(key, "memory") == unit(document(), "memory")


def test_several_make_every_combination_and_the_last_changes_first() -> None:
    base = document()
    before = copy.deepcopy(base)
    found = list(variants(read_axes(["alu=1..2", "slots=3,4"], base), base))
    assert [str(each) for each in found] == [
        "alu=1, slots=3",
        "alu=1, slots=4",
        "alu=2, slots=3",
        "alu=2, slots=4",
    ]
    assert [(unit(each.document, "alu")["count"], each.document["slots"]) for each in found] == [
        (1, 3),
        (1, 4),
        (2, 3),
        (2, 4),
    ]
    assert base == before


@pytest.mark.parametrize("name", shipped())
def test_what_is_set_to_what_it_was_changes_nothing(name: str) -> None:
    base = document(name)
    (same,) = tables(f"slots={base['slots']}", f"clock={base['clock']}", name=name)
    assert judge(same) == judge(base)


def test_values_are_shown_as_they_are_written() -> None:
    assert [shown(value) for value in (268_435_456, 1.5, True, 3)] == [
        *("268435456", "1.5", "true", "3")
    ]


FAULTS = {
    ("alo=1",): "--vary alo: machine 'multi16' has no group or key 'alo'; did you mean 'alu'? "
    "(allowed: alu, bool, bypass, clock, ",
    ("int.register=8",): "int has no number 'register'; did you mean 'registers'? "
    "(allowed: cost, count, read_ports, registers, write_ports)",
    ("alu.work.mutliply=1",): "work has no number 'mutliply'; did you mean 'multiply'?",
    ("machine.alu=1",): "machine 'multi16' has no number 'alu' (allowed: bypass, clock, ",
    ("alu.name=1",): "alu has no number 'name'",
    ("alu.reads=1",): "alu has no number 'reads'",
    ("slots.count=1",): "slots has no number 'count' (allowed: none)",
    ("transfer=1",): "--vary transfer: a table; a number in it is expected: "
    "transfer.bytes_per_cycle, transfer.setup",
    ("alu.work=1",): "--vary alu.work: a table; a number in it is expected",
    ("name=1",): "no group or key 'name'",
    ("alu",): "--vary 'alu': NAME=VALUES is expected, such as alu=1..8",
    ("alu=",): "NAME=VALUES is expected",
    ("=1",): "NAME=VALUES is expected",
    ("alu=many",): "--vary alu: found 'many'; a number, a range such as 1..8, true or false",
    ("alu=1,,2",): "--vary alu: found ''; a number",
    ("alu=1..",): "found '1..'; a number",
    ("alu=-1",): "found '-1'; a number",
    ("alu=8..1",): "--vary alu: the range 8..1 is empty",
    ("alu=1..999999999999",): f"these are 999999999999 variants, {MOST} are the most",
    ("alu=1..50", "slots=1..50"): f"--vary: these are 2500 variants, {MOST} are the most",
    ("alu=1..2", "alu.count=3"): "--vary alu.count: it is varied twice",
}


@pytest.mark.parametrize("texts", FAULTS)
def test_what_cannot_be_varied_is_one_line_that_says_what_can(texts: tuple[str, ...]) -> None:
    with pytest.raises(FerryError) as caught:
        read_axes(texts, document())
    assert FAULTS[texts] in str(caught.value)
    assert "\n" not in str(caught.value)
