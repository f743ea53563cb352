# SPDX-License-Identifier: Apache-2.0
"""Quick code runs first, leaves when it has run long, and is replaced by good code."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.backend import Options as CompileOptions
from ferryvm.engine import Engine
from ferryvm.engine.explain import explain
from ferryvm.engine.observer import Observer
from ferryvm.engine.region_report import rows
from ferryvm.engine.transition import SiteState
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine as State
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm_backends.vliw import TIERS, VliwBackend
from ferryvm_backends.vliw.entry import VliwCode
from ferryvm_backends.vliw.target import FULL_EFFORT

from .program import SMALL, whole
from .test_backend import entered

TEXT = """
(define (sum v n)
  (define i 0) (define total 0)
  (while (< i n)
    (let ((j 0))
      (while (< j 8) (set! total (+ total (* (array-ref v j) i))) (set! j (+ j 1))))
    (array-set! v (% i 8) (+ total 1))
    (set! i (+ i 1)))
  total)
(define v (make-array i64 8))
(define k 0)
(define all 0)
(while (< k 12) (set! all (+ (* all 7) (sum v (+ 20 k)))) (print! all) (set! k (+ k 1)))
all
"""
ONE = "(define i 0) (while (< i 1000) (set! i (+ i 1))) i"


def tiered(machine: str, cycles: int | None, is_whole: bool) -> Policy:
    """Everything to a machine, where programs wait for code."""
    options = Options(background=False, recompile_after=cycles, device=machine)
    rule = Rule(backends=(Choice("vliw", options),))
    return Policy(profile=Profile(True, 20, 3, 1), rules=(rule,), whole_program=is_whole)


@pytest.mark.rotate("machine", "is_whole", "cycles", most=1)
@pytest.mark.parametrize("machine", ["single", "dsp4", "multi16", "wide16"])
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("cycles", [97, 1_500])
def test_a_program_that_changes_to_good_code_ends_as_the_reference_does(
    machine: str, is_whole: bool, cycles: int
) -> None:
    program = ferryvm.compile(TEXT)
    engine = Engine(policy=tiered(machine, cycles, is_whole), limits=SMALL)
    observer = Observer()
    observer.watch(engine)
    execution, reference = engine.start(program), Engine("reference", limits=SMALL).start(program)
    found, expected = execution.run(), reference.run()
    assert (found.value, found.output) == (expected.value, expected.output)
    assert execution.machine.snapshot() == reference.machine.snapshot()
    steps = [step for one in observer.placements for step in one.history]
    assert any(step.before is SiteState.RECOMPILING for step in steps)
    good = [a.code for one in observer.placements for a in one.attempts if not a.is_quick]
    assert any(code is not None and code.activity().entries for code in good)


def test_good_code_takes_over_in_the_middle_of_a_loop_that_is_entered_once() -> None:
    engine = Engine(policy=tiered("multi16", 700, True))
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(ONE, "one.skiff"))
    assert execution.run().value == 1000
    program, loop = observer.placements
    assert (program.region, loop.region, loop.why) == (
        "program",
        "main/loop.1",
        "compiled code was interrupted there, at the end of its time slice",
    )
    assert [one.is_quick for one in program.attempts] == [True] + [False] * (
        len(program.attempts) - 1
    )
    assert [one.is_quick for one in loop.attempts] == [False]
    quick, good = program.attempts[0].code, loop.attempts[0].code
    assert isinstance(quick, VliwCode)
    assert isinstance(good, VliwCode)
    assert 700 <= quick.totals.cycles < 750
    assert good.totals.cycles > 700


@pytest.mark.nightly
def test_explain_shows_both_compilations_and_the_replacement() -> None:
    engine = Engine(policy=tiered("dsp4", 1_500, False))
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(TEXT, "sum.skiff"))
    execution.run()
    found = explain(execution, observer, "halt").regions
    region = next(one for one in found if one.replacements)
    again, replaced = region.replacements
    assert again.startswith("quick code is made again after ")
    assert " s: it ran 15" in again
    assert replaced.startswith("quick code is replaced after ")
    assert replaced.endswith(" s: backend 'vliw': compiled")
    assert [one.is_quick for one in region.tried] == [True, False]
    found_rows = rows(region)
    assert any(text.startswith("compiled quickly in ") for _, text in found_rows)
    assert ("tiers", again) in found_rows


def test_quick_code_leaves_each_time_that_it_has_run_so_many_cycles() -> None:
    region = whole(ONE)
    options = CompileOptions(optimize=TIERS.quick, recompile_after=700)
    code, state = VliwBackend().compile(region, options), State(region.verified, SMALL)
    assert (entered(code, state), code.long[:8]) == (Status.LONG, "it ran 7")
    assert entered(code, State(region.verified, SMALL)) is Status.LONG
    assert code.long.startswith("it ran 14")


def test_code_that_is_not_to_be_replaced_does_not_leave_for_it() -> None:
    region = whole(ONE)
    code, state = VliwBackend().compile(region, CompileOptions()), State(region.verified, SMALL)
    assert (entered(code, state), code.long) == (Status.HALT, "")


def test_the_quick_tier_is_the_level_below_that_at_which_loops_are_pipelined() -> None:
    assert TIERS.quick + 1 == FULL_EFFORT


def test_code_by_name_is_good_code() -> None:
    (rule,) = Policy.for_compiler("vliw").rules
    options = rule.backends[0].options
    assert (options.background, options.recompile_after, options.optimize) == (False, None, 3)
