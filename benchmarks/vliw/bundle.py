# SPDX-License-Identifier: Apache-2.0
"""How often each bundle of a program was issued."""

from __future__ import annotations

from ferryvm_backends.vliw.enter import VliwCode


class Issues:
    """Counts of the bundles of a code, from now on."""

    def __init__(self, code: VliwCode) -> None:
        self.code = code
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self._before = self.code.totals.bundles.copy()

    def between(self, begin: int, end: int) -> int:
        """Cycles in the bundles from one up to another."""
        return int((self.code.totals.bundles - self._before)[begin:end].sum())

    @property
    def operations(self) -> int:
        """Operations that were issued."""
        counts = (self.code.totals.bundles - self._before).tolist()
        bundles = self.code.program.bundles
        return sum(len(bundle) * count for bundle, count in zip(bundles, counts, strict=True))
