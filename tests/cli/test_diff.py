# SPDX-License-Identifier: Apache-2.0
"""`ferry diff` on long programs, and `ferry hosts`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ferryvm.cli import command
from ferryvm.machine.host import STANDARD
from ferryvm.testing import differential

from ..command import ferry

LONG = "(define i 0) (while (< i 100000000) (set! i (+ i 1))) (print! i)"
BACKENDS = ("--backends", "switch,threaded")


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "long.skiff").write_text(LONG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return "long.skiff"


def test_a_limit_of_instructions_compares_there_and_says_so(long: str) -> None:
    code, out, err = ferry("diff", long, *BACKENDS, "--instructions", "5000")
    assert (code, out.count("agree"), out.count("5000")) == (0, 2, 2)
    assert (
        err == f"ferry: {long}: still runs after 5000 instructions: compared as it stands there\n"
    )


def test_a_limit_of_time_says_what_was_not_compared(
    long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differential, "_EXPECTED_CHUNK", 10_000)
    Path("next.skiff").write_text("(print! 1)", encoding="utf-8")
    words = ["diff", long, "next.skiff", *BACKENDS, "--seconds", "0.000001", "--progress"]
    result = CliRunner().invoke(command.ferry, words, standalone_mode=False)
    assert (result.return_value, result.stdout.count("agree")) == (2, 1)
    reached, *progress, still, left, following = result.stderr.splitlines()
    assert reached == f"ferry: 1 of 2: {long}: reference, 10,000 instructions"
    assert progress == [f"ferry: 1 of 2: {long}: switch, 10,000 instructions"]
    assert still.startswith(f"ferry: {long}: still runs after 10000 instructions")
    assert left == f"ferry: {long}: the time of --seconds is over: not compared: threaded"
    assert following == "ferry: next.skiff: not compared: the time of --seconds is over"


def test_items_that_are_not_independent_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "race.skiff"
    path.write_text(
        "(define (put item to)\n  (array-set! to (/ item 2) item))\n"
        "(for-each-item 8 (put (make-array i64 8)))",
        encoding="utf-8",
    )
    code, out, err = ferry("diff", str(path), "--schedule", "independence")
    assert (code, out.count("error")) == (1, 1)
    assert err == (
        f"ferry: {path}: items 0 and 1 of the launch at {path}:3:1 are not independent: item 0 wrote "
        f"element 0 of the i64[8] at 8 at {path}:2:3, item 1 writes it at {path}:2:3\n"
    )


def test_progress_is_silent_where_nobody_looks(long: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "_EXPECTED_CHUNK", 1000)
    words = ["diff", long, "--backends", "switch", "--instructions", "1500"]
    for added, lines in (([], 1), (["--progress"], 3)):
        result = CliRunner().invoke(command.ferry, [*words, *added])
        assert len(result.stderr.splitlines()) == lines, result.stderr


@pytest.mark.parametrize("seconds", ["nan", "0", "-1"])
def test_a_limit_of_time_is_a_number_of_seconds(long: str, seconds: str) -> None:
    code, out, err = ferry("diff", long, *BACKENDS, "--seconds", seconds)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_every_standard_host_function_is_listed_with_signature_and_summary() -> None:
    code, out, err = ferry("hosts")
    rows = [line.strip().split(maxsplit=1) for line in out.splitlines()[1:]]
    assert (code, err, [row[0] for row in rows]) == (0, "", list(STANDARD))
    for name, rest in rows:
        function = STANDARD[name]
        assert function.summary
        assert rest.split("  ")[0] == str(function.signature)
        assert rest.endswith(function.summary)
