# SPDX-License-Identifier: Apache-2.0
"""The example language: what its README promises, whole programs and sessions."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ferryvm
from ferryvm.engine import Execution
from ferryvm.language import Language, Languages
from ferryvm.plugin import Plugin, Plugins

from ..command import ferry
from ..double.distribution import plant, python_path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "brook"
SAMPLE = EXAMPLE / "sample.brook"
OUTPUT = "hello, brook\n7\n3.0\n66\n529\ntrue\n"


@pytest.fixture(scope="module")
def brook() -> Iterator[Language]:
    sys.path.insert(0, str(EXAMPLE))
    try:
        import brook as plugin  # type: ignore[import-not-found]  # it is in examples

        plugins = Plugins(discover=False)
        plugins.register(plugin, Plugin("brook"))
        yield Languages(plugins).named("brook")
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in [each for each in sys.modules if each.partition(".")[0] == "brook"]:
            del sys.modules[name]


def output(brook: Language, text: str, backend: str | None = "reference") -> str:
    return ferryvm.run(brook.program(text, "x.brook"), backend).output


@pytest.mark.parametrize("backend", ["reference", "threaded", None])
def test_the_sample_prints_the_same_on_every_backend(brook: Language, backend: str | None) -> None:
    assert output(brook, SAMPLE.read_text(), backend) == OUTPUT


def test_an_installed_plugin_brings_the_language_to_the_command_line(tmp_path: Path) -> None:
    plant(tmp_path, "ferryvm-brook", entry="brook", module="brook")
    shutil.copytree(EXAMPLE / "brook", tmp_path / "brook")
    environment = {**os.environ, "PYTHONPATH": python_path(tmp_path)}
    done = ferry("run", "--backend", "reference", SAMPLE, environment=environment)
    assert (done.out, done.err, done.code) == (OUTPUT, "", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print 7 / 2 * 2 + 7 % 2", "7\n"),
        ("print -3 < 2 and not false or false", "true\n"),
        ("print 1.5 * 2.0 - 1.0", "2.0\n"),
        ('print "é" + "\\n!"', "é\n!\n"),
        ('print len("abc") + len([1, 2])', "5\n"),
        ("print int(2.9) + 1\nprint float(3)", "3\n3.0\n"),
        ("let a = array(3, true)\na[1] = false\nprint a[0] == a[1]", "false\n"),
        ('let words = [["a"], ["b", "c"]]\nprint words[1][1]', "c\n"),
        ("if 1 > 2 { print 1 } else if 2 > 1 { print 2 } else { print 3 }", "2\n"),
        ("fun f() { print g(3) }\nfun g(n: int): int { return n * n }\nf()", "9\n"),
        ("let n = 5\nfun f(): int { return n }\nn = 6\nprint f()", "6\n"),
        ("fun main(): int { return 1 }\nprint main()", "1\n"),
    ],
)
def test_expressions_and_statements(brook: Language, text: str, expected: str) -> None:
    assert output(brook, text) == expected


def test_closures_keep_copies_of_what_they_captured(brook: Language) -> None:
    text = """
fun counters(n: int): [fun(): int] {
    let k = n
    let first = fun (): int { return k }
    k = k + 1
    let inner = fun (): int {
        let again = fun (): int { return k * n }
        return again()
    }
    return [first, inner]
}
let made = counters(3)
print made[0]()
print made[1]()
"""
    assert output(brook, text) == "3\n12\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("print x", "1:7", "no variable 'x'"),
        ("print 1 +", "1:10", "expected int or float or str or name or ( or [ or fun, found"),
        ('let a = 1\nprint a + "b"', "2:11", "expected int, found str"),
        ('print "a" - "b"', "1:11", "- does not take str"),
        ("fun f(): int { print 1 }", "1:16", "this function ends without a return"),
        ("fun f(): int { return }", "1:16", "expected a value of type int"),
        ("return 1", "1:1", "return stands outside of a function"),
        ("fun f(a: int) {}\nf()", "2:2", "expected 1 arguments, found 0"),
        ("fun f() {}\nprint f()", "2:8", "this call has no value"),
        ("let a = []", "1:9", "an empty array has no type"),
        ("let a = 3\na[0] = 1", "2:2", "expected an array, found int"),
        ("if 1 { }", "1:4", "expected bool, found int"),
        ("fun f(a: int) { let g = fun () { a = 2 } }", "1:34", "it is captured, and a copy"),
        ("print 9223372036854775808", "1:7", "expected a number below 2^63"),
        ("let a: int = 1", "1:6", "expected =, found ':'"),
    ],
)
def test_faults_name_place_and_cause(brook: Language, text: str, place: str, message: str) -> None:
    with pytest.raises(ferryvm.SourceError) as caught:
        brook.program(text, "x.brook")
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"x.brook:{place}: ")
    assert message in first


def test_the_faults_of_several_functions_are_told_at_once(brook: Language) -> None:
    text = "fun f() { print a }\nfun g() { print b }\nprint c"
    with pytest.raises(ferryvm.SourceError) as caught:
        brook.program(text, "x.brook")
    assert [each.position.line for each in caught.value.diagnostics] == [1, 2, 3]


def test_a_trap_names_the_lines_of_the_text(brook: Language) -> None:
    text = "fun at(a: [int], n: int): int {\n    return a[n]\n}\nprint at([1], 1)"
    with pytest.raises(ferryvm.TrapError, match=r"x\.brook:2:13: trap: index out") as caught:
        output(brook, text)
    assert "in at at x.brook:2:13" in str(caught.value)
    assert "at x.brook:4:9" in str(caught.value)


class Inputs:
    """What `ferry repl` does with inputs."""

    def __init__(self, brook: Language) -> None:
        self.session = brook.session()
        self.engine = ferryvm.Engine("reference")
        self.last: Execution | None = None

    def __call__(self, text: str) -> str:
        """What an input prints."""
        self.last = self.engine.start(self.session.compile(text), after=self.last)
        return self.last.run().output


def test_a_session_adds_functions_to_what_runs(brook: Language) -> None:
    enter = Inputs(brook)
    assert enter("let n = 3") == ""
    assert enter("fun f(x: int): int { return x + n }") == ""
    assert enter("f(4)") == "7\n"
    assert enter('let g = fun (x: int): int { return f(x) * n }\n"a" + "b"') == "ab\n"
    assert enter("n = 10") == ""
    assert enter("fun f(x: int): int { return -x }") == ""
    assert enter("print f(1)\nprint g(1)") == "-1\n110\n"
    with pytest.raises(ferryvm.SourceError, match="no variable 'zz'"):
        enter("let n = zz")
    with pytest.raises(ferryvm.TrapError, match="division by zero"):
        enter("n = 1 / 0")
    assert enter("n") == "10\n"
    assert not enter.session.is_complete("fun f() {")
    assert enter.session.is_complete("f(1)")
