# SPDX-License-Identifier: Apache-2.0
"""The outcome of loop versioning for one nest, for reports and for caches."""

from __future__ import annotations

from typing import Any, NamedTuple


class VersioningReason(NamedTuple):
    """The reason why a nest is not versioned, or why its versioned copy is not executed."""

    text: str
    pcs: tuple[int, ...]
    """The instructions concerned."""


class VersionedNest(NamedTuple):
    """A nest that stores, and the runtime checks of its versioned copy."""

    pc: int
    """pc of its outermost loop's condition."""
    unfit: VersioningReason | None
    """The reason why it is not versioned; None if it is."""
    doubts: tuple[VersioningReason, ...] = ()
    """The reasons for which a runtime check can fail; `report_version` numbers them from 1."""

    @classmethod
    def from_json(cls, data: list[Any]) -> VersionedNest:
        """The nest that a JSON array describes."""
        pc, unfit, doubts = data
        reasons = [
            None if each is None else VersioningReason(each[0], tuple(each[1]))
            for each in (unfit, *doubts)
        ]
        return cls(pc, reasons[0], tuple(filter(None, reasons[1:])))
