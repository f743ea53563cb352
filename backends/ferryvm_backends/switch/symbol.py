# SPDX-License-Identifier: Apache-2.0
"""Names and numbers that the switch interpreter's native code and its user share."""

from ferryvm.isa import INSTRUCTIONS

PLAIN = "ferry_switch_plain"
"""The loop: a function of a control block's address."""

COUNTING = "ferry_switch_counting"
"""The loop that pays fuel."""

CALL, COUNTING_CALL = f"{PLAIN}_call", f"{COUNTING}_call"
"""The loops in our floating-point environment whatever the caller's; they return the status."""

RESUME, COUNTING_RESUME = f"{PLAIN}_resume", f"{COUNTING}_resume"
"""Functions that take pieces of the record of a launch and run them by a loop, see
`ferryvm.machine.item_map`."""

SLOT = f"{PLAIN}_slot"
"""Runs the rest of a suspended item by the loop, see `ferryvm.machine.slot_code`."""

COUNT_OPCODE = len(INSTRUCTIONS)
"""Opcode of a count cell."""

ENTER_OPCODE = COUNT_OPCODE + 1
"""Opcode of an enter cell."""

LAUNCH_OPCODE = ENTER_OPCODE + 1
"""Opcode of an enter cell at a `launch.test`."""
