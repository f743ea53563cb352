# SPDX-License-Identifier: Apache-2.0
"""References that Python holds, by number: roots of a collection, after all others.

    Python   │ view │ ── handle ──> words │ 48 │ 0 │ 120 │ ──> objects
             └ its end releases the handle, in whatever thread and at whatever time

A release may come from a finaliser, which Python runs anywhere, also in the middle of a collection.
So it is only noted, and takes effect in `settle`.
"""

from __future__ import annotations

from array import array
from collections import deque


class Handles:
    """The handles of one object space."""

    def __init__(self) -> None:
        self.words = array("Q")
        """The references by handle; 0 for a handle that is free."""
        self._free: list[int] = []
        self._released: deque[int] = deque()
        self._by_reference: dict[int, int] | None = {}
        """The latest handle of each reference; None if a collection has changed them."""

    def hold(self, reference: int) -> int:
        """A new handle of an object, which is alive until the handle is released."""
        self.settle()
        known = self._known()
        if self._free:
            handle = self._free.pop()
            self.words[handle] = reference
        else:
            handle = len(self.words)
            self.words.append(reference)
        known[reference] = handle
        return handle

    def find(self, reference: int) -> int | None:
        """The latest handle of an object; None if it has none. It may be released already."""
        return self._known().get(reference)

    def release(self, handle: int) -> None:
        """Give a handle back; any thread may do so at any time."""
        self._released.append(handle)

    def settle(self) -> None:
        """Free the released handles."""
        while self._released:
            handle = self._released.popleft()
            if self._by_reference is not None:
                reference = self.words[handle]
                if self._by_reference.get(reference) == handle:
                    del self._by_reference[reference]
            self.words[handle] = 0
            self._free.append(handle)

    def moved(self) -> None:
        """Note that a collection has changed the references."""
        self._by_reference = None

    def take(self, other: Handles) -> None:
        """Take over the references of another machine's handles, where that is a copy of this one's
        or this one is new. What has been released here meanwhile stays free."""
        self.settle()
        other.settle()
        if not self.words:
            self.words, self._free = array("Q", other.words), [*other._free]
        else:
            taken = zip(self.words, other.words, strict=True)
            self.words = array("Q", [word and theirs for word, theirs in taken])
        self._by_reference = None

    def forget(self) -> None:
        """Free all handles: the views of the machine that this one is a copy of hold objects
        there."""
        self.words = array("Q")
        self._free, self._by_reference = [], {}
        self._released.clear()

    def _known(self) -> dict[int, int]:
        if self._by_reference is None:
            self._by_reference = {word: n for n, word in enumerate(self.words) if word}
        return self._by_reference
