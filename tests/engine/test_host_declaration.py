# SPDX-License-Identifier: Apache-2.0
"""Host functions declared by Python functions: the signature that annotations give, and faults."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import ferryvm
from ferryvm import Instance, f32, f64, host, i32, i64
from ferryvm.engine.host_declaration import offered
from ferryvm.machine.host import Context, Determinism, HostError, Output


def test_signature_is_read_from_annotations() -> None:
    @host
    def mix(a: i32, b: i64, c: f32, d: f64) -> i64:
        """Mix four numbers.

        At length.
        """
        return a + b + int(c + d)

    assert (mix.name, str(mix.signature), mix.summary) == (
        "mix",
        "(i32 i64 f32 f64) -> (i64)",
        "Mix four numbers.",
    )
    assert mix(1, 2, 3.0, 4.0) == 10
    assert mix.context is Context.NONE

    @host(name="plain")
    def other(a: int, b: float, c: bool) -> None:
        del a, b, c

    assert (other.name, str(other.signature)) == ("plain", "(i64 f64 i32) -> ()")


def test_first_parameter_asks_for_its_context() -> None:
    @host
    def one(instance: Instance, a: i64) -> i64:
        return a + bool(instance)

    @host
    def two(output: Output, a: i64) -> None:
        output(b"%d" % a)

    assert (one.context, str(one.signature)) == (Context.INSTANCE, "(i64) -> (i64)")
    assert (two.context, str(two.signature)) == (Context.OUTPUT, "(i64) -> ()")


def test_signature_in_words_serves_what_has_no_annotations() -> None:
    root = host(name="root", signature="(f64) -> (f64)")(math.sqrt)
    assert (str(root.signature), root(4.0)) == ("(f64) -> (f64)", 2.0)
    most = host(name="most", signature="(i64, i64) -> (i64)")(max)
    assert most(3, 4) == 4


def _default(a: i64, b=2):  # type: ignore[no-untyped-def] # what is tested
    return a + b


async def _waits(a: i64) -> i64:
    return a


def _many(*a: i64) -> i64:
    return sum(a)


def _untyped(a, b: i64) -> i64:  # type: ignore[no-untyped-def] # what is tested
    return a + b


def _text(a: str) -> i64:
    return len(a)


def _keyword(a: i64, *, b: i64) -> i64:
    return a + b


def _unknown(a: Nowhere) -> i64:  # type: ignore[name-defined] # noqa: F821 - what is tested
    return 1


def test_parameter_with_a_default_is_left_out() -> None:
    assert str(host(_default).signature) == "(i64) -> ()"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_waits, "_waits is a coroutine or generator: a program cannot wait"),
        (_many, r"_many takes any number of arguments; give its signature: host\(signature="),
        (_untyped, "_untyped: a has no annotation; one of i32, i64, f32, f64, or int"),
        (_text, "_text: a is str; one of i32, i64"),
        (_keyword, "_keyword: programs give no keyword b"),
        (_unknown, "_unknown: its annotations cannot be read: name 'Nowhere' is not defined"),
        (lambda a: a, "has no name of its own; give one"),
        (dict.fromkeys, "iterable has no annotation|the parameters of .* cannot be told"),
    ],
)
def test_what_cannot_be_a_host_function_says_why(function: Any, message: str) -> None:
    with pytest.raises(HostError, match=message):
        host(function)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("(i64) -> (i65)", "there is no type 'i65'; such as"),
        ("i64 -> (i64)", "'i64' has no parentheses"),
        ("(i64) -> (i64)", r"is to be \(i64\) -> \(i64\), but its function is add\(a, b, /\)"),
        ("(i64 i64) -> (i64 i64)", "has 2 results, at most 1"),
    ],
)
def test_wrong_signature_in_words_is_told(signature: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        host(name="add", signature=signature)(operator.add)


def test_hosts_are_given_as_a_list_or_by_name() -> None:
    @host
    def one(a: i64) -> i64:
        return a

    assert list(offered([one, _default])) == ["one", "_default"]
    assert offered({"uno": one})["uno"].name == "uno"
    assert offered(None) == {}
    for given, message in (
        (one, "a list or a mapping of host functions is expected"),
        ([one, host(name="one", signature="() -> ()")(lambda: None)], "two host functions are"),
        ([3], "a host function is 3"),
    ):
        with pytest.raises(HostError, match=message):
            offered(given)  # type: ignore[arg-type] # the fault to be found


@pytest.mark.parametrize(
    ("t", "answer", "seen"),
    [("i32", -1, -1), ("f32", 0.1, 0.10000000149011612), ("f64", 3, 3.0), ("i64", True, 1)],
)
def test_values_of_each_type_cross_both_ways(
    backend: str, t: str, answer: float, seen: float
) -> None:
    given: list[object] = []

    def echo(value: object) -> object:
        given.append(value)
        return answer

    text = f"""
.host echo ({t}) -> ({t})
.export f
.function begin
    halt
.function f ({t}) -> ({t})
    local.get 0
    host echo
    return
"""
    declared: Callable[..., object] = host(name="echo", signature=f"({t}) -> ({t})")(echo)
    instance = ferryvm.Engine(backend).instantiate(ferryvm.assemble(text), hosts=[declared])
    assert instance.f(answer) == seen
    assert given == [seen]


@pytest.mark.parametrize("answer", [1e39, "1", None])
def test_result_that_is_no_f32_is_told(backend: str, answer: object) -> None:
    declared = host(name="give", signature="() -> (f32)")(lambda: answer)
    text = """
.host give () -> (f32)
.export f
.function begin
    halt
.function f () -> (f32)
    host give
    return
"""
    instance = ferryvm.Engine(backend).instantiate(ferryvm.assemble(text), hosts=[declared])
    with pytest.raises(
        HostError, match=f"give returned {answer!r}; a number for an f32".replace("+", ".")
    ):
        instance.f()


def test_determinism_is_plain_unless_declared() -> None:
    @host
    def plain(x: i64) -> i64:
        return x

    @host(pure=True)
    def pure(x: i64) -> i64:
        return x

    @host(replayable=True)
    def clock() -> i64:
        return 1

    kinds = [one.determinism for one in (plain, pure, clock)]
    assert kinds == [Determinism.PLAIN, Determinism.PURE, Determinism.REPLAYABLE]


def test_pure_and_replayable_exclude_each_other() -> None:
    with pytest.raises(HostError, match="clock is pure and replayable: one is allowed"):
        host(name="clock", signature="() -> (i64)", pure=True, replayable=True)(lambda: 1)
