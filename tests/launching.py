# SPDX-License-Identifier: Apache-2.0
"""Launches in assembly: the loop that the builder and Skiff write, too."""

from __future__ import annotations


def launch(function: str, drops: int) -> str:
    """The code that launches a function, with the arguments and the number of items on the stack;
    `drops`: operands that it drops at the end, of the launch's three and the arguments."""
    return "\n".join(
        (
            "    launch.begin",
            ":again",
            "    launch.test",
            "    jump_unless over",
            f"    launch.item {function}",
            f"    call {function}",
            "    jump again",
            ":over",
            *["    drop"] * drops,
        )
    )
