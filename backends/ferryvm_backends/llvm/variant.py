# SPDX-License-Identifier: Apache-2.0
"""Native functions of one body, which differ in their assumptions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.ir.graph import Body
from ferryvm_backends._llvm import ir


@dataclasses.dataclass(frozen=True)
class Variant:
    """A body, and the assumptions under which it runs."""

    body: Body
    calls: Mapping[int, ir.Function]
    """The native functions that it calls, by the numbers of the VM's."""
    is_inner: bool = False
    """True if its callers have polled the flag and checked the host's stack already."""
    has_headroom: bool = False
    """True if the VM's stack is known to have headroom for the frames of its calls."""
