# SPDX-License-Identifier: Apache-2.0
"""Host functions that a text declares: calls, sessions, and faults."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import ferryvm
from ferryvm import f64, host, i64
from ferryvm.errors import UnknownNameError
from ferryvm.machine.host import HostError
from ferryvm.skiff.session import Session

DECLARED = "(host-function half (f64 i64) f64)\n"


@host
def half(x: f64, times: i64) -> f64:
    """A half, so many times."""
    return x / 2**times


def run(text: str) -> ferryvm.RunResult:
    return ferryvm.Engine("reference", hosts=[half]).start(ferryvm.compile(text, "test")).run()


def test_call_passes_and_returns_values_of_the_declared_types() -> None:
    assert run(f"{DECLARED}(define (f n) (half 20 n))\n(+ (f 1) (half (f 2) 1))").value == 12.5


def test_declaration_may_come_after_its_uses_and_import_nothing_without_them() -> None:
    assert run(f"(print! (half 1 1)) {DECLARED}").output == "0.5\n"
    assert not ferryvm.compile(DECLARED).hosts


def test_host_function_without_a_result_yields_no_value() -> None:
    text = "(host-function write_byte (i32)) (define (f) (write_byte 65)) (f) (write-byte! 10)"
    program = ferryvm.compile(text)
    assert ferryvm.run(program, backend="reference").output == "A\n"
    assert len(program.hosts) == 1


def test_result_may_be_dropped_tested_and_stand_in_a_try() -> None:
    text = "(half 1 1) (if (> (half 8 2) 1) (print! 1)) (print! (try (half 1 1) (catch (e) 0.0)))"
    assert run(DECLARED + text).output == "1\n0.5\n"


def test_later_inputs_of_a_session_know_what_earlier_ones_declared() -> None:
    session, engine = Session(), ferryvm.Engine("reference", hosts=[half])
    values = [
        engine.start(session.compile(text)).run().value
        for text in (DECLARED, "(half 3 1)", "(half 5 0)")
    ]
    assert values == [None, 1.5, 5.0]
    assert "half" in session.names


def test_references_are_passed_and_returned() -> None:
    @host
    def halves(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return v / 2

    text = """
    (host-function halves ((array f64)) (array f64))
    (array-ref (halves (array f64 1 3)) 1)
    """
    execution = ferryvm.Engine("reference", hosts=[halves]).start(ferryvm.compile(text))
    assert execution.run().value == 1.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(host-function f i64)",
            ["1:1: 'host-function' is written (host-function name (type ...) [type])"],
        ),
        (
            "(host-function)",
            ["1:1: 'host-function' is written (host-function name (type ...) [type])"],
        ),
        (
            "(if 1 (host-function f ()))",
            ["1:7: a host function is declared at the top level, not inside another form"],
        ),
        (
            "(host-function f (i8) vec)",
            [
                (
                    "1:19: expected a type (i32 i64 f32 f64 (array element) string anyref, or a "
                    "struct), found 'i8', a type of elements only"
                ),
                (
                    "1:23: expected a type (i32 i64 f32 f64 (array element) string anyref, or a "
                    "struct), found 'vec'"
                ),
            ],
        ),
        ("(host-function f ())\n(define (f) 1)", ["2:10: 'f' is already defined in line 1"]),
        ("(host-function while ())", ["1:16: 'while' is built in and cannot be defined"]),
        (
            "(host-function f (i64 f64))\n(f 1)",
            ["2:1: 'f' takes 2 arguments, found 1: (f i64 f64)"],
        ),
        (
            "(host-function f (i64))\n(f 1.5)",
            ["2:4: argument 1 ('i64') of 'f' must be i64, found a float"],
        ),
        (
            "(host-function f ())\n(print! (f))",
            ["2:9: 'f' yields no value, and one is needed here"],
        ),
        (
            "(host-function f ()) f",
            ["1:22: 'f' is a function, not a variable; a call is written (f)"],
        ),
        (
            "(host-function print_i64 (f64))",
            ["1:16: 'print_i64' is the host function (i64) that Skiff prints with"],
        ),
    ],
)
def test_fault_is_told_with_its_position(
    faults: Callable[[str], list[str]], text: str, expected: list[str]
) -> None:
    assert faults(text) == expected


def test_function_that_the_host_lacks_or_has_otherwise_is_told_at_its_first_call() -> None:
    text = "(define (f x) (halve x 1))\n(host-function halve (f64 i64) f64)\n(print! (f 1))"
    with pytest.raises(
        UnknownNameError, match=r"^test:1:15: no host function 'halve'; did you mean"
    ):
        run(text)
    with pytest.raises(
        HostError, match=r"^test:1:40: host function half is \(f64 i64\) -> \(f64\), "
    ):
        run("(host-function half (i64) i64) (print! (half 1))")
