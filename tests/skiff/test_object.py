# SPDX-License-Identifier: Apache-2.0
"""Arrays, structs, strings and references of any type: values, output, traps, sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine, RunResult, TrapError
from ferryvm.isa import Trap
from ferryvm.skiff.session import Session

Run = Callable[..., RunResult]
BACKENDS = ("reference", "switch", "threaded", "llvm")

POINT = "(define-struct point x (y i64)) "
SHAPES = "(define-struct shape (x f64)) (define-struct (circle shape) (r f64)) "
NODE = "(define-struct node (value i64) (next node)) "

VALUES: list[tuple[str, int | float | None]] = [
    # arrays: creation, elements
    ("(array-length (make-array f64 17))", 17),
    ("(array-ref (make-array f64 3) 2)", 0.0),
    ("(array-ref (make-array f64 3 2.5) 2)", 2.5),
    ("(array-ref (make-array u8 3 257) 0)", 1),
    ("(array-ref (array f64 1 2 3) 1)", 2.0),
    ("(array-length (array i64))", 0),
    ("(define v (make-array i8 2)) (array-set! v 1 200) (array-ref v 1)", -56),
    ("(define v (make-array u16 2)) (array-set! v 0 -1) (array-ref v 0)", 65535),
    ("(define v (make-array u32 2)) (array-set! v 0 -1) (array-ref v 0)", 4294967295),
    ("(define v (make-array i32 2)) (array-set! v 0 -1) (array-ref v 0)", -1),
    ("(define v (make-array i16 2)) (define x -2) (array-set! v 0 x) (array-ref v 0)", -2),
    ("(define v (make-array f32 2)) (array-set! v 1 0.5) (array-ref v 1)", 0.5),
    ("(array-ref (array-ref (array (array i32) null (array i32 4 5)) 1) 1)", 5),
    ("(define (f v) (array-ref v 0)) (+ 1 (f (array i64 7)))", 8),
    ("(define (f (v (array u8))) (array-ref v 0)) (f (array u8 7))", 7),
    ("(define (f v) (array-set! v 0 (+ 1.5 (array-ref v 0)))) (define (g) (f null)) 1", 1),
    # arrays: atomic updates
    ("(define v (array i64 7)) (atomic-add! v 0 5) (array-ref v 0)", 12),
    ("(define v (array u32 7)) (atomic-min! v 0 -1) (array-ref v 0)", 7),
    ("(define v (array i32 7)) (atomic-min! v 0 -1) (array-ref v 0)", -1),
    ("(define v (array i32 7)) (atomic-max! v 0 9) (array-ref v 0)", 9),
    ("(define v (array i64 7)) (atomic-and! v 0 12) (array-ref v 0)", 4),
    ("(define v (array i64 7)) (atomic-or! v 0 8) (array-ref v 0)", 15),
    ("(atomic-fetch-add! (array u32 -2) 0 5)", 4294967294),
    ("(atomic-fetch-or! (array i32 -2) 0 5)", -2),
    ("(define v (array i32 1)) (+ (* 10 (atomic-exchange! v 0 2)) (array-ref v 0))", 12),
    ("(define v (array i64 1)) (atomic-compare-exchange! v 0 1 2) (array-ref v 0)", 2),
    ("(define v (array i64 1)) (atomic-compare-exchange! v 0 7 2) (array-ref v 0)", 1),
    ("(define (f v) (atomic-add! v 0 1)) (define a (array i64 1)) (f a) (array-ref a 0)", 2),
    # arrays: many elements at once
    ("(define a (make-array i64 5)) (array-fill! a 7) (array-ref a 4)", 7),
    ("(define a (make-array u8 5 1)) (array-fill! a 7 3) (+ (array-ref a 2) (array-ref a 3))", 8),
    ("(define a (make-array f64 5)) (array-fill! a 7 1 2) (array-ref a 2)", 0.0),
    ("(define a (array i64 1 2 3)) (array-copy! a 0 a 1) (array-ref a 0)", 2),
    ("(define a (array i64 1 2 3)) (array-copy! a 1 a 0 2) (array-ref a 2)", 2),
    ("(define a (array i64 1 2 3)) (array-copy! a 0 a 1 3) (array-ref a 1)", 3),
    ("(array-length (array-copy (array f32 1 2 3) 1))", 2),
    ("(array-ref (array-copy (array f32 1 2 3) 1 2) 0)", 2.0),
    ("(define a (array f32 1)) (eq? a (array-copy a))", 0),
    ("(define a (array-append (array i16 1) (array i16 2 3) (array i16))) (array-ref a 2)", 3),
    ("(array-length (array-append (array-append (array i8 1) (array i8 2)) (array i8 3)))", 3),
    ("(array=? (array f64 1 2) (array f64 1 2))", 1),
    ("(array=? (array f64 1 nan) (array f64 1 nan))", 0),
    ("(array=? (array u8 1 2) (array u8 1 3))", 0),
    ("(array=? (array u8 1 2) (array u8 1))", 0),
    ("(if (array=? (array i32 1) (array i32 1)) 1 2)", 1),
    # structs
    (POINT + "(point-x (make-point 2.5 3))", 2.5),
    (POINT + "(define p (make-point 2.5 3)) (set-point-y! p 4) (point-y p)", 4),
    (POINT + "(define p (make-point 1 2)) (define q p) (set-point-y! q 9) (point-y p)", 9),
    (POINT + "(define (f p) (+ 1 (point-y p))) (f (make-point 0.5 1))", 2),
    (POINT + "(eq? (make-point 1 2) (make-point 1 2))", 0),
    (POINT + "(define p (make-point 1 2)) (eq? p p)", 1),
    (POINT + "(define p null) (null? p)", 1),
    (POINT + "(define (f) (null? p)) (define p (make-point 1 2)) (f)", 0),
    (POINT + "(point-y (array-ref (array point null (make-point 1 2)) 1))", 2),
    (NODE + "(node-value (node-next (make-node 1 (make-node 2 null))))", 2),
    (
        NODE + "(define (length l) (if (null? l) 0 (+ 1 (length (node-next l)))))"
        "(length (make-node 1 (make-node 2 null)))",
        2,
    ),
    ("(define-struct a (b b)) (define-struct b (a a)) (null? (a-b (make-a (make-b null))))", 0),
    ("(define-struct empty) (empty? (make-empty))", 1),
    # subtypes
    (SHAPES + "(shape-x (make-circle 1.5 2))", 1.5),
    (SHAPES + "(define (f (s shape)) (shape-x s)) (f (make-circle 1.5 2))", 1.5),
    (SHAPES + "(define a (array shape (make-circle 1 2))) (circle? (array-ref a 0))", 1),
    (SHAPES + "(define a (array shape (make-shape 1))) (circle? (array-ref a 0))", 0),
    (SHAPES + "(circle-r (cast circle (cast shape (make-circle 1 2))))", 2.0),
    (SHAPES + "(shape-x (if (> 1 2) (make-circle 1 2) (make-shape 3)))", 3.0),
    (SHAPES + "(shape-x (try (make-circle 1 2) (catch (e) (make-shape (f64 e)))))", 1.0),
    (
        SHAPES + "(define-struct (square shape) (a f64)) (define (f n) (if (= n 0) null (if (= n 1)"
        " (make-circle 1 2) (make-square 3 4)))) (+ (shape-x (f 1)) (shape-x (f 2)))",
        4.0,
    ),
    # exceptions
    ('(define (f) (throw "text")) (try (f) (catch (e) (array-length e)))', 4),
    (SHAPES + "(try (throw (make-circle 1 2.5)) (catch (e) (circle-r e)))", 2.5),
    (SHAPES + "(try (throw (make-circle 1 2.5)) (catch ((e shape)) (if (circle? e) 7 8)))", 7),
    (
        SHAPES + "(define (f n) (if n (throw (make-circle 1 2)) (throw (make-shape 3))))"
        "(define (g n) (try (f n) 0.5 (catch ((e shape)) (shape-x e)))) (+ (g 1) (g 0))",
        4.0,
    ),
    (
        '(define (f) (try (throw "abc") (finally (make-array i64 9)))) (try (f) (catch (e) (array-ref e 2)))',
        99,
    ),
    ("(try (throw null) (catch (e) (null? e)))", 1),
    # any references
    ("(define a (array anyref null (ref.i31 -5i32) (array u8 1))) (is? (array u8) (array-ref a 2))", 1),
    ("(define a (array anyref (ref.i31 -5i32))) (i31.get_s (cast i31ref (array-ref a 0)))", -5),
    (SHAPES + "(define (f (x anyref)) (is? shape x)) (+ (f (make-circle 1 2)) (f null))", 1),
    ("(define (f (x anyref)) (is? string x)) (+ (f (array i8)) (* 2 (f (array u8))))", 2),
    ("(null? (cast string null))", 1),
    # strings
    ('(array-length "abc")', 3),
    ('(array-length "ä\\x1F600;")', 6),
    ('(array-ref "a\\n\\t\\\\\\"\\0" 3)', 92),
    ('(array-length "")', 0),
    ('(define (f) "abc") (eq? (f) (f))', 1),
    ('(define (f) "abc") (eq? (f) "abc")', 1),
    ('(array=? (array-append "ab" "c") "abc")', 1),
    ('(array-ref "a string of more than eight bytes" 32)', 115),
    ("(+ #\\a 0i32)", 97),
    ("(array u8 #\\( #\\space #\\x41 #\\;) #\\ä", 228),
    # results
    ('"abc"', None),
    ("(array-set! (array i64 1) 0 2)", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text[:50] for text, _ in VALUES])
def test_value(run: Run, text: str, value: int | float | None) -> None:
    for optimize in (False, True):
        assert repr(run(text, optimize=optimize).value) == repr(value)


@pytest.mark.rotate("backend", most=2)
@pytest.mark.parametrize("backend", [*BACKENDS[1:], "opencl", "vliw"])
def test_values_are_the_same_on_every_backend(run: Run, backend: str) -> None:
    # Code for devices takes long to make.
    for text, value in VALUES[:: 20 if backend in ("opencl", "vliw") else 3]:
        assert repr(run(text, backend).value) == repr(value), text


def test_strings_are_printed_with_and_without_a_line_end(run: Run) -> None:
    text = '(print! "a" 1 (array u8 98)) (write-string! "c\\xe4;") (write-string! "\\n")'
    for backend in BACKENDS:
        assert run(text, backend).output == "a\n1\nb\ncä\n"


def test_literal_is_one_array_that_a_store_changes_for_all_its_uses(run: Run) -> None:
    text = '(define (greet) "hello") (array-set! (greet) 0 #\\j) (print! "hello" (greet) "hell")'
    assert run(text).output == "jello\njello\nhell\n"


TRAPS = [
    ("(define (f v)\n (array-ref v 1)) (f (array f64 1))", Trap.INDEX_OUT_OF_BOUNDS, "test:2:2"),
    ("(array-set! (array u8 1) -1 0)", Trap.INDEX_OUT_OF_BOUNDS, "test:1:1"),
    ("(array-fill! (array u8 1) 0 1 0)", Trap.INDEX_OUT_OF_BOUNDS, "test:1:1"),
    ("(array-copy! (array u8 1) 0 (array u8 1 2))", Trap.INDEX_OUT_OF_BOUNDS, "test:1:1"),
    ("(array-copy (array u8 1 2 3) 2 1)", Trap.INDEX_OUT_OF_BOUNDS, "test:1:1"),
    ("(array-copy (array u8 1 2 3) 1 4)", Trap.INDEX_OUT_OF_BOUNDS, "test:1:1"),
    ("(array-copy (array u8 1 2 3) 4)", Trap.INDEX_OUT_OF_BOUNDS, "test:1:1"),
    ("(make-array u8 -1)", Trap.HEAP_EXHAUSTED, "test:1:1"),
    ("(define (f v) (array-ref v 0)) (+ 1.5 (f null))", Trap.NULL_REFERENCE, "test:1:15"),
    ("(array=? (array u8) null)", Trap.NULL_REFERENCE, "test:1:1"),
    ("(array-append (array u8) null)", Trap.NULL_REFERENCE, "test:1:1"),
    ('(define s "a") (set! s null)\n(print! s)', Trap.NULL_REFERENCE, "test:2:1"),
    (POINT + "(define p null)\n(set-point-x! p 1.5)", Trap.NULL_REFERENCE, "test:2:1"),
    (SHAPES + "\n(circle-r (cast circle (cast shape (make-shape 1))))", Trap.CAST_FAILURE, "test:2:11"),
]  # fmt: skip


@pytest.mark.rotate("trap", "backend")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("trap", TRAPS, ids=[text[:40] for text, _, _ in TRAPS])
def test_trap_names_the_form_that_traps(
    run: Run, backend: str, trap: tuple[str, Trap, str]
) -> None:
    text, kind, position = trap
    with pytest.raises(TrapError) as caught:
        run(text, backend)
    assert (caught.value.kind, str(caught.value.position)) == (kind, position)


def test_exported_functions_take_and_return_references() -> None:
    text = (
        POINT
        + """
    (define (swap p q) (if (null? q) p q))
    (define (at (points (array point)) i) (point-y (array-ref points i)))
    (define (all) (array point (make-point 0.5 1) (make-point 1.5 2)))
    """
    )
    instance = Engine("switch").instantiate(ferryvm.compile(text))
    points = instance.all()
    assert instance.swap(points[0], None) is points[0]
    assert points[1].x == 1.5
    assert instance.at(points, 1) == 2


def test_exported_function_takes_and_returns_arrays_of_numpy() -> None:
    text = """
    (define (scale! v factor)
      (define i 0)
      (while (< i (array-length v))
        (array-set! v i (* factor (array-ref v i)))
        (set! i (+ i 1)))
      v)
    (print! (array-ref (scale! (array f32 2) 2) 0))
    (define (greet name) (array-append "hello " name))
    """
    instance = Engine("threaded").instantiate(ferryvm.compile(text))
    values = np.array([1, 2, 3], np.float32)
    assert instance.call("scale!", values, 3) is values
    assert values.tolist() == [3, 6, 9]
    assert bytes(instance.greet(bytearray(b"you"))) == b"hello you"


def test_matrix_of_numpy_goes_in_with_its_shape() -> None:
    text = """
    (define (trace m rows columns)
      (define sum 0.0)
      (define i 0)
      (while (< i rows)
        (set! sum (+ sum (array-ref m (index-2d i (+ i 0) rows columns))))
        (set! i (+ i 1)))
      sum)
    (define (at (m (array f64)) i j) (array-ref m (index-2d i j 2 3)))
    """
    instance = Engine("threaded").instantiate(ferryvm.compile(text))
    m = np.arange(9.0).reshape(3, 3)
    assert instance.trace(m, *m.shape) == 12.0
    assert instance.at(m[:2], 1, 2) == 5.0
    for row, column in ((2, 0), (0, 3), (-1, 2), (1, -1)):
        with pytest.raises(TrapError) as caught:
            instance.at(m[:2], row, column)
        assert caught.value.kind is Trap.INDEX_OUT_OF_BOUNDS


def test_state_with_structs_and_strings_is_saved_and_continued(tmp_path: Path) -> None:
    text = (
        NODE
        + """
    (define list null)
    (define i 0)
    (while (< i 5) (set! list (make-node i list)) (set! i (+ i 1)))
    (print! (array-append "first: " "4") (node-value list) (node-value (node-next list)))
    """
    )
    execution = Engine("threaded").start(ferryvm.compile(text))
    execution.run(fuel=50)
    execution.save(tmp_path / "half.ferry")
    rest = Engine("switch").resume(tmp_path / "half.ferry").run()
    assert rest.output == "first: 4\n4\n3\n"


Enter = Callable[[str], "int | float | str | None"]


@pytest.fixture
def enter() -> Enter:
    """Run the inputs of a session one after another: the output of each, or its value."""
    session, engine = Session(), Engine("switch")
    last: list[ferryvm.Execution] = []

    def enter(text: str) -> int | float | str | None:
        program = session.compile(text)
        execution = engine.start(program, after=last[-1] if last else None)
        result = execution.run()
        last.append(execution)
        return result.output or result.value

    return enter


def test_objects_and_their_types_stay_in_a_session(enter: Enter) -> None:
    enter(f"{NODE} (define list (make-node 1 null)) (define v (array f64 1 2))")
    enter("(define (push! n) (set! list (make-node n list)))")
    enter("(push! 5) (define matrix (array (array f64) v null))")
    assert enter("(node-value list)") == 5
    assert enter("(array-ref (array-ref matrix 0) 1)") == 2.0
    enter("(define all (array node list))")
    assert enter("(node-value (node-next (array-ref all 0)))") == 1


def test_string_literal_of_a_session_stays_the_same_array(enter: Enter) -> None:
    enter('(define s "abc") (define (f) "abc")')
    assert enter('(eq? s "abc")') == 1
    enter('(array-set! "abc" 0 #\\x)')
    assert enter('(print! (f) "new")') == "xbc\nnew\n"


def test_struct_defined_again_is_another_type_and_objects_keep_theirs(enter: Enter) -> None:
    enter("(define-struct point x) (define p (make-point 1))")
    enter("(define (first q) (point-x q))")
    assert enter("(first p)") == 1
    enter("(define-struct point (x i64) y) (define q (make-point 2 3.5))")
    assert enter("(print! (first q) (point-y q))") == "2\n3.5\n"
    with pytest.raises(ferryvm.SourceError, match="must be point, found another struct point"):
        enter("(point-x p)")
    assert enter("(point? (cast anyref p))") == 0


def test_failed_input_defines_no_struct(enter: Enter) -> None:
    with pytest.raises(ferryvm.SourceError):
        enter("(define-struct point x) (make-point 1 2)")
    with pytest.raises(ferryvm.SourceError, match="no function 'make-point'"):
        enter("(make-point 1)")
    enter("(define-struct point x)")
    assert enter("(point-x (make-point 1))") == 1
