# SPDX-License-Identifier: Apache-2.0
"""Names in the native code of a region."""

ENTRY = "ferry_region"
"""The C function that enters the region."""

ACTIVITY = "ferry_activity"
"""Words that it counts in: entries, cycles, instructions, then the failures of each guard."""

ENTRIES, CYCLES, INSTRUCTIONS, FAILURES = range(4)
"""Places in `ACTIVITY`."""
