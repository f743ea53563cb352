# SPDX-License-Identifier: Apache-2.0
"""Names in the native code of a region."""

ENTRY = "ferry_region"
"""The C function that enters the region."""

ACTIVITY = "ferry_activity"
"""Words that it counts in: entries, cycles, instructions; what its frames take on the host's stack,
which is written there when it is loaded; entries left at once, since there was no room for them;
then the failures of each guard, then `NEST_WORDS` of each nest with two versions."""

ENTRIES, CYCLES, INSTRUCTIONS, STACK, CROWDED, FAILURES = range(6)
"""Places in `ACTIVITY`."""

FAST, SLOW, REASON, NEST_WORDS = range(4)
"""Of a nest: how often each version was taken, and the number of the last reason for the slow
one."""
