# SPDX-License-Identifier: Apache-2.0
"""`ferry bisect`, `reduce` and `replay` as a user meets them, with a plugin that is wrong."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import ferryvm
from ferryvm.testing import Differ, disagreement
from ferryvm.verify import verify

from .. import command
from ..double.distribution import plant, python_path
from ..double.meaning import with_wrong

ROOT = Path(__file__).parents[2]

PROGRAM = """(define (f n) (if (< n 1) 40 (f (- n 1))))
(define x
  (<< 5 (f 3)))
(print! x)
"""

Run = tuple[int, str, str]


class Ferry:
    """Runs `ferry` where a plugin with wrong backends is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "plugin").mkdir()
        (folder / "plugin" / "wrong.py").write_text("from double.meaning import ferryvm_backends\n")
        plant(folder / "plugin", "wrong", module="wrong")
        (folder / "p.skiff").write_text(PROGRAM)

    def __call__(self, *arguments: object) -> Run:
        """Exit code, stdout and stderr."""
        environment = {**os.environ, "PYTHONPATH": python_path(self.folder / "plugin")}
        return command.ferry(*arguments, cwd=self.folder, environment=environment)


@pytest.fixture
def ferry(tmp_path: Path) -> Ferry:
    return Ferry(tmp_path)


REDUCED = ("small.fasm", "small.disagreement")


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what reducing writes."""
    ferry = Ferry(tmp_path_factory.mktemp("reduced"))
    code, _, _ = ferry("reduce", "p.skiff", "--bad", "wrong-shift", "-o", REDUCED[0])
    assert code == 0
    return ferry.folder


@pytest.fixture
def saved(ferry: Ferry, reduced: Path) -> Path:
    """A disagreement, made by reducing."""
    for name in REDUCED:
        shutil.copy(reduced / name, ferry.folder)
    return ferry.folder / REDUCED[1]


def test_bisect_names_region_place_and_state(ferry: Ferry) -> None:
    code, out, err = ferry("bisect", "p.skiff", "--good", "reference", "--bad", "wrong-shift")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "wrong-shift goes wrong when it counts instructions"
    assert lines[1].startswith("  in function main (pc 0 to ")
    assert lines[2].startswith("  in block (pc 0 to ")
    assert lines[3].startswith("p.skiff:3:3: pc ")
    assert ": i64.shl, after " in lines[3]
    assert lines[4:6] == ["      (<< 5 (f 3)))", "      ^"]
    assert lines[6] == (
        "first difference: operand 0 of main: 0x50000000000 on reference, 0x500 on wrong-shift"
    )
    marked = [line for line in lines if line.startswith(" *")]
    assert len(marked) == 2
    assert "i64.shl ( 0x5 0x28 -- 0x50000000000 )" in marked[0]
    assert "i64.shl ( 0x5 0x28 -- 0x500 )" in marked[0]
    assert marked[1].split() == ["*", "operand", "0", "0x50000000000", "0x500"]


@pytest.mark.rotate("command", most=1)
@pytest.mark.parametrize("command", ["bisect", "reduce"])
def test_backends_that_agree_are_nothing_to_search(ferry: Ferry, command: str) -> None:
    code, out, err = ferry(command, "p.skiff", "--bad", "switch")
    assert (code, out) == (2, "")
    assert err.startswith("ferry: p.skiff: reference and switch agree ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["bisect", "reduce"])
def test_what_is_unusable_is_told_in_one_line(ferry: Ferry, command: str) -> None:
    (ferry.folder / "bad.disagreement").write_text("{}")
    for arguments, message in (
        (["p.skiff"], "p.skiff: is a program; name the backend under suspicion with --bad"),
        (["p.skiff", "--bad", "swich"], "p.skiff: no backend 'swich'; did you mean 'switch'?"),
        (["no.skiff", "--bad", "switch"], "no.skiff: cannot be read: No such file or directory"),
        (["bad.disagreement"], "bad.disagreement: not a disagreement file: "),
        (["p.ferry"], "p.ferry: is a saved state, no disagreement; `ferry resume` goes on with"),
        (["p.skiff", "--seconds", "nan"], "--seconds is nan: a number of seconds is expected"),
    ):
        code, out, err = ferry(command, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith(f"ferry: {message}")
        assert err.count("\n") == 1


@pytest.mark.nightly
def test_reduce_writes_a_program_that_shows_the_same(ferry: Ferry, saved: Path) -> None:
    text = (ferry.folder / "small.fasm").read_text()
    assert text.split(".loc none\n")[1].split() == [
        "i64.const", "-1", "i64.const", "-1", "i64.shl", "halt"
    ]  # fmt: skip
    code, out, _ = ferry("diff", "small.fasm", "--backends", "wrong-shift")
    assert code == 1
    assert "disagree" in out
    assert json.loads(saved.read_text())["origin"] == "reduced from p.skiff"
    # Once more from the file: nothing is left to take away.
    code, out, err = ferry("reduce", "small.disagreement", "-o", "again.fasm")
    assert code == 0
    assert "4 instructions reduced to 4" in err
    assert out.startswith(text)


def test_reduce_does_not_write_over_its_input(ferry: Ferry, saved: Path) -> None:
    for file, message in (
        ("small.fasm", "small.fasm: is the input; name another file to write"),
        (
            saved.name,
            (
                "small.disagreement: is the input, and -o small.fasm would write the disagreement "
                "there; name another file to write"
            ),
        ),
    ):
        code, _, err = ferry("reduce", file, "--bad", "wrong-shift", "-o", "small.fasm")
        assert (code, err) == (2, f"ferry: {message}\n")
    code, _, err = ferry("reduce", "p.skiff", "--bad", "wrong-shift", "-o", "no/x.fasm")
    assert code == 2
    assert "no/x.fasm: cannot be written: No such file or directory" in err


def test_replay_shows_the_disagreement_again(ferry: Ferry, saved: Path) -> None:
    (ferry.folder / "small.fasm").unlink()
    (ferry.folder / "p.skiff").unlink()  # the file is all that it takes
    code, out, err = ferry("replay", saved)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].endswith("reference and wrong-shift, schedule none (reduced from p.skiff)")
    assert lines[1].startswith("  saved: operand 0 of main: 0x8000000000000000 on reference, ")
    assert lines[2].endswith(" on wrong-shift (the same field)")
    (marked,) = [line for line in lines if line.startswith(" *") and "i64.shl" in line]
    assert marked.count("i64.shl ( 0xffffffffffffffff 0xffffffffffffffff -- ") == 2


@pytest.mark.nightly
def test_replay_tells_when_the_backends_agree_now(ferry: Ferry, saved: Path) -> None:
    content = json.loads(saved.read_text())
    content["bad"], content["backends"] = "switch", ["switch"]
    content["versions"]["numpy"] = "0.1"
    saved.write_text(json.dumps(content))
    code, out, err = ferry("replay", saved)
    assert code == 0
    lines = out.splitlines()
    assert "  now:   they agree" in lines
    assert "as saved, when they parted at pc 2: i64.shl:" in lines
    assert not [line for line in lines if line.startswith(" *")]
    assert "made with numpy 0.1, here it is " in err


def test_replay_without_the_backend_is_unusable(ferry: Ferry, saved: Path) -> None:
    shutil.rmtree(ferry.folder / "plugin")
    code, out, err = ferry("replay", saved)
    assert (code, out) == (2, "")
    assert "no backend 'wrong-shift'" in err
    assert err.count("\n") == 1
    code, _, err = ferry("replay", "p.skiff")
    assert code == 2
    assert "is a program; `ferry diff` compares backends on it" in err


@pytest.mark.nightly
def test_replay_does_not_agree_while_the_saved_place_shows_a_difference(
    ferry: Ferry, saved: Path
) -> None:
    content = json.loads(saved.read_text())
    content["bad"], content["backends"] = "wrong-sp", ["wrong-sp"]  # it has to be left midway
    content["parting"]["mode"] = "moving"
    saved.write_text(json.dumps(content))
    code, out, _ = ferry("replay", saved)
    assert code == 1
    lines = out.splitlines()
    start = "  now:   failure: none on reference, BackendError: backend 'wrong-sp' left at pc 3 with sp 2"
    assert lines[2].startswith(start)
    assert lines[2].endswith("(no comparison shows it, entering wrong-sp as below does)")
    assert "wrong-sp goes wrong only when it is entered and left in the middle" in out


def test_replay_says_why_there_is_no_place(ferry: Ferry, tmp_path: Path) -> None:
    differ = Differ(["wrong-once"], registry=with_wrong())
    program = verify(ferryvm.compile("(define x 5) (print! (- x 3))"))
    (comparison,) = differ.compare(program)
    disagreement.save(disagreement.record(differ, program, comparison), tmp_path / "d.disagreement")
    code, out, _ = ferry("replay", "d.disagreement")
    assert code == 1
    last = out.splitlines()[-1]
    assert last.startswith("  where they part is not known: backend 'wrong-once' does not do the ")


def test_bisect_names_no_instruction_where_preparing_fails(ferry: Ferry) -> None:
    code, out, err = ferry("bisect", "p.skiff", "--bad", "wrong-prepare")
    assert (code, err) == (0, "")
    first, second, third = out.splitlines()
    assert first == "wrong-prepare goes wrong before the program begins"
    assert second == "pc: none, preparing the program failed"
    start = "first difference: failure: none on reference, in prepare: ValueError: too many regist"
    assert third.startswith(start)
    assert third.endswith(" in prepare) on wrong-prepare")


@pytest.mark.nightly
def test_environment_is_searched_where_the_schedule_says_so(ferry: Ferry) -> None:
    (ferry.folder / "f.skiff").write_text("(define x 0.1) (print! (+ x 0.7))")
    bad = ("f.skiff", "--bad", "wrong-environment")
    code, _, err = ferry("bisect", *bad)
    assert (code, err.count("nothing to bisect")) == (2, 1)
    code, out, err = ferry("bisect", *bad, "--schedule", "environment")
    assert (code, err) == (0, "")
    assert re.match(
        "wrong-environment goes wrong when it counts instructions, in the floating-point "
        "environment '(up|down|zero|flush-up)'\n",
        out,
    )
    assert "f64.add" in out
    code, _, err = ferry("reduce", *bad, "--schedule", "environment", "-o", "g.fasm")
    assert (code, "reduced to 4" in err) == (0, True)
    code, again, _ = ferry("bisect", "g.disagreement")
    assert (code, out.splitlines()[0]) == (0, again.splitlines()[0])
    code, out, _ = ferry("replay", "g.disagreement")
    assert (code, "schedule environment" in out) == (1, True)


def test_bisect_gives_up_when_its_time_is_over(ferry: Ferry) -> None:
    (ferry.folder / "spin.skiff").write_text("(define x 2) (print! (* x 3))")
    code, out, err = ferry("bisect", "spin.skiff", "--bad", "wrong-spin", "--seconds", "0.5")
    assert (code, out) == (2, "")
    assert err == (
        "ferry: spin.skiff: no place where they part was found within 0.5 s; "
        "a larger --seconds allows more\n"
    )


BLOCK = re.compile(r"^```(python|skiff|shell-session)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def test_commands_on_the_page_print_what_it_says(ferry: Ferry) -> None:
    page = (ROOT / "docs" / "reading-a-disagreement.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(page)
    module, program = blocks[0][1], next(body for kind, body in blocks if kind == "skiff")
    (ferry.folder / "plugin" / "wrong.py").write_text(module)
    (ferry.folder / "hash.skiff").write_text(program)
    commands = [
        match for kind, body in blocks if kind == "shell-session" for match in COMMAND.findall(body)
    ]
    assert len(commands) == 3
    check = doctest.OutputChecker().check_output
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for line, expected in commands:
        name, *arguments = line.split()
        assert name == "ferry"
        _, out, err = ferry(*arguments)
        assert check(expected, out + err, flags), out + err


@pytest.mark.nightly
def test_arguments_of_the_program_are_in_the_file_of_a_disagreement(ferry: Ferry) -> None:
    text = (
        ".host argument_count () -> i64\n.function main\n    i64.const 1\n    host argument_count\n"
    )
    text += "    i64.const 5\n    i64.shl\n    i64.shl\n    halt\n"  # 1 << (count << 5)
    (ferry.folder / "count.fasm").write_text(text)
    command = ("reduce", "count.fasm", "--bad", "wrong-shift", "-o", "small.fasm")
    code, _, err = ferry(*command, "--seconds", "5")
    assert (code, err.endswith("agree on it: nothing to reduce\n")) == (2, True)
    assert ferry(*command, "--", "b c")[0] == 0
    content = json.loads((ferry.folder / "small.disagreement").read_text())
    assert content["arguments"] == ["b c"]
    code, out, _ = ferry("replay", "small.disagreement")
    assert (code, "(the same field)" in out) == (1, True)
    code, _, err = ferry("bisect", "small.disagreement", "--", "a")
    assert (code, err) == (
        2,
        "ferry: small.disagreement: is a disagreement, which has the program's arguments: omit `--`\n",
    )
