# SPDX-License-Identifier: Apache-2.0
"""What rules can ask for: everything that is known of a region and of the machine."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

import ferryvm
from ferryvm.isa import INSTRUCTIONS
from ferryvm.policy import machine
from ferryvm.policy.fact import Fact, FactType, Values, find, meanings, vocabulary
from ferryvm.policy.machine import MachineFacts, here
from ferryvm.region import RegionKind, facts, regions
from ferryvm.region.fact import Facts
from ferryvm.verify import verify

from .sample import LOOP, MACHINE, values, when

PROGRAM = """
(define v (make-array f64 10))
(define (sum n) (let ((s 0.0) (i 0))
  (while (< i n) (set! s (+ s (array-ref v i))) (set! i (+ i 1))) s))
(print! (sum 10))
"""


def test_every_field_of_the_facts_of_a_region_can_be_asked_for() -> None:
    names = {name.partition(".")[0] for name in vocabulary() if not name.startswith("machine.")}
    assert names == {field.name for field in dataclasses.fields(Facts)}


def test_every_field_of_the_facts_of_the_machine_can_be_asked_for() -> None:
    names = {name for name in vocabulary() if name.startswith("machine.")}
    assert names == {f"machine.{field.name}" for field in dataclasses.fields(MachineFacts)}


def test_every_chapter_of_the_instruction_table_can_be_asked_for() -> None:
    names = {name for name in vocabulary() if name.startswith("mix.")}
    assert names == {f"mix.{row.chapter}" for row in INSTRUCTIONS}


@pytest.mark.parametrize("name", vocabulary())
def test_every_fact_has_a_meaning_and_a_value_of_its_type(name: str) -> None:
    assert meanings()[name].endswith(".")
    types = {
        FactType.BOOLEAN: bool,
        FactType.COUNT: int,
        FactType.SHARE: float,
        FactType.TEXT: str,
    }
    assert type(values().get(name)) is types[vocabulary()[name].type]


@pytest.mark.parametrize("name", vocabulary())
def test_every_fact_can_be_asked_for_in_a_rule(name: str) -> None:
    wanted = {FactType.BOOLEAN: "[true, false]", FactType.TEXT: "'*'"}
    text = wanted.get(vocabulary()[name].type, "'>= 0'")
    assert when(f"{name} = {text}").judge(values()).holds
    assert when(f"'{name}' = {text}") == when(f"{name} = {text}")


def test_kinds_are_those_of_regions() -> None:
    assert vocabulary()["kind"].values == tuple(kind.value for kind in RegionKind)


def test_shares_are_from_0_to_1_for_the_regions_of_a_program() -> None:
    shares = [name for name, fact in vocabulary().items() if fact.type is FactType.SHARE]
    found = [facts(region) for region in regions(verify(ferryvm.compile(PROGRAM)))]
    assert len(found) > 3
    assert len(shares) >= 4
    assert all(0 <= getattr(one, name) <= 1 for one in found for name in shares)


def test_facts_of_plugins_have_three_parts_and_are_open() -> None:
    assert find("plugin.p.speed") == Fact("plugin.p.speed", FactType.OPEN)
    assert find("plugin.p") is find("plugin.p.a.b") is find("plugin..x") is None


def test_a_fact_of_a_plugin_that_is_not_there_has_no_value() -> None:
    assert values(speed=3).get("plugin.p.speed") == 3
    assert values().get("plugin.p.speed") is None


def test_a_chapter_without_instructions_counts_none() -> None:
    assert Values(LOOP, MACHINE, {}).get("mix.conversion") == 0


# --- machine --------------------------------------------------------------------------------


def test_the_machine_is_the_one_that_this_runs_on() -> None:
    found = here()
    assert found.cpus == len(os.sched_getaffinity(0))
    assert (found.system, found.architecture) == (os.uname().sysname, os.uname().machine)
    assert found.memory > 1 << 20


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Fast: 3 GHz\n\nprocessor\t: 1\n", "Fast: 3 GHz"),
        ("processor : 0\nfeatures : x\n\nmodel name : of another\n", ""),
        ("", ""),
    ],
)
def test_the_model_is_that_of_the_first_processor(text: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / "cpuinfo"
    source.write_text(text)
    assert machine._cpu(source) == name


def test_a_system_without_that_file_has_a_processor_without_name(tmp_path: Path) -> None:
    assert machine._cpu(tmp_path / "none") == ""
