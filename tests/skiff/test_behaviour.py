# SPDX-License-Identifier: Apache-2.0
"""What programs do when they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferryvm import RunResult, TrapError
from ferryvm.isa import Trap
from ferryvm_backends import ferryvm_backends

Run = Callable[..., RunResult]
BACKENDS = tuple(entry.name for entry in ferryvm_backends())

VALUES: list[tuple[str, int | float | None]] = [
    # results of programs
    ("", None),
    ("1 2", 2),
    ("(define x 1)", None),
    ("(define x 7) x", 7),
    ("(define x 7) (x)", 7),
    ("3 (define (f) 1)", None),
    ("3 (begin)", None),
    ("(begin 1 2 3)", 3),
    ("(let ((a 1) (b 2)) (+ a b))", 3),
    ("(enter-jit ((+ 1 1)))", 2),
    # exceptions
    ("(try (throw 3) (catch (e) (+ e 1)))", 4),
    ("(try 5 (catch (e) (+ e 1)))", 5),
    ("(+ 1 (* 2 (try (throw 3) (catch (e) e))))", 7),
    ("(define (f x) (if (< x 0) (throw x) (* x 2))) (try (+ (f 4) (f -3)) (catch (e) e))", -3),
    ("(try (try (throw 1.5) (catch (e) (throw (* e 2.0)))) (catch (e) (+ e 0.25)))", 3.25),
    ("(define n 0) (try (try (throw 7) (finally (set! n 1))) (catch (e) (+ e n)))", 8),
    ("(define n 0) (+ (try 5 (finally (set! n 10))) n)", 15),
    ("(define n 0) (try (throw 1) (catch (e) (set! n e)) (finally (set! n (+ n 10)))) n", 11),
    ("(define s 0) (while (< s 9) (set! s (+ s (try (throw 5) (catch (e) e))))) s", 10),
    # arithmetic
    ("(+ 1)", 1),
    ("(- 1)", -1),
    ("(- 1.5f32)", -1.5),
    ("(- 10 1 2 3)", 4),
    ("(/ 2.0)", 0.5),
    ("(/ 5)", 0),
    ("(/ 100 5 2)", 10),
    ("(/ -7 2)", -3),
    ("(% -7 2)", -1),
    ("(* 4611686018427387904 2)", -(1 << 63)),
    ("(+ 2147483647i32 1)", -(1 << 31)),
    ("(- 0.0)", -0.0),
    ("(<< 1i32 33)", 2),
    ("(>> -8 1)", -4),
    ("(>>> -1i32 31)", 1),
    ("(~ 5i32)", -6),
    ("(^ 1 2 4)", 7),
    ("(| 1 (& 6 3))", 3),
    ("(min 3.0 1.0 2.0)", 1.0),
    ("(ceil 1.2)", 2.0),
    ("(trunc -1.7)", -1.0),
    ("(abs -1.5f32)", 1.5),
    # comparisons and logic
    ("(< 1 2)", 1),
    ("(<= 1 2 2)", 1),
    ("(< 0 0 2i32)", 0),
    ("(< 0 1 2.5)", 1),
    ("(< 1 2 2)", 0),
    ("(!= 1 1)", 0),
    ("(and 1 2)", 1),
    ("(and 1 0 2)", 0),
    ("(or 0 0i32)", 0),
    ("(or 0 4)", 1),
    ("(not 4294967296)", 0),
    ("(not #f)", 1),
    ("(if 4294967296 1 2)", 1),
    ("(if (not (< nan 1.0)) 1 2)", 1),
    ("(if (>= nan 1.0) 1 2)", 2),
    ("(define n 0) (define (f) (set! n (+ n 1)) n) (< 0 (f) (f) 3) n", 2),
    ("(define n 0) (define (f) (set! n (+ n 1)) n) (and (= 1 2) (f)) (or (= 1 1) (f)) n", 0),
    ("(cond ((= 1 2) 10) ((= 1 1) 20) (else 30))", 20),
    ("(cond (0 10) (else 20 30))", 30),
    ("(cond (else 5))", 5),
    # conversions
    ("(i32 4294967297i64)", 1),
    ("(i64 -1i32)", -1),
    ("(i64 -2.9)", -2),
    ("(f64 1.5f32)", 1.5),
    ("(f32 16777217i64)", 16777216.0),
    ("(i32 #t)", 1),
    # variables
    ("(define (f) (define x 1) (set! x (+ x 1)) x) (f) (f)", 2),
    ("(define x 1) (let ((x 10) (y x)) (+ x y))", 11),
    ("(define x 1) (define (f) (define x x) (set! x 5) x) (+ (f) x)", 6),
    ("(define x 1) (define (f x) (set! x (+ x 1)) x) (+ (f 5) x)", 7),
    ("(define (f) x) (define x 3) (f)", 3),
    (
        (
            "(define n 3) (define sum 0) (while n (define t 0) (set! t (+ t n))"
            " (set! sum (+ sum t)) (set! n (- n 1))) sum"
        ),
        6,
    ),
    (
        (
            "(define (f) (define n 3) (define sum 0) (while n (let ((t 0)) (set! t (+ t n))"
            " (set! sum (+ sum t))) (set! n (- n 1))) sum) (f)"
        ),
        6,
    ),
    # functions
    (
        (
            "(define (even n) (if n (odd (- n 1)) #t)) (define (odd n) (if n (even (- n 1)) #f))"
            " (even 9)"
        ),
        0,
    ),
    ("(define (f a b c) (- a (* b c))) (f 10 (f 5 1 2) 2)", 4),
    ("(define (f) (if 1 2 3)) (+ (f) (if 0 (f) 5))", 7),
    ("(define (f x) (cond ((> x 5) (begin 1 2)) (else (let ((y x)) y)))) (+ (f 9) (f 4))", 6),
    ("(define (main) 4) (main)", 4),
    # as deep as can be
    ("(+ 1 " * 99 + "(- 5)" + ")" * 99, 94),
    ("(if " + "(or (not " * 49 + "0" + ")) " * 49 + "1 2)", 1),
    # instructions
    ("(i64.const 5)", 5),
    ("(f32.const 0.5)", 0.5),
    ("(f64.copysign 2.0 -0.0)", -2.0),
    ("(copysign (fmod -7.0 4.0) (remainder 7.0 4.0))", -3.0),
    ("(min-number 3.0 nan (max-number nan 1.0))", 1.0),
    ("(drop 4) (i32.ctz 8)", 3),
    ("(i64.store 0 (heap.alloc 8) -1) (i64.load8_u 7 0)", 255),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text[:50] for text, _ in VALUES])
def test_value(run: Run, text: str, value: int | float | None) -> None:
    for optimize in (False, True):
        result = run(text, optimize=optimize)
        assert repr(result.value) == repr(value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_are_the_same_on_every_backend(run: Run, backend: str) -> None:
    # A kernel takes long to build.
    for text, value in VALUES[:: 20 if backend == "opencl" else 4]:
        assert repr(run(text, backend).value) == repr(value), text


PRINTS = """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (count v x)
  (define i 0)
  (define found 0)
  (while (< i (array-length v))
    (if (and (= (array-ref v i) x) (not (= x 0.0))) (set! found (+ found 1)))
    (set! i (+ i 1)))
  found)
(define v (make-array f64 10))
(array-set! v 3 0.1) (array-set! v 4 0.1)
(print! (fib 12) (count v 0.1) 1e300 0.1f32 -5i32)
(write-byte! 65) (write-byte! 10)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_output_goes_out_in_order(run: Run, backend: str) -> None:
    result = run(PRINTS, backend)
    assert result.output == "144\n2\n1e+300\n0.1\n-5\nA\n"
    assert result.value is None


TRAPS = [
    ("\n (/ 1 0)", Trap.INTEGER_DIVIDE_BY_ZERO, "test:2:2"),
    ("(/ -2147483648i32 -1)", Trap.INTEGER_OVERFLOW, "test:1:1"),
    ("(i32 nan)", Trap.INVALID_CONVERSION, "test:1:1"),
    ("(i32 3e9)", Trap.INTEGER_OVERFLOW, "test:1:1"),
    (
        "(define v (make-array f64 3))\n(+ 1.0 (array-ref v 3))",
        Trap.INDEX_OUT_OF_BOUNDS,
        "test:2:8",
    ),
    ("(define v (make-array f64 3))\n(array-set! v -1 0)", Trap.INDEX_OUT_OF_BOUNDS, "test:2:1"),
    ("(make-array u8 -1)", Trap.HEAP_EXHAUSTED, "test:1:1"),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("text", "kind", "position"), TRAPS, ids=[kind.name for _, kind, _ in TRAPS]
)
def test_trap_names_the_form_that_traps(
    run: Run, backend: str, text: str, kind: Trap, position: str
) -> None:
    with pytest.raises(TrapError) as caught:
        run(text, backend)
    assert (caught.value.kind, str(caught.value.position)) == (kind, position)


# These simulate: so many calls take seconds.
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(backend, marks=pytest.mark.nightly)
        if backend in ("reference", "vliw")
        else backend
        for backend in BACKENDS
    ],
)
def test_recursion_without_end_is_a_trap(run: Run, backend: str) -> None:
    with pytest.raises(TrapError) as caught:
        run("(define (f n)\n  (+ 1 (f n)))\n(f 1)", backend)
    position = str(caught.value.position)
    assert (caught.value.kind, position) == (Trap.STACK_OVERFLOW, "test:2:8")


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OUTPUTS = {
    "collatz": "871\n179\n",
    "fib": "6765\n6765\n2880067194370816120\n",
    "conversions": (
        "2\n-2\n0.1\n0.10000000149011612\n3\n-3\n-1\n3.5\n1099511627776\n-4\n15\n240\n-1\n"
        "2.0\n-2.0\n3.5\n1.4142135623730951\n2541551405711093505\n8\n-3.0\n"
        "9223372036854775807\n1065353216\n"
    ),
    "looptest": "100000000\n",
    "nbody": "-7.0166666666666675\n-7.016695373401185\n",
    "parity": "1\n0\n13\n12\n",
    "sieve": "1229\n",
    "words": "3 der\n3 und\n1 am\n1 aufgegangen\n24 words\n",
    "arrays": "3.0\n35\n57\n61\n83\n89\n255\n-1\n",
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_examples_print_what_they_should(run: Run, name: str) -> None:
    text = (EXAMPLES / f"{name}.skiff").read_text(encoding="utf-8")
    assert run(text, "threaded").output == OUTPUTS[name]


def test_the_mandelbrot_example_draws_24_symmetric_lines(run: Run) -> None:
    text = (EXAMPLES / "mandelbrot.skiff").read_text(encoding="utf-8")
    lines = run(text, "threaded").output.splitlines()
    assert (len(lines), {len(line) for line in lines}) == (24, {64})
    assert lines == lines[::-1]
    assert set("".join(lines)) == set(" .-+#")


def test_the_trap_example_traps_where_it_says(run: Run) -> None:
    text = (EXAMPLES / "traps.skiff").read_text(encoding="utf-8")
    with pytest.raises(TrapError) as caught:
        run(text)
    assert caught.value.kind is Trap.INDEX_OUT_OF_BOUNDS
    line = caught.value.position.line
    assert "array-ref v i" in text.splitlines()[line - 1]


def test_every_example_is_tested() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.skiff")}
    assert names == {*OUTPUTS, "mandelbrot", "traps"}
