# SPDX-License-Identifier: Apache-2.0
"""The peephole: applies the rules of `ferryvm.listing.rule` to a listing until none fires.

A rule matches consecutive items and replaces them. Items form a linked list. The items that a
rewrite changes, and those shortly before them, are examined again, so the work grows with the
number of rewrites and not with rewrites times items. References to labels are counted: a label that
loses its last one is removed, and the items around it can form a window.

The listing must be one that the verifier accepts. Its behaviour is preserved: values, output, traps
and the positions of the instructions that trap. Frames do not become deeper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ferryvm import record
from ferryvm.isa import Flow
from ferryvm.listing import ClauseListing, FunctionListing, Item, Label, Line, Listing
from ferryvm.listing.rule import LABEL, RULES, Rule


@record.dataclass
class Work:
    """Amounts of work, for tests that it grows linearly."""

    rewrites: int = 0
    """Rules applied."""
    looks: int = 0
    """Items at which a window was tried."""


def optimize(listing: Listing, rules: Sequence[Rule] = RULES, work: Work | None = None) -> Listing:
    """An equivalent listing with fewer instructions; the argument is not changed."""
    work = work if work is not None else Work()
    functions = []
    for function in listing.functions:
        while True:
            before = work.rewrites
            items = _Rewriter(listing, function, rules, work).run()
            clauses = _covering(function.clauses, items)
            is_done = work.rewrites == before and len(clauses) == len(function.clauses)
            function = record.replace(function, items=items, clauses=clauses)
            if is_done:
                break
        functions.append(function)
    return record.replace(listing, functions=functions)


def _covering(clauses: list[ClauseListing], items: Sequence[Item]) -> list[ClauseListing]:
    """The clauses that still cover an instruction."""
    places: dict[str, int] = {}
    lines = 0
    for item in items if clauses else ():
        if isinstance(item, Label):
            places[item.name] = lines
        else:
            lines += 1
    return [clause for clause in clauses if places[clause.start] < places[clause.end]]


def _names(item: Item) -> tuple[str, ...]:
    """The labels that an item refers to."""
    if isinstance(item, Line) and item.row.flow in (Flow.JUMP, Flow.BRANCH, Flow.TABLE):
        if isinstance(item.operand, tuple):
            return item.operand
        if isinstance(item.operand, str):
            return (item.operand,)
    return ()


def _key(item: Item) -> str:
    return LABEL if isinstance(item, Label) else item.row.mnemonic


class _Rewriter:
    """One function's items as a linked list, with the queries that rules may make (`Window`)."""

    def __init__(
        self,
        listing: Listing,
        function: FunctionListing,
        rules: Sequence[Rule],
        work: Work,
    ) -> None:
        self.listing, self.work = listing, work
        items = function.items
        self.items: list[Item | None] = [*items, None]  # None: removed, and the end
        self.end = len(items)
        self.next = [*range(1, self.end + 1), self.end]
        self.previous = [-1, *range(self.end)]
        self.first = 0
        self.references: Counter[str] = Counter(n for item in items for n in _names(item))
        for clause in function.clauses:
            self.references.update((clause.start, clause.end, clause.handler))
        self.places = {
            item.name: place for place, item in enumerate(items) if isinstance(item, Label)
        }
        self.forwards: dict[str, str] = {}
        self.rules: dict[str, list[Rule]] = {}
        for rule in rules:
            for key in rule.pattern[0]:
                self.rules.setdefault(key, []).append(rule)
        self.reach = max((len(rule.pattern) for rule in rules), default=0)
        # A stack, the last item first, so that chains of jumps shorten from their ends.
        self.queue = list(range(self.end))
        self.is_queued = [True] * self.end + [False]

    def run(self) -> list[Item]:
        """The items after rewriting until no rule fires (apart from rules that later results of
        `forward` would enable)."""
        while self.queue:
            place = self.queue.pop()
            self.is_queued[place] = False
            while self.items[place] is not None and self._look(place):
                pass
        return [item for item in self._from(self.first) if item is not None]

    def _from(self, place: int) -> Iterator[Item | None]:
        while place != self.end:
            yield self.items[place]
            place = self.next[place]

    def _look(self, place: int) -> bool:
        """True if a rule fired on the window that starts at `place`."""
        self.work.looks += 1
        head = self.items[place]
        assert head is not None
        for rule in self.rules.get(_key(head), ()):
            window = self._window(place, rule)
            if window is None:
                continue
            replacement = rule.rewrite(Window(self, window[-1]), *(self.items[p] for p in window))
            if replacement is not None:
                self._replace(window, replacement)
                self.work.rewrites += 1
                return True
        return False

    def _window(self, place: int, rule: Rule) -> list[int] | None:
        window = []
        for keys in rule.pattern:
            item = self.items[place]
            if item is None or _key(item) not in keys:
                return None
            window.append(place)
            place = self.next[place]
        return window

    def _replace(self, window: list[int], replacement: Sequence[Item]) -> None:
        """Replace the items of a window by others, which are at most as many."""
        assert len(replacement) <= len(window)
        for place, item in zip(window, replacement, strict=False):
            self._count(place, item)
            self.items[place] = item
        for place in window[len(replacement) :]:
            self._count(place, None)
            self._unlink(place)
        for place in window[: len(replacement)]:
            self._queue(place)
        start = window[0]
        if not replacement:
            start = self.next[window[-1]]
            self._queue(start)
        for _ in range(self.reach):
            start = self.previous[start]
            if start < 0:
                break
            self._queue(start)

    def _count(self, place: int, new: Item | None) -> None:
        """Update the counts of references for an item that replaces the one at `place`."""
        old = self.items[place]
        assert old is not None
        if isinstance(old, Label):
            del self.places[old.name]  # no rule puts a label anywhere
        if new is not None:
            self.references.update(_names(new))
        for name in _names(old):
            self.references[name] -= 1
            if not self.references[name] and name in self.places:
                self._queue(self.places[name])

    def _queue(self, place: int) -> None:
        if not self.is_queued[place] and place != self.end:
            self.is_queued[place] = True
            self.queue.append(place)

    def _unlink(self, place: int) -> None:
        before, after = self.previous[place], self.next[place]
        self.items[place] = None
        self.previous[after] = before
        if before < 0:
            self.first = after
        else:
            self.next[before] = after


class Window:
    """A window of lines, with the queries about its surroundings that rules may make."""

    def __init__(self, rewriter: _Rewriter, last: int) -> None:
        self._rewriter, self._last = rewriter, last

    @property
    def listing(self) -> Listing:
        """The whole listing, for statics and the like."""
        return self._rewriter.listing

    def is_used(self, label: str) -> bool:
        """True if something jumps to a label."""
        return self._rewriter.references[label] > 0

    def is_followed_by(self, label: str) -> bool:
        """True if only labels, that one among them, stand between the window and the next line."""
        rewriter = self._rewriter
        place = rewriter.next[self._last]
        while isinstance(item := rewriter.items[place], Label):
            if item.name == label:
                return True
            place = rewriter.next[place]
        return False

    def forward(self, label: str) -> str:
        """The final target of a jump to `label`: the last label reached through jumps alone.

        Answers are cached. They remain true, since no rewrite changes final targets.
        """
        rewriter = self._rewriter
        passed: dict[str, None] = {}
        while label not in passed and label in rewriter.places:
            known = rewriter.forwards.get(label)
            if known is not None and known in rewriter.places:
                label = known
                break
            passed[label] = None
            onward = self._onward(label)
            if onward is None:
                break
            label = onward
        for name in passed:
            rewriter.forwards[name] = label
        return label

    def _onward(self, label: str) -> str | None:
        rewriter = self._rewriter
        item = rewriter.items[rewriter.next[rewriter.places[label]]]
        if isinstance(item, Label):
            return item.name
        if item is not None and item.row.mnemonic == "jump" and isinstance(item.operand, str):
            return item.operand
        return None
