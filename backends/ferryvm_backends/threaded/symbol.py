# SPDX-License-Identifier: Apache-2.0
"""Names in the threaded interpreter's native code."""

RUN = "ferry_threaded_run"
"""The C entry: takes a control block's address, enters the cell at its pc."""

CALL = "ferry_threaded_call"
"""As RUN, in our floating-point environment whatever the caller's; returns the status."""

RESUME = "ferry_threaded_resume"
"""Takes pieces of the record of a launch and runs them, see `ferryvm.machine.item_map`."""

SLOT = "ferry_threaded_slot"
"""Runs the rest of a suspended item, see `ferryvm.machine.slot_code`."""

PLAIN = "ferry_threaded_plain"
"""Addresses of handlers: one an instruction by opcode, then the fused ones."""

COUNTING = "ferry_threaded_counting"
"""Addresses of handlers that pay fuel, one an instruction by opcode."""

CELLS = "ferry_threaded_cells"
"""Addresses of the handlers of count, enter and launch cells: three that do not pay fuel, three
that do."""
