# SPDX-License-Identifier: Apache-2.0
"""Which cases of the suite are in the default tier.

Every case is there, in a part of its manners, by rotation: the first case in its first manner, the
next one in its second, and so on. All of them are run every night.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from ..tier import NIGHTLY

PARTS = {"opencl": 8, "vliw": 8, "llvm": 8, "reference": 8, "switch": 4, "threaded": 4}
"""Of how many manners of a case the default tier has one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not in the default tier."""
    cases: defaultdict[tuple[str, str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        check = item.callspec.params.get("ferry_case") if hasattr(item, "callspec") else None
        if check and check.backend.name in PARTS:
            cases[check.backend.name, check.item.group, check.item.name].append(item)
    for number, ((backend, *_), manners) in enumerate(cases.items()):
        # A case with few manners has one of them all the same.
        parts = min(PARTS[backend], len(manners))
        for turn, item in enumerate(manners):
            if (number + turn) % parts:
                item.add_marker(NIGHTLY)
