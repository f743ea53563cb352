# SPDX-License-Identifier: Apache-2.0
"""A program on variants of a machine: what each took, and why one could not run it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tomli

import ferryvm
from ferryvm.engine import TrapError
from ferryvm.errors import FerryError
from ferryvm.verify import Verified, verify
from ferryvm_backends.vliw.machine.read import find, path_of
from ferryvm_backends.vliw.sweep import measure as measuring
from ferryvm_backends.vliw.sweep.measure import Metrics, Result, front, measure
from ferryvm_backends.vliw.sweep.plot import check, draw
from ferryvm_backends.vliw.sweep.variant import Value, read_axes, variants

from .program import compiled, run, whole

ALONE = "(define (f d) (* (+ d 1) (- d 2))) (define i 0) (while (< i 40) (set! i (+ i 1))) (f i)"
LEAVING = ALONE + "(print! i) (while (< i 300) (set! i (+ i 1)))"
DIVIDING = "(define (f d) (/ 100 d)) (f 3)"


def program(text: str) -> Verified:
    return verify(ferryvm.compile(text))


def swept(text: str, *varied: str, machine: str = "multi16") -> list[Result]:
    document = tomli.loads(path_of(machine).read_text(encoding="utf-8"))
    axes = read_axes(varied, document)
    return list(measure(program(text), variants(axes, document)))


def test_cycles_are_those_of_the_program_on_the_machine() -> None:
    (result,) = swept(ALONE, "delay_slots=3")
    metrics = result.metrics
    assert metrics is not None
    part = whole(ALONE)
    alone = run(compiled(part, find("multi16")), part, is_native=True).counts.cycles
    assert metrics.cycles - metrics.transfer_cycles == alone > 0
    assert metrics.transfer_cycles > 0
    assert metrics.milliseconds == pytest.approx(metrics.cycles / 100_000)  # at 100 MHz
    assert result.cost == find("multi16").cost


@pytest.mark.nightly
def test_the_same_machine_takes_the_same_cycles_again() -> None:
    first, second = (swept(LEAVING, "alu=2") for _ in range(2))
    assert first == second


def test_what_every_code_of_a_run_took_is_counted() -> None:
    (once,), (twice,) = (swept(text, "alu=2") for text in (ALONE, LEAVING))
    assert once.metrics is not None
    assert twice.metrics is not None
    assert twice.metrics.transfer_cycles > once.metrics.transfer_cycles  # it is entered again


def test_more_units_cost_more_and_a_slower_clock_takes_longer() -> None:
    one, two, slow, slower = swept(ALONE, "alu=1,2", "clock=100,50")[:4]
    assert [result.cost for result in (one, two, slow, slower)] == [51.05, 51.05, 52.05, 52.05]
    for fast, half in ((one, two), (slow, slower)):
        assert fast.metrics is not None
        assert half.metrics is not None
        assert fast.metrics.cycles == half.metrics.cycles
        assert half.metrics.milliseconds == 2 * fast.metrics.milliseconds


@pytest.mark.nightly
def test_delay_slots_cost_cycles() -> None:
    results = swept(ALONE, "delay_slots=0..3", machine="single")
    cycles = [result.metrics.cycles for result in results if result.metrics]
    assert len(cycles) == 4
    assert cycles == sorted(set(cycles))


REFUSED = {
    "alu=0,1": "unit[1].count: found 0 (allowed: a whole number from 1 to 64)",
    "int.registers=1,32": "file[1].registers: found 1 (allowed: a whole number from 2 to 1024)",
    "slots=1.5,4": "slots: found 1.5 (allowed: a whole number from 1 to 1024)",
    "predication=2,true": "predication: found 2 (allowed: true or false)",
    "machine.instructions=9,65536": "bundles, and the instruction memory of the machine multi16 ",
    "machine.memory=900,268435456": "and the machine multi16 has 900",
}


@pytest.mark.parametrize("varied", REFUSED)
def test_a_variant_that_cannot_be_used_is_a_result_with_the_reason(varied: str) -> None:
    bad, good = swept(DIVIDING, varied)
    assert bad.metrics is None
    assert REFUSED[varied] in bad.reason
    assert "\n" not in bad.reason
    assert "backend 'vliw'" not in bad.reason
    assert good.metrics is not None
    assert not good.reason


def test_a_variant_without_a_unit_says_which_operation_needs_one() -> None:
    document = tomli.loads(path_of("multi16").read_text(encoding="utf-8"))
    del document["unit"][0]["work"]["divide"]
    axes = read_axes(["alu=1"], document)
    (result,) = measure(program(DIVIDING), variants(axes, document))
    assert (result.cost, result.metrics) == (51.05, None)
    assert re.match(r"region program: .*no unit for divide, which div_s at pc \d+ ", result.reason)


def test_a_trap_is_an_error() -> None:
    with pytest.raises(TrapError, match="integer division by zero"):
        swept("(define (f d) (/ 100 d)) (f 0)", "alu=1..2")


def test_another_result_on_another_machine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run_right = measuring._run
    text = ["(print! 1)", "(print! 2)"]

    def run_wrong(_: object, machine: measuring.Machine, arguments: tuple[str, ...]) -> object:
        return run_right(program(text.pop(0)), machine, arguments)

    monkeypatch.setattr(measuring, "_run", run_wrong)
    with pytest.raises(FerryError, match="with alu=2 the program ends otherwise than before"):
        swept("(print! 1)", "alu=1..2")


# --- the front ------------------------------------------------------------------------------


def points(*pairs: tuple[float, int]) -> list[Result]:
    return [
        Result({"n": number}, cost, Metrics(cycles, 0, 1.0))
        for number, (cost, cycles) in enumerate(pairs)
    ]


def pairs(results: Sequence[Result]) -> list[tuple[float | None, int]]:
    return [(one.cost, one.metrics.cycles) for one in results if one.metrics]


def test_the_front_has_what_nothing_is_cheaper_and_as_fast_as() -> None:
    found = points((3, 50), (1, 100), (2, 100), (2, 70), (4, 60), (3, 60))
    assert pairs(front(found)) == [(1, 100), (2, 70), (3, 50)]


def test_equals_are_on_the_front_together() -> None:
    assert pairs(front(points((2, 9), (1, 9), (1, 9), (1, 8), (1, 8)))) == [(1, 8), (1, 8)]


def test_what_did_not_run_is_on_no_front() -> None:
    refused = [Result({}, 1.0, None, "no"), Result({}, None, None, "no")]
    assert front(refused) == []
    assert pairs(front([*refused, *points((5, 5))])) == [(5, 5)]


# --- the plot -------------------------------------------------------------------------------

SETTINGS: dict[str, Value] = {"alu": 2, "bypass": True}


@pytest.mark.nightly
def test_a_plot_names_the_front_and_says_what_its_axes_are() -> None:
    results = [*points((1, 100), (2, 70), (3, 90)), Result({}, 1.0, None, "no")]
    results.append(Result(SETTINGS, 4.0, Metrics(10, 0, 1.0)))
    text = draw(results, "$x_1$ <b>.skiff", "svg").decode()
    found = ElementTree.fromstring(text)
    texts = [e.text for e in found.iter("{http://www.w3.org/2000/svg}text")]
    assert {"cost", "cycles", "$x_1$ <b>.skiff", "cheapest for its cycles"} <= set(texts)
    assert {"n=0", "n=1", "alu=2, bypass=true"} <= set(texts)
    assert "n=2" not in texts
    assert draw(results, "$x_1$ <b>.skiff", "svg").decode() == text


def test_a_plot_of_one_is_a_picture() -> None:
    assert draw(points((1, 100)), "one", "png").startswith(b"\x89PNG\r\n")


def test_a_plot_has_a_suffix_that_can_be_drawn(tmp_path: Path) -> None:
    check(tmp_path / "a.svg")
    for name in ("a.pdf", "a", "a.PNG.txt"):
        with pytest.raises(FerryError, match=r"a plot has the suffix \.png or \.svg"):
            check(tmp_path / name)


def test_a_plot_without_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(FerryError) as caught:
        check(Path("a.png"))
    assert str(caught.value) == (
        "--plot needs matplotlib, which is not installed: pip install 'ferryvm[plot]'"
    )
