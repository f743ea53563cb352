# SPDX-License-Identifier: Apache-2.0
"""Machine descriptions with mistakes: each is one line that says where, what, and what is
allowed."""

from __future__ import annotations

import logging

import pytest

from ferryvm_backends.vliw.machine.read import MachineError, read_text

from .small import FILES, HEAD, SMALL, UNIT, UNIT_LINE, changed

NEW_LINE = SMALL.count("\n") + 1
"""Where a table stands that is written after SMALL."""
EACH = "allowed: units that do move, add, load, store, branch among them"


def faults(text: str) -> list[str]:
    """What is said about a text, a line each, after the name of the file."""
    with pytest.raises(MachineError) as raised:
        read_text(text, "m.toml")
    return [line.removeprefix("m.toml:") for line in str(raised.value).splitlines()]


OPERATIONS = (
    "add, boolean, branch, compare, convert, count, divide, extend, float_add, float_compare, "
    "float_divide, float_multiply, float_root, float_round, load, logic, move, multiply, select, "
    "shift, store"
)
TIMING = "allowed: a latency from 1 to 64, or a table with latency and interval"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "clock = 50",
            "clock = 0",
            "2:1: clock: found 0 (allowed: a number above 0, up to 100000)",
        ),
        ("clock = 50", "", "1:1: clock: is missing (allowed: a number above 0, up to 100000)"),
        ('"small"', '""', '1:1: name: found "" (allowed: a text that is not empty)'),
        (
            "setup = 10",
            "setup = 10, setpu = 1",
            (
                "10:49: transfer.setpu: unknown key; did you mean 'setup'?"
                " (allowed: bytes_per_cycle, setup)"
            ),
        ),
        (
            '"integer"',
            '"integers"',
            (
                "13:1: file[1].kind: found \"integers\"; did you mean 'integer'?"
                ' (allowed: "integer" or "boolean")'
            ),
        ),
        (
            "registers = 8",
            "registers = 1",
            "15:1: file[1].registers: found 1 (allowed: a whole number from 2 to 1024)",
        ),
        (
            "registers = 4",
            "registers = 1025",
            "21:1: file[2].registers: found 1025 (allowed: a whole number from 2 to 1024)",
        ),
        (
            "read_ports = 2",
            "read_ports = 65",
            "16:1: file[1].read_ports: found 65 (allowed: a whole number from 1 to 64)",
        ),
        (
            "write_ports = 1",
            "write_ports = 0",
            "17:1: file[1].write_ports: found 0 (allowed: a whole number from 1 to 64)",
        ),
        (
            'name = "p"',
            'name = "0p"',
            ('19:1: file[2].name: found "0p" (allowed: letters, digits and _, a letter first)'),
        ),
    ],
)
def test_a_key_that_is_not_as_declared(old: str, new: str, line: str) -> None:
    assert faults(changed(old, new)) == [line]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ("add = 0", f"10: unit[2].work.add: found 0 ({TIMING})"),
        ("add = 65", f"10: unit[2].work.add: found 65 ({TIMING})"),
        ("add = true", f"10: unit[2].work.add: found true ({TIMING})"),
        (
            "add = { latency = 0 }",
            "18: unit[2].work.add.latency: found 0 (allowed: a whole number from 1 to 64)",
        ),
        (
            "add = { latency = 1, interval = 65 }",
            "31: unit[2].work.add.interval: found 65 (allowed: a whole number from 1 to 64)",
        ),
        (
            "add = { interval = 2 }",
            "10: unit[2].work.add.latency: is missing (allowed: a whole number from 1 to 64)",
        ),
        (
            "dvide = 3",
            f"10: unit[2].work.dvide: unknown key; did you mean 'divide'? (allowed: {OPERATIONS})",
        ),
        (
            "",
            (
                "1: unit[2].work: found an empty table (allowed: a table of one operation or more"
                " with latencies, such as { add = 1, multiply = 3 })"
            ),
        ),
    ],
)
def test_work_that_cannot_be(work: str, message: str) -> None:
    text = f'{SMALL}[[unit]]\nname = "side"\nwork = {{ {work} }}\n'
    assert faults(text) == [f"{NEW_LINE + 2}:{message}"]


@pytest.mark.parametrize(
    ("name", "count", "found"),
    [
        ("core", 1, '"core", a name of unit[1] too'),
        ("p", 1, '"p", a name of file[2] too'),
        ("r", 1, '"r", a name of file[1] too'),
        ("r1", 1, '"r1", a name of file[1] too'),
        ("r", 2, '"r", a name of file[1] too'),
    ],
)
def test_a_name_used_twice(name: str, count: int, found: str) -> None:
    text = f'{SMALL}[[unit]]\nname = "{name}"\ncount = {count}\nwork.add = 1\n'
    assert faults(text) == [
        f"{NEW_LINE + 1}:1: unit[2].name: found {found} (allowed: a name that nothing else has)"
    ]


def test_names_of_several_are_in_use_too() -> None:
    text = f'{SMALL}[[unit]]\nname = "core1"\nwork.add = 1\n'.replace(
        'name = "core"', 'name = "core"\ncount = 2'
    )
    (line,) = faults(text)
    assert 'unit[2].name: found "core1", a name of unit[1] too' in line


def test_a_file_that_is_not_there() -> None:
    text = f'{SMALL}reads = ["r0", "r2"]\nwrites = ["q"]\n'
    assert faults(text) == [
        (
            f"{NEW_LINE}:16: unit[1].reads[2]: unknown file \"r2\"; did you mean 'r'?"
            " (allowed: p, r, r0, r1)"
        ),
        f'{NEW_LINE + 1}:11: unit[1].writes[1]: unknown file "q" (allowed: p, r, r0, r1)',
    ]


@pytest.mark.parametrize(
    ("work", "key", "files", "message"),
    [
        ("add = 1, compare = 1", "writes", '"p"', "found no integer file to write for add"),
        ("load = 1", "writes", "", "found no integer file to write for load"),
        ("add = 1, compare = 1", "writes", '"r"', "found no boolean file to write for compare"),
        ("boolean = 1", "writes", '"r0"', "found no boolean file to write for boolean"),
        ("float_compare = 1", "writes", '"r0"', "found no boolean file to write for float_compare"),
        (
            "store = 1, compare = 1",
            "reads",
            '"p"',
            "found no integer file to read for store, compare",
        ),
        ("select = 1", "reads", '"r"', "found no boolean file to read for select"),
        ("branch = 1", "reads", '"r"', "found no boolean file to read for branch"),
    ],
)
def test_a_unit_without_a_file_for_what_it_does(
    work: str, key: str, files: str, message: str
) -> None:
    text = f'{SMALL}[[unit]]\nname = "side"\nwork = {{ {work} }}\n{key} = [{files}]\n'
    fitting = "r, r0, r1" if "integer" in message else "p"
    assert faults(text) == [
        f"{NEW_LINE + 3}:1: unit[2].{key}: {message} (allowed: one at least of {fitting})"
    ]


@pytest.mark.parametrize(
    ("work", "key", "files"),
    [
        ("move = 1", "reads", ""),
        ("branch = 1, store = 1", "writes", ""),
        ("compare = 1", "writes", '"p"'),
        ("compare = 1", "reads", '"r1"'),
        ("divide = { latency = 3, interval = 30 }", "reads", '"r"'),
    ],
)
def test_a_unit_with_the_files_that_it_needs_is_good(work: str, key: str, files: str) -> None:
    text = f'{SMALL}[[unit]]\nname = "side"\nwork = {{ {work} }}\n{key} = [{files}]\n'
    assert len(read_text(text, "m.toml").units) == 2


@pytest.mark.parametrize("work", ["move", "add", "load", "store", "branch"])
def test_what_no_program_can_do_without(work: str) -> None:
    latency = 3 if work == "load" else 1
    text = changed(f"{work} = {latency}", "shift = 1")
    assert faults(text) == [f"{UNIT_LINE}:1: unit: found no unit that does {work} ({EACH})"]


def test_all_that_is_lacking_is_one_fault() -> None:
    text = HEAD + FILES + '[[unit]]\nname = "core"\nwork = { add = 1 }\n'
    (line,) = faults(text)
    assert "found no unit that does move, load, store, branch" in line
    (line,) = faults(f"unit = []\n{HEAD}{FILES}")
    assert line.startswith("1:1: unit: found no unit that does move, add, load, store, branch")


def test_a_machine_needs_files_of_both_kinds() -> None:
    only_words = FILES.partition('[[file]]\nname = "p"')[0]
    assert faults(HEAD + only_words + UNIT) == [
        (
            "6:1: predication: found true, but no boolean file that operations could depend on"
            " (allowed: false, or a boolean file)"
        ),
        "11:1: file: found no boolean file (allowed: one at least of each kind)",
    ]
    plain = HEAD.replace("predication = true", "predication = false")
    assert [line.split(" (")[0] for line in faults(f"file = []\n{plain}{UNIT}")] == [
        "1:1: file: found no integer file",
        "1:1: file: found no boolean file",
    ]


def test_more_slots_than_units_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert read_text(changed("slots = 1", "slots = 3"), "m.toml").slots == 3
    assert caplog.messages == ["m.toml:3:1: warning: slots: 3 slots, 2 more than there are units"]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_text() -> None:
    text = SMALL.replace("clock = 50", "clock = '50'").replace("registers = 8", "registers = 0")
    text = text.replace("branch = 1", "brnch = 1").replace('name = "p"', 'name = "r"')
    text += 'reads = ["q", 3]\n[[unit]]\nname = "core"\nwork = {}\ncost = -1\n[extra]\n'
    assert [line.split(": ")[1] for line in faults(text)] == [
        "clock",
        "file[1].registers",
        "file[2].name",
        "unit[1].work.brnch",
        "unit[1].reads[1]",
        "unit[1].reads[2]",
        "unit[2].name",
        "unit[2].work",
        "unit[2].cost",
        "extra",
    ]


def test_nothing_is_told_that_another_fault_may_explain() -> None:
    """A file whose kind is unclear may be the boolean one, and the unit that is missing the one
    whose work is."""
    text = changed('kind = "boolean"', 'kind = "bool"') + 'writes = ["r9"]\n'
    (line,) = faults(text.replace('"core"\nwork', '"core"\nwrok'))[:1]
    assert line.startswith("20:1: file[2].kind")
    keys = [line.split(": ")[1] for line in faults(text.replace("work", "wrok"))]
    assert keys == ["file[2].kind", "unit[1].work", "unit[1].wrok"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("file = 3\nunit = 'x'\n" + HEAD, ["file", "unit"]),
        ("file = [3]\nunit = [[]]\n" + HEAD, ["file[1]", "unit[1]"]),
        (HEAD, ["file", "unit"]),
    ],
)
def test_what_is_no_table_is_a_fault_and_no_more(text: str, keys: list[str]) -> None:
    assert [line.split(": ")[1] for line in faults(text)] == keys
