# SPDX-License-Identifier: Apache-2.0
"""Groups: an item that launches members, as the code of one member.

    item of the outer launch                        one member of its group

    tile = new array of 64                          tile: array 0 of the group
    launch 64 members ─> member(l, tile, …)   ─>    member(l, tile, …), up to its end
         each waits at its barriers                 `barrier` waits for the other members

`size` finds how large a group is, `form` makes the code of a member, `uniformity` shows that all
members come to each barrier, `check` removes checks that cannot fail, and `boundary` takes the
others out, to be made before a group begins. None of them depends on a target.
"""

from __future__ import annotations

from ferryvm.errors import FerryError


class UngroupedError(FerryError):
    """The items of a launch are not run as groups; the message is the reason."""
