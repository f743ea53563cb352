# SPDX-License-Identifier: Apache-2.0
"""Messages about items of kernels that are not independent, with items and groups by their
indices."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ferryvm.python.control_flow.kernel_source import Layout

_PAIR = re.compile(r"items (\d+) and (\d+) of the launch at .*?:(\d+):\d+ are")


def described(text: str, layout: Layout, counts: Sequence[int], line: int) -> str | None:
    """The message for a kernel of one about a launch; None if it is about something else. `line`:
    that of the definition, where a launch of groups stands."""
    found = _PAIR.search(text)
    if found is None:
        return None
    sizes, what, end = counts, "item", ""
    if layout.group is not None and int(found[3]) == line:
        what = "group"
    elif layout.group is not None:
        sizes, end = layout.group, " of a group"

    def shown(match: re.Match[str]) -> str:
        index = [int(n) for n in np.unravel_index(int(match[1]), sizes)]
        return f"{what} {index[0] if len(index) == 1 else tuple(index)}"

    one, other = (re.sub(r"(\d+)", shown, found[number]) for number in (1, 2))
    rest = re.sub(r"\bitem (\d+)", shown, text[found.end() :])
    return f"{one} and {other}{end} are{rest}"
