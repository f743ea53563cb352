# SPDX-License-Identifier: Apache-2.0
"""The check of launches: planted races are found, and independent items are not blamed."""

from __future__ import annotations

import re

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Forcing, RefusalError
from ferryvm.errors import FerryError
from ferryvm.machine.memory import Limits
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.disagreement import record
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

from ...launching import launch

HEAD = f"""
.struct node value i64 next node
.static total i64
.static best f64
.data 0 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
.host print_i64 (i64)
.function main
.local numbers i64[] bytes u8[] nodes node[] at i64
    i64.const 64
    array.new_default_i64
    local.set numbers
    i64.const 64
    array.new_default_u8
    local.set bytes
    i64.const 64
    array.new_default_ref node[]
    local.set nodes
:fill
    local.get nodes
    local.get at
    struct.new_default node
    array.set_ref node[]
    local.get at
    i64.const 1
    i64.add
    local.set at
    local.get at
    i64.const 8
    i64.lt_s
    jump_if fill
    local.get numbers
    local.get bytes
    local.get nodes
    i64.const 8
{launch("body", drops=6)}
    halt

.function one (numbers i64[], index i64)
    local.get numbers
    local.get index
    i64.const 1
    array.set_i64
    return

.function inner (item i64, numbers i64[], base i64)
    local.get numbers
    local.get item
    local.get base
    i64.add
    i64.const 1
    array.set_i64
    return

.function body (item i64, numbers i64[], bytes u8[], nodes node[])
.local mine i64[]
"""

ITEM = "local.get item"
NEXT = "local.get item / i64.const 1 / i64.add"
UPDATE = "i64.const 2 / array.atomic_add_i64 / drop"
NODE = "local.get nodes / i64.const 3 / array.get_ref node[]"

RACES = {
    "two write an element": (
        "local.get numbers / i64.const 5 / local.get item / array.set_i64",
        "items 0 and 1 .* item 0 wrote element 5 of the i64.64. .* item 1 writes it",
    ),
    "one reads what another wrote": (
        (
            f"local.get numbers / {NEXT} / local.get item / array.set_i64"
            f" / local.get numbers / {ITEM} / array.get_i64 / drop"
        ),
        "item 0 wrote element 1 of the i64.64. .* item 1 reads it",
    ),
    "one writes what another read": (
        (
            f"local.get numbers / {NEXT} / array.get_i64 / drop"
            f" / local.get numbers / {ITEM} / i64.const 1 / array.set_i64"
        ),
        "item 0 read element 1 of the i64.64. .* item 1 writes it",
    ),
    "the last item alone": (
        (
            f"{ITEM} / i64.const 7 / i64.eq / jump_unless end / local.get numbers / i64.const 0"
            f" / i64.const 1 / array.set_i64 / :end / local.get numbers / {ITEM} / i64.const 2"
            " / array.set_i64"
        ),
        "items 0 and 7 .* element 0",
    ),
    "items far apart": (
        f"local.get numbers / {ITEM} / i64.const 6 / i64.rem_s / {ITEM} / array.set_i64",
        "items 0 and 6 .* element 0",
    ),
    "equal values": (
        "local.get numbers / i64.const 9 / i64.const 1 / array.set_i64",
        "items 0 and 1 .* element 9",
    ),
    "bytes": (
        "local.get bytes / i64.const 2 / i32.const 1 / array.set_u8",
        "items 0 and 1 .* element 2 of the u8.64.",
    ),
    "an element of references": (
        "local.get nodes / i64.const 4 / struct.new_default node / array.set_ref node[]",
        "items 0 and 1 .* element 4 of the node.64.",
    ),
    "a field": (
        f"{NODE} / local.get item / struct.set node.value",
        "item 0 wrote field value of the node .* item 1 writes it",
    ),
    "a field that another reads": (
        (
            f"{NODE} / struct.get node.value / drop / {ITEM} / i64.const 2 / i64.eq"
            f" / jump_unless end / {NODE} / i64.const 1 / struct.set node.value / :end"
        ),
        "items 0 and 2 .* item 0 read field value of the node .* item 2 writes it",
    ),
    "a reader before the last": (
        (
            f"{ITEM} / i64.const 5 / i64.eq / jump_if write / local.get numbers / i64.const 20"
            " / array.get_i64 / drop / jump end / :write / local.get numbers / i64.const 20"
            " / array.get_i64 / drop / local.get numbers / i64.const 20 / i64.const 1"
            " / array.set_i64 / :end"
        ),
        "items 0 and 5 .* item 0 read element 20 .* item 5 writes it",
    ),
    "a sum in a static": (
        "static.get total / local.get item / i64.add / static.set total",
        "item 0 wrote static total .* item 1 reads it",
    ),
    "a static that one writes": (
        (
            f"{ITEM} / i64.const 3 / i64.eq / jump_unless end / f64.const 1.5 / static.set best"
            " / :end / static.get best / drop"
        ),
        "items 0 and 3 .* item 0 read static best .* item 3 writes it",
    ),
    "a byte of the heap": (
        "i64.const 8 / i32.const 1 / i32.store8",
        "item 0 wrote byte 8 of the heap .* item 1 writes it",
    ),
    "words of the heap that overlap": (
        f"{ITEM} / i64.const 4 / i64.mul / i64.const 1 / i64.store",
        "items 0 and 1 .* item 0 wrote byte 4 of the heap",
    ),
    "a fill over the border": (
        (
            f"local.get numbers / {ITEM} / i64.const 2 / i64.mul / i64.const 7 / i64.const 3"
            " / array.fill_i64"
        ),
        "items 0 and 1 .* item 0 wrote element 2",
    ),
    "a copy from what another fills": (
        (
            f"local.get numbers / {ITEM} / i64.const 1 / i64.const 1 / array.fill_i64"
            " / local.get numbers / i64.const 40 / local.get item / i64.add / local.get numbers"
            " / i64.const 0 / i64.const 1 / array.copy_i64"
        ),
        "items 0 and 1 .* item 0 wrote element 0 .* item 1 reads it",
    ),
    "a copy to one place": (
        (
            f"local.get numbers / i64.const 40 / local.get numbers / {ITEM} / i64.const 1"
            " / array.copy_i64"
        ),
        "items 0 and 1 .* item 0 wrote element 40",
    ),
    "a store in a function": (
        "local.get numbers / i64.const 3 / call one",
        "items 0 and 1 .* item 0 wrote element 3",
    ),
    "an array under two names": (
        (
            f"local.get numbers / local.set mine / local.get mine / {NEXT} / array.get_i64 / drop"
            f" / local.get numbers / {ITEM} / i64.const 4 / array.set_i64"
        ),
        "items 0 and 1 .* element 1",
    ),
    "a nested launch": (
        (
            f"local.get numbers / {ITEM} / i64.const 3 / launch.begin / :more / launch.test"
            " / jump_unless end / launch.item inner / call inner / jump more / :end / drop / drop / drop"
            " / drop / drop"
        ),
        "items 0 and 1 .* item 0 wrote element 1 .* item 1 writes it",
    ),
    "after a collection": (
        (
            f"local.get numbers / {NEXT} / array.get_i64 / drop / i64.const 100000"
            " / array.new_default_i64 / drop / i64.const 500000 / array.new_default_i64 / drop"
            f" / local.get numbers / {ITEM} / i64.const 4 / array.set_i64"
        ),
        "items 0 and 1 .* element 1",
    ),
    "an update of what another reads": (
        f"local.get numbers / {NEXT} / array.get_i64 / drop / local.get numbers / {ITEM} / {UPDATE}",
        "item 0 read element 1 of the i64.64. .* item 1 updates it at races.fasm:.*[0-9]$",
    ),
    "a write of what another updates": (
        f"local.get numbers / {NEXT} / {UPDATE} / local.get numbers / {ITEM} / call one",
        "item 0 updated element 1 .* item 1 writes it at races.fasm:.*[0-9]$",
    ),
    "two kinds of updates": (
        (
            f"local.get numbers / i64.const 3 / {UPDATE} / local.get numbers / i64.const 3"
            " / i64.const 3 / array.atomic_max_i64 / drop"
        ),
        "item 0 updated element 3 .* item 1 updates it at .*; items may update one element if",
    ),
    "updates whose results are used": (
        (
            f"local.get numbers / {ITEM} / local.get numbers / i64.const 50 / i64.const 1"
            " / array.atomic_add_i64 / array.set_i64"
        ),
        "item 0 updated element 50 .* item 1 updates it at .*and do not use the results$",
    ),
    "exchanges": (
        ("local.get numbers / i64.const 50 / local.get item / array.atomic_exchange_i64 / drop"),
        "item 0 updated element 50 .* item 1 updates it",
    ),
    "the heap's end": ("i64.const 16 / heap.alloc / drop", "item 0 wrote the heap pointer"),
}

INDEPENDENT = {
    "own elements": f"local.get numbers / {ITEM} / local.get item / array.set_i64",
    "all read": "local.get numbers / i64.const 3 / array.get_i64 / drop / static.get total / drop",
    "own arrays": (
        "i64.const 4 / array.new_default_i64 / local.set mine / local.get mine / i64.const 0"
        " / local.get item / array.set_i64 / local.get mine / i64.const 0 / array.get_i64 / drop"
    ),
    "own bytes of one word": f"{ITEM} / i32.const 1 / i32.store8",
    "own element, written and read": (
        f"local.get numbers / {ITEM} / call one / local.get numbers / {ITEM} / array.get_i64 / drop"
    ),
    "updates of one kind": f"local.get numbers / i64.const 3 / {UPDATE}",
    "own element, updated and read": (
        f"local.get numbers / {ITEM} / local.get item / array.atomic_exchange_i64"
        f" / local.get numbers / {ITEM} / i64.const 0 / i64.const 1"
        f" / array.atomic_compare_exchange_i64 / local.get numbers / {ITEM} / array.get_i64"
        " / drop / drop / drop"
    ),
    "no write at all": "nop",
}


def _program(body: str) -> ferryvm.Program:
    return ferryvm.assemble(HEAD + body.replace(" / ", "\n") + "\nreturn\n", "races.fasm")


def _run(body: str) -> None:
    execution = Engine("reference").start(_program(body))
    execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))


def test_there_are_enough_controls() -> None:
    assert len(RACES) >= 20


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_found_with_items_place_and_lines(name: str) -> None:
    body, expected = RACES[name]
    with pytest.raises(FerryError) as raised:
        _run(body)
    message = str(raised.value)
    assert re.search(expected, message), message
    assert message.startswith("items ")
    assert len(re.findall(r"races\.fasm:\d+:\d", message)) >= 2


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_items_are_not_blamed(name: str) -> None:
    _run(INDEPENDENT[name])


def test_items_of_two_launches_may_access_the_same() -> None:
    launch = HEAD[HEAD.index("    local.get numbers\n    local.get bytes") : HEAD.index("    halt")]
    second = launch.replace("again", "anew").replace("over", "behind")
    text = HEAD.replace("    halt", f"{second}    halt") + INDEPENDENT["own elements"]
    program = ferryvm.assemble(text.replace(" / ", "\n") + "\nreturn\n")
    Engine("reference").start(program).run(forcing=frozenset({Forcing.INDEPENDENCE}))


def test_a_schedule_of_comparisons_checks_it() -> None:
    differ = Differ(["switch"])
    (found,) = differ.compare(verify(_program(RACES["bytes"][0])), Schedule.INDEPENDENCE)
    assert found.verdict is Verdict.DISAGREE
    assert found.difference is not None
    assert found.difference.right.startswith("items 0 and 1 of the launch at ")
    disagreement = record(differ, verify(_program(RACES["bytes"][0])), found, Schedule.INDEPENDENCE)
    assert disagreement.bad == "reference"
    for text in (INDEPENDENT["all read"], "trap"):
        (found,) = differ.compare(verify(_program(text)), Schedule.INDEPENDENCE)
        assert found.verdict is Verdict.AGREE


def test_objects_that_the_check_keeps_alive_may_take_all_memory() -> None:
    body = INDEPENDENT["own arrays"].replace("i64.const 4", "i64.const 100", 1)
    differ = Differ(["switch"], limits=Limits(objects=4096))
    program = verify(_program(body))
    (switch,) = differ.compare(program)
    assert switch.verdict is Verdict.AGREE
    (found,) = differ.compare(program, Schedule.INDEPENDENCE)
    assert found.verdict is Verdict.DIVERGE
    assert found.reason == "the check keeps objects alive, for which the limit leaves no room"


def test_other_interpreters_do_not_check() -> None:
    execution = Engine("switch").start(_program("nop"))
    with pytest.raises(RefusalError, match="nothing to force: independence"):
        execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))
