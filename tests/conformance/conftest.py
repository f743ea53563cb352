# SPDX-License-Identifier: Apache-2.0
"""Which cases of the suite are in the default tier, for compilers that take long to build code.

Every case is there, in a part of its manners, by rotation: the first case in its first manner, the next
one in its second, and so on. All of them are run every night.
"""

from __future__ import annotations

from collections import Counter

import pytest

from ..tier import NIGHTLY

PARTS = {"opencl": 3, "vliw": 2, "llvm": 2}
"""Of how many manners of a case the default tier has one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not in the default tier."""
    cases: dict[tuple[str, str, str], int] = {}
    manners: Counter[tuple[str, str, str]] = Counter()
    for item in items:
        check = item.callspec.params.get("ferry_case") if hasattr(item, "callspec") else None
        parts = PARTS.get(check.backend.name) if check else None
        if check and parts:
            case = (check.backend.name, check.item.group, check.item.name)
            number = cases.setdefault(case, len(cases))
            if (number + manners[case]) % parts:
                item.add_marker(NIGHTLY)
            manners[case] += 1
