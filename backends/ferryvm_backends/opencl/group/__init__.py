# SPDX-License-Identifier: Apache-2.0
"""Groups as work-groups: the items of an outer launch whose members wait for each other.

    outer launch of n groups ─> NDRange of n x members ─┬─ all groups done
                                                        └─ members that would leave ─> groups in order

`ferryvm.ir.member` makes the code of a member. The sizes of a group become constants of the kernel;
where they depend on statics or arguments, a kernel is built when a launch begins with them.
"""

from __future__ import annotations

from ferryvm.region.barrier import waiting
from ferryvm.region.call import call_graph
from ferryvm.region.region import Region


def has_groups(items: Region) -> bool:
    """True if the items of a launch have launches whose members wait for each other; `items`: the
    function that they call."""
    verified = items.verified
    return not waiting(verified).keys().isdisjoint(call_graph(verified).reached([items.function]))
