# SPDX-License-Identifier: Apache-2.0
"""`--hosts` on every command that runs programs, its faults, and `ferry hosts`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferryvm.machine.host import STANDARD

from ..command import ferry

MODULE = '''
import beside
from ferryvm import Instance, host, i64

@host(pure=True)
def twice(x: i64) -> i64:
    """Double a number."""
    return beside.TWO * x

def ask(instance: Instance) -> int:
    print("asked at", instance.position)
    return instance.f(4)

def fails(x: i64) -> i64:
    return x // 0

several = [twice, fails]
named = {"other": twice}
number = 3
print_i64 = host(name="print_i64", signature="(i64)")(lambda x: None)

def text(x: str) -> i64:
    return 1
'''

PROGRAM = """
.host twice (i64) -> (i64)
.host print_i64 (i64)
.function main
    i64.const 21
    host twice
    host print_i64
    halt
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MODULE, encoding="utf-8")
    Path("beside.py").write_text("TWO = 2", encoding="utf-8")
    Path("raises.py").write_text("import gone", encoding="utf-8")
    Path("p.fasm").write_text(PROGRAM, encoding="utf-8")


@pytest.mark.parametrize(
    "hosts", ["mine:twice", "mine.py:twice", "./mine.py:several", "mine:several"]
)
def test_a_module_or_a_file_offers_host_functions(hosts: str) -> None:
    assert ferry("run", "p.fasm", "--hosts", hosts) == (0, "42\n", "")


def test_a_file_of_another_folder_finds_what_is_next_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    given = ("--hosts", f"{tmp_path}/mine.py:twice")
    assert ferry("run", f"{tmp_path}/p.fasm", *given) == (0, "42\n", "")


def test_several_options_and_a_mapping_add_up() -> None:
    Path("p.fasm").write_text(PROGRAM.replace("twice", "other"), encoding="utf-8")
    given = ("--hosts", "mine:named", "--hosts", "mine.py:several")
    assert ferry("run", "p.fasm", *given) == (0, "42\n", "")


def test_a_function_gets_the_instance_and_what_it_prints_stays_in_order() -> None:
    text = """
    .host ask () -> (i64)
    .host print_i64 (i64)
    .export f
    .function main
        i64.const 1
        host print_i64
        host ask
        host print_i64
        halt
    .function f (i64) -> (i64)
        local.get 0
        return
    """
    Path("q.fasm").write_text(text, encoding="utf-8")
    code, out, err = ferry("run", "q.fasm", "--hosts", "mine:ask")
    assert (code, out, err) == (0, "1\nasked at q.fasm:8:9\n4\n", "")


def test_every_command_that_runs_programs_takes_them() -> None:
    given = ("--hosts", "mine:several")
    code, _, err = ferry("explain", "p.fasm", *given)
    assert (code, err) == (0, "42\n")
    code, out, _ = ferry("diff", "p.fasm", "--backends", "switch,threaded", *given)
    assert (code, out.count("agree")) == (0, 2)
    for command in ("bisect", "reduce"):
        code, _, err = ferry(command, "p.fasm", "--bad", "threaded", *given)
        assert (code, "reference and threaded agree" in err) == (2, True)
    code, _, _ = ferry("run", "p.fasm", "--fuel", "1", "--save", "s.ferry", *given)
    assert code == 0
    assert ferry("resume", "s.ferry", *given) == (0, "42\n", "")
    code, _, err = ferry("resume", "s.ferry")
    assert (code, "no host function 'twice'" in err) == (2, True)
    for command in ("replay", "repl"):
        code, out, _ = ferry(command, "--help")
        assert (code, "--hosts MODULE:NAME" in out) == (0, True)


FAULTS = {
    "nothing": "MODULE:NAME, FILE.py:NAME or a folder with a kernel is expected",
    "gone:f": "no module 'gone' is installed or in the current folder",
    "gone.deep:f": "no module 'gone' is installed or in the current folder",
    "gone.py:f": "there is no file gone.py",
    "raises:f": "importing raises failed: ModuleNotFoundError: No module named 'gone' (raises.py:1 "
    "in <module>)",
    "mine:twic": "mine has no 'twic'; did you mean 'twice'?",
    "mine:number": "hosts: 3; a list or a mapping of host functions is expected",
    "mine:text": "host function text: x is str; one of i32, i64, f32, f64, or int, float, bool, "
    'numpy.typing.NDArray[...], object, Annotated[StructView, "node"] is expected',
}


@pytest.mark.parametrize(("given", "what"), FAULTS.items(), ids=FAULTS)
def test_what_cannot_be_used_is_one_line(given: str, what: str) -> None:
    code, out, err = ferry("run", "p.fasm", "--hosts", given)
    assert (code, out, err) == (2, "", f"ferry: --hosts {given}: {what}\n")


def test_a_name_that_is_given_twice_is_one_line_with_both_sources() -> None:
    code, _, err = ferry("run", "p.fasm", "--hosts", "mine:twice", "--hosts", "mine:several")
    what = "of --hosts mine:several is given by --hosts mine:twice, too"
    other = "host(name=...) gives it another name"
    assert (code, err) == (2, f"ferry: host function 'twice' {what}; {other}\n")
    code, _, err = ferry("run", "p.fasm", "--hosts", "mine:print_i64")
    what = "of --hosts mine:print_i64 is a standard one"
    assert (code, err) == (2, f"ferry: host function 'print_i64' {what}; {other}\n")


def test_what_a_function_raises_is_told_with_the_place_of_the_call() -> None:
    Path("f.fasm").write_text(PROGRAM.replace("twice", "fails"), encoding="utf-8")
    given = ("f.fasm", "--hosts", "mine:several")
    what = "host function fails raised ZeroDivisionError: integer division or modulo by zero"
    code, out, err = ferry("run", *given, "--save", "s.ferry")
    saved, first, *_, last = err.splitlines()
    assert (code, out, saved) == (1, "", "ferry: state saved in s.ferry")
    assert first == f"ferry: f.fasm:6:5: {what} (mine.py:15 in fails)"
    assert last == "    in main at f.fasm:6:5"
    assert ferry("explain", *given).code == 1
    code, _, err = ferry("diff", *given, "--backends", "switch")
    what = "it may have effects of its own; declare it pure=True or replayable=True if it has none"
    message = f"ferry: f.fasm: host function fails is not comparable: {what}\n"
    assert (code, err) == (2, message)


def test_all_functions_are_listed_with_their_sources() -> None:
    code, out, err = ferry("hosts", "--hosts", "mine:twice", "--json")
    found = json.loads(out)["hosts"]
    assert (code, err, [one["name"] for one in found]) == (0, "", [*STANDARD, "twice"])
    assert {one["source"] for one in found[:-1]} == {"standard"}
    assert found[-1] == {
        "name": "twice",
        "signature": "(i64) -> (i64)",
        "summary": "Double a number.",
        "source": "--hosts mine:twice",
        "reason": None,
    }
    _, out, _ = ferry("hosts", "--hosts", "mine:twice")
    assert "--hosts mine:twice  Double a number." in out.splitlines()[-1]


def test_failure_that_the_program_throws_again_is_told_as_the_user_s() -> None:
    text = "(host-function fails (i64) i64)\n(try (fails 3) (finally (print! 1)))"
    Path("again.skiff").write_text(text, encoding="utf-8")
    code, out, err = ferry("run", "again.skiff", "--hosts", "mine:fails")
    assert (code, out) == (1, "1\n")
    assert err.startswith("ferry: again.skiff:2:1: a host function raised ZeroDivisionError: ")
