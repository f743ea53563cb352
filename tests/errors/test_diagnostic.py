# SPDX-License-Identifier: Apache-2.0
"""How a fault in a source text is shown."""

from __future__ import annotations

from ferryvm.errors import Diagnostic, Position, SourceError, suggestion


def shown(line: str, column: int, length: int = 1) -> list[str]:
    return str(Diagnostic(Position("f", 1, column), "wrong", line, length)).splitlines()


def test_caret_stands_below_its_column() -> None:
    assert shown("(print x)", 8) == ["f:1:8: wrong", "    (print x)", "           ^"]


def test_tabs_before_the_column_are_kept() -> None:
    assert shown("\ta\tb", 4)[2] == "    \t \t^"


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert shown("变 x", 3)[2] == "       ^"
    assert shown("e\u0301 x", 4)[2] == "      ^"


def test_underline_ends_with_the_line() -> None:
    assert shown("abc", 2, 10)[2] == "     ^^"


def test_long_line_is_cut_around_the_column() -> None:
    _, line, caret = shown("a" * 500 + "X" + "b" * 500, 501)
    assert len(line) < 200
    assert line.startswith("    ...a")
    assert line.endswith("b...")
    assert line[caret.index("^")] == "X"


def test_many_faults_are_counted_rather_than_shown() -> None:
    faults = [Diagnostic(Position("f", line, 1), "wrong") for line in range(1, 31)]
    error = SourceError(faults)
    assert len(error.diagnostics) == 30
    assert str(error).splitlines()[-2:] == ["f:20:1: wrong", "... and 10 more"]


def test_near_name_is_found_in_other_case() -> None:
    assert suggestion("I64.ADD", ["i64.add", "f64.lt"]) == "; did you mean 'i64.add'?"
    assert suggestion("zzz", ["i64.add"]) == ""
