# SPDX-License-Identifier: Apache-2.0
"""The `when` of a rule: tests of facts that must all hold, alternatives, and an exception.

    when = { kind = "loop", work = ">= 1000", any = [ {...}, {...} ], not = {...} }
             ── tests, all must hold ──────   one of these holds    this does not

Facts with a dot in their name may be written quoted (`"machine.cpus"`) or not (`machine.cpus`,
which TOML reads as a table in a table): both have the same meaning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import methodcaller

from ferryvm import record
from ferryvm.named_tuple import NamedTuple
from ferryvm.policy import condition
from ferryvm.policy.condition import ALLOWED, Condition, Like
from ferryvm.policy.fact import PLUGIN, Fact, Values, find, vocabulary
from ferryvm.toml.fault import Path, TomlFault, nearest, show

ANY, NOT = "any", "not"
"""Keys of a `when` that are not facts."""

_OTHER_WORDS = {"or": ANY, "some": ANY, "none": NOT, "except": NOT, "unless": NOT}
_ALL = ("all", "and")
"""Names of `all` in other systems; here all keys of one table must hold anyway."""

_KEYS = f"{ANY}, {NOT}, {PLUGIN}.NAME.FACT, or a fact that `ferry policy facts` lists"

Outcomes = frozenset[bool]
"""The results that a test can have over all regions."""

_ALWAYS, _NEVER = frozenset({True}), frozenset({False})
_EITHER = _ALWAYS | _NEVER


class MatchResult(NamedTuple):
    """The result of a predicate for a region."""

    holds: bool
    because: str
    """The value found and the condition, in one line."""


@record.dataclass(frozen=True)
class Test:
    """A fact equals one of the wanted values."""

    __test__ = False  # not a class of tests for pytest

    fact: str
    wanted: tuple[Condition, ...]
    _known: tuple[Fact | None, Outcomes] | None = record.field(
        default=None, init=False, repr=False, compare=False
    )
    """The last result, and the value that it was for."""

    def judge(self, values: Values) -> MatchResult:
        """The result for a region, with the value found."""
        found = values.get(self.fact)
        if found is None:
            return MatchResult(False, f"{self.fact} is not known here, wanted {self.wanting}")
        holds = self.holds(values)
        shown = f"{found:.6g}" if isinstance(found, float) else show(found)
        is_said = holds and shown in map(str, self.wanted)
        aside = "" if is_said else f", wanted {self.wanting}"
        return MatchResult(holds, f"{self.fact} is {shown}{aside}")

    def holds(self, values: Values) -> bool:
        """True if it holds for a region."""
        found = values.get(self.fact)
        return found is not None and any(map(methodcaller("holds", found), self.wanted))

    def outcomes(self, facts: Mapping[str, Fact]) -> Outcomes:
        """The possible results; `facts` has the possible values."""
        fact = facts.get(self.fact)
        known = self._known
        if known is None or known[0] is not fact:
            known = (fact, self._outcomes(fact))
            object.__setattr__(self, "_known", known)
        return known[1]

    def _outcomes(self, fact: Fact | None) -> Outcomes:
        values = condition.samples(fact, self.wanted) if fact else None
        if values is None:
            return _ALWAYS if fact and Like("*") in self.wanted else _EITHER
        found = set()
        for value in values:
            found.add(any(one.holds(value) for one in self.wanted))
            if len(found) == len(_EITHER):
                return _EITHER
        return frozenset(found)

    @property
    def wanting(self) -> str:
        """The condition in words."""
        return " or ".join(map(str, self.wanted))


@record.dataclass(frozen=True)
class When:
    """A predicate; one without parts always holds."""

    tests: tuple[Test, ...] = ()
    alternatives: tuple[When, ...] = ()
    """If not empty, one of them must hold."""
    exception: When | None = None
    """It must not hold."""

    def judge(self, values: Values) -> MatchResult:
        """The result for a region, and the reason: all conditions that held, or the one that did
        not."""
        reasons = []
        for verdict in self._parts(values):
            if not verdict.holds:
                return verdict
            reasons.append(verdict.because)
        return MatchResult(True, "; ".join(reasons) or "it takes everything")

    def holds(self, values: Values) -> bool:
        """As `judge`, without the reason."""
        return (
            all(test.holds(values) for test in self.tests)
            and (not self.alternatives or any(one.holds(values) for one in self.alternatives))
            and (self.exception is None or not self.exception.holds(values))
        )

    def _parts(self, values: Values) -> Iterator[MatchResult]:
        for test in self.tests:
            yield test.judge(values)
        if self.alternatives:
            verdicts = [alternative.judge(values) for alternative in self.alternatives]
            held = next((verdict for verdict in verdicts if verdict.holds), None)
            failed = "; ".join(verdict.because for verdict in verdicts)
            yield held or MatchResult(False, f"no alternative: {failed}")
        if self.exception is not None:
            verdict = self.exception.judge(values)
            yield MatchResult(
                not verdict.holds,
                f"{'except' if verdict.holds else 'no exception'}: {verdict.because}",
            )

    def outcomes(self, facts: Mapping[str, Fact]) -> Outcomes:
        """The possible results; exact for each test, not for tests that contradict each other."""
        parts = [test.outcomes(facts) for test in self.tests]
        if self.alternatives:
            either = [one.outcomes(facts) for one in self.alternatives]
            parts.append(_negate(_all(_negate(one) for one in either)))
        if self.exception is not None:
            parts.append(_negate(self.exception.outcomes(facts)))
        return _all(parts)


def _negate(outcomes: Outcomes) -> Outcomes:
    return frozenset(not outcome for outcome in outcomes)


def _all(parts: Iterable[Outcomes]) -> Outcomes:
    """Outcomes of a conjunction."""
    result = _ALWAYS
    for part in parts:
        if part == _NEVER:
            return _NEVER
        result |= part
    return result


Report = Callable[[TomlFault], None]
FindFact = Callable[[str], Fact | None]
"""From a name to the fact of that name."""


def read(table: Mapping[str, object], path: Path, report: Report, known: FindFact = find) -> When:
    """The predicate of a `when` table. Faults are reported, and the parts with faults are
    omitted."""
    tests: dict[str, Test] = {}
    alternatives: list[When] = []
    exception = None
    for key, value in table.items():
        at = (*path, key)
        if key == ANY:
            alternatives = _read_alternatives(value, at, report, known)
        elif key == NOT:
            if isinstance(value, dict) and value:
                exception = read(value, at, report, known)
            else:
                report(TomlFault(at, f"found {show(value)}", "a table of facts"))
        else:
            for name, place, wanted in _flat(key, at, value):
                test = _read_test(name, place, wanted, report, known)
                if name in tests:
                    said = f"{name} is asked for twice"
                    report(TomlFault(place, said, "once; quoted or not is the same"))
                elif test is not None:
                    tests[name] = test
    return When(tuple(tests.values()), tuple(alternatives), exception)


def _read_alternatives(value: object, path: Path, report: Report, known: FindFact) -> list[When]:
    if not isinstance(value, list) or not value:
        report(TomlFault(path, f"found {show(value)}", "a list of tables, one at least"))
        return []
    found = []
    for index, table in enumerate(value):
        if isinstance(table, dict) and table:
            found.append(read(table, (*path, index), report, known))
        else:
            report(TomlFault((*path, index), f"found {show(table)}", "a table of facts"))
    return found


def _flat(name: str, path: Path, value: object) -> Iterator[tuple[str, Path, object]]:
    """Facts with their full names and positions, from tables that dotted keys made."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", (*path, key), inner)
    else:
        yield name, path, value


def _read_test(
    name: str, path: Path, value: object, report: Report, known: FindFact
) -> Test | None:
    values = value if isinstance(value, list) else [value]
    if values and all(type(one) is str for one in values):
        test = _usual_test(name, tuple(values), known)
        if test is not None:
            return test
    return _new_test(name, path, value, report, known)


@functools.lru_cache(maxsize=1024)
def _usual_test(name: str, texts: tuple[str, ...], known: FindFact) -> Test | None:
    """The test of a fact for texts, None if there is a fault; cached, because rules repeat
    tests."""
    faults: list[TomlFault] = []
    test = _new_test(name, (), [*texts], faults.append, known)
    return None if faults else test


def _new_test(name: str, path: Path, value: object, report: Report, known: FindFact) -> Test | None:
    fact = known(name)
    if fact is None:
        report(_unknown(name, path))
        return None
    allowed = ALLOWED[fact.type]
    if isinstance(value, list) and not value:
        report(TomlFault(path, "found an empty list", f"{allowed}; a list is one of its elements"))
        return None
    wanted = []
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        place = (*path, index) if isinstance(value, list) else path
        found = condition.read(one, fact)
        if found is None:
            report(TomlFault(place, f"found {show(one)}", f"{allowed}, or a list of such"))
        elif isinstance(found, Like) and fact.values and not any(map(found.holds, fact.values)):
            near = nearest(found.pattern, fact.values)
            report(TomlFault(place, f"unknown {name} {found}", ", ".join(fact.values), near))
        else:
            wanted.append(found)
    return Test(name, tuple(wanted)) if wanted else None


def _unknown(name: str, path: Path) -> TomlFault:
    """The fault of a key that is not a fact; there are too many facts to list."""
    found = f"unknown fact {show(name)}"
    first = name.partition(".")[0]
    if first == PLUGIN:
        return TomlFault(path, found, f"{PLUGIN}.NAME.FACT")
    if first in _ALL:
        return TomlFault(path, found, f"the keys of one table, which must all hold; {_KEYS}")
    near = _OTHER_WORDS.get(first) or nearest(name, [*vocabulary(), ANY, NOT])
    return TomlFault(path, found, _KEYS, near)
