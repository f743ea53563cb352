# SPDX-License-Identifier: Apache-2.0
"""Rules of a policy can ask where the arrays of a launch are."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like, Within
from ferryvm.policy.predicate import Test, When
from ferryvm_backends.opencl import OpenClBackend

from ...engine.mixing import placements
from .entering import NAME, named
from .test_items import make_small

COUNT = 5000
TEXT = f"""
(define (step item (from (array i64)) (to (array i64)))
  (array-set! to item (+ (* 3 (array-ref from item)) item)))
(define (twice from to times)
  (define i 0)
  (while (< i times)
    (for-each-item {COUNT} (step from to))
    (set! i (+ i 1))))
(define (later from to)
  (for-each-item {COUNT} (step from to))
  (for-each-item 7 (step from to)))
(define xs (make-array i64 {COUNT}))
(define a (make-array i64 {COUNT}))
(define b (make-array i64 {COUNT}))
(twice xs a 3)
(later a b)
(array-ref b 4000)
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def compiled(first: str) -> set[str]:
    """The backends that compile the later launches; `first`: that of the first one."""
    on_device = Choice(NAME, Options(background=False))
    before = Choice(first, Options(background=False))
    kind = Test("kind", (Like("launch"),))
    there = (
        Test("bytes_resident", (Within(((">=", 8 * COUNT),)),)),
        Test("resident_on", (Like("*:*"),)),
    )
    rules = (
        Rule(when=When((kind, Test("function", (Like("twice"),)))), backends=(before,)),
        Rule(when=When((kind, *there)), backends=(on_device,)),
        Rule(when=When((kind,)), backends=(Choice("llvm", Options(background=False)),)),
    )
    policy = Policy(rules=rules, profile=Profile(loop_threshold=2))
    engine = Engine(policy=policy, registry=named(OpenClBackend(wraps=False)))
    execution = engine.start(ferryvm.compile(TEXT))
    assert execution.run().value == 4 * 4000
    found = [one for one in placements(execution) if one.region.startswith("later")]
    return {attempt.backend for one in found for attempt in one.attempts if attempt.code}


def test_a_launch_goes_where_its_arrays_are() -> None:
    assert compiled(NAME) == {NAME}
    assert compiled("llvm") == {"llvm"}
