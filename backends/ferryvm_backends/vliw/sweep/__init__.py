# SPDX-License-Identifier: Apache-2.0
"""One program on many machines that differ in a few numbers: their costs and their speeds.

file ── parsed ──> document ── vary ──> variants ── judge ──> machines ── measure ──> results
                                                                             table, plot
"""
