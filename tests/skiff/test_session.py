# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ferryvm import Engine, SourceError
from ferryvm.skiff import Session


class Prompt:
    """Runs the inputs of a session, carrying statics and heap over, as a REPL does."""

    def __init__(self) -> None:
        self.session = Session()
        self.statics: list[int] = []
        self.heap = b""

    def __call__(self, text: str) -> int | float | None:
        program = self.session.compile(text)
        execution = Engine("reference").start(program)
        machine = execution.machine
        machine.memory.statics[: len(self.statics)] = memoryview(
            b"".join(word.to_bytes(8, "little") for word in self.statics)
        ).cast("Q")
        machine.memory.heap[: len(self.heap)] = self.heap
        machine.control.hp = len(self.heap)
        value = execution.run().value
        self.statics = list(machine.memory.statics)
        self.heap = bytes(machine.memory.heap[: machine.control.hp])
        return value


@pytest.fixture
def prompt() -> Prompt:
    return Prompt()


def names(session: Session, text: str) -> list[str]:
    return [f"{static.name} {static.type}" for static in session.compile(text).statics]


def test_variables_and_functions_stay(prompt: Prompt) -> None:
    prompt("(define x 3)")
    prompt("(define (double a) (* 2 a))")
    assert prompt("(double x)") == 6
    prompt("(set! x (+ x 1))")
    assert prompt("(double (x))") == 8


def test_heap_stays(prompt: Prompt) -> None:
    prompt("(define v (heap.alloc 24))")
    prompt("(f64.store 8 v 2.5)")
    prompt("(define w (heap.alloc 3))")
    assert prompt("(f64.load 8 v)") == 2.5


def test_statics_begin_with_the_earlier_ones_in_order() -> None:
    session = Session()
    assert names(session, "(define a 1) (define b 2.5)") == ["a i64", "b f64"]
    assert names(session, "(define c 1i32)") == ["a i64", "b f64", "c i32"]
    assert names(session, "b") == ["a i64", "b f64", "c i32"]


def test_a_variable_defined_again_keeps_its_place_if_it_keeps_its_type(prompt: Prompt) -> None:
    prompt("(define x 1)")
    prompt("(define (f) (+ x 1))")
    prompt("(define x 10)")
    assert prompt("(f)") == 11
    assert names(prompt.session, "x") == ["x i64"]


def test_a_variable_defined_again_with_another_type_is_a_new_one(prompt: Prompt) -> None:
    prompt("(define x 1)")
    prompt("(define (f) (* x 2))")
    assert prompt("(define y x) (define x 2.5) (f)") == 5.0
    assert prompt("(+ x 1)") == 3.5
    assert prompt("y") == 1
    assert names(prompt.session, "x") == ["x i64", "y i64", "x f64"]


def test_a_function_defined_again_replaces_the_old_one_everywhere(prompt: Prompt) -> None:
    prompt("(define (f) 1)")
    prompt("(define (g) (* 10 (f)))")
    prompt("(define (f) 2)")
    assert prompt("(g)") == 20


def test_a_constant_defined_again_is_the_new_one_in_earlier_functions(prompt: Prompt) -> None:
    prompt("(define-constant A 2) (define (f) (* A A))")
    prompt("(define-constant A 0x3)")
    assert prompt("(f)") == 9


def test_a_name_can_turn_from_variable_to_function_and_back(prompt: Prompt) -> None:
    prompt("(define f 1)")
    prompt("(define (f) 2)")
    assert prompt("(f)") == 2
    prompt("(define f 3)")
    assert prompt("f") == 3


def test_a_function_may_take_another_type_later(prompt: Prompt) -> None:
    prompt("(define (twice x) (+ x x))")
    assert prompt("(twice 2)") == 4
    assert prompt("(twice 2.5)") == 5.0


def test_a_global_variable_keeps_its_type() -> None:
    session = Session()
    session.compile("(define x 1)")
    with pytest.raises(SourceError, match="'x' is i64, found a float"):
        session.compile("(set! x 2.5)")


def test_a_fault_changes_nothing(prompt: Prompt) -> None:
    prompt("(define x 1)")
    prompt("(define (f) x)")
    for text in ("(define x 2.5) (define y 1) (y 2)", "(define (f) 7) (g)", "(define (h) 1) ("):
        with pytest.raises(SourceError):
            prompt(text)
    assert prompt("(f)") == 1
    assert names(prompt.session, "x") == ["x i64"]
    with pytest.raises(SourceError, match="no variable 'y'"):
        prompt("y")


def test_a_fault_in_an_earlier_function_shows_its_own_input() -> None:
    session = Session()
    session.compile("(define x 1)")
    session.compile("(define (f)\n  (& x 1))")
    with pytest.raises(SourceError) as caught:
        session.compile("(define x 2.5)")
    assert str(caught.value) == (
        "<input 3>:1:11: 'x' is an integer, found a float\n    (define x 2.5)\n              ^^^"
    )
    with pytest.raises(SourceError) as caught:
        session.compile("(define x (make-array u8 1)) (define y 1.5)(sqrt (f))")
    assert "<input 3>:1:11: 'x' is an integer, found (array u8)" in str(caught.value)
    session.compile("(define (g) (f))")
    with pytest.raises(SourceError) as caught:
        session.compile("(define (f a) a)")
    assert str(caught.value) == (
        "<input 3>:1:13: 'f' takes 1 argument, found 0: (f a)\n"
        "    (define (g) (f))\n"
        "                ^^^"
    )


def test_inputs_under_one_file_name_are_told_apart() -> None:
    session = Session()
    session.compile("(define (f) (g))(define (g) 1)", "prompt")
    with pytest.raises(SourceError) as caught:
        session.compile("(define (g x) x)", "prompt")
    assert str(caught.value).startswith("prompt:1:13: 'g' takes 1 argument, found 0: (g x)\n")
    assert "(define (f) (g))" in str(caught.value)


def test_names_are_those_defined_and_those_built_in() -> None:
    session = Session()
    session.compile("(define total 1) (define (add x) x)")
    assert {"total", "add", "while", "sqrt", "i64.rotl"} <= set(session.names)


def test_names_may_be_defined_once_in_one_input() -> None:
    with pytest.raises(SourceError, match="'x' is already defined in line 1"):
        Session().compile("(define x 1) (define x 2)")


def test_completeness_is_asked_before_compiling() -> None:
    session = Session()
    assert [session.is_complete(text) for text in ("(define (f)", "(f))", "#| a", "1")] == [
        False,
        True,
        False,
        True,
    ]
