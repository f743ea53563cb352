# SPDX-License-Identifier: Apache-2.0
"""Names in the native code of a region."""

ENTRY = "ferry_region"
"""The C function that enters the region."""

LANES = "ferry_lanes"
"""The function that runs items of a launch in lanes, see `ferryvm.machine.lane`."""

ACTIVITY = "ferry_activity"
"""Counters of the code: entries, cycles, instructions; bytes of native stack of its frames, written
by the loader; entries left at once for lack of native stack; groups left in the middle; then the
failures of each guard, then `NEST_WORDS` for each nest with two versions."""

ENTRIES, CYCLES, INSTRUCTIONS, STACK, CROWDED, UNFINISHED, FAILURES = range(7)
"""Places in `ACTIVITY`."""

FAST, SLOW, REASON, NEST_WORDS = range(4)
"""Of a nest: how often each version was taken, and the number of the last reason for the slow
one."""
