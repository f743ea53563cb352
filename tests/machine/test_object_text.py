# SPDX-License-Identifier: Apache-2.0
"""The text of references: what it shows, where it stops."""

from __future__ import annotations

import pytest

from ferryvm.engine import Engine, Execution
from ferryvm.skiff import Session

TYPES = "(define-struct cell (value i64) (next cell) (any anyref)) (define-struct none)"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine("reference")


def shown(engine: Engine, text: str) -> str | None:
    execution: Execution = engine.start(Session().compile(f"{TYPES} {text}"))
    execution.run()
    return execution.machine.result_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(make-cell 1 null (ref.i31 -5))", "<cell value=1 next=null any=-5>"),
        ("(make-none)", "<none>"),
        ("(cast cell null)", "null"),
        ('"Grüß\\n\\"x\\""', '"Grüß\\n\\"x\\""'),
        ('""', '""'),
        ("(array u8 65 255)", "<u8[] of 2: 65, 255>"),
        ("(array u8 65 0)", "<u8[] of 2: 65, 0>"),
        ("(array i8 -1 127)", "<i8[] of 2: -1, 127>"),
        ("(array f32 0.1 nan)", "<f32[] of 2: 0.1, nan>"),
        ("(array f64)", "<f64[] of 0>"),
        ("(make-array u16 100000 65535)", f"<u16[] of 100000: {'65535, ' * 8}...>"),
        ('(array anyref "a" null (array i64 1))', '<anyref[] of 3: "a", null, <i64[] of 1: 1>>'),
        ("(* 6 7)", "42"),
        ("(print!)", None),
    ],
)
def test_values_are_shown_by_their_types(engine: Engine, text: str, expected: str | None) -> None:
    assert shown(engine, text) == expected


def test_a_string_is_cut_between_characters(engine: Engine) -> None:
    text = shown(engine, f'"a{"ü" * 1000}"')
    assert text == f'"a{"ü" * 99}..." of 2001 bytes'


def test_an_object_inside_itself_is_not_shown_again(engine: Engine) -> None:
    cycle = (
        "(define c (make-cell 1 null null)) (set-cell-next! c c) (set-cell-any! c (array cell c)) c"
    )
    assert shown(engine, cycle) == "<cell value=1 next=<cell ...> any=<cell[] of 1: <cell ...>>>"


def test_depth_and_size_have_bounds(engine: Engine) -> None:
    deep = "(define c null) (define i 0) (while (< i 50) (set! c (make-cell i c null)) (set! i (+ i 1))) c"
    text = shown(engine, deep)
    assert text is not None
    assert text.count("value=") == 3
    wide = "(define a (make-array anyref 8)) (define b (make-array anyref 8 a)) (make-array anyref 8 b)"
    text = shown(engine, wide)
    assert text is not None
    assert text.count("null") <= 64
    assert text.endswith(", ...>")
