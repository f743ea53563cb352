# SPDX-License-Identifier: Apache-2.0
"""The explanation of a run: each region with its reasons, and shares that add up."""

from __future__ import annotations

import threading

import pytest

import ferryvm
from ferryvm.backend import Backend, BackendError, Interpreter
from ferryvm.engine import Engine
from ferryvm.engine.compilation import Job, submit
from ferryvm.engine.explain import REST, Explanation, explain
from ferryvm.engine.mixed import Mixed
from ferryvm.engine.observer import Observer
from ferryvm.engine.trace import events
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.predicate import read
from ferryvm.registry import Registry

from ..double.code import leave
from ..double.compiler import FunctionCompiler
from .test_trace import with_code

GROUPS = """
(define (member (l i64) (tile (array i64)) (g i64))
  (array-set! tile l (* l g))
  (barrier)
  (if (and (= l 3) (= g 2)) (print! (array-ref tile 1))))
(define (group (g i64))
  (let ((tile (make-array i64 8 0))) (for-each-item 8 (member tile g))))
(for-each-item 5 (group))
"""

LOOP = "(define i 0)\n(while (< i 1000)\n  (set! i (+ i 1)))\n(print! i)"


def explained(
    chosen: Policy | str, count: bool = False, found: Registry | None = None, text: str = LOOP
) -> Explanation:
    """What is said about a run of the loop, or of another text."""
    registry = found or Registry()
    by_name = isinstance(chosen, str)
    engine = (
        Engine(chosen, registry=registry) if by_name else Engine(policy=chosen, registry=registry)
    )
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(text, "loop.skiff"))
    return explain(execution, observer, execution.run(count=count).status.name.lower())


def policy(*names: str) -> Policy:
    """Big regions first, then whatever is hot: to these compilers."""
    faults: list[object] = []
    big = Rule("big", read({"work": "> 1000"}, (), faults.append), backends=(Choice("llvm"),))
    assert not faults
    chain = tuple(Choice(name, Options(background=False)) for name in names)
    return Policy(profile=Profile(True, 10, 10, 1), rules=(big, Rule("hot", backends=chain)))


def test_a_region_has_its_reasons_and_its_code_s_figures() -> None:
    explanation = explained(policy("llvm"))
    (region,) = explanation.regions
    assert (region.region, region.kind, region.pc) == ("main/loop.1", "loop", 7)
    assert region.position == "loop.skiff:2:11"
    assert (region.why, region.state) == ("reached 10 times", "installed")
    (asked,) = region.considered
    assert asked.passed == ("rule 1 'big' does not match: work is 8, wanted > 1000",)
    assert asked.decision == "rule 2 'hot': it takes everything"
    (tried,) = region.tried
    assert (tried.backend, tried.reason, tried.entries) == ("llvm", "", 1)
    assert tried.outcome in ("compiled", "from the cache")
    assert 0 < tried.code_seconds < explanation.seconds.run
    assert tried.instructions is None
    assert explanation.compile_seconds == tried.seconds > 0


def test_shares_of_instructions_add_up_to_what_was_counted() -> None:
    explanation = explained(policy("llvm"), count=True)
    llvm, threaded = explanation.shares
    assert (llvm.backend, threaded.backend) == ("llvm", "threaded")
    assert explanation.instructions is not None
    assert (llvm.instructions or 0) + (threaded.instructions or 0) == explanation.instructions
    # 991 times round in compiled code, with eight instructions, and the last test.
    assert llvm.instructions == 991 * 8 + 4
    assert (llvm.share_of_instructions or 0) + (threaded.share_of_instructions or 0) == 1.0
    parts = (llvm.share_of_time, threaded.share_of_time, explanation.other_share_of_time)
    assert sum(parts) == pytest.approx(1.0)
    assert min(parts) > 0


def test_a_refusal_and_a_failure_have_their_reasons() -> None:
    explanation = explained(policy("threaded", "llvm"))
    first, second = explanation.regions[0].tried
    assert (first.backend, first.outcome) == ("threaded", "failed")
    assert first.reason == "backend 'threaded' compiles no regions"
    assert (first.entries, first.steps) == (0, {})
    assert second.backend == "llvm"


def test_code_that_gives_no_figures_is_a_line_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = with_code(leave)
    compiler = type(found.get("mine"))
    compile_ = compiler.compile

    def compile_faulty(self: object, region: object, options: object) -> object:
        code = compile_(self, region, options)  # type: ignore[arg-type]
        code.activity = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        return code

    monkeypatch.setattr(compiler, "compile", compile_faulty)
    (tried,) = explained(policy("mine"), found=found).regions[0].tried
    assert tried.fault.startswith("backend 'mine' gives no metrics: its activity raised ZeroDiv")
    assert tried.entries == 0


@pytest.mark.parametrize(
    "notes", [{"think": "long"}, {"think": -1.0}, {"think": float("nan")}, {3: 1.0}]
)
def test_steps_that_are_no_seconds_are_a_line_and_no_error(
    monkeypatch: pytest.MonkeyPatch, notes: dict[object, object]
) -> None:
    found = with_code(leave)
    compiler = type(found.get("mine"))
    compile_ = compiler.compile

    def compile_faulty(self: object, region: object, options: object) -> object:
        code = compile_(self, region, options)  # type: ignore[arg-type]
        code.notes = notes  # type: ignore[assignment]
        return code

    monkeypatch.setattr(compiler, "compile", compile_faulty)
    (tried,) = explained(policy("mine"), found=found).regions[0].tried
    ((name, value),) = notes.items()
    said = f"its notes say {name!r}: {value!r}, not seconds by name"
    assert tried.fault == f"backend 'mine' gives no metrics: {said}"
    assert tried.steps == {}


def test_the_steps_of_a_compilation_add_up_to_its_time() -> None:
    rule = Rule(backends=(Choice("llvm", Options(background=False, cache=False)),))
    explanation = explained(Policy(profile=Profile(True, 10, 10, 1), rules=(rule,)))
    (tried,) = explanation.regions[0].tried
    assert list(tried.steps) == ["lift", "lower", "optimise", "emit", "load", REST]
    assert sum(tried.steps.values()) == pytest.approx(tried.seconds)


def test_a_place_whose_rules_were_not_asked_before_the_end_says_so() -> None:
    release = threading.Event()

    def block() -> None:
        release.wait(60)

    submit(Job(block))
    try:
        rule = Rule(backends=(Choice("llvm"),))
        explanation = explained(Policy(profile=Profile(True, 10, 10, 1), rules=(rule,)))
    finally:
        release.set()
    (region,) = explanation.regions
    assert (region.region, region.state, region.considered) == ("", "queued", ())
    assert region.remark == "not asked yet: the program ended before"


def test_what_went_wrong_outside_the_backends_is_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no such luck")

    monkeypatch.setattr("ferryvm.region.region.candidates", fail)
    monkeypatch.setattr("ferryvm.engine.explain.candidates", lambda *_: [])
    rule = Rule(backends=(Choice("llvm", Options(background=False)),))
    (region,) = explained(Policy(profile=Profile(True, 10, 10, 1), rules=(rule,))).regions
    assert (region.region, region.state) == ("", "given up")
    assert region.remark.startswith("it could not be done: OSError: no such luck")


def test_a_place_that_did_not_get_hot_is_named() -> None:
    slow = Policy(profile=Profile(True, 5000, 5000, 1))
    explanation = explained(slow)
    assert explanation.regions == ()
    (cold,) = explanation.not_hot
    assert (cold.region, cold.reached, cold.threshold) == ("main/loop.1", 1001, 5000)
    assert cold.position == "loop.skiff:2:11"


def test_what_counts_nothing_is_said_to() -> None:
    assert explained("switch").counts == "backend 'switch' runs alone"
    assert explained(Policy(profile=Profile(False))).counts == "the policy's profile is off"
    alone = explained("switch")
    (share,) = alone.shares
    assert share.backend == "switch"
    assert share.share_of_time + alone.other_share_of_time == pytest.approx(1.0)


def test_a_compiler_asked_for_by_name_is_explained_as_a_policy() -> None:
    explanation = explained("llvm")
    (region,) = explanation.regions
    assert (region.region, region.why) == ("program", "the whole program, before it starts")
    assert [share.backend for share in explanation.shares] == ["llvm", "threaded"]


@pytest.mark.parametrize("backend", ["llvm", "vliw", "cc"])
def test_groups_that_code_left_in_the_middle_are_counted(backend: str) -> None:
    if backend == "cc":
        pytest.importorskip("ferryvm_cc")
    tried = [each for one in explained(backend, text=GROUPS).regions for each in one.tried]
    assert sum(each.unfinished for each in tried) == 1  # of five groups one prints


def test_guards_that_fail_are_told_with_the_code_that_was_made_without_them() -> None:
    half = "(define i 0) (define n 0)\n(while (< i 4000)\n"
    half += "  (if (> i 2000) (set! n (+ n 1)))\n  (set! i (+ i 1)))\n(print! n)"
    options = Options(background=False, speculate=True, guard_limit=50)
    rule = Rule(backends=(Choice("llvm", options),))
    engine = Engine(policy=Policy(profile=Profile(True, 100, 100, 1), rules=(rule,)))
    observer = Observer(transfers=True)
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(half))
    result = execution.run()
    assert result.output == "1999\n"
    (region,) = explain(execution, observer, "halt").regions
    first, second = region.tried
    assert region.recompilations == 1
    assert (first.guards, second.guards) == (1, 0)
    assert list(first.guard_failures.values()) == [50]
    assert (first.entries, second.entries) == (50, 1)
    assert len(observer.transfers) == 51
    guards = [event for event in events(observer) if str(event["name"]).startswith("guard")]
    assert [event["args"]["guard"] for event in guards] == list(first.guard_failures)  # type: ignore[index]


def test_a_nest_that_kept_its_checks_is_told_with_the_reason() -> None:
    copy = """(define (f a b n)
  (define i 0)
  (while (< i n)
    (i64.store 0 (+ a (* 8 i)) (i64.load 0 (+ b (* 8 i))))
    (set! i (+ i 1))))
(define v (heap.alloc 72))
(f v (heap.alloc 72) 9)
(f v v 9)
(define k 0)
(while (< k 9) (i64.store 0 (i64.load 0 (+ v (* 8 k))) k) (set! k (+ k 1)))
"""
    engine = Engine("llvm")
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(copy, file="copy.skiff"))
    execution.run()
    (region,) = explain(execution, observer, "halt").regions
    none, slow = region.tried[0].nests
    overlap = "what is accessed in two places overlaps (copy.skiff:4:5, copy.skiff:4:32)"
    assert slow == f"loop at copy.skiff:3:13: slow copy 1 of 2 times: {overlap}"
    assert none == (
        "loop at copy.skiff:10:11: no fast copy: a store may go anywhere (copy.skiff:10:16)"
    )


def test_compilers_of_a_policy_are_warmed_up_once_and_their_faults_are_told_later() -> None:
    asked = []

    class Warm(FunctionCompiler):
        def warm_up(self) -> None:
            asked.append(self.name)
            raise BackendError("cannot compile here")

    backends = {name: Warm(lambda region, options: leave(), name) for name in ("one", "two")}

    def find(name: str) -> Backend:
        if name not in backends:
            raise BackendError(f"no backend {name!r}")
        return backends[name]

    interpreter = Registry().get("threaded")
    assert isinstance(interpreter, Interpreter)
    Mixed("mixed", policy("one", "two", "one"), interpreter, find).warm_up()  # no llvm, as it asks
    assert asked == ["one", "two"]
