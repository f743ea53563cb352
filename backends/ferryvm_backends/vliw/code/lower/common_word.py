# SPDX-License-Identifier: Apache-2.0
"""Words that the exits of a body have in common.

    leave 1: words of its own ──┬─> words 20 to 39 ──┬─> words 0 to 19 ─> stop
    leave 2: words of its own ──┘                    │
    leave 3: words of its own ───────────────────────┘

Exits in inlined calls have the words of all frames around. Where a body has many exits, each writing
all of its words is most of the code. So the first words that several exits have in common are written
by one block, to which these jump. (Tail merging: Muchnick: Advanced Compiler Design and
Implementation, 1997, section 18.8.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.ir.graph import Body, FrameState, Value, Virtual

MOST_WRITTEN = 1500
"""Words of a body's exits up to which each writes its own: a jump takes longer than some stores."""
FEWEST = 12
"""Words for which a block is made, at least."""


class CommonWords:
    """The first words that exits of a body have in common."""

    def __init__(self, body: Body) -> None:
        self._following: list[dict[object, int]] = [{}]
        """For the first words of some state, by number: the numbers of those with one word more."""
        self._counts = [0]
        """The number of exits with these words."""
        states = {o.state: o for b in body.blocks for o in (*b.operations, b.end)}
        written = 0
        for state in states:
            if state is not None:
                written += len(state.words)
                for number in self._path(state, is_new=True):
                    self._counts[number] += 1
        self._is_worth = written > MOST_WRITTEN

    def parts(self, state: FrameState) -> list[tuple[int, int, int]]:
        """Parts of a state's words that it has in common with others, the last one first: its first
        word, the word behind it, and a number that is the same where all words up to there are."""
        if not self._is_worth:
            return []
        found: list[tuple[int, int, int]] = []
        path = [*self._path(state)]
        start = 0
        for place, number in enumerate(path):
            is_end = place + 1 == len(path) or self._counts[path[place + 1]] < self._counts[number]
            if self._counts[number] > 1 and is_end and place + 1 - start >= FEWEST:
                found.append((start, place + 1, number))
                start = place + 1
        return found[::-1]

    def _path(self, state: FrameState, is_new: bool = False) -> Iterator[int]:
        number = 0
        for word in state.words:
            key = _key(word)
            following = self._following[number].get(key)
            if following is None:
                if not is_new:
                    return
                following = self._following[number][key] = len(self._following)
                self._following.append({})
                self._counts.append(0)
            number = following
            yield number


def _key(word: Value | None) -> object:
    """Equal for words with equal contents."""
    return ("canonical", word.raw) if isinstance(word, Virtual) else word
