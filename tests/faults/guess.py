# SPDX-License-Identifier: Apache-2.0
"""Planted faults of guesses in launches: speculation with one mistake each.

A program whose items take a branch rarely, and whose arguments and statics change now and then,
runs on threads, in lanes and in order. Its output is held against the loop, and what is told of its
guesses against what happened: paths, words, failures, compilations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import ferryvm
from ferryvm import Engine
from ferryvm.engine import chunked_run, installed_launch, launch_profile, launching
from ferryvm.engine.decision import Decider
from ferryvm.engine.execution import Execution
from ferryvm.engine.guess import CHANGED, FORGOTTEN, WRONG, GuessLimit
from ferryvm.engine.installed_launch import InstalledLaunch
from ferryvm.engine.launching import Launches
from ferryvm.engine.speculation import BranchProfile
from ferryvm.ir.graph import Value
from ferryvm.ir.lifter import BodyLifter
from ferryvm.ir.region_order import RegionOrder
from ferryvm.machine.launch import Left
from ferryvm.machine.piece import Block
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.region import known_word
from ferryvm.region.known_word import KnownWord

from ..launching import expanded

_TEXT = """
(define every 7)
(define shift -0.0)
(define seen 0)
(define (work item to step)
  (array-set! to item (+ (* 3 (array-ref to item)) (+ (% item every) (/ item step))))
  (if (= item 0) (set! seen (+ seen every)))
  (if (< (/ 1.0 shift) 0.0) (array-set! to item (+ (array-ref to item) 5)))
  (if (= (% item 50) 49) (array-set! to item (+ 1000 (* 7 (array-ref to item))))))
(define to (make-array i64 {items}))
(define (go step) (for-each-item {items} (work to step)))
(define hash 0)
(define round 0)
(while (< round 8)
  (go (if (< round 4) 3 4))
  (set! round (+ round 1))
  (if (= round 5) (set! every 9))
  (if (= round 6) (set! shift 0.0))
  (set! hash (+ (* 31 hash) (reduce + to))))
(for-each-item {items} (work to 4))
(print! (+ (* 31 hash) (reduce + to)) seen)"""
_ITEMS = 300
_OBSERVED = 20
HOW = (("llvm", 1), ("llvm", 8), ("vliw", 1))
"""Backend and lanes; items of `vliw` run in order."""
_SHARES = {"kept": (0.1, 1000), "given up": (0.001, 3)}
"""`guard_share` and `guard_limit` with which the guess on a path is kept, and given up."""


class GuessFault(NamedTuple):
    """A function with a mistake."""

    name: str
    about: str
    owner: Any
    function: str
    faulty: Callable[..., Any]
    unchecked: bool = False
    """True if the words are not checked in front of the loop, either: the engine would leave again
    and again for what it does not find."""


class Told(NamedTuple):
    """The output of a run, and what is known of its guesses afterwards."""

    output: str
    guesses: tuple[tuple[str, str], ...]
    """Subject and outcome of those of each launch."""
    compiled: tuple[tuple[int, int], ...]
    """By launch its compilations because of guesses, and guards in its last code."""
    failed: int
    """Items that failed guards."""


_check, _check_taken, _taken = BodyLifter._check, BodyLifter._check_taken, RegionOrder.taken
_argument, _static = BodyLifter._taken_argument, BodyLifter._static_at_entry
_finish, _words_at = chunked_run.finish, launch_profile.words_at
_install, _failed, _fail = Launches.install, InstalledLaunch.failed, BranchProfile.fail


def _unguarded(self: Any, name: str, static: tuple[object, ...], arguments: Any) -> None:
    if name != "guard":
        _check(self, name, static, arguments)


def _inverted(self: Any, name: str, static: tuple[object, ...], arguments: Any) -> None:
    given = (self.none(arguments[0]),) if name == "guard" else arguments
    _check(self, name, static, given)


def _other_path(self: RegionOrder, pc: int, targets: tuple[int, ...]) -> tuple[int, ...]:
    found = _taken(self, pc, targets)
    return found if len(found) == len(targets) else tuple({*targets} - {*found})


def _changed(function: Callable[..., Value | None]) -> Callable[..., Value | None]:
    """The function, which returns another constant."""

    def faulty(self: BodyLifter, *given: Any) -> Value | None:
        found = function(self, *given)
        bits = getattr(found, "bits", None)
        return found if found is None or bits is None else self.constant(found.word_type, bits ^ 1)

    return faulty


def _unchecked(self: BodyLifter) -> None:
    return


def _floats_unchecked(self: BodyLifter) -> None:
    taken = self._taken
    integers = {n: word for n, word in taken.statics.items() if not word[0].is_float}
    self._taken = taken._replace(statics=integers)
    _check_taken(self)
    self._taken = taken


def _without_sign(machine: Any, pc: int, end: int) -> frozenset[KnownWord]:
    zero = 1 << 63
    found = _words_at(machine, pc, end)
    return frozenset(one._replace(bits=0) if one.bits == zero else one for one in found)


def _all_statics(verified: Any, launch: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    arguments, _ = known_word.candidates(verified, launch)
    return arguments, (*range(len(verified.program.statics)),)


def _unknown(self: Launches, pc: int, code: Any, guesses: GuessLimit) -> Any:
    return _install(self, pc, code, guesses._replace(words=frozenset()))


def _left(change: Callable[[Left], list[Left]]) -> Callable[..., None]:
    """Another outcome of items that were suspended."""

    def faulty(objects: Any, limit: int, left: Sequence[Left]) -> None:
        found = expanded(objects, left)
        changed = [change(one) if isinstance(one[1], Block) else [one] for one in found]
        _finish(objects, limit, [one for some in changed for one in some])

    return faulty


def _with_former(one: Left) -> list[Left]:
    item = one[0]
    return [(item - 1, item), one] if item else [one]


def _behind(objects: Any, limit: int, left: Sequence[Left]) -> None:
    def moved(block: Block) -> Block:
        target = objects.program.code.immediates[block.pc]
        return block._replace(pc=target, words=block.words[:-1])

    found = expanded(objects, left)
    _finish(objects, limit, [(n, moved(w) if isinstance(w, Block) else w) for n, w in found])


def _counted_twice(self: InstalledLaunch, items: int, stops: Any) -> int:
    return _failed(self, items, {pc: 2 * times for pc, times in stops.items()})


def _not_started(self: InstalledLaunch, items: int, stops: Any) -> int:
    return _failed(self, 0, stops)


def _not_failed(self: InstalledLaunch, items: int, stops: Any) -> int:
    return _failed(self, items, {})


def _stale(self: BranchProfile, site: Any, branch: int) -> None:
    unseen = site.unseen
    _fail(self, site, branch)
    site.unseen = unseen


def _forgetful(self: BranchProfile, site: Any, branch: int) -> None:
    failed = {*self.failed}
    _fail(self, site, branch)
    self.failed = failed


def _unchanged(self: Decider, launch: int, words: Collection[KnownWord]) -> None:
    return


FAULTS = (
    GuessFault("guess-guard-left-out", "A path is left out without a guard.",
        BodyLifter, "_check", _unguarded),
    GuessFault("guess-resumed-behind-branch", "An item that fails goes on behind its branch.",
        chunked_run, "finish", _behind),
    GuessFault("guess-wrong-static", "A static is taken for another constant.",
        BodyLifter, "_static_at_entry", _changed(_static)),
    GuessFault("guess-failures-doubled", "An item that fails a guard counts twice.",
        InstalledLaunch, "failed", _counted_twice),
    GuessFault("guess-guard-inverted", "Items that do not take the path that is left out fail.",
        BodyLifter, "_check", _inverted),
    GuessFault("guess-other-path", "The path that items took is left out.",
        RegionOrder, "taken", _other_path),
    GuessFault("guess-wrong-argument", "An argument is taken for another constant.",
        BodyLifter, "_taken_argument", _changed(_argument)),
    GuessFault("guess-unchecked-in-order", "The words are not checked in front of the loop.",
        BodyLifter, "_check_taken", _unchecked),
    GuessFault("guess-floats-unchecked", "Floats are not checked in front of the loop.",
        BodyLifter, "_check_taken", _floats_unchecked),
    GuessFault("guess-unchecked-out-of-order", "The words are not checked before a range.",
        Launches, "install", _unknown, unchecked=True),
    GuessFault("guess-zero-without-sign", "A word of -0 is taken for 0.",
        launch_profile, "words_at", _without_sign, unchecked=True),
    GuessFault("guess-written-static", "A static that items write is taken for constant.",
        launch_profile, "candidates", _all_statics),
    GuessFault("guess-item-lost", "An item that fails is taken as done.",
        chunked_run, "finish", _left(lambda one: [])),
    GuessFault("guess-item-begun-anew", "An item that fails begins anew.",
        chunked_run, "finish", _left(lambda one: [(one[0], one[0] + 1)])),
    GuessFault("guess-item-done-twice", "An item that fails begins again when it is done.",
        chunked_run, "finish", _left(lambda one: [one, (one[0], one[0] + 1)])),
    GuessFault("guess-item-before-twice", "The item before one that fails is done again.",
        chunked_run, "finish", _left(_with_former)),
    GuessFault("guess-failures-lost", "Items that fail are not counted.",
        InstalledLaunch, "failed", _not_failed),
    GuessFault("guess-items-uncounted", "Items that begin are not counted.",
        InstalledLaunch, "failed", _not_started),
    GuessFault("guess-share-ignored", "Any failure is too many.",
        GuessLimit, "is_exceeded", lambda self, failures, items: failures > 0),
    GuessFault("guess-never-wrong", "No share of failures is too large.",
        InstalledLaunch, "wrong", lambda self: []),
    GuessFault("guess-stale-path", "The next code leaves out the path that failed, too.",
        BranchProfile, "fail", _stale),
    GuessFault("guess-made-again", "A path that failed is left out for another launch.",
        BranchProfile, "fail", _forgetful),
    GuessFault("guess-stale-word", "The next code takes a word that changed for constant, too.",
        Decider, "changed", _unchanged),
)  # fmt: skip


@functools.cache
def _policy(backend: str, lanes: int, case: str) -> Policy:
    share, limit = _SHARES[case]
    options = Options(
        background=False,
        cache=False,
        optimize=2 if lanes > 1 else 1,
        threads=2,
        lanes=lanes,
        speculate=True,
        observe_items=_OBSERVED,
        guard_share=share,
        guard_limit=limit,
    )
    rule = Rule(
        when=When((Test("kind", (Like("launch"),)), Test("name", (Like("*go*"), Like("main/*"))))),
        backends=(Choice(backend, options),),
    )
    return Policy(rules=(rule,), profile=Profile(loop_threshold=2))


def _run(backend: str, lanes: int, case: str) -> Told:
    execution = Engine(policy=_policy(backend, lanes, case)).start(
        ferryvm.compile(_TEXT.format(items=_ITEMS))
    )
    output = execution.run().output
    return _told(execution, output)


def _told(execution: Execution, output: str) -> Told:
    from ..engine.mixing import placements

    guesses, compiled, failed = [], [], 0
    for one in placements(execution):
        if not one.guesses:
            continue
        for guess in one.guesses:
            subject = guess.subject
            kind = "path"
            if isinstance(subject, KnownWord):
                kind = f"{'static' if subject.is_static else 'argument'} {subject.number} {subject.bits:#x}"
            guesses.append((kind, guess.outcome))
        compiled.append((one.recompilations, one.attempts[-1].guards))
        activities = [attempt.code.activity() for attempt in one.attempts if attempt.code]
        failed += sum(sum(each.failures.values()) for each in one.launches)
        if not one.launches:
            failed += sum(sum(each.failures.values()) for each in activities)
    return Told(output, tuple(guesses), tuple(compiled), failed)


@functools.cache
def _output() -> str:
    """The output of the loop."""
    return Engine("threaded").start(ferryvm.compile(_TEXT.format(items=_ITEMS))).run().output


def _expected(backend: str, case: str) -> Told:
    """The output of the loop, and what has to be told."""
    told = _KEPT if case == "kept" else _GIVEN_UP
    if backend == "vliw" and case != "kept":  # code in order leaves at the third failure
        told = told._replace(failed=2 * _SHARES[case][1])
    return told._replace(output=_output())


_CHANGED_WORDS = (("argument 1 0x3", CHANGED), ("static 0 0x7", CHANGED))
_KEPT = Told(
    "",
    (
        *(("path", ""), ("path", ""), *_CHANGED_WORDS),
        *(("static 1 0x8000000000000000", CHANGED), ("path", ""), ("path", ""), ("path", "")),
        ("argument 1 0x4", ""),
    ),
    ((3, 2), (0, 3)),
    failed=61,
)
"""The first launch is compiled again for each word that changes; 1 and 2 of 50 items fail a
guard."""
_AGAIN = ("path", "not made again: it failed before")
_GIVEN_UP = Told(
    "",
    (
        *(("path", WRONG), ("path", WRONG), *_CHANGED_WORDS),
        *(("static 1 0x8000000000000000", FORGOTTEN), ("path", ""), _AGAIN, _AGAIN),
        *(("argument 1 0x4", ""), ("static 1 0x0", "")),
    ),
    ((4, 0), (0, 1)),
    failed=9,
)
"""It is compiled again for two paths and two words; then nothing is guessed any more."""


@contextmanager
def planted(fault: GuessFault | None) -> Iterator[None]:
    """Context in which launches run out of order, however few items they have, with the fault."""
    with (
        mock.patch.multiple(launching, WORTH=0.0, SAMPLE=0.0),
        mock.patch.object(installed_launch, "SUSPENSION", 0.0),
    ):
        if fault is None:
            yield
            return
        check = _unchecked if fault.unchecked else _check_taken
        around = mock.patch.object(BodyLifter, "_check_taken", check)
        with around, mock.patch.object(fault.owner, fault.function, fault.faulty):
            yield


def find(fault: GuessFault | None, how: Sequence[tuple[str, int]] = HOW) -> str | None:
    """The first case that shows the fault; None if none does."""
    for backend, lanes in how:
        for case in _SHARES:
            with planted(fault):
                try:
                    found = _run(backend, lanes, case)
                except Exception as error:  # noqa: BLE001 - whatever a fault leads to
                    return f"{backend}, {lanes} lanes, {case}: {type(error).__name__}"
            wanted = _expected(backend, case)
            if found != wanted:
                pairs = zip(Told._fields, found, wanted, strict=True)
                return f"{backend}, {lanes} lanes, {case}: " + next(
                    n for n, a, b in pairs if a != b
                )
    return None
