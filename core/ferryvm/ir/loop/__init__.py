# SPDX-License-Identifier: Apache-2.0
"""Loops of the region IR: one description of them, and the analyses that loop passes use.

    natural ─> preheader                   the loops of a body; blocks before them
       ├────> induction ─> affine          induction variables, trip counts; affine expressions
       ├────> clone                        copies of a loop beside it, or of its iterations
      ├────> poll                         the cost of polls of the interrupt flag
       └────> iteration_space ─> runtime_check        checks before a nest that imply its own
                                 (access: the bytes of each object that the nest accesses)

A pass calls `natural.find_loops` again after it has changed blocks or edges.
"""
