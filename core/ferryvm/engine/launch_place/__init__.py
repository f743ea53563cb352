# SPDX-License-Identifier: Apache-2.0
"""Places of a launch: the backends and devices on which its items may run, chosen by time.

    calibration (once for a device, kept) ──> model ──> expected time ─┐
                                                                       ├─> the place of a range
    runs of the launch ─────────────────────> found time ──────────────┘

A rule with `place = "measured"` has all its backends as places. `docs/placement.md` is for users.
"""
